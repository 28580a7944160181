"""Planning of run files: every specification is bound to values, rows and models, or all problems listed."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aigo_bridge.access.existence import is_file, is_folder
from aigo_bridge.access.grants import record_file
from aigo_bridge.access.private import refusal, refusals_below
from aigo_bridge.access.snapshot import Snapshot
from aigo_bridge.codes import Code
from aigo_bridge.datasets.sources import TraceReader
from aigo_bridge.engine.formats import TraceFormat, format_named
from aigo_bridge.errors import DatasetError, EvidenceError, Issue, SpecError, TemplateError, UsageError
from aigo_bridge.evaluation.run_files import (
    BoundSpecification,
    Reference,
    RunFile,
    read_run_files,
    specifications_of,
)
from aigo_bridge.plan.plan import CachePolicy, PlanOrigin, Specification, TaskPlan
from aigo_bridge.planning.planning import plan_task
from aigo_bridge.planning.rows import Sibling, Surroundings, result_columns
from aigo_bridge.reading import Document, read
from aigo_bridge.reading.locating import find_task_with_key
from aigo_bridge.spec.datasets import ClaudeCodeSource, DatasetSource, InspectSource, TraceSource
from aigo_bridge.spec.evaluations import PolicySpec
from aigo_bridge.spec.task import BenchmarkDefinition, TaskSpec
from aigo_bridge.text.plurals import plural


@dataclass(frozen=True)
class Entry:
    """Task specification that is ready to run. It produces one result."""

    key: str
    display_name: str
    plans: tuple[TaskPlan, ...]
    """One plan, or one for each run of a repeated task; empty if a stored result is used."""
    model_key: str | None = None
    """AI GO key of the evaluated model; `None` if the file does not name one."""
    stored: Path | None = None
    """Result log that is used instead of a run."""
    again: Callable[[Path], Entry] | None = None
    """Function that returns this entry with the rows of another entry's result; `None` for own rows."""

    @property
    def pending(self) -> str | None:
        """Key of the entry whose result provides the rows; `None` if the rows are available."""
        return self.plans[0].pending if self.plans else None

    @property
    def is_sample_data(self) -> bool:
        """Whether the rows are sample data for another dataset; false for a stored result."""
        return any(plan.dataset is not None and plan.dataset.is_sample for plan in self.plans)


@dataclass(frozen=True)
class Evaluation:
    """Tasks that run together: the tasks of a run file, or a single task."""

    entries: tuple[Entry, ...]
    warnings: tuple[Issue, ...] = ()
    run_file: RunFile | None = None
    """Run file of the evaluation; `None` for a single task."""
    policies: tuple[PolicySpec, ...] = ()
    """Policies for the results."""

    @property
    def is_task(self) -> bool:
        """Whether this is a single task."""
        return self.run_file is None

    @property
    def key(self) -> str:
        """Key of the evaluation, or of the single task."""
        return self.entries[0].key if self.run_file is None else self.run_file.evaluation.key

    @property
    def display_name(self) -> str:
        """Display name of the evaluation, or of the single task."""
        return (
            self.entries[0].display_name if self.run_file is None else self.run_file.evaluation.display_name
        )


def of_task(plan: TaskPlan, warnings: Iterable[Issue] = ()) -> Evaluation:
    """Return an evaluation of a single task, with warnings in addition to the warnings of its plan."""
    return Evaluation((Entry(plan.name, plan.display_name, (plan,)),), (*plan.warnings, *warnings))


def plan_evaluations(
    origin: PlanOrigin,
    *,
    cache: CachePolicy | None = None,
    only: str | None = None,
    at_hand_only: bool = False,
) -> list[Evaluation]:
    """Return the evaluations of a run file or an assessment plan.

    Args:
        origin: `task` is the file; the other arguments override the values in the file.
        cache: cache policy that overrides the file.
        only: key of the only specification to plan.
        at_hand_only: leave out entries whose inputs would be downloaded (see `Surroundings`).

    Raises:
        SpecError: files, values or datasets are wrong; lists all problems of all specifications.
        UsageError: options are invalid.
    """
    with Snapshot():
        return _plan_evaluations(origin, cache, only, at_hand_only=at_hand_only)


def _plan_evaluations(
    origin: PlanOrigin, cache: CachePolicy | None, only: str | None, *, at_hand_only: bool
) -> list[Evaluation]:
    evaluations: list[Evaluation] = []
    problems: list[Issue] = []
    for run_file in read_run_files(origin):
        try:
            evaluations.append(
                _plan(run_file, origin, cache or run_file.cache, only, at_hand_only=at_hand_only)
            )
        except SpecError as error:
            problems += error.issues
    if problems:
        raise SpecError(problems)
    _check_datasets(evaluations, origin)
    return evaluations


def plan_reference(reference: Reference, origin: PlanOrigin) -> TaskPlan:
    """Return the plan of one specification of a run file. Engines use it to recreate a plan from its log.

    Raises:
        SpecError: as for `plan_evaluations`, for this specification alone.
        UsageError: the file does not contain the specification or run.
    """
    inner = replace(origin, task=str(reference.file))
    keys: list[str] = []
    for run_file in read_run_files(inner):
        for bound in specifications_of(run_file):
            keys.append(bound.key)
            if bound.key == reference.key:
                entry = _entry(bound, inner, run_file.cache)
                if reference.run < len(entry.plans):
                    return entry.plans[reference.run]
    raise UsageError(
        f"{str(reference.file)!r} has no specification {reference.key!r} to run; it has: "
        f"{', '.join(keys) or 'none'}",
        code=Code.UNKNOWN_SPECIFICATION,
    )


def _plan(
    run_file: RunFile,
    origin: PlanOrigin,
    cache: CachePolicy,
    only: str | None,
    *,
    at_hand_only: bool,
) -> Evaluation:
    entries: dict[str, Entry] = {}
    issues: list[Issue] = []
    chosen = _chosen(specifications_of(run_file), only, run_file)
    siblings = _siblings(chosen)
    counts = Counter(bound.key for bound in chosen)
    for bound in chosen:
        if counts[bound.key] > 1:
            message = (
                f"there are {plural(counts[bound.key], 'specification')} with the key"
                f" {bound.key!r}, so their "
                f"results would replace each other"
            )
            issues.append(_named(Issue(message, code=Code.REPEATED_ENTRY), bound))

    def plan(bound: BoundSpecification) -> None:
        try:
            entries[bound.key] = _entry(bound, origin, cache, siblings, at_hand_only=at_hand_only)
        except (SpecError, TemplateError, DatasetError, EvidenceError) as error:
            issues.extend(_named(issue, bound) for issue in error.issues)
        except UsageError as error:
            issues.append(_named(Issue(str(error), code=error.code), bound))

    for bound in chosen:
        plan(bound)
    siblings = {name: _known(sibling, entries) for name, sibling in siblings.items()}
    for bound in chosen:
        if bound.key in entries and entries[bound.key].pending is not None:
            plan(bound)  # The columns of the result are known now.
    issues += _circles(entries, chosen)
    issues = list(dict.fromkeys(issues))
    if any(issue.severity == "error" for issue in issues):
        raise SpecError(issues)
    warnings = (
        *run_file.document.issues,
        *(issue for entry in entries.values() for issue in _warnings(entry)),
    )
    # Policies apply to all results together, not to a single one.
    policies = run_file.run.policies if only is None else ()
    return Evaluation(tuple(entries.values()), tuple(dict.fromkeys(warnings)), run_file, policies)


def _siblings(chosen: list[BoundSpecification]) -> dict[str, Sibling]:
    """Return the specifications that will run, by their keys and, additionally, by their task keys if only
    one specification runs the task.
    """
    running = [bound for bound in chosen if bound.spec.task_result_log_path is None]
    tasks = Counter(bound.spec.task_key for bound in running)
    by_task = {
        bound.spec.task_key: Sibling(bound.key) for bound in running if tasks[bound.spec.task_key] == 1
    }
    return by_task | {bound.key: Sibling(bound.key) for bound in running}


def _known(sibling: Sibling, entries: Mapping[str, Entry]) -> Sibling:
    entry = entries.get(sibling.key)
    return sibling if entry is None else replace(sibling, columns=result_columns(entry.plans[0]))


def _circles(entries: Mapping[str, Entry], chosen: list[BoundSpecification]) -> list[Issue]:
    """Return issues for specifications that wait for their own results, directly or through others."""
    issues: list[Issue] = []
    for bound in chosen:
        way = [bound.key]
        while (entry := entries.get(way[-1])) is not None and entry.pending is not None:
            way.append(entry.pending)
            if entry.pending == bound.key:
                shown = " → ".join(way)
                message = f"its rows come from its own result ({shown}), so it can never start"
                hint = f"pass an existing result with --dataset {way[1]}=FILE"
                issues.append(_named(Issue(message, hint=hint, code=Code.REFERENCE_CIRCLE), bound))
            if entry.pending in way[:-1]:
                break
    return issues


def _chosen(
    specifications: list[BoundSpecification], only: str | None, run_file: RunFile
) -> list[BoundSpecification]:
    if only is None:
        return specifications
    chosen = [bound for bound in specifications if bound.key == only]
    if not chosen:
        near = difflib.get_close_matches(only, [bound.key for bound in specifications], n=1)
        keys = ", ".join(bound.key for bound in specifications) or "none"
        hint = f"did you mean {near[0]!r}?" if near else f"it has: {keys}"
        raise UsageError(
            f"{str(run_file.file)!r} has no specification {only!r} ({hint})", code=Code.UNKNOWN_SPECIFICATION
        )
    return chosen


def _warnings(entry: Entry) -> Iterator[Issue]:
    for plan in entry.plans[:1]:
        yield from plan.warnings


def _named(issue: Issue, bound: BoundSpecification) -> Issue:
    """Return the issue with a position: its own, or the position of the specification, which the message then
    names.
    """
    if issue.file is not None and issue.line is not None:
        return issue
    path = (*bound.path, "task_config", *issue.path[1:]) if issue.path[:1] == ("config",) else bound.path
    placed = bound.run_file.document.place(replace(issue, path=path, line=None, column=None))
    where = f" ({issue.file})" if issue.file is not None and issue.file not in issue.message else ""
    message = f"task specification {bound.key!r}: {issue.message}{where}"
    if issue.option == "--config":  # The option sets values of the evaluation, not of the task.
        return replace(placed, message=message, hint="write it under 'task_config'", option=None)
    return replace(placed, message=message)


# One specification


def _entry(
    bound: BoundSpecification,
    origin: PlanOrigin,
    cache: CachePolicy,
    siblings: Mapping[str, Sibling] | None = None,
    *,
    at_hand_only: bool = False,
) -> Entry:
    document = _task(bound, origin)
    shown = bound.spec.display_name or document.spec.display_name
    if bound.spec.task_result_log_path is not None:
        stored = _stored(bound)
        return Entry(bound.key, shown, (), bound.spec.model_key, stored)
    surroundings = replace(_surroundings(bound, document), siblings=siblings or {}, at_hand_only=at_hand_only)
    planned = plan_task(document, _task_origin(bound, document, origin), surroundings)
    again = replace(origin, config=_typed(bound.run_file, origin.config))
    plans = tuple(
        replace(
            planned,
            origin=replace(again, task=str(Reference(bound.run_file.file.resolve(), bound.key, run))),
            specification=Specification(
                key=bound.key,
                evaluation=bound.run_file.evaluation.key,
                display_name=bound.spec.display_name,
                num_runs=bound.num_runs,
                run=run,
            ),
            cache=cache,
        )
        for run in range(bound.num_runs)
    )
    if planned.pending is None:
        return Entry(bound.key, shown, plans, bound.spec.model_key)
    name = _result_name(planned)

    def with_rows(result: Path) -> Entry:
        datasets = {**origin.datasets, name: str(result.resolve())}
        return _entry(bound, replace(origin, datasets=datasets), cache)

    return Entry(bound.key, shown, plans, bound.spec.model_key, again=with_rows)


def _result_name(plan: TaskPlan) -> str:
    """Return the key by which a task names the result that provides its rows."""
    assert plan.benchmark.dataset is not None
    assert plan.benchmark.dataset.key is not None
    return plan.benchmark.dataset.key


def _task(bound: BoundSpecification, origin: PlanOrigin) -> Document[TaskSpec]:
    """Return the task: from the run file, otherwise a file in its folder, otherwise a shipped task."""
    run_file = bound.run_file
    for number, task in enumerate(run_file.run.tasks):
        if task.key == bound.spec.task_key:
            return run_file.document.part((*run_file.run_path, "tasks", number), task)
    file = find_task_with_key(bound.spec.task_key, run_file.file, root=_root(origin))
    if file is None:
        message = f"no task {bound.spec.task_key!r} in this file, next to it, or among the shipped tasks"
        raise SpecError([run_file.place(Issue(message, code=Code.UNKNOWN_ENTITY), (*bound.path, "task_key"))])
    return read(TaskSpec, file, root=_root(origin))


def _root(origin: PlanOrigin) -> Path | None:
    return None if origin.root is None else Path(origin.root)


def _task_origin(bound: BoundSpecification, document: Document[TaskSpec], origin: PlanOrigin) -> PlanOrigin:
    """Return the arguments for planning the task. The caller's values override the specification's, which
    override the run's.
    """
    spec, run = bound.spec, bound.run_file.run_config
    evaluation = bound.run_file.evaluation
    trials = run.trials_config.num_trials if run.trials_config is not None else None
    if spec.trials is not None:
        trials = spec.trials.num_trials
    declared = {parameter.key for parameter in document.spec.config_spec}
    config = {key: value for key, value in spec.task_config.items() if key in declared}
    if spec.dataset_key is not None and "dataset_key" in declared:
        config.setdefault("dataset_key", spec.dataset_key)
    return replace(
        origin,
        task=str(document.file),
        config=config,
        num_samples=_first(origin.num_samples, spec.num_samples, run.num_samples, evaluation.num_samples),
        subsampling=_first(origin.subsampling, spec.subsampling, run.subsampling, evaluation.subsampling),
        num_trials=_first(origin.num_trials, trials),
    )


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _surroundings(bound: BoundSpecification, document: Document[TaskSpec]) -> Surroundings:
    run_file = bound.run_file
    definition = document.spec.definition
    evaluated = None
    if isinstance(definition, BenchmarkDefinition) and definition.dataset is None:
        evaluated = bound.spec.dataset_key or bound.spec.task_config.get("dataset_key")
    return Surroundings(
        run_file.datasets,
        evaluated,
        run_file.stored_results,
        (run_file.file.parent,),
        trace_reader,
        several_tasks=True,
    )


def _stored(bound: BoundSpecification) -> Path:
    path = bound.run_file.stored_result(bound.path, bound.spec)
    if not is_file(path):
        message = f"task specification {bound.key!r}: result log {str(path)!r} does not exist"
        issue = Issue(message, hint="the path is relative to the run file", code=Code.MISSING_FILE)
        raise SpecError([bound.run_file.place(issue, (*bound.path, "task_result_log_path"))])
    return path


def _check_datasets(evaluations: list[Evaluation], origin: PlanOrigin) -> None:
    """Check that every given dataset file is used."""
    used = {
        key
        for evaluation in evaluations
        for entry in evaluation.entries
        for plan in entry.plans[:1]
        for key in _dataset_keys(plan)
    }
    surplus = [key for key in origin.datasets if key not in used]
    if surplus:
        named = ", ".join(map(repr, sorted(used))) or "none"
        raise UsageError(
            f"--dataset: dataset {surplus[0]!r} is not used; datasets in use: {named}",
            code=Code.SURPLUS_ARGUMENT,
        )


def _dataset_keys(plan: TaskPlan) -> tuple[str, ...]:
    definition = plan.definition
    if not isinstance(definition, BenchmarkDefinition) or plan.dataset is None:
        return ()
    reference = definition.dataset
    if reference is None:
        return (plan.dataset.key,)
    return tuple(key for key in (reference.key, *(reference.keys or ())) if key is not None)


def _typed(run_file: RunFile, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for an evaluation's parameters, converted to their declared types."""
    return {key: run_file.values[key] for key in config if key in run_file.values}


# Datasets from traces


def trace_reader(root: Path) -> TraceReader:
    """Return a reader of datasets with traces. Paths must be inside the folder `root`.

    The Inspect adapter reads Inspect logs. Traces of Claude Code, LangSmith, Phoenix and OpenTelemetry are
    read from files: no service is called, and only folders named in the dataset are read.
    """

    def read(source: DatasetSource, base: Path) -> Iterator[Mapping[str, Any]]:
        if not isinstance(source, TraceSource):
            raise DatasetError(f"{source.type!r} is not a trace source", code=Code.WRONG_TRACE_SOURCE)
        if source.limit is not None and source.limit < 1:
            raise DatasetError(
                f"'limit': found {source.limit}, expected 1 or more", code=Code.WRONG_TRACE_SOURCE
            )
        if source.path is None:
            raise DatasetError([_missing_path(source)])
        path = base / source.path
        if (issue := refusal(path, root, "the path", own=base, file=str(path))) is not None:
            raise DatasetError([issue])
        if is_folder(path) and (issues := refusals_below(path, root, base)):
            raise DatasetError(issues)
        record_file(path)
        rows = (
            _of_inspect(path)
            if isinstance(source, InspectSource)
            else _trace_format(source).rows(source, path, base, root)
        )
        return itertools.islice(rows, source.limit)

    return read


def _missing_path(source: TraceSource) -> Issue:
    if isinstance(source, ClaudeCodeSource):
        return Issue(
            ("'path' is missing: sessions in your home folder are only read if the dataset names the folder"),
            hint="copy the sessions into the project and name their folder, e.g. path: sessions",
            code=Code.WRONG_TRACE_SOURCE,
        )
    return Issue(
        f"'path' is missing: {source.type!r} traces can only be read from exported files",
        hint="export the traces and name the file, e.g. path: traces.jsonl",
        code=Code.WRONG_TRACE_SOURCE,
    )


def _trace_format(source: TraceSource) -> TraceFormat:
    row = format_named(source.type)
    assert row is not None
    assert row.traces is not None
    return row.traces()


def _of_inspect(path: Path) -> Iterator[Mapping[str, Any]]:
    from aigo_bridge.engine.registry import load_engine, required

    try:
        traces = load_engine("inspect").capabilities.traces
        yield from required(traces, "traces of Inspect cannot be read")(str(path))
    except (EvidenceError, UsageError) as error:
        issues = error.issues if isinstance(error, EvidenceError) else [Issue(str(error), code=error.code)]
        raise DatasetError(issues) from error
