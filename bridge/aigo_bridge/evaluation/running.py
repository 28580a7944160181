"""A whole evaluation: models, one run of the engine, evidence of every specification, policies, one summary."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aigo_bridge.dtypes import TaskExecution, TaskResultError, TaskResultEvidence, TaskResultLog
from aigo_bridge.engine import Engine, Job, LogRef, RunSettings
from aigo_bridge.engines import require_exact
from aigo_bridge.errors import BridgeError, EngineError, EvidenceError, UnsupportedPlanError
from aigo_bridge.evaluate import APP_VERSION, outcome_of
from aigo_bridge.evaluation.models import DeclaredModel, ModelChoice, Models, declared_models
from aigo_bridge.evaluation.planning import Entry, Evaluation
from aigo_bridge.evaluation.policies import Measured, Verdict, verdicts
from aigo_bridge.evaluation.repeating import repeated_result
from aigo_bridge.evaluation.results import EntryResult, of_failure, of_file, of_outcome
from aigo_bridge.results import LogReader, write_log
from aigo_bridge.results.faults import Faults, explained
from aigo_bridge.results.result_files import SUFFIX, identity_of, result_file, with_logs
from aigo_bridge.results.specification import bare_specification, specification_of
from aigo_bridge.tolerance import allowed


@dataclass(frozen=True)
class ReadyEntry:
    """A specification with its models."""

    entry: Entry
    jobs: tuple[Job, ...]
    """One per run; none when a stored result stands in."""


@dataclass(frozen=True)
class ReadyEvaluation:
    """An evaluation with its models: nothing is left to be found."""

    evaluation: Evaluation
    entries: tuple[ReadyEntry, ...]
    model_is_unused: bool = False
    """Whether a model to evaluate was given and no specification evaluates one."""


@dataclass(frozen=True)
class EvaluationOutcome:
    """What became of an evaluation."""

    evaluation: Evaluation
    results: tuple[EntryResult, ...]
    """In the order of the specifications."""
    verdicts: tuple[Verdict, ...]
    """What the policies of the file say."""
    out: Path
    """Folder of results and logs."""

    def is_right(self, tolerated: Sequence[int]) -> bool:
        """Whether every result is right (see `EntryResult.is_right`) and every policy rule holds."""
        right = all(result.is_right(limit) for result, limit in zip(self.results, tolerated, strict=True))
        return right and all(verdict.passed for verdict in self.verdicts)


def ready(
    evaluations: Sequence[Evaluation], engine: Engine, choice: ModelChoice, *, resume: bool
) -> list[ReadyEvaluation]:
    """Give every plan its models, and make sure that the engine can run it.

    Raises:
        UsageError: models are missing, or were given in vain; all are named.
        UnsupportedPlanError: the engine cannot run plans as written; all gaps of all of them.
    """
    found: list[ReadyEvaluation] = []
    declared: dict[str, DeclaredModel] = {}
    for evaluation in evaluations:
        declared |= declared_models(evaluation.run_file)
    models = Models(declared, choice)
    for evaluation in evaluations:
        entries = tuple(_with_models(entry, models, resume=resume) for entry in evaluation.entries)
        found.append(ReadyEvaluation(evaluation, entries))
    models.check()
    _refuse_gaps(found, engine)
    return [replace(each, model_is_unused=models.model_is_unused) for each in found]


def _with_models(entry: Entry, models: Models, *, resume: bool) -> ReadyEntry:
    jobs: list[Job] = []
    for plan in entry.plans:
        evaluated = models.evaluated(entry.model_key) if plan.calls_model else None
        others = {key: models.other(key) for key in plan.model_keys}
        named = {key: model for key, model in others.items() if model is not None}
        fingerprints = {key: model.fingerprint for key, model in named.items()}
        if evaluated is not None:
            fingerprints[""] = evaluated.fingerprint
        assert plan.specification is not None
        own = replace(
            plan.specification,
            model={"key": evaluated.key, "display_name": evaluated.display_name}
            if evaluated is not None and evaluated.key
            else {},
        )
        jobs.append(
            Job(
                plan=replace(plan, specification=own, fingerprints=fingerprints),
                model=None if evaluated is None else evaluated.name,
                model_map={key: model.name for key, model in named.items()},
                earlier="resume" if resume else "reuse" if plan.cache == "reuse" else "ignore",
            )
        )
    return ReadyEntry(replace(entry, plans=tuple(job.plan for job in jobs)), tuple(jobs))


def _refuse_gaps(found: Sequence[ReadyEvaluation], engine: Engine) -> None:
    refused: list[str] = []
    for each in found:
        for entry in each.entries:
            for job in entry.jobs[:1]:
                try:
                    require_exact(engine.gaps(job.plan), engine=engine.name)
                except UnsupportedPlanError as error:
                    refused.append(f"{entry.entry.key}: {error}")
    if refused:
        raise UnsupportedPlanError("\n".join(refused))


def run_evaluation(
    made: ReadyEvaluation, engine: Engine, settings: RunSettings, *, fail_on_error: str | None = None
) -> EvaluationOutcome:
    """Run an evaluation and write its evidence to `settings.out`: one result per specification.

    A specification that fails has a result that says so, and does not touch the others.

    Args:
        made: the evaluation.
        engine: what runs it.
        settings: how.
        fail_on_error: failed samples that each specification may have before it is stopped (see `tolerance.allowed`).

    Raises:
        UsageError: a model cannot be made from its string; the folder cannot be used.
        EngineError: the engine failed before anything ran.
    """
    evaluation = made.evaluation
    settings.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, EntryResult] = {}
    waiting = list(made.entries)
    while waiting:
        now = [each for each in waiting if each.entry.pending is None or each.entry.pending in results]
        results |= _round(now, results, evaluation.key, engine, settings, fail_on_error)
        waiting = [each for each in waiting if each.entry.key not in results]
    results = {each.entry.key: results[each.entry.key] for each in made.entries}
    measured = [Measured(evaluation.key, result.key, result.data) for result in results.values()]
    return EvaluationOutcome(
        evaluation, tuple(results.values()), tuple(verdicts(evaluation.policies, measured)), settings.out
    )


def _round(
    entries: Sequence[ReadyEntry],
    results: Mapping[str, EntryResult],
    evaluation: str,
    engine: Engine,
    settings: RunSettings,
    fail_on_error: str | None,
) -> dict[str, EntryResult]:
    """Run the entries whose rows are there, or come from results that are there by now."""
    found: dict[str, EntryResult] = {}
    ready_now: list[ReadyEntry] = []
    for each in entries:
        key = each.entry.key
        try:
            ready_now.append(each if each.entry.pending is None else _with_rows(each, results))
        except BridgeError as error:
            found[key] = _failed(each, evaluation, str(error), engine, settings.out)
    jobs = [
        replace(job, tolerated=allowed(fail_on_error, sum(len(each.plan.samples) for each in entry.jobs)))
        for entry in ready_now
        for job in entry.jobs
    ]
    try:
        logs = engine.run_all(jobs, settings) if jobs else []
    except BridgeError as error:
        if not results:
            raise
        logs = [error if isinstance(error, EngineError) else EngineError(str(error)) for _ in jobs]
    remaining = iter(logs)
    for each in ready_now:
        own = [next(remaining) for _ in each.jobs]
        found[each.entry.key] = _result(each, own, evaluation, engine, settings.out)
    return found


def _with_rows(waiting: ReadyEntry, results: Mapping[str, EntryResult]) -> ReadyEntry:
    """An entry with the rows of the result that it waited for.

    Raises:
        EvidenceError: that result is not complete: numbers over a part of the rows would be wrong ones.
        SpecError: the task does not fit the rows.
        DatasetError: they cannot be used.
    """
    entry = waiting.entry
    assert entry.pending is not None
    assert entry.again is not None
    earlier = results[entry.pending]
    whole = earlier.status == "success" and not earlier.faults and not earlier.num_missing
    if not whole or earlier.result is None or LogReader(earlier.result).frame().status != "success":
        raise EvidenceError(
            f"it was not run: its rows come from {entry.pending!r}, whose result is not complete"
        )
    made = entry.again(earlier.result)
    jobs = tuple(
        replace(
            job,
            plan=replace(plan, specification=job.plan.specification, fingerprints=job.plan.fingerprints),
        )
        for job, plan in zip(waiting.jobs, made.plans, strict=True)
    )
    return ReadyEntry(replace(made, plans=tuple(job.plan for job in jobs)), jobs)


def _failed(made: ReadyEntry, evaluation: str, problem: str, engine: Engine, out: Path) -> EntryResult:
    """An entry that came to nothing, with a result that says why."""
    return of_failure(made.entry, evaluation, problem, _write_failure(made.jobs[0], problem, engine, out))


def _result(
    ready_entry: ReadyEntry,
    logs: Sequence[LogRef | EngineError],
    evaluation: str,
    engine: Engine,
    out: Path,
) -> EntryResult:
    entry = ready_entry.entry
    written = [log for log in logs if isinstance(log, LogRef)]
    try:
        if entry.stored is not None:
            return of_file(entry, evaluation, _copied(entry.stored, entry.key, out))
        if len(entry.plans) > 1 and written:
            return repeated_result(entry, evaluation, written, engine, out)
        if written:
            return of_outcome(entry, evaluation, outcome_of(entry.plans[0], written[0], engine, out))
    except EvidenceError as error:
        return of_failure(entry, evaluation, str(error), None, [log.path for log in written])
    except Exception as error:  # noqa: BLE001  # one specification's fault takes no other with it
        problem = f"the result could not be put together: {explained(error)}"
        return of_failure(entry, evaluation, problem, None, [log.path for log in written])
    problem = str(next(log for log in logs if isinstance(log, BridgeError)))
    return _failed(ready_entry, evaluation, problem, engine, out)


def _copied(stored: Path, key: str, out: Path) -> Path:
    """A stored result beside the others, under the specification's name."""
    packed = stored.suffix if stored.suffix in (".gz", ".zst") else ""
    lines = stored.name.removesuffix(packed).endswith(".jsonl")
    target = out / f"{key}{'.tasklog.jsonl' if lines else SUFFIX}{packed}"
    if target.resolve() != stored.resolve():
        partial = target.with_name(f".{target.name}.part")
        shutil.copyfile(stored, partial)
        partial.replace(target)
    return target


def _write_failure(job: Job, problem: str, engine: Engine, out: Path) -> Path:
    """A result that says why there is none."""
    plan = job.plan
    specification = Faults().attempt(
        "the specification could not be written",
        "configuration",
        lambda: specification_of(plan, model=job.model, engine=engine.name),
        bare_specification(plan),
    )
    run = identity_of(specification, job.model_map, {} if plan.origin is None else plan.origin.datasets)
    path = result_file(out, plan.name, run, with_logs(lambda: engine.logged_runs(out)))
    # It was not run: the time is that at which this became known.
    now = int(time.time())
    write_log(
        path,
        [],
        finish=TaskResultLog(
            format_version="v1",
            app_version=APP_VERSION,
            status="failure",
            evidence=TaskResultEvidence(metrics=None, samples=[]),
            specification=specification,
            execution=TaskExecution(runtime=0.0, started_at=now, ended_at=now),
            errors=[TaskResultError(error_type="EngineError", message=problem)],
        ),
    )
    return path
