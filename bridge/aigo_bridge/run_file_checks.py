"""Checks of a run file, or of a task by itself, that need its data: do the templates fit the columns of the data sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from aigo_bridge.datasets import Rows, load_file
from aigo_bridge.datasets.sources import load_dataset
from aigo_bridge.errors import DatasetError, Issue, SpecError, TemplateError
from aigo_bridge.locating import ENTITY_SUFFIXES, find_dataset
from aigo_bridge.parameters import resolve_config
from aigo_bridge.plan import Sample, bind_task
from aigo_bridge.planning_checks import column_issues, definition_issues
from aigo_bridge.planning_nulls import null_issues
from aigo_bridge.reading import Document, read_dataset
from aigo_bridge.spec import BenchmarkDefinition, DatasetSpec, RunSpec, TaskSpec, TaskSpecification
from aigo_bridge.spec.datasets import LocalSource
from aigo_bridge.templates import bind_config


def run_file_issues(document: Document[RunSpec]) -> Iterator[Issue]:
    """What is wrong between the tasks and the local data sets of a valid run file; nothing is fetched or generated."""
    run = document.spec
    if run.evaluation is None:
        return
    tasks = {task.key: number for number, task in enumerate(run.tasks)}
    rows: dict[str, Rows | None] = {}
    for number, dataset in enumerate(run.datasets):
        part = document.part(("datasets", number), dataset)
        try:
            rows[dataset.key] = _local_rows(part)
        except DatasetError as error:
            rows[dataset.key] = None
            yield from error.issues
    values = _evaluation_config(run)
    for specification in run.evaluation.task_specifications:
        if isinstance(specification, TaskSpecification) and specification.task_key in tasks:
            number = tasks[specification.task_key]
            part_of_task = document.part(("tasks", number), run.tasks[number])
            yield from _task_issues(part_of_task, specification, values, rows)


def task_file_issues(document: Document[TaskSpec]) -> Iterator[Issue]:
    """What is wrong between a task and the local data set that a run would find beside it; nothing is fetched or generated.

    Silent where that cannot be known: parameters without a default, data sets that come from elsewhere.
    """
    try:
        config = resolve_config(document.spec.config_spec, {})
        definition = bind_task(document.data, config).definition
    except (SpecError, TemplateError, ValidationError):
        return
    if not isinstance(definition, BenchmarkDefinition) or definition.dataset is None:
        return
    key = definition.dataset.key
    if key is None or definition.dataset.source != "dataset":
        return
    try:
        file = find_dataset(key, {}, document.file)
        if file.suffix.lower() in ENTITY_SUFFIXES:
            found = _local_rows(read_dataset(file))
        else:
            found = load_file(file)
    except (SpecError, DatasetError):
        return  # a data set's own mistakes are told when it is validated, or run
    if found is not None:
        for issue in _definition_issues(definition, found):
            yield replace(document.place(issue), message=f"{issue.message} (data set {key!r})")


def _definition_issues(definition: BenchmarkDefinition, rows: Rows) -> list[Issue]:
    issues = definition_issues(definition, rows.columns)
    if any(issue.severity == "error" for issue in issues):
        return issues
    return [*issues, *null_issues(definition, [Sample(row.sample_id, row.data) for row in rows.rows])]


def _local_rows(document: Document[DatasetSpec]) -> Rows | None:
    """Rows of a local data set; `None` for every other source."""
    if not isinstance(document.spec.source, LocalSource):
        return None
    base = document.folder(("source",))
    return load_dataset(document.spec, base=base, root=document.root)


def _evaluation_config(run: RunSpec) -> dict[str, Any]:
    """Values of the evaluation's parameters, as far as they are there."""
    assert run.evaluation is not None
    declared = {parameter.key: parameter.default_value for parameter in run.evaluation.config_spec}
    return {**declared, **run.config}


def _task_issues(
    document: Document[TaskSpec],
    specification: TaskSpecification,
    values: Mapping[str, Any],
    rows: Mapping[str, Rows | None],
) -> Iterator[Issue]:
    try:
        given = bind_config(dict(specification.task_config), values)
        dataset_key = bind_config(specification.dataset_key, values)
        declared = {parameter.key for parameter in document.spec.config_spec}
        if dataset_key is not None and "dataset_key" in declared:
            given.setdefault("dataset_key", dataset_key)
        known = {name: value for name, value in given.items() if name in declared}
        config = resolve_config(document.spec.config_spec, known)
        definition = bind_task(document.data, config).definition
    except (SpecError, TemplateError, ValidationError):
        return  # values that are missing or wrong are told by the run file's own checks
    if not isinstance(definition, BenchmarkDefinition):
        return
    key = definition.dataset.key if definition.dataset is not None else dataset_key
    found = rows.get(key) if isinstance(key, str) else None
    if found is None:
        return
    issues = [
        *_definition_issues(definition, found),
        *column_issues(document.spec.config_spec, config, found.columns),
    ]
    for issue in issues:
        where = f"data set {key!r}, task specification {specification.key or specification.task_key!r}"
        yield replace(document.place(issue), message=f"{issue.message} ({where})")
