"""Conversion of a task as written to a plan: config bound, rows selected, names and snippets checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError, TemplateError, UsageError
from aigo_bridge.jsonl_spec import is_record_file, read_task_file
from aigo_bridge.plan.plan import (
    PlannedDataset,
    PlanOrigin,
    Sample,
    TaskPlan,
    bind_task,
    digest_of,
    named_models,
)
from aigo_bridge.plan.shards import Shard, ShardRows, parse_shard
from aigo_bridge.planning.answers import answer_issues
from aigo_bridge.planning.checks import column_issues, definition_issues, null_issues, template_fields
from aigo_bridge.planning.rows import ALONE, Sibling, Surroundings, pending_result, planned_rows
from aigo_bridge.reading import Document, issues_from_validation, read, snippet_place
from aigo_bridge.reading.checks.tasks import FUNCTIONS
from aigo_bridge.reading.checks.texts import check_snippet
from aigo_bridge.reading.document import text_at
from aigo_bridge.reading.locating import find_task
from aigo_bridge.spec.parameters import parse_text, resolve_config
from aigo_bridge.spec.task import SYSTEM_SAMPLE, BenchmarkDefinition, SystemDefinition, TaskSpec
from aigo_bridge.templates import SampleTemplate

if TYPE_CHECKING:
    from aigo_bridge.planning.results import StoredRows

SpecPath = tuple[str | int, ...]


def snippet_places(
    document: Document[TaskSpec], definition: BenchmarkDefinition | SystemDefinition
) -> dict[str, tuple[str, int]]:
    """Return the positions of a task's snippets in the form of `TaskPlan.snippet_places`."""
    places: dict[str, tuple[str, int]] = {}
    for path, code in _snippets(definition):
        place = snippet_place(document, ("definition", *path), code)
        if place is not None:
            places[".".join(map(str, path))] = place
    return places


def locate_templates(
    document: Document[TaskSpec], definition: BenchmarkDefinition | SystemDefinition
) -> None:
    """Set the positions of a task's templates, for errors while it runs."""
    for field in template_fields(definition) if isinstance(definition, BenchmarkDefinition) else ():
        place = snippet_place(document, field.path, field.text)
        if place is not None:
            SampleTemplate(field.text).locate(*place)


def snippet_issues(
    document: Document[TaskSpec], definition: BenchmarkDefinition | SystemDefinition
) -> list[Issue]:
    """Return the issues of code that contains config values. Other code was checked when it was read."""
    issues: list[Issue] = []
    for path, code in _snippets(definition):
        if text_at(document.data, ("definition", *path)) == code:
            continue
        for issue in check_snippet(code, ("definition", *path), FUNCTIONS[str(path[-1])]):
            line = "" if issue.line is None else f", in line {issue.line} of the code"
            message = f"with this config{line}: {issue.message}"
            issues.append(replace(issue, message=message, line=None, column=None))
    return issues


def has_snippets(definition: BenchmarkDefinition | SystemDefinition) -> bool:
    """Return whether a task runs code of its author."""
    return next(_snippets(definition), None) is not None


def _snippets(definition: BenchmarkDefinition | SystemDefinition) -> Iterator[tuple[SpecPath, str]]:
    if isinstance(definition, SystemDefinition):
        yield ("compute_evidence_snippet",), definition.compute_evidence_snippet
        return
    solver = definition.solver
    if solver is not None and solver.snippet is not None:
        yield ("solver", solver.snippet), getattr(solver, solver.snippet)
    if solver is not None and solver.postprocessor is not None:
        yield ("solver", "postprocessor", "postprocess_snippet"), solver.postprocessor.postprocess_snippet
    for number, scorer in enumerate(definition.scorers):
        if scorer.snippet is not None:
            yield ("scorers", number, scorer.snippet), getattr(scorer, scorer.snippet)
        for place, metric in enumerate(scorer.metrics or ()):
            if metric.snippet is not None:
                path = ("scorers", number, "metrics", place, metric.snippet)
                yield path, getattr(metric, metric.snippet)


def plan_origin(origin: PlanOrigin, around: Surroundings = ALONE) -> TaskPlan:
    """Read a task and plan it.

    Raises:
        UsageError: a name or option is invalid.
        SpecError: the task, its config or its dataset file is invalid; contains every issue.
        DatasetError: the rows cannot be read.
    """
    file = find_task(origin.task)
    if not is_record_file(file):
        return plan_task(_read(file, origin), origin, around)
    records = read_task_file(file, allow_bad_tasks=origin.allow_bad_tasks)
    rows = {records.converted.dataset_key: (records.converted.dataset_name, records.converted.rows)}
    plan = plan_task(records.document(), origin, replace(around, rows={**rows, **around.rows}))
    return replace(plan, num_invalid=records.num_invalid)


def task_document(origin: PlanOrigin) -> Document[TaskSpec]:
    """Return the task of an origin after reading.

    Raises:
        UsageError: the task does not exist.
        SpecError: the task is invalid.
    """
    file = find_task(origin.task)
    if is_record_file(file):
        return read_task_file(file, allow_bad_tasks=origin.allow_bad_tasks).document()
    return _read(file, origin)


def _read(file: Path, origin: PlanOrigin) -> Document[TaskSpec]:
    if origin.allow_bad_tasks:
        raise UsageError(
            f"--allow-bad-tasks: only for JSONL files with task records, found {file.name!r}",
            code=Code.OPTIONS_APART,
        )
    return read(TaskSpec, file, root=None if origin.root is None else Path(origin.root))


def plan_task(document: Document[TaskSpec], origin: PlanOrigin, around: Surroundings = ALONE) -> TaskPlan:
    """Plan a task after reading (see `plan_origin`)."""
    try:
        return _planned(document, origin, around)
    except SpecError as error:
        if around.several_tasks:
            raise  # The caller knows the position in the run file.
        raise SpecError([_placed(issue, document, origin) for issue in error.issues]) from error


def _placed(issue: Issue, document: Document[TaskSpec], origin: PlanOrigin) -> Issue:
    """Return the issue with its position in the task file, if it concerns a value in that file."""
    if issue.file is not None or not issue.path:
        return issue
    if issue.path[0] != "config":
        return document.place(issue)
    for number, parameter in enumerate(document.spec.config_spec):
        if parameter.key == issue.path[-1] and parameter.default_value is not None:
            is_given = parameter.key in origin.config
            path = ("config_spec", number, "default_value")
            return issue if is_given else document.place(replace(issue, path=path))
    return issue


def _planned(document: Document[TaskSpec], origin: PlanOrigin, around: Surroundings) -> TaskPlan:
    task = document.spec
    config = resolve_config(task.config_spec, origin.config)
    definition = _bind(document, config)
    dataset: PlannedDataset | None = None
    samples: Sequence[Sample] = ()
    stored: StoredRows | None = None
    sibling: Sibling | None = None
    issues: list[Issue] = []
    of_code = [document.place(issue) for issue in snippet_issues(document, definition)]
    if isinstance(definition, BenchmarkDefinition):
        doubts: tuple[Issue, ...] = ()
        if origin.stored is None:
            dataset, samples, doubts = planned_rows(definition, document, origin, around)
        else:
            from aigo_bridge.planning.results import stored_rows

            stored = stored_rows(definition, document, Path(origin.stored))
            dataset, samples = stored.dataset, stored.samples
        sibling = pending_result(definition, origin, around) if origin.stored is None else None
        columns = dataset.columns if sibling is None else sibling.columns
        nested = _nested_columns(definition, samples)
        issues = [
            *doubts,
            *(document.place(issue) for issue in definition_issues(definition, columns, nested)),
        ]
        if not any(issue.severity == "error" for issue in issues):
            issues += [document.place(issue) for issue in null_issues(definition, samples)]
            issues += [document.place(issue) for issue in answer_issues(definition, samples)]
        if columns is not None:
            every = dict.fromkeys([*columns, *(name for names in nested.values() for name in names)])
            issues += column_issues(task.config_spec, config, tuple(every))
    else:
        samples = (Sample(SYSTEM_SAMPLE, {}),)
    issues += of_code
    if any(issue.severity == "error" for issue in issues):
        raise SpecError(issues)
    locate_templates(document, definition)
    num_trials = _num_trials(definition, origin) if stored is None else stored.num_trials
    plan = TaskPlan(
        task=task,
        definition=definition,
        config=config,
        dataset=dataset,
        # The samples of a shard are added below; the others stay on disk.
        samples=tuple(samples) if origin.shard is None else (),
        num_trials=num_trials,
        num_samples=origin.num_samples,
        subsampling=origin.subsampling or "head",
        model_keys=tuple(dict.fromkeys(named_models(definition))),
        digest=digest_of(task, config, dataset, num_trials=num_trials),
        origin=replace(origin, config=config),
        stored_entity=None if stored is None else stored.entity,
        pending=None if sibling is None else sibling.key,
        # Reading and binding both report issues of rules without parameters, so duplicates are removed.
        warnings=tuple(dict.fromkeys((*document.issues, *issues))),
        snippet_places=snippet_places(document, definition),
    )
    return plan if origin.shard is None else _part_of(plan, samples, parse_shard(origin.shard))


def part_of(plan: TaskPlan, shard: Shard) -> TaskPlan:
    """Return the part of a whole plan that belongs to a shard."""
    return _part_of(plan, plan.samples, shard)


def _part_of(plan: TaskPlan, samples: Sequence[Sample], shard: Shard) -> TaskPlan:
    rows = ShardRows(shard, len(samples))
    return replace(
        plan,
        samples=tuple(samples[slice(*rows.bounds)]),
        origin=None if plan.origin is None else replace(plan.origin, shard=str(shard)),
        shard=rows,
        every_sample=tuple(samples) if _are_seen_together(plan.definition) else None,
    )


def _are_seen_together(definition: BenchmarkDefinition | SystemDefinition) -> bool:
    """Return whether a scorer reads all rows together."""
    return isinstance(definition, BenchmarkDefinition) and any(
        scorer.sees_all_samples for scorer in definition.scorers
    )


def _nested_columns(definition: BenchmarkDefinition, samples: Sequence[Sample]) -> dict[str, tuple[str, ...]]:
    """Return the columns of each dataset if several datasets are aligned."""
    if definition.dataset is None or definition.dataset.keys is None:
        return {}
    return {
        key: tuple(dict.fromkeys(name for sample in samples for name in sample.data.get(key) or ()))
        for key in definition.dataset.keys
    }


def config_from_text(task: TaskSpec, texts: Mapping[str, str]) -> dict[str, Any]:
    """Convert config values from a command line to the types of the task parameters.

    Raises:
        SpecError: a text cannot be converted. `resolve_config` reports unknown parameters.
    """
    parameters = {parameter.key: parameter for parameter in task.config_spec}
    return {
        key: parse_text(parameters[key], text) if key in parameters else text for key, text in texts.items()
    }


def _bind(document: Document[TaskSpec], config: Mapping[str, Any]) -> BenchmarkDefinition | SystemDefinition:
    try:
        return bind_task(document.data, config).definition
    except TemplateError as error:
        issues = [replace(issue, path=("definition", *issue.path)) for issue in error.issues]
        raise SpecError([document.place(issue) for issue in issues]) from error
    except ValidationError as error:
        raise SpecError(issues_from_validation(error, document, TaskSpec)) from error


def _num_trials(definition: BenchmarkDefinition | SystemDefinition, origin: PlanOrigin) -> int:
    if origin.num_trials is not None:
        if origin.num_trials < 1:
            raise UsageError(
                f"num_trials is {origin.num_trials}, expected at least 1", code=Code.WRONG_OPTION
            )
        # A system task always has one trial.
        return origin.num_trials if isinstance(definition, BenchmarkDefinition) else 1
    if isinstance(definition, BenchmarkDefinition) and definition.trials is not None:
        return int(definition.trials.num_trials)
    return 1
