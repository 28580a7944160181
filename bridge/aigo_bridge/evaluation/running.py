"""Evaluations on engines: model lookup, one engine run, evidence of every specification, policies."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskExecution, TaskResultError, TaskResultEvidence
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import Gap, Job, LogRef, RunSettings, earlier_runs
from aigo_bridge.engine.provenance import provenance_file, write_run_provenance
from aigo_bridge.engine.recording import Recording, played_name
from aigo_bridge.engine.registry import require_exact
from aigo_bridge.errors import BridgeError, EngineError, EvidenceError, UnsupportedPlanError
from aigo_bridge.evaluation.models import DeclaredModel, ModelChoice, ModelLookup, declared_models
from aigo_bridge.evaluation.planning import Entry, Evaluation
from aigo_bridge.evaluation.policies import PolicyResult, ResultMetrics, verdicts
from aigo_bridge.evaluation.recordings import recorded_choice
from aigo_bridge.evaluation.repeating import repeated_outcome, rows_of
from aigo_bridge.evaluation.writing import outcome_of, result_frame
from aigo_bridge.execution.permissions import require_allowed, resolve_permissions
from aigo_bridge.execution.progress import allowed, tolerated
from aigo_bridge.process.signals import finishing, stop_here
from aigo_bridge.process.temporary import draft_of
from aigo_bridge.results.counts import read_counts
from aigo_bridge.results.internal_errors import Faults, explained
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.result_files import SUFFIX, identity_of, result_file, with_logs
from aigo_bridge.results.specification import bare_specification, dataset_tags, specification_of
from aigo_bridge.results.writing import write_log
from aigo_bridge.spec.base import is_sample_data


@dataclass(frozen=True)
class ReadyEntry:
    """Specification with its models."""

    entry: Entry
    jobs: tuple[Job, ...]
    """One job for each run; empty if a stored result is used."""


@dataclass(frozen=True)
class ReadyEvaluation:
    """Evaluation with all models found."""

    evaluation: Evaluation
    entries: tuple[ReadyEntry, ...]
    gaps: tuple[Gap, ...] = ()
    """Approximations that were allowed."""
    model_is_unused: bool = False
    """Whether a model to evaluate was given but no specification evaluates one."""


@dataclass(frozen=True)
class EvaluationOutcome:
    """Outcome of an evaluation."""

    evaluation: Evaluation
    results: tuple[Outcome, ...]
    """Results in the order of the specifications."""
    verdicts: tuple[PolicyResult, ...]
    """Verdicts of the policies in the file."""
    out: Path
    """Folder of results and logs."""
    fail_on_error: str | None = None
    """Number or proportion of samples that may fail in each specification (see `tolerance.tolerated`)."""

    @property
    def statuses(self) -> set[str]:
        """Statuses of all results."""
        return {result.status for result in self.results}

    @property
    def passed(self) -> bool:
        """Whether every result and every policy rule has passed."""
        return all(map(self.has_passed, self.results)) and all(verdict.passed for verdict in self.verdicts)

    def has_passed(self, result: Outcome) -> bool:
        """Return whether a result has passed."""
        return result.passed(tolerated(self.fail_on_error, result.num_planned))


def prepare(
    evaluations: Sequence[Evaluation],
    engines: Sequence[Engine],
    choice: ModelChoice,
    *,
    resume: bool,
    recorded: Mapping[str, str] | None = None,
    allow_approximate: bool = False,
) -> list[ReadyEvaluation]:
    """Find the models of every plan and check that the engines can run it.

    Args:
        evaluations: evaluations to run.
        engines: engines to use.
        choice: models that the caller chose.
        resume: whether to resume interrupted runs.
        recorded: AI GO model key → name of the recorded model. A single task uses it by default, and a
            cassette answers for all models. `None` if the models themselves are called.
        allow_approximate: whether to accept approximations.

    Raises:
        UsageError: models are missing or unused; lists all of them.
        UnsupportedPlanError: an engine cannot run plans as written; lists all gaps of all engines.
        SnippetsRefusedError: code in the plans cannot be confined on this machine.
    """
    declared: dict[str, DeclaredModel] = {}
    for evaluation in evaluations:
        if evaluation.run_file is not None:
            declared |= declared_models(evaluation.run_file)
        elif recorded is not None:
            choice = recorded_choice(evaluation.entries[0].plans[0], choice, recorded)
    models = ModelLookup(declared, choice, is_task=any(one.is_task for one in evaluations))
    prepared = [
        ReadyEvaluation(one, tuple(_with_models(entry, models, resume=resume) for entry in one.entries))
        for one in evaluations
    ]
    gaps = _refuse_gaps(prepared, engines, allow_approximate=allow_approximate)
    models.check()
    require_allowed(job.plan for one in prepared for entry in one.entries for job in entry.jobs)
    if recorded is not None:
        prepared = [one if one.evaluation.is_task else _played(one) for one in prepared]
    return [
        replace(
            one,
            entries=tuple(map(_with_permissions, one.entries)),
            gaps=gaps,
            model_is_unused=models.model_is_unused,
        )
        for one in prepared
    ]


def _played(evaluation: ReadyEvaluation) -> ReadyEvaluation:
    """Return an evaluation whose models are answered from a cassette."""

    def played(job: Job) -> Job:
        model = None if job.model is None else played_name(job.model)
        model_map = {key: played_name(name) for key, name in job.model_map.items()}
        return replace(job, model=model, model_map=model_map)

    entries = (replace(entry, jobs=tuple(map(played, entry.jobs))) for entry in evaluation.entries)
    return replace(evaluation, entries=tuple(entries))


def _with_models(entry: Entry, models: ModelLookup, *, resume: bool) -> ReadyEntry:
    jobs: list[Job] = []
    for plan in entry.plans:
        evaluated = models.evaluated(entry.model_key) if plan.calls_model else None
        named_models = {key: models.other(key) for key in plan.model_keys}
        named = {key: model for key, model in named_models.items() if model is not None}
        fingerprints = {key: model.fingerprint for key, model in named.items()}
        if evaluated is not None:
            fingerprints[""] = evaluated.fingerprint
        specification = plan.specification
        if specification is not None and evaluated is not None and evaluated.key:
            model = {"key": evaluated.key, "display_name": evaluated.display_name}
            specification = replace(specification, model=model)
        jobs.append(
            Job(
                plan=replace(plan, specification=specification, fingerprints=fingerprints),
                model=models.uncalled if evaluated is None else evaluated.name,
                model_map={key: model.name for key, model in named.items()},
                earlier=earlier_runs(plan, resume=resume),
            )
        )
    return ReadyEntry(replace(entry, plans=tuple(job.plan for job in jobs)), tuple(jobs))


def _with_permissions(entry: ReadyEntry) -> ReadyEntry:
    jobs = tuple(replace(job, plan=resolve_permissions(job.plan)) for job in entry.jobs)
    plans = tuple(job.plan for job in jobs) or entry.entry.plans
    return ReadyEntry(replace(entry.entry, plans=plans), jobs)


def _refuse_gaps(
    prepared: Sequence[ReadyEvaluation], engines: Sequence[Engine], *, allow_approximate: bool
) -> tuple[Gap, ...]:
    """Return the approximations that were allowed."""
    accepted: list[Gap] = []
    refused: list[str] = []
    for engine in engines:
        for one in prepared:
            for entry in one.entries:
                for job in entry.jobs[:1]:
                    gaps = engine.gaps(job.plan)
                    try:
                        accepted += require_exact(
                            gaps, engine=engine.name, allow_approximate=allow_approximate
                        )
                    except UnsupportedPlanError as error:
                        refused.append(f"{'' if one.evaluation.is_task else f'{entry.entry.key}: '}{error}")
    if refused:
        raise UnsupportedPlanError("\n".join(refused), code=Code.ENGINE_GAP)
    return tuple(accepted)


def run_evaluation(
    prepared: ReadyEvaluation, engine: Engine, settings: RunSettings, *, fail_on_error: str | None = None
) -> EvaluationOutcome:
    """Run an evaluation and write its evidence to `settings.out`: one result per specification.

    A failed specification has a result with the reason and does not affect the others. A single task
    raises the error instead.

    Args:
        prepared: evaluation to run.
        engine: engine that runs it.
        settings: run settings.
        fail_on_error: number or proportion of samples that may fail in each specification before it stops
            (see `tolerance.allowed`).

    Raises:
        UsageError: a model name is invalid, or the folder cannot be used.
        EngineError: the engine failed before anything ran.
        EvidenceError: the evidence of a single task cannot be written.
    """
    evaluation = prepared.evaluation
    results: dict[str, Outcome] = {}
    if not evaluation.is_task:
        settings.out.mkdir(parents=True, exist_ok=True)
    waiting = list(prepared.entries)
    while waiting:
        stop_here()
        now = [one for one in waiting if one.entry.pending is None or one.entry.pending in results]
        results |= _round(now, results, engine, settings, fail_on_error, is_task=evaluation.is_task)
        waiting = [one for one in waiting if one.entry.key not in results]
    in_order = [results[one.entry.key] for one in prepared.entries]
    return judged_outcome(evaluation, in_order, settings.out, fail_on_error)


def judged_outcome(
    evaluation: Evaluation, results: Sequence[Outcome], out: Path, fail_on_error: str | None
) -> EvaluationOutcome:
    """Return the results of an evaluation in order, with the verdicts of its policies."""
    measured = [ResultMetrics(evaluation.key, result.key, result.data) for result in results]
    judged = tuple(verdicts(evaluation.policies, measured))
    return EvaluationOutcome(evaluation, tuple(results), judged, out, fail_on_error)


def tolerant_jobs(entry: ReadyEntry, fail_on_error: str | None) -> list[Job]:
    """Return the jobs of a specification with the number of samples that may fail over all runs."""
    limit = allowed(fail_on_error, sum(len(job.plan.samples) for job in entry.jobs))
    return [replace(job, tolerated=limit) for job in entry.jobs]


def _round(
    entries: Sequence[ReadyEntry],
    results: Mapping[str, Outcome],
    engine: Engine,
    settings: RunSettings,
    fail_on_error: str | None,
    *,
    is_task: bool,
) -> dict[str, Outcome]:
    """Run the entries whose rows are available, including rows from finished results."""
    outcomes: dict[str, Outcome] = {}
    ready_now: list[ReadyEntry] = []
    for entry in entries:
        try:
            ready_now.append(entry if entry.entry.pending is None else _with_rows(entry, results))
        except BridgeError as error:
            outcomes[entry.entry.key] = _failed(entry, error, engine, settings.out)
    jobs = [job for entry in ready_now for job in tolerant_jobs(entry, fail_on_error)]
    try:
        logs = engine.run(jobs, settings) if jobs else []
    except BridgeError as error:
        if not results:
            raise
        logs = [
            error if isinstance(error, EngineError) else EngineError(str(error), code=Code.FAILED_ENGINE)
            for _ in jobs
        ]
    remaining = iter(logs)
    with finishing():
        for entry in ready_now:
            own_logs = [next(remaining) for _ in entry.jobs]
            outcomes[entry.entry.key] = entry_outcome(
                entry, own_logs, engine, settings.out, settings.recording, raises=is_task
            )
    return outcomes


def _with_rows(waiting: ReadyEntry, results: Mapping[str, Outcome]) -> ReadyEntry:
    """Return an entry with the rows of the result that it waited for."""
    entry = waiting.entry
    assert entry.pending is not None
    assert entry.again is not None
    earlier = results[entry.pending]
    is_complete = earlier.status == "success" and not earlier.faults and not earlier.num_missing
    if not is_complete or earlier.result is None or LogReader(earlier.result).frame().status != "success":
        raise EvidenceError(
            (f"not run, because the result of {entry.pending!r} is incomplete and provides its rows"),
            code=Code.NEVER_BEGUN,
        )
    entry_with_rows = entry.again(earlier.result)
    jobs = tuple(
        replace(
            job,
            plan=replace(
                plan,
                specification=job.plan.specification,
                fingerprints=job.plan.fingerprints,
                snippets=job.plan.snippets,
            ),
        )
        for job, plan in zip(waiting.jobs, entry_with_rows.plans, strict=True)
    )
    return ReadyEntry(replace(entry_with_rows, plans=tuple(job.plan for job in jobs)), jobs)


def entry_outcome(
    ready_entry: ReadyEntry,
    logs: Sequence[LogRef | EngineError],
    engine: Engine,
    out: Path,
    recording: Recording | None = None,
    *,
    raises: bool = False,
) -> Outcome:
    """Return the outcome of a specification from the logs of its jobs, and write its result to `out`.

    Raises:
        BridgeError: the specification failed, and `raises` is set.
    """
    entry = ready_entry.entry
    written = [log for log in logs if isinstance(log, LogRef)]
    try:
        if entry.stored is not None:
            return _stored_outcome(entry, entry.stored, out)
        if len(entry.plans) > 1 and written:
            return repeated_outcome(entry, written, engine, out, recording)
        if written:
            return outcome_of(entry.plans[0], written[0], engine, out, recording=recording)
    except Exception as error:  # an error in one specification must not affect others
        if raises:
            raise _raised(error, written) from error
        if isinstance(error, EvidenceError):
            return _failure(entry, str(error), logs=written, code=error.code)
        return _failure(entry, f"the result could not be assembled: {explained(error)}", logs=written)
    problem = next(log for log in logs if isinstance(log, BridgeError))
    if raises:
        raise problem
    return _failed(ready_entry, problem, engine, out)


def _raised(error: Exception, logs: Sequence[LogRef]) -> Exception:
    if isinstance(error, BridgeError):
        return error
    message = f"the outcome of the run cannot be shown: {explained(error)}"
    hint = f"the engine log is kept: {', '.join(str(log.path) for log in logs)}"
    return EvidenceError(message, hint=hint, code=Code.EVIDENCE_NOT_WRITTEN)


def _failed(ready_entry: ReadyEntry, error: BridgeError, engine: Engine, out: Path) -> Outcome:
    """Return the outcome of a failed entry, with a result that contains the reason."""
    problem = str(error)
    result = _write_failure(ready_entry.jobs[0], problem, engine, out)
    return _failure(ready_entry.entry, problem, result, code=error.code)


def _failure(
    entry: Entry,
    problem: str,
    result: Path | None = None,
    logs: Sequence[LogRef] = (),
    code: Code | None = None,
) -> Outcome:
    """Return the outcome of a failed specification."""
    return Outcome(
        task=entry.plans[0].task.key if entry.plans else "",
        status="failure",
        error=problem,
        code=None if code == Code.UNCODED else code,
        key=entry.key,
        display_name=entry.display_name,
        result=result,
        # Logs without a result are not reused.
        logs=tuple(LogRef(log.engine, log.path) for log in logs),
        num_planned=sum(len(plan.samples) for plan in entry.plans),
        is_sample_data=entry.is_sample_data,
    )


def _stored_outcome(entry: Entry, stored: Path, out: Path) -> Outcome:
    """Copy a stored result into the folder of the other results and return its outcome."""
    path = _copied(stored, entry.key, out)
    frame = LogReader(path).frame()
    evidence, entity = frame.evidence, frame.specification.evaluated_entity
    data = tuple(evidence.metrics or ()) if evidence is not None else ()
    counts, stop_reasons = read_counts(LogReader(path))
    return Outcome(
        task=frame.specification.task.key,
        status=frame.status,
        error=frame.errors[0].message if frame.errors else None,
        key=entry.key,
        display_name=entry.display_name,
        result=path,
        stored=stored,
        models={} if entity is None else {"": entity.key},
        num_planned=counts.samples,
        counts=counts,
        stop_reasons=stop_reasons,
        metrics=rows_of(data, counts.scored),
        data=data,
        started_at=float(frame.execution.started_at),
        ended_at=float(frame.execution.ended_at),
        is_sample_data=is_sample_data(dataset_tags(frame.specification)),
    )


def _copied(stored: Path, key: str, out: Path) -> Path:
    """Copy a stored result into the folder of the other results, named after the specification."""
    packed = stored.suffix if stored.suffix in (".gz", ".zst") else ""
    lines = stored.name.removesuffix(packed).endswith(".jsonl")
    target = out / f"{key}{'.tasklog.jsonl' if lines else SUFFIX}{packed}"
    if target.resolve() != stored.resolve():
        with draft_of(target) as draft:
            shutil.copyfile(stored, draft)
            draft.replace(target)
        _copy_provenance(stored, target)
    return target


def _copy_provenance(stored: Path, target: Path) -> None:
    """Copy the provenance of a stored result, if any; otherwise delete that of an earlier result."""
    source, copy = provenance_file(stored), provenance_file(target)
    if not source.is_file():
        copy.unlink(missing_ok=True)
        return
    with draft_of(copy) as draft:
        shutil.copyfile(source, draft)
        draft.replace(copy)


def _write_failure(job: Job, problem: str, engine: Engine, out: Path) -> Path:
    """Write a result that contains the reason for the failure."""
    plan = job.plan
    specification = Faults().attempt(
        "the specification could not be written",
        "configuration",
        lambda: specification_of(plan, model=job.model, engine=engine.name),
        bare_specification(plan),
    )
    run = identity_of(specification, job.model_map, {} if plan.origin is None else plan.origin.datasets)
    path = result_file(out, plan.name, run, with_logs(lambda: engine.capabilities.logged_runs(out)))
    # The task did not run, so record the time of the failure.
    now = int(time.time())
    write_log(
        path,
        [],
        finish=result_frame(
            replace(plan, snippets=None),  # The code of the plan did not run.
            TaskResultEvidence(metrics=None, samples=[]),
            specification,
            TaskExecution(runtime=0.0, started_at=now, ended_at=now),
            [TaskResultError(error_type="EngineError", message=problem)],
            is_success=False,
        ),
    )
    write_run_provenance(plan, path, engine, (), job.model_map)
    return path
