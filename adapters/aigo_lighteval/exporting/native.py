"""A task as plain lighteval code, for tasks of which every part has an exact native form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.exporting.comparisons import expected, is_excluded
from aigo_bridge.exporting.manifest import Manifest, PackedDataset, checksum
from aigo_bridge.jsonl_spec.snippet import scorer_snippet
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.scoring import scorer_keys
from aigo_bridge.scoring.likelihoods import Choices
from aigo_lighteval.exporting.native_code import native_code
from aigo_lighteval.exporting.native_parts import parts_of
from aigo_lighteval.exporting.questions import Shared, question_text, shared_question
from aigo_lighteval.golds import golds_of, has_several, is_of_records, storable
from aigo_lighteval.translate import CARRIER, extra_fields, row_text
from aigo_lighteval.turns import asker

SAMPLES = "samples.jsonl"
EXAMPLES = "examples.jsonl"
RECORD_SCORES = "record_scores.py"
_SHOWN = 5

Record = dict[str, Any]
"""Fields of a document."""


@dataclass
class Native:
    """A task, rendered."""

    shared: Shared = field(default_factory=Shared)
    samples: list[Record] = field(default_factory=list)
    examples: list[Record] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why some samples have no native form: they would fail in a run too."""


def native_form(plan: TaskPlan) -> tuple[Sequence[Gap], Native]:
    """Every part of a task with its fidelity and, if all are exact so far, its samples, which are a part as well."""
    parts = parts_of(plan)
    if any(found.fidelity is not Fidelity.EXACT for found in parts):
        return parts, Native()
    native = _rendered(plan)
    return [*parts, _samples_part(native)], native


def write_native(plan: TaskPlan, native: Native, folder: Path, manifest: Manifest) -> tuple[Manifest, str]:
    """Write the documents into a new folder; returns the completed manifest and the code of the task's file."""
    folder.mkdir(parents=True)
    files = {SAMPLES: native.samples, EXAMPLES: native.examples}
    for name, records in files.items():
        if records or name == SAMPLES:
            lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            (folder / name).write_text("".join(lines), encoding="utf-8", newline="\n")
    if any(map(is_of_records, plan.benchmark.scorers)):
        (folder / RECORD_SCORES).write_text(scorer_snippet(), encoding="utf-8", newline="\n")
    dataset = plan.dataset
    manifest = replace(
        manifest,
        dataset=None
        if dataset is None
        else PackedDataset(dataset.key, dataset.display_name, dataset.total, (), dataset.tags),
        limit=plan.num_samples,
        subsampling=plan.subsampling,
        files={path.name: checksum(path) for path in sorted(folder.iterdir())},
    )
    return manifest, native_code(plan, manifest, native.shared)


def _samples_part(native: Native) -> Gap:
    if not native.problems:
        return Gap("samples", "", Fidelity.EXACT)
    more = len(native.problems) - _SHOWN
    listed = "; ".join(native.problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    reason = f"{len(native.problems)} would fail in a run: {listed}"
    return Gap("samples", reason, Fidelity.UNSUPPORTED, "mend the rows or the templates")


Expect = Callable[[Sample], dict[str, Any]]
"""Sample → what a scorer compares with."""


def _rendered(plan: TaskPlan) -> Native:
    """All documents of a task; samples that cannot be rendered are told."""
    ask, golds = asker(plan), golds_of(plan)
    assert ask is not None  # else the solver is not exact
    as_lists = has_several(plan, golds)
    scorers = plan.benchmark.scorers
    expect = [(key, _expect(scorer)) for key, scorer in zip(scorer_keys(scorers), scorers, strict=True)]
    shared, _ = shared_question(plan)
    native = Native(shared, examples=[_example(query.text, said.text) for query, said in shared.examples])
    for sample in plan.samples:
        try:
            asked = ask(sample.data)
            compared: dict[str, Any] = {key: find(sample) for key, find in expect}
            excluded = bool(plan.benchmark.actions) and is_excluded(plan, sample)
        except (SampleError, TemplateError) as error:
            native.problems.append(f"sample {sample.id!r}: {error}")
            continue
        choices, right = golds(sample.data)
        record: Record = {
            "query": storable(question_text(asked)),
            "choices": choices,
            "gold_index": right if as_lists else next(iter(right), 0),
            "specific": {
                CARRIER: row_text(sample),
                "expected": json.dumps({"excluded": excluded, "scorers": compared}),
            },
        }
        record |= extra_fields(asked)
        native.samples.append(record)
    return native


def _example(query: str, answer: str) -> Record:
    return {"query": storable(query), "choices": [storable(answer)], "gold_index": 0}


def _expect(scorer: Any) -> Expect:
    if is_of_records(scorer):
        return _record
    if getattr(scorer, "method", None) != "loglikelihood":
        find = expected(scorer)
        return lambda sample: find(sample.data)
    letters, weighed = expected(scorer), Choices(scorer)

    def expect(sample: Sample) -> dict[str, Any]:
        found = letters(sample.data)
        choices, _ = weighed.of(sample.data, "score")
        if found["ground_truth"] not in choices:
            raise SampleError(
                f"ground_truth_choice: found {found['ground_truth']!r}, expected one of {choices!r}",
                stage="score",
            )
        return {"right": choices.index(found["ground_truth"])}

    return expect


def _record(sample: Sample) -> dict[str, Any]:
    row: Mapping[str, Any] = sample.data
    names = ("metric_name", "post_process", "targets")
    missing = [name for name in names if name not in row]
    if missing:
        raise SampleError(f"the row is no task record: it has no {', '.join(missing)}", stage="score")
    return {name: row[name] for name in names}
