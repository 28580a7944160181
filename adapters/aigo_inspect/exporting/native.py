"""A task as plain Inspect code, for tasks of which every part has an exact native form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.exporting.manifest import Manifest, PackedDataset, checksum
from aigo_bridge.plan import TaskPlan
from aigo_inspect.exporting.native_code import native_code
from aigo_inspect.exporting.native_parts import parts_of
from aigo_inspect.exporting.native_samples import Samples, native_samples

SAMPLES = "samples.jsonl"
_SHOWN = 5


def native_form(plan: TaskPlan) -> tuple[Sequence[Gap], Samples]:
    """Every part of a task with its fidelity and, if all are exact so far, its samples, which are a part as well."""
    parts = parts_of(plan)
    if any(part.fidelity is not Fidelity.EXACT for part in parts):
        return parts, Samples()
    samples = native_samples(plan)
    return [*parts, _samples_part(samples)], samples


def write_native(plan: TaskPlan, samples: Samples, folder: Path, manifest: Manifest) -> tuple[Manifest, str]:
    """Write the samples into a new folder; returns the completed manifest and the code of the task's file."""
    folder.mkdir(parents=True)
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    with (folder / SAMPLES).open("wb") as file:
        for record in samples.records:
            file.write(encode(record).encode() + b"\n")
    dataset = plan.dataset
    manifest = replace(
        manifest,
        dataset=None
        if dataset is None
        else PackedDataset(dataset.key, dataset.display_name, dataset.total, (), dataset.tags),
        limit=plan.num_samples,
        subsampling=plan.subsampling,
        files={SAMPLES: checksum(folder / SAMPLES)},
    )
    return manifest, native_code(plan, manifest, has_config=samples.has_config)


def _samples_part(samples: Samples) -> Gap:
    if not samples.problems:
        return Gap("samples", "", Fidelity.EXACT)
    more = len(samples.problems) - _SHOWN
    listed = "; ".join(samples.problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    reason = f"{len(samples.problems)} would fail in a run: {listed}"
    return Gap("samples", reason, Fidelity.UNSUPPORTED, "mend the rows or the templates")
