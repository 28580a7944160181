"""The dataset side of planning: which datasets a task runs on, where they are, which of their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.access.opening import YAML_SUFFIXES, from_here
from aigo_bridge.access.presence import is_folder
from aigo_bridge.codes import Code
from aigo_bridge.datasets.copies import copied_rows
from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.rows import Row, Rows, Selection, collect, digest_of
from aigo_bridge.datasets.sources import DatasetTools, TraceReader, check_source, load_dataset
from aigo_bridge.datasets.spilled import Mapped
from aigo_bridge.datasets.tables import ObjectTable
from aigo_bridge.errors import DatasetError, Issue, UsageError
from aigo_bridge.plan.plan import TEXT, PlannedDataset, PlanOrigin, Sample, is_unsaved
from aigo_bridge.planning.published import checked_rows
from aigo_bridge.planning.results import find_result, result_rows
from aigo_bridge.reading import Document, read
from aigo_bridge.reading.locating import find_dataset, find_hub_datasets
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.specification import dataset_tags
from aigo_bridge.spec import BenchmarkDefinition, DatasetSpec, TaskSpec
from aigo_bridge.spec.datasets import FolderSource, HuggingFaceSource, InspectSource, LocalSource, rows_tags


@dataclass(frozen=True)
class Sibling:
    """A specification whose result will be there when the run comes to it."""

    key: str
    columns: tuple[str, ...] | None = None
    """Of the rows that its result will give; `None`: not known."""


@dataclass(frozen=True)
class Surroundings:
    """What a task finds beside its own file; empty for a task that is run by itself."""

    datasets: Mapping[str, Document[DatasetSpec]] = field(default_factory=dict)
    """Datasets that the run file declares, by key; they come before files that lie beside the task."""
    evaluated: str | None = None
    """Key of the dataset under evaluation, for tasks that evaluate one."""
    results: Mapping[str, Path] = field(default_factory=dict)
    """Stored results that the run file names, by the key of their specification."""
    folders: tuple[Path, ...] = ()
    """Further folders in which results are looked for."""
    read_traces: Callable[[Path], TraceReader] | None = None
    """From the folder that paths may not leave to the reader of datasets that are made of an engine's logs.
    """
    siblings: Mapping[str, Sibling] = field(default_factory=dict)
    """Specifications of the same evaluation, by the names that tasks may have for their results."""
    several_tasks: bool = False
    """Whether data files were given for several tasks, so that this one need not use each of them."""
    rows: Mapping[str, tuple[str, Sequence[dict[str, Any]]]] = field(default_factory=dict)
    """Datasets whose rows are at hand already, by key: shown name and rows. A file that was given for the
    key comes before them.
    """
    at_hand_only: bool = False
    """Whether datasets that lie elsewhere (addresses, hubs, logs of engines) are left alone: planning for
    its checks, without a run.
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
    """The dataset of a task, its selected rows, and what is doubtful about them.

    Raises:
        UsageError: datasets were given that the task does not have, or none where it needs one.
        SpecError: a dataset is not found, or its file is invalid.
        DatasetError: rows cannot be read, or there are none.
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
            [Issue(f"dataset {named} has no rows, expected at least one", file=files, code=Code.NO_ROWS)]
        )
    return _planned(keys, name, rows, tags)


def _planned(
    keys: Sequence[str], name: str, rows: Rows, tags: tuple[str, ...]
) -> tuple[PlannedDataset, Sequence[Sample], tuple[Issue, ...]]:
    _refuse_broken_text(rows, keys)
    # AI GO's evidence has room for one dataset; several are named together.
    dataset = PlannedDataset("-".join(keys)[:250], name, rows.columns, rows.digest, rows.total, tags)
    if isinstance(rows.rows, Mapped):
        stored = rows.rows
        return dataset, stored.mapped(lambda row: Sample(row.sample_id, row.data)), rows.warnings
    return dataset, tuple(Sample(row.sample_id, row.data) for row in rows.rows), rows.warnings


def _refuse_broken_text(rows: Rows, keys: Sequence[str]) -> None:
    """Half a character (a lone surrogate) can be written into no log: better told now than after the model
    was paid.
    """
    issues: list[Issue] = []
    for row in rows.rows:
        try:
            # What it refuses also has other reasons, such as large integers.
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
    """The rows of several datasets side by side: the first of each is `{dataset key: row}` of the first
    sample, and so on.

    A sample has its rows' id where all of them have the same, else its number.

    Raises:
        DatasetError: they do not have as many rows.
    """
    counts = {key: len(part) for key, part in parts.items()}
    if len(set(counts.values())) > 1:
        row_counts = ", ".join(f"{key!r} has {count:,}" for key, count in counts.items())
        hint = "row n of each dataset becomes sample n, so all need the same rows in the same order"
        raise DatasetError(
            [
                Issue(
                    f"the datasets in 'keys' have different numbers of rows: {row_counts}",
                    hint=hint,
                    code=Code.UNEQUAL_LENGTHS,
                )
            ]
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
    """The specification of the same evaluation whose result gives the rows; `None` when they are there
    already.
    """
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
    """The trials of an earlier result as rows."""
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
            [
                Issue(
                    f"task result {key!r} has no samples, expected at least one", str(file), code=Code.NO_ROWS
                )
            ]
        )
    return _planned([key], key, rows, dataset_tags(LogReader(file).frame().specification))


def _file(key: str, document: Document[TaskSpec], origin: PlanOrigin, around: Surroundings) -> Path:
    if key in around.datasets and key not in origin.datasets:
        return around.datasets[key].file
    if is_unsaved(origin.datasets.get(key, "")) or _copy(key, origin) is not None:
        return Path(origin.datasets[key])
    return _found(key, document, origin)


def _copy(key: str, origin: PlanOrigin) -> Path | None:
    """The folder that was given for a dataset, with a copy of what its file names on a hub."""
    folder = Path(origin.datasets.get(key, ""))
    return folder if key in origin.datasets and is_folder(folder) else None


def _of_hub(
    key: str, document: Document[TaskSpec], origin: PlanOrigin, folder: Path
) -> Document[DatasetSpec]:
    """The dataset file whose rows a folder has a copy of."""
    file = find_hub_datasets(document.file).get(key)
    if file is None:
        raise DatasetError(
            [
                Issue(
                    f"found a folder for dataset {key!r}, which is not a hub dataset",
                    file=str(folder),
                    hint=f"pass a file: --dataset {key}=FILE",
                    option="--dataset",
                    code=Code.MISSING_COPY,
                )
            ]
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
    """Display name, tags and rows of one dataset."""
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
            [
                Issue(
                    f"dataset {key!r} is generated; generate its rows first",
                    file=str(entity.file),
                    hint=f"run `aigo-bridge generate {from_here(entity.file)} --out {key}.jsonl`, then "
                    f"use --dataset {key}={key}.jsonl",
                    option="--dataset",
                    code=Code.ROWS_NOT_GENERATED,
                )
            ]
        )
    if around.at_hand_only and copy is None and not is_at_hand(entity.spec):
        check_entity(entity)
        raise DatasetError([])  # nothing is wrong with it, as far as can be seen from here
    reader = None if around.read_traces is None else around.read_traces(entity.root)
    tools = DatasetTools(read_traces=reader)

    def load(chosen: Selection) -> Rows:
        if copy is not None and isinstance(entity.spec.source, HuggingFaceSource):
            return copied_rows(entity.spec.source, copy, chosen)
        return entity_rows(entity, chosen, tools)

    selected, doubts, notes = checked_rows(entity, selection, load)
    selected = replace(selected, warnings=(*selected.warnings, *doubts))
    # What a file calls so itself is no such note.
    own_tags = tuple(tag for tag in entity.spec.tags if not rows_tags([tag]))
    return entity.spec.display_name, (*own_tags, *notes), selected


def is_at_hand(dataset: DatasetSpec) -> bool:
    """Whether the rows are files of this machine that need no engine to be read."""
    return isinstance(dataset.source, LocalSource | FolderSource)


def check_entity(entity: Document[DatasetSpec]) -> None:
    """What a dataset's source names may be read, as far as can be seen without reading it.

    Raises:
        DatasetError: it may not, with the place in the dataset file.
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
    """The selected rows of a dataset file that has a source.

    The file may come from a stranger, like a task: what it reads stays below its root.

    Raises:
        DatasetError: rows cannot be read. What is wrong with the source as a whole has its place in the data
            set file.
    """
    base = entity.folder(("source",))
    try:
        return load_dataset(entity.spec, base=base, root=entity.root, selection=selection, tools=tools)
    except DatasetError as error:
        raise DatasetError([_of_source(issue, entity) for issue in error.issues]) from error


def _of_source(issue: Issue, entity: Document[DatasetSpec]) -> Issue:
    """An issue with the place of the source, unless it has a line of its own."""
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
    """Keys of the datasets a task runs on: its own, or for dataset tasks the one that was given."""
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
        raise UsageError(f"the task has no dataset {unknown[0]!r}; {has}", code=Code.SURPLUS_ARGUMENT)
    return named
