"""Datasets of a plan: their keys, their files, and the selection of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.access.existence import is_folder
from aigo_bridge.access.opening import YAML_SUFFIXES, from_here
from aigo_bridge.codes import Code
from aigo_bridge.datasets.copies import copied_rows
from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.rows import Row, Rows, Selection, collect, digest_of
from aigo_bridge.datasets.sources import DatasetTools, TraceReader, check_source, load_dataset
from aigo_bridge.datasets.spill_files import LazySequence
from aigo_bridge.datasets.tables import ObjectTable
from aigo_bridge.errors import DatasetError, Issue, UsageError
from aigo_bridge.plan.plan import TEXT, PlannedDataset, PlanOrigin, Sample, TaskPlan, is_unsaved
from aigo_bridge.planning.published_datasets import checked_rows
from aigo_bridge.reading import Document, read
from aigo_bridge.reading.locating import find_dataset, find_hub_datasets
from aigo_bridge.spec.base import rows_tags
from aigo_bridge.spec.datasets import (
    DatasetSpec,
    FolderSource,
    HuggingFaceSource,
    InspectSource,
    LocalSource,
)
from aigo_bridge.spec.task import BenchmarkDefinition, TaskSpec


@dataclass(frozen=True)
class Sibling:
    """Specification whose result will be available when it is needed."""

    key: str
    columns: tuple[str, ...] | None = None
    """Columns of the rows that its result will provide; `None` if unknown."""


@dataclass(frozen=True)
class Surroundings:
    """Additional sources that a task may use; empty for a single task."""

    datasets: Mapping[str, Document[DatasetSpec]] = field(default_factory=dict)
    """Datasets that the run file declares, by key. They take precedence over files in the task's project."""
    evaluated: str | None = None
    """Key of the dataset under evaluation, for tasks that evaluate a dataset."""
    results: Mapping[str, Path] = field(default_factory=dict)
    """Stored results that the run file names, by the key of their specification."""
    folders: tuple[Path, ...] = ()
    """Additional folders to search for results."""
    read_traces: Callable[[Path], TraceReader] | None = None
    """Returns a reader of datasets from engine logs for the folder that must contain all paths."""
    siblings: Mapping[str, Sibling] = field(default_factory=dict)
    """Specifications of the same evaluation, by the names with which tasks may refer to their results."""
    several_tasks: bool = False
    """Whether data files were given for several tasks, so that this task need not use all of them."""
    rows: Mapping[str, tuple[str, Sequence[dict[str, Any]]]] = field(default_factory=dict)
    """Datasets with rows in memory: key → display name and rows. A file for the key takes precedence."""
    at_hand_only: bool = False
    """Whether to skip datasets that are not local (URLs, hubs, engine logs), because the plan is only used
    for its checks.
    """


ALONE = Surroundings()

_ALL = Selection()
_NO_TOOLS = DatasetTools()


def planned_rows(
    definition: BenchmarkDefinition,
    document: Document[TaskSpec],
    origin: PlanOrigin,
    around: Surroundings = ALONE,
) -> tuple[PlannedDataset, Sequence[Sample], tuple[Issue, ...]]:
    """Return the dataset of a task, its selected rows, and warnings about them.

    Raises:
        UsageError: datasets were given that the task does not use, or a required dataset is missing.
        SpecError: a dataset is not found, or its file is invalid.
        DatasetError: rows cannot be read, or the dataset is empty.
    """
    selection = Selection(
        num_samples=origin.num_samples,
        subsampling=origin.subsampling or "head",
        on_disk=origin.shard is not None,
    )
    if definition.dataset is not None and definition.dataset.source == "task_result":
        return _of_result(definition, document, origin, around, selection)
    keys = _keys(definition, document, origin, around)
    if definition.dataset is None or definition.dataset.keys is None:
        name, tags, rows = _load(keys[0], document, origin, around, selection)
    else:
        loaded = {key: _load(key, document, origin, around, Selection()) for key in keys}
        name = ", ".join(part for part, _, _ in loaded.values())
        tags = tuple(dict.fromkeys(tag for _, part, _ in loaded.values() for tag in part))
        rows = aligned_rows({key: part for key, (_, _, part) in loaded.items()}, selection)
    if not rows.rows:
        files = ", ".join(str(_file(key, document, origin, around)) for key in keys)
        named = ", ".join(map(repr, keys))
        raise DatasetError(
            f"dataset {named} is empty, expected at least one row", file=files, code=Code.NO_ROWS
        )
    return _planned(keys, name, rows, tags)


def _planned(
    keys: Sequence[str], name: str, rows: Rows, tags: tuple[str, ...]
) -> tuple[PlannedDataset, Sequence[Sample], tuple[Issue, ...]]:
    _refuse_broken_text(rows, keys)
    # AI GO's evidence can contain one dataset, so the names of several are joined.
    dataset = PlannedDataset("-".join(keys)[:250], name, rows.columns, rows.digest, rows.total, tags)
    if isinstance(rows.rows, LazySequence):
        stored = rows.rows
        return dataset, stored.mapped(lambda row: Sample(row.sample_id, row.data)), rows.warnings
    return dataset, tuple(Sample(row.sample_id, row.data) for row in rows.rows), rows.warnings


def _refuse_broken_text(rows: Rows, keys: Sequence[str]) -> None:
    """Reject lone surrogates, which cannot be written to a log, before paid model calls are made."""
    issues: list[Issue] = []
    for row in rows.rows:
        try:
            # orjson also rejects other values, such as large integers.
            orjson.dumps(row.data, default=str)
            continue
        except TypeError:
            pass
        try:
            json.dumps(row.data, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            broken = error.object[error.start : error.start + 1]
            message = (
                f"sample {row.sample_id!r} of dataset {keys[0]!r} contains half of a surrogate "
                f"pair ({broken!a}), expected Unicode text"
            )
            issues.append(
                Issue(
                    message, hint="write the complete character, or remove it", code=Code.VALUE_WITHOUT_JSON
                )
            )
    if issues:
        raise DatasetError(issues[:20])


def aligned_rows(parts: Mapping[str, Rows], selection: Selection) -> Rows:
    """Align the rows of several datasets: the first row of each becomes `{dataset key: row}` of the first
    sample, and so on.

    A sample has the id of its rows if it is equal in all datasets; otherwise it has its number.

    Raises:
        DatasetError: the datasets have different numbers of rows.
    """
    counts = {key: len(part) for key, part in parts.items()}
    if len(set(counts.values())) > 1:
        row_counts = ", ".join(f"{key!r} has {count:,}" for key, count in counts.items())
        hint = "row n of each dataset becomes sample n, so all need the same rows in the same order"
        raise DatasetError(
            f"the datasets in 'keys' have different numbers of rows: {row_counts}",
            hint=hint,
            code=Code.UNEQUAL_LENGTHS,
        )
    beside = list(zip(*(part.rows for part in parts.values()), strict=True))
    table = ObjectTable({key: row.data for key, row in zip(parts, rows, strict=True)} for rows in beside)
    aligned = collect(table, selection)
    warnings = [issue for part in parts.values() for issue in part.warnings]
    unlike = [n for n, rows in enumerate(beside) if len({row.sample_id for row in rows}) > 1]
    if not unlike:
        rows = [Row(beside[int(row.sample_id)][0].sample_id, row.data) for row in aligned.rows]
        aligned = replace(aligned, rows=tuple(rows), digest=digest_of(rows))
    elif all("sample_id" in part.columns for part in parts.values()):
        ids = " and ".join(repr(row.sample_id) for row in beside[unlike[0]])
        message = (
            f"rows are combined by position, but in {len(unlike)} of {len(beside)} positions "
            f"their ids differ (first: {ids})"
        )
        warnings.append(Issue(message, severity="warning", code=Code.DOUBTFUL_ROWS))
    return replace(aligned, warnings=tuple(warnings))


def pending_result(
    definition: BenchmarkDefinition, origin: PlanOrigin, around: Surroundings
) -> Sibling | None:
    """Return the specification of the same evaluation whose result provides the rows; otherwise `None`."""
    reference = definition.dataset
    if reference is None or reference.source != "task_result" or reference.key is None:
        return None
    is_stored = reference.key in origin.datasets or reference.key in around.results
    return None if is_stored else around.siblings.get(reference.key)


def _of_result(
    definition: BenchmarkDefinition,
    document: Document[TaskSpec],
    origin: PlanOrigin,
    around: Surroundings,
    selection: Selection,
) -> tuple[PlannedDataset, Sequence[Sample], tuple[Issue, ...]]:
    """Return the trials of an earlier result as rows."""
    from aigo_bridge.planning.results import find_result, result_rows
    from aigo_bridge.results.reading import LogReader
    from aigo_bridge.results.specification import dataset_tags

    assert definition.dataset is not None
    assert definition.dataset.key is not None
    key = definition.dataset.key
    if pending_result(definition, origin, around) is not None:
        return PlannedDataset(key, key, (), ""), (), ()
    files = {**around.results, **{name: Path(file) for name, file in origin.datasets.items()}}
    file = find_result(key, files, [*around.folders, document.file.parent])
    rows = result_rows(file, selection)
    if not rows.rows:
        raise DatasetError(
            f"task result {key!r} lacks samples, expected at least one", file=str(file), code=Code.NO_ROWS
        )
    return _planned([key], key, rows, dataset_tags(LogReader(file).frame().specification))


def _file(key: str, document: Document[TaskSpec], origin: PlanOrigin, around: Surroundings) -> Path:
    if key in around.datasets and key not in origin.datasets:
        return around.datasets[key].file
    if is_unsaved(origin.datasets.get(key, "")) or _copy(key, origin) is not None:
        return Path(origin.datasets[key])
    return _found(key, document, origin)


def _copy(key: str, origin: PlanOrigin) -> Path | None:
    """Return the folder that was given for a dataset, with a copy of its hub data."""
    folder = Path(origin.datasets.get(key, ""))
    return folder if key in origin.datasets and is_folder(folder) else None


def _of_hub(
    key: str, document: Document[TaskSpec], origin: PlanOrigin, folder: Path
) -> Document[DatasetSpec]:
    file = find_hub_datasets(document.file).get(key)
    if file is None:
        raise DatasetError(
            f"found a folder for dataset {key!r}, which is not a hub dataset",
            file=str(folder),
            hint=f"pass a file: --dataset {key}=FILE",
            option="--dataset",
            code=Code.MISSING_COPY,
        )
    return read(DatasetSpec, file, root=None if origin.root is None else Path(origin.root))


def _found(key: str, document: Document[TaskSpec], origin: PlanOrigin) -> Path:
    root = None if origin.root is None else Path(origin.root)
    return find_dataset(key, origin.datasets, document.file, root=root)


def _load(
    key: str,
    document: Document[TaskSpec],
    origin: PlanOrigin,
    around: Surroundings,
    selection: Selection,
) -> tuple[str, tuple[str, ...], Rows]:
    """Return the display name, tags and rows of one dataset."""
    if key in around.rows and is_unsaved(origin.datasets.get(key, TEXT)):
        name, rows = around.rows[key]
        return name, (), collect(ObjectTable(rows), selection)
    copy = _copy(key, origin)
    if key in around.datasets and key not in origin.datasets:
        entity = around.datasets[key]
    elif copy is not None:
        entity = _of_hub(key, document, origin, copy)
    else:
        file = _found(key, document, origin)
        if file.suffix.lower() not in YAML_SUFFIXES:
            return key, (), load_file(file, selection)
        entity = read(DatasetSpec, file, root=None if origin.root is None else Path(origin.root))
    if entity.spec.source is None and entity.spec.generator_specification is not None:
        raise DatasetError(
            f"dataset {key!r} is generated; generate its rows first",
            file=str(entity.file),
            hint=f"run `aigo-bridge generate {from_here(entity.file)} --out {key}.jsonl`, then "
            f"use --dataset {key}={key}.jsonl",
            option="--dataset",
            code=Code.ROWS_NOT_GENERATED,
        )
    if around.at_hand_only and copy is None and not is_at_hand(entity.spec):
        check_entity(entity)
        raise DatasetError([])  # The file is valid as far as it can be checked here.
    reader = None if around.read_traces is None else around.read_traces(entity.root)
    tools = DatasetTools(read_traces=reader)

    def load(chosen: Selection) -> Rows:
        if copy is not None and isinstance(entity.spec.source, HuggingFaceSource):
            return copied_rows(entity.spec.source, copy, chosen)
        return entity_rows(entity, chosen, tools)

    selected, doubts, notes = checked_rows(entity, selection, load)
    selected = replace(selected, warnings=(*selected.warnings, *doubts))
    # Remove tags in the file that look like such notes.
    own_tags = tuple(tag for tag in entity.spec.tags if not rows_tags([tag]))
    return entity.spec.display_name, (*own_tags, *notes), selected


def is_at_hand(dataset: DatasetSpec) -> bool:
    """Return whether the rows are local files that can be read without an engine."""
    return isinstance(dataset.source, LocalSource | FolderSource)


def check_entity(entity: Document[DatasetSpec]) -> None:
    """Check that the files of a dataset's source may be read, without reading them.

    Raises:
        DatasetError: a file may not be read, with the position in the dataset file.
    """
    source = entity.spec.source
    if source is None:
        return
    try:
        check_source(source, base=entity.folder(("source",)), root=entity.root)
    except DatasetError as error:
        raise DatasetError([_of_source(issue, entity) for issue in error.issues]) from error


def entity_rows(
    entity: Document[DatasetSpec], selection: Selection = _ALL, tools: DatasetTools = _NO_TOOLS
) -> Rows:
    """Return the selected rows of a dataset file with a source.

    The file may come from a stranger, like a task, so it can only read files in its root folder.

    Raises:
        DatasetError: rows cannot be read. A problem of the source as a whole has its position in the
            dataset file.
    """
    base = entity.folder(("source",))
    try:
        return load_dataset(entity.spec, base=base, root=entity.root, selection=selection, tools=tools)
    except DatasetError as error:
        raise DatasetError([_of_source(issue, entity) for issue in error.issues]) from error


def _of_source(issue: Issue, entity: Document[DatasetSpec]) -> Issue:
    """Return an issue with the position of the source, unless it has its own line."""
    if issue.line is not None:
        return issue
    match entity.spec.source:
        case LocalSource(file_path=written):
            path: tuple[str, ...] = ("source", "file_path")
        case FolderSource(directory_path=written):
            path = ("source", "directory_path")
        case InspectSource(path=written):
            path = ("source", "path")
        case _:
            path, written = ("source",), ""
    shown = f"{written!r}: " if written and not entity.is_hidden(path) else ""
    return entity.place(replace(issue, message=shown + issue.message, path=path))


def _keys(
    definition: BenchmarkDefinition, document: Document[TaskSpec], origin: PlanOrigin, around: Surroundings
) -> Sequence[str]:
    """Return the keys of the datasets that a task runs on: its own, or for dataset tasks the given one."""
    reference = definition.dataset
    if reference is None:
        if around.evaluated is not None:
            return (around.evaluated,)
        if len(origin.datasets) == 1:
            return tuple(origin.datasets)
        number_given = f"{len(origin.datasets)} were given" if origin.datasets else "none was given"
        raise UsageError(
            f"task {document.spec.key!r} evaluates a dataset, and {number_given}; pass "
            "exactly one with --dataset KEY=FILE",
            code=Code.DATASET_NOT_GIVEN,
        )
    keys = reference.keys or (reference.key,)
    named = [key for key in keys if key is not None]
    unknown = sorted(set(origin.datasets) - set(named))
    if unknown and not around.several_tasks:
        quoted = ", ".join(map(repr, named))
        has = f"its dataset is {quoted}" if len(named) == 1 else f"its datasets are {quoted}"
        raise UsageError(f"the task does not use dataset {unknown[0]!r}; {has}", code=Code.SURPLUS_ARGUMENT)
    return named


OWN_COLUMNS = ("sample_id", "sample", "solver_output", "trace", "scores", "errors", "error")
"""Columns of every row that is created from a result."""


def result_columns(plan: TaskPlan) -> tuple[str, ...] | None:
    """Return the columns of the rows that a plan's result will provide; `None` if only the run determines
    them.
    """
    if plan.entity == "system" or plan.dataset is None or plan.pending is not None:
        return None
    solver = plan.benchmark.solver
    if solver is not None and solver.postprocessor is not None:
        return None
    repeated = plan.specification is not None and plan.specification.num_runs > 1
    numbers = [*(["run"] if repeated else []), *(["trial"] if plan.num_trials > 1 else [])]
    return tuple(dict.fromkeys([*plan.dataset.columns, *OWN_COLUMNS, *numbers]))
