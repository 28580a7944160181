"""From run files to plans: every specification bound to its values, rows and models, or all problems at once."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aigo_bridge.datasets.sources import TraceReader
from aigo_bridge.errors import (
    DatasetError,
    EvidenceError,
    Issue,
    SpecError,
    TemplateError,
    UsageError,
)
from aigo_bridge.evaluation.naming import Reference
from aigo_bridge.evaluation.run_files import RunFile, find_run_file, read_run_files
from aigo_bridge.locating import find_task_with_key
from aigo_bridge.plan import CachePolicy, PlanOrigin, Specification, TaskPlan
from aigo_bridge.planning import plan_task
from aigo_bridge.planning_data import Sibling, Surroundings
from aigo_bridge.planning_results import result_columns
from aigo_bridge.reading import Document, issues_from_validation, read_task
from aigo_bridge.spec import BenchmarkDefinition, PolicySpec, TaskSpec, TaskSpecification
from aigo_bridge.spec.evaluations import RepeatabilitySpecification
from aigo_bridge.templates import bind_config

ReaderBelow = Callable[[Path], TraceReader]
"""From the folder that paths may not leave to a reader of trace sources."""


@dataclass(frozen=True)
class Entry:
    """One task specification, ready to run: it becomes one result."""

    key: str
    display_name: str
    plans: tuple[TaskPlan, ...]
    """One, or one for each run of a repeated task; empty when a stored result stands in."""
    model_key: str | None = None
    """AI GO key of the evaluated model; `None` when the file names none."""
    stored: Path | None = None
    """Result log that stands in for a run."""
    again: Callable[[Path], Entry] | None = None
    """For an entry whose rows come from another one's result: the entry with its rows, given that result."""

    @property
    def pending(self) -> str | None:
        """Key of the entry whose result gives the rows; `None` when they are there."""
        return self.plans[0].pending if self.plans else None

    @property
    def is_sample_data(self) -> bool:
        """Whether its rows only stand for those of another data set; not known of a stored result."""
        return any(plan.dataset is not None and plan.dataset.is_sample for plan in self.plans)


@dataclass(frozen=True)
class Evaluation:
    """A run file, ready to run."""

    run_file: RunFile
    entries: tuple[Entry, ...]
    warnings: tuple[Issue, ...] = ()

    @property
    def key(self) -> str:
        """Its key."""
        return self.run_file.evaluation.key

    @property
    def display_name(self) -> str:
        """Its shown name."""
        return self.run_file.evaluation.display_name

    @property
    def policies(self) -> tuple[PolicySpec, ...]:
        """The rules for its results."""
        return self.run_file.run.policies


@dataclass(frozen=True)
class _Sources:
    """How rows are come by, see `Surroundings`."""

    read_traces: ReaderBelow | None
    at_hand_only: bool = False


@dataclass(frozen=True)
class _Bound:
    """A task specification with its parameters' values put in."""

    key: str
    path: tuple[str | int, ...]
    """Where it stands in the document."""
    run_file: RunFile
    spec: TaskSpecification
    num_runs: int = 1


def plan_evaluations(
    origin: PlanOrigin,
    *,
    cache: CachePolicy | None = None,
    read_traces: ReaderBelow | None = None,
    only: str | None = None,
    at_hand_only: bool = False,
) -> list[Evaluation]:
    """The evaluations of a run file or an assessment plan.

    Args:
        origin: `task` is the file; everything else stands in place of what the file says.
        cache: in place of the file's cache policy.
        read_traces: reader of data sets that are made of an engine's logs.
        only: this specification alone.
        at_hand_only: leave out what would have to be fetched, see `Surroundings`; there are no entries for it then.

    Raises:
        SpecError: files, values or data sets are wrong; all problems of all specifications.
        UsageError: options make no sense.
    """
    evaluations: list[Evaluation] = []
    problems: list[Issue] = []
    sources = _Sources(read_traces, at_hand_only)
    for run_file in read_run_files(origin):
        try:
            evaluations.append(_plan(run_file, origin, cache or run_file.cache, sources, only))
        except SpecError as error:
            problems += error.issues
    if problems:
        raise SpecError(problems)
    _check_datasets(evaluations, origin)
    return evaluations


def plan_reference(
    reference: Reference, origin: PlanOrigin, *, read_traces: ReaderBelow | None = None
) -> TaskPlan:
    """One specification of a run file, by its name: what an engine makes again from its log.

    Raises:
        SpecError: as `plan_evaluations`, for this specification alone.
        UsageError: the file has no such specification or run.
    """
    inner = replace(origin, task=str(reference.file))
    known: list[str] = []
    for run_file in read_run_files(inner):
        for bound in _specifications(run_file):
            known.append(bound.key)
            if bound.key == reference.key:
                entry = _entry(bound, inner, run_file.cache, _Sources(read_traces))
                if reference.run < len(entry.plans):
                    return entry.plans[reference.run]
    raise UsageError(
        f"{str(reference.file)!r} has no specification {reference.key!r} to run; it has: {', '.join(known) or 'none'}"
    )


def _plan(
    run_file: RunFile,
    origin: PlanOrigin,
    cache: CachePolicy,
    sources: _Sources,
    only: str | None,
) -> Evaluation:
    entries: dict[str, Entry] = {}
    issues: list[Issue] = []
    chosen = _chosen(_specifications(run_file), only, run_file)
    siblings = _siblings(chosen)
    counts = Counter(bound.key for bound in chosen)
    for bound in chosen:
        if counts[bound.key] > 1:
            message = f"there are {counts[bound.key]} specifications with the key {bound.key!r}, so their results would replace each other"
            issues.append(_named(Issue(message), bound))

    def plan(bound: _Bound) -> None:
        try:
            entries[bound.key] = _entry(bound, origin, cache, sources, siblings)
        except (SpecError, TemplateError, DatasetError, EvidenceError) as error:
            issues.extend(_named(issue, bound) for issue in error.issues)
        except UsageError as error:
            issues.append(_named(Issue(str(error)), bound))

    for bound in chosen:
        plan(bound)
    siblings = {name: _known(sibling, entries) for name, sibling in siblings.items()}
    for bound in chosen:
        if bound.key in entries and entries[bound.key].pending is not None:
            plan(bound)  # now that the columns of the result are known
    issues += _circles(entries, chosen)
    issues = list(dict.fromkeys(issues))
    if any(issue.severity == "error" for issue in issues):
        raise SpecError(issues)
    warnings = (
        *run_file.document.issues,
        *(issue for entry in entries.values() for issue in _warnings(entry)),
    )
    return Evaluation(run_file, tuple(entries.values()), tuple(dict.fromkeys(warnings)))


def _siblings(chosen: list[_Bound]) -> dict[str, Sibling]:
    """The specifications that will run, by their keys, and by the key of their task where no other one runs it."""
    running = [bound for bound in chosen if bound.spec.task_result_log_path is None]
    tasks = Counter(bound.spec.task_key for bound in running)
    by_task = {
        bound.spec.task_key: Sibling(bound.key) for bound in running if tasks[bound.spec.task_key] == 1
    }
    return by_task | {bound.key: Sibling(bound.key) for bound in running}


def _known(sibling: Sibling, entries: Mapping[str, Entry]) -> Sibling:
    entry = entries.get(sibling.key)
    return sibling if entry is None else replace(sibling, columns=result_columns(entry.plans[0]))


def _circles(entries: Mapping[str, Entry], chosen: list[_Bound]) -> list[Issue]:
    """Specifications that wait for their own results, over whatever number of others."""
    issues: list[Issue] = []
    for bound in chosen:
        way = [bound.key]
        while (entry := entries.get(way[-1])) is not None and entry.pending is not None:
            way.append(entry.pending)
            if entry.pending == bound.key:
                shown = " → ".join(way)
                message = f"its rows are those of its own result ({shown}), so it could never begin"
                hint = f"a result that is there already is given with --dataset {way[1]}=FILE"
                issues.append(_named(Issue(message, hint=hint), bound))
            if entry.pending in way[:-1]:
                break
    return issues


def _chosen(found: list[_Bound], only: str | None, run_file: RunFile) -> list[_Bound]:
    if only is None:
        return found
    chosen = [bound for bound in found if bound.key == only]
    if not chosen:
        near = difflib.get_close_matches(only, [bound.key for bound in found], n=1)
        known = ", ".join(bound.key for bound in found) or "none"
        hint = f"did you mean {near[0]!r}?" if near else f"it has: {known}"
        raise UsageError(f"{str(run_file.file)!r} has no specification {only!r} ({hint})")
    return chosen


def _warnings(entry: Entry) -> Iterator[Issue]:
    for plan in entry.plans[:1]:
        yield from plan.warnings


def _named(issue: Issue, bound: _Bound) -> Issue:
    """The issue with a place: its own, else that of the specification, which the message then names."""
    if issue.file is not None and issue.line is not None:
        return issue
    path = (*bound.path, "task_config", *issue.path[1:]) if issue.path[:1] == ("config",) else bound.path
    placed = bound.run_file.document.place(replace(issue, path=path, line=None, column=None))
    where = f" ({issue.file})" if issue.file is not None and issue.file not in issue.message else ""
    message = f"task specification {bound.key!r}: {issue.message}{where}"
    if issue.option == "--config":  # which gives the evaluation's values, not the task's
        return replace(placed, message=message, hint="write it under 'task_config'", option=None)
    return replace(placed, message=message)


# Specifications


def _specifications(run_file: RunFile) -> list[_Bound]:
    """Every specification with its key and its values; those that repeat another evaluation's are spelt out.

    Raises:
        SpecError: values are missing or wrong.
    """
    written = run_file.evaluation.task_specifications
    keys = _keys(written)
    found: list[_Bound] = []
    issues: list[Issue] = []
    for number, (key, spec) in enumerate(zip(keys, written, strict=True)):
        path = (*run_file.evaluation_path, "task_specifications", number)
        try:
            bound = _values(run_file, path)
            if isinstance(spec, TaskSpecification):
                one = TaskSpecification.model_validate(bound)
                runs = one.repeatability.num_runs if one.repeatability is not None else 1
                found.append(_Bound(key, path, run_file, one, runs))
            else:
                found += _repeated(key, path, run_file, RepeatabilitySpecification.model_validate(bound))
        except ValidationError as error:
            inner = run_file.document.part(path, spec)
            issues += issues_from_validation(error, inner, type(spec))
        except (SpecError, TemplateError) as error:
            issues += [
                issue
                if issue.line is not None
                else run_file.document.place(replace(issue, path=(*path, *issue.path)))
                for issue in error.issues
            ]
    if issues:
        raise SpecError(issues)
    return found


def _values(run_file: RunFile, path: tuple[str | int, ...]) -> Any:
    data = run_file.document.data
    for part in path:
        data = data[part]
    return bind_config(data, run_file.values)


def _keys(specifications: tuple[Any, ...]) -> list[str]:
    """Keys of all specifications; those without one get the task's, with a number where several would be alike."""
    explicit = {spec.key for spec in specifications if spec.key is not None}
    bases = [
        spec.task_key if isinstance(spec, TaskSpecification) else "repeatability" for spec in specifications
    ]
    unnamed = Counter(base for spec, base in zip(specifications, bases, strict=True) if spec.key is None)
    numbers: Counter[str] = Counter()
    keys: list[str] = []
    for spec, base in zip(specifications, bases, strict=True):
        if spec.key is not None:
            keys.append(spec.key)
            continue
        key = base
        if unnamed[base] > 1 or base in explicit or not isinstance(spec, TaskSpecification):
            while True:
                numbers[base] += 1
                key = f"{base}_{numbers[base]}"
                if key not in explicit:
                    break
        keys.append(key)
    return keys


def _repeated(
    key: str, path: tuple[str | int, ...], run_file: RunFile, spec: RepeatabilitySpecification
) -> list[_Bound]:
    """The specifications that a `type: repeatability` one repeats, each as one that is run several times."""
    found: list[_Bound] = []
    for number, wanted in enumerate(spec.inputs):
        place = (*path, "inputs", number)
        source = _other_evaluation(wanted.evaluation_key, run_file, place)
        others = _standard(source)
        chosen = [bound for bound in others if wanted.task_specification_key in (None, bound.key)]
        if not chosen:
            known = ", ".join(bound.key for bound in others) or "none"
            message = (
                f"evaluation {wanted.evaluation_key!r} has no specification {wanted.task_specification_key!r}"
            )
            raise SpecError([run_file.document.place(Issue(message, path=place, hint=f"it has: {known}"))])
        for bound in chosen:
            changed: dict[str, Any] = {}
            if spec.num_samples is not None:
                changed["num_samples"] = spec.num_samples
            if spec.subsampling is not None:
                changed["subsampling"] = spec.subsampling
            if spec.display_name is not None:
                changed["display_name"] = spec.display_name
            found.append(
                replace(
                    bound,
                    key=key,
                    spec=bound.spec.model_copy(update={**changed, "task_result_log_path": None}),
                    num_runs=spec.repeatability_config.num_runs,
                )
            )
    if len(found) == 1:
        return found
    return [replace(bound, key=f"{key}-{number}") for number, bound in enumerate(found, start=1)]


def _standard(run_file: RunFile) -> list[_Bound]:
    """The specifications of an evaluation that run a task themselves."""
    written = run_file.evaluation.task_specifications
    found: list[_Bound] = []
    for number, (key, spec) in enumerate(zip(_keys(written), written, strict=True)):
        if isinstance(spec, TaskSpecification):
            path = (*run_file.evaluation_path, "task_specifications", number)
            bound = TaskSpecification.model_validate(_values(run_file, path))
            found.append(_Bound(key, path, run_file, bound))
    return found


def _other_evaluation(key: str, run_file: RunFile, place: tuple[str | int, ...]) -> RunFile:
    if key == run_file.evaluation.key:
        return run_file
    source = find_run_file(key, run_file.file)
    if source is None:
        message = f"evaluation {key!r} was not found; looked for a run file with it in {run_file.file.parent}"
        raise SpecError([run_file.document.place(Issue(message, path=(*place, "evaluation_key")))])
    (found,) = read_run_files(PlanOrigin(task=str(source), root=str(run_file.document.root)))
    return found


# One specification


def _entry(
    bound: _Bound,
    origin: PlanOrigin,
    cache: CachePolicy,
    sources: _Sources,
    siblings: Mapping[str, Sibling] | None = None,
) -> Entry:
    document = _task(bound, origin)
    shown = bound.spec.display_name or document.spec.display_name
    if bound.spec.task_result_log_path is not None:
        stored = _stored(bound)
        return Entry(bound.key, shown, (), bound.spec.model_key, stored)
    around = _around(bound, document, sources, siblings or {})
    planned = plan_task(document, _task_origin(bound, document, origin), around)
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
        return _entry(bound, replace(origin, datasets=datasets), cache, sources)

    return Entry(bound.key, shown, plans, bound.spec.model_key, again=with_rows)


def _result_name(plan: TaskPlan) -> str:
    """The key by which a task names the result that its rows come from."""
    assert plan.benchmark.dataset is not None
    assert plan.benchmark.dataset.key is not None
    return plan.benchmark.dataset.key


def _task(bound: _Bound, origin: PlanOrigin) -> Document[TaskSpec]:
    """The task: of the run file, else a file beside it, else a shipped one."""
    run_file = bound.run_file
    for number, task in enumerate(run_file.run.tasks):
        if task.key == bound.spec.task_key:
            return run_file.document.part((*run_file.run_path, "tasks", number), task)
    file = find_task_with_key(bound.spec.task_key, run_file.file)
    if file is None:
        message = (
            f"there is no task {bound.spec.task_key!r} in this file, beside it, or among the shipped ones"
        )
        raise SpecError([run_file.document.place(Issue(message, path=(*bound.path, "task_key")))])
    return read_task(file, root=None if origin.root is None else Path(origin.root))


def _task_origin(bound: _Bound, document: Document[TaskSpec], origin: PlanOrigin) -> PlanOrigin:
    """What the task is planned with: the caller's word before the specification's, that before the run's."""
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


def _around(
    bound: _Bound, document: Document[TaskSpec], sources: _Sources, siblings: Mapping[str, Sibling]
) -> Surroundings:
    run_file = bound.run_file
    datasets = {
        dataset.key: run_file.document.part((*run_file.run_path, "datasets", number), dataset)
        for number, dataset in enumerate(run_file.run.datasets)
    }
    definition = document.spec.definition
    evaluated = None
    if isinstance(definition, BenchmarkDefinition) and definition.dataset is None:
        evaluated = bound.spec.dataset_key or bound.spec.task_config.get("dataset_key")
    results: dict[str, Path] = {}
    written = run_file.evaluation.task_specifications
    for key, spec in zip(_keys(written), written, strict=True):
        if isinstance(spec, TaskSpecification) and spec.task_result_log_path is not None:
            results[key] = run_file.file.parent / spec.task_result_log_path
    return Surroundings(
        datasets,
        evaluated,
        results,
        (run_file.file.parent,),
        sources.read_traces,
        siblings=siblings,
        several_tasks=True,
        at_hand_only=sources.at_hand_only,
    )


def _stored(bound: _Bound) -> Path:
    assert bound.spec.task_result_log_path is not None
    path = bound.run_file.file.parent / bound.spec.task_result_log_path
    if not path.is_file():
        place = (*bound.path, "task_result_log_path")
        message = f"task specification {bound.key!r}: there is no result log {str(path)!r}"
        hint = "the path is relative to the run file"
        raise SpecError([bound.run_file.document.place(Issue(message, path=place, hint=hint))])
    return path


def _check_datasets(evaluations: list[Evaluation], origin: PlanOrigin) -> None:
    """No file was given for a data set that nothing uses.

    Raises:
        UsageError: one was.
    """
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
        raise UsageError(f"--dataset: nothing uses a data set {surplus[0]!r}; data sets in use: {named}")


def _dataset_keys(plan: TaskPlan) -> tuple[str, ...]:
    definition = plan.definition
    if not isinstance(definition, BenchmarkDefinition) or plan.dataset is None:
        return ()
    reference = definition.dataset
    if reference is None:
        return (plan.dataset.key,)
    return tuple(key for key in (reference.key, *(reference.keys or ())) if key is not None)


def _typed(run_file: RunFile, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values that were given for an evaluation's parameters, typed as they are declared."""
    return {key: run_file.values[key] for key in given if key in run_file.values}
