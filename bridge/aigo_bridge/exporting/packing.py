"""Packing of a plan as files for another machine, and unpacking of the same plan from them.

```text
<module>/
  export.json       the manifest
  task/             the task's YAML and all included files, at their relative paths
  samples.jsonl     the selected rows, one per line
```

A packed task is unpacked for verification: the digest of the plan must be the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.datasets.rows import Row
from aigo_bridge.datasets.rows import digest_of as digest_of_rows
from aigo_bridge.errors import BridgeError, Issue, SpecError, UnsupportedPlanError, UsageError
from aigo_bridge.exporting.manifest import ExportManifest, PackedDataset, check_files, checksum, read_manifest
from aigo_bridge.plan.plan import PlannedDataset, PlanOrigin, Sample, TaskPlan, digest_of, document_of
from aigo_bridge.planning.planning import plan_task, task_document
from aigo_bridge.reading import Document, read
from aigo_bridge.spec.parameters import (
    BooleanParameter,
    CategoricalParameter,
    DictParameter,
    FloatParameter,
    IntParameter,
    ListParameter,
    Parameter,
    parse_text,
)
from aigo_bridge.spec.task import TaskSpec
from aigo_bridge.version import __version__

SAMPLES = "samples.jsonl"

TASK = "task"


def pack(plan: TaskPlan, folder: Path, manifest: ExportManifest) -> ExportManifest:
    """Write a plan's task files and rows to a new folder. Return the completed manifest.

    Raises:
        UnsupportedPlanError: the files would give another plan on another machine.
    """
    reference = plan.benchmark.dataset if plan.dataset is not None else None
    if reference is not None and reference.source == "task_result":
        raise UnsupportedPlanError(
            f"task {plan.task.key!r} uses the earlier result {reference.key!r}, which cannot "
            "be exported (use --native to export its rows)",
            code=Code.NOT_EXPORTABLE,
        )
    folder.mkdir(parents=True)
    document = _document_of(plan)
    task_file = _write_task(document, folder)
    if plan.dataset is not None:
        for number, rows in enumerate(_rows(plan)):
            write_rows(rows, folder / _rows_file(number))
    written = replace(
        manifest,
        task_file=task_file,
        task_digest=task_digest(plan.task),
        dataset=None
        if plan.dataset is None
        else PackedDataset(
            plan.dataset.key, plan.dataset.display_name, plan.dataset.total, _keys(plan), plan.dataset.tags
        ),
        limit=plan.num_samples,
        subsampling=plan.subsampling,
        trials_asked=None if plan.origin is None else plan.origin.num_trials,
        files={
            path.relative_to(folder).as_posix(): checksum(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        },
    )
    return _verified(plan, folder, written)


def packed_plan(folder: Path, config: Mapping[str, Any], *, num_samples: int | None = None) -> TaskPlan:
    """Return the plan of a packed task.

    Args:
        folder: folder of the task.
        config: values of its parameters.
        num_samples: number of samples, from the first one; `None` for all packed samples.

    Raises:
        UsageError: the files were changed.
        SpecError: a value does not fit its parameter.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    return _unpacked(folder, manifest, config, num_samples)


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows as JSON lines that are read back exactly, including NaN and large integers."""
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    with path.open("wb") as file:
        for row in rows:
            file.write(encode(dict(row)).encode() + b"\n")


def task_digest(task: TaskSpec) -> str:
    """Return the SHA-256 checksum of a task as read."""
    return hashlib.sha256(orjson.dumps(document_of(task), option=orjson.OPT_SORT_KEYS)).hexdigest()


def _document_of(plan: TaskPlan) -> Document[TaskSpec]:
    origin = plan.origin
    if origin is None:
        raise UnsupportedPlanError(
            "the plan does not come from a file, so it cannot be exported", code=Code.NOT_EXPORTABLE
        )
    return task_document(origin)


def _write_task(document: Document[TaskSpec], folder: Path) -> str:
    """Write all files of a task; return the path of the main file in the folder."""
    files = {_plain(name): text for name, text in document.texts.items()}
    base = Path(os.path.commonpath([path.parent for path in files]))
    for path, text in files.items():
        place = folder / TASK / path.relative_to(base)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="\n")
    return (Path(TASK) / _plain(document.file).relative_to(base)).as_posix()


def _plain(path: str | Path) -> Path:
    """Return an absolute path without `..`, without following links, because includes are found by their
    written path.
    """
    return Path(os.path.normpath(Path(path).absolute()))


def _keys(plan: TaskPlan) -> tuple[str, ...]:
    """Return the keys of the datasets that contain the rows."""
    reference = plan.benchmark.dataset if plan.dataset is not None else None
    if reference is None:
        return () if plan.dataset is None else (plan.dataset.key,)
    return tuple(key for key in reference.keys or (reference.key,) if key is not None)


def _rows(plan: TaskPlan) -> list[list[Mapping[str, Any]]]:
    reference = plan.benchmark.dataset
    if reference is None or reference.keys is None:
        return [[sample.data for sample in plan.samples]]
    return [[sample.data[key] for sample in plan.samples] for key in reference.keys]


def _rows_file(number: int) -> str:
    return SAMPLES if number == 0 else f"samples_{number + 1}.jsonl"


def _verified(plan: TaskPlan, folder: Path, manifest: ExportManifest) -> ExportManifest:
    """Return the manifest after checking that its files give the same plan. It contains sample ids if the
    rows alone would give others.
    """
    try:
        copy = _unpacked(folder, manifest, plan.config, None)
        ids = tuple(sample.id for sample in plan.samples)
        if plan.dataset is not None and ids != tuple(sample.id for sample in copy.samples):
            manifest = replace(manifest, sample_ids=ids)
            copy = _unpacked(folder, manifest, plan.config, None)
    except SpecError as error:
        reasons = "; ".join(dict.fromkeys(issue.message for issue in error.issues))
        raise UnsupportedPlanError(
            f"task {plan.task.key!r} cannot be moved to another folder: {reasons}"
            " (includes have to be written relative to the file that contains them)",
            code=Code.NOT_EXPORTABLE,
        ) from error
    except BridgeError as error:
        raise UnsupportedPlanError(
            f"task {plan.task.key!r} cannot be exported: {error}", code=Code.NOT_EXPORTABLE
        ) from error
    if copy.digest != plan.digest:
        raise UnsupportedPlanError(
            f"task {plan.task.key!r} cannot be exported: its files have changed while they were read",
            code=Code.NOT_EXPORTABLE,
        )
    return manifest


def _unpacked(
    folder: Path, manifest: ExportManifest, config: Mapping[str, Any], num_samples: int | None
) -> TaskPlan:
    if manifest.task_file is None:
        raise UsageError(
            f"{str(folder)!r} contains a native export, which runs without aigo-bridge",
            code=Code.OTHER_EXPORT,
        )
    root = folder / TASK
    document = read(TaskSpec, folder / manifest.task_file, root=root)
    if task_digest(document.spec) != manifest.task_digest:
        if manifest.release != __version__:
            reason = (
                f"aigo-bridge {__version__} reads its files otherwise than {manifest.release}, which"
                " exported them; install that one"
            )
        else:
            reason = "it reads environment variables, and they have other values here"
        raise UsageError(
            f"task {manifest.key!r} is not the one that was exported: {reason}", code=Code.OTHER_EXPORT
        )
    plan = plan_task(document, _origin(folder, manifest, document, config, num_samples))
    if plan.dataset is None or manifest.dataset is None:
        return plan
    return _identified(plan, plan.dataset, manifest, manifest.dataset)


def _origin(
    folder: Path,
    manifest: ExportManifest,
    document: Document[TaskSpec],
    config: Mapping[str, Any],
    num_samples: int | None,
) -> PlanOrigin:
    parameters = document.spec.config_spec
    config = typed_arguments(parameters, config)
    for parameter in parameters:
        packed = manifest.config.get(parameter.key)
        if parameter.type == "dataset" and config.get(parameter.key, packed) != packed:
            raise UsageError(
                f"parameter {parameter.key!r}: the export has the rows of dataset {packed!r} only;"
                f" for another one export the task again with --config {parameter.key}=…",
                code=Code.OTHER_EXPORT,
            )
    keys = () if manifest.dataset is None else manifest.dataset.keys
    return PlanOrigin(
        task=str(document.file),
        config=config,
        datasets={key: str(folder / _rows_file(number)) for number, key in enumerate(keys)},
        num_samples=num_samples,
        num_trials=manifest.trials_asked,
        root=str(folder / TASK),
    )


def _identified(
    plan: TaskPlan, dataset: PlannedDataset, manifest: ExportManifest, packed: PackedDataset
) -> TaskPlan:
    """Return the plan with facts that the rows do not contain: ids and their source."""
    samples = plan.samples
    if manifest.sample_ids is not None:
        samples = tuple(
            Sample(sample_id, sample.data)
            for sample_id, sample in zip(manifest.sample_ids, samples, strict=False)
        )
    complete = len(samples) == manifest.num_samples
    dataset = replace(
        dataset,
        display_name=packed.display_name,
        total=packed.total,
        tags=packed.tags,
        digest=digest_of_rows([Row(sample.id, dict(sample.data)) for sample in samples]),
    )
    return replace(
        plan,
        samples=samples,
        dataset=dataset,
        digest=digest_of(plan.task, plan.config, dataset, num_trials=plan.num_trials),
        num_samples=manifest.limit if complete else plan.num_samples,
        subsampling=manifest.subsampling,
    )


# Parameter values from `-T name=value`. Engines parse them as YAML and split them at commas, without the
# types of the parameters. A text with a comma arrives as a list, a list of one item as that item, `1e-3` as
# text.


def typed_arguments(parameters: Sequence[Parameter], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to the types of the parameters, if the typed text can be recovered.

    Raises:
        SpecError: a text was converted to another type and is lost; the issue describes how to type it.
    """
    by_key = {parameter.key: parameter for parameter in parameters}
    issues: list[Issue] = []
    typed = {
        key: _typed(by_key[key], value, issues) if key in by_key else value
        for key, value in arguments.items()
    }
    if issues:
        raise SpecError(issues)
    return typed


def _typed(parameter: Parameter, value: Any, issues: list[Issue]) -> Any:
    match parameter:
        case _ if value is None:
            return None
        case IntParameter() | FloatParameter() | BooleanParameter() | DictParameter():
            return parse_text(parameter, value) if isinstance(value, str) else value
        case ListParameter():
            return [_item(parameter, item) for item in _listed(value)]
        case CategoricalParameter(multiple=True):
            return _listed(value)
        case _:
            return _text(parameter, value, issues)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value == "" else [value]


def _item(parameter: ListParameter, item: Any) -> Any:
    """Convert an item between commas, which is always text."""
    if parameter.dtype == "string" or not isinstance(item, str):
        return item
    single: Parameter
    if parameter.dtype == "boolean":
        single = BooleanParameter(type="boolean", key=parameter.key, display_name=parameter.display_name)
    else:
        single = FloatParameter(type="float", key=parameter.key, display_name=parameter.display_name)
        if parameter.dtype == "integer":
            single = IntParameter(type="int", key=parameter.key, display_name=parameter.display_name)
    return parse_text(single, item)


def _text(parameter: Parameter, value: Any, issues: list[Issue]) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if isinstance(value, str):
        return value
    message = f"parameter {parameter.key!r}: found {value!r}, expected text"
    issues.append(
        Issue(
            message,
            path=("config", parameter.key),
            hint="type it with quotes inside: -T 'name=\"…\"'",
            code=Code.WRONG_PARAMETER,
        )
    )
    return value
