"""Running plans in lighteval pipelines, one for each plan, with shared models and limits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from aigo_bridge.access.display_paths import display_path
from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Job, LogRef, RunSettings
from aigo_bridge.errors import BridgeError, EngineError, EvidenceError, UsageError
from aigo_bridge.execution.codec import Json, Replay, replay_of
from aigo_bridge.execution.jobs import (
    JobModels,
    PlannedJob,
    make_folder,
    make_models,
    progress_of,
    start_jobs,
)
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.execution.program import compile_program
from aigo_bridge.execution.progress import ProgressCounter
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.process import fewer_collections, steady_time
from aigo_bridge.process.signals import finishing
from aigo_bridge.redaction.secrets import learn_environment
from aigo_bridge.results.assembling import (
    RunningTotals,
    count_samples,
    metrics_for,
    sample_stream,
    system_metrics,
)
from aigo_bridge.results.internal_errors import explained
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.results.specification import slug
from aigo_lighteval.documents.translate import COLLECTIONS, rows_of, to_task_config
from aigo_lighteval.models.batches import BackendCaller
from aigo_lighteval.models.callers import make_caller
from aigo_lighteval.models.messages import Caller
from aigo_lighteval.models.models import (
    TOKEN_COUNTS,
    HostedModel,
    TaskModels,
    limiter,
    load_caller,
)
from aigo_lighteval.running.evidence import (
    EARLIER_LOGS,
    FORMAT,
    Finished,
    no_outcomes,
    read,
    sum_of,
    trial_records,
)
from aigo_lighteval.running.gaps import refuse_gaps
from aigo_lighteval.running.hosted import DEFAULT_SAMPLES, PlanRun, likelihood_solver
from aigo_lighteval.running.pipeline import AigoModel, aigo_metric, run_pipeline

SharedCaller = tuple[Caller, anyio.CapacityLimiter]


@dataclass(frozen=True)
class _Work:
    """Job that starts, with its models."""

    start: PlannedJob[Finished]
    models: JobModels[SharedCaller]
    replay: Replay | None

    @property
    def plan(self) -> TaskPlan:
        return self.start.plan

    def names(self) -> dict[str, str]:
        """Return a mapping from AI GO model key (`""`: evaluated model) to the user's model name."""
        return self.models.names(_name)


def run(jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
    """Run plans. See `Engine.run`."""
    if settings.cost_limit is not None:
        raise UsageError(
            "--cost-limit: the lighteval engine does not know prices; use --token-limit, or --engine inspect",
            code=Code.OPTIONS_APART,
        )
    learn_environment()
    refuse_gaps(jobs)
    models = make_models(jobs, partial(_shared_caller, settings))
    starts = start_jobs(jobs, [of_job.names(_name) for of_job in models], settings, EARLIER_LOGS)
    works = [_Work(start, of_job, _replay(start)) for start, of_job in zip(starts, models, strict=True)]
    todo = [work for work in works if not work.start.is_complete]
    _load(todo)
    make_folder(settings.out)
    progress = progress_of([work.start for work in todo], settings)
    results: list[LogRef | EngineError] = []
    try:
        # A signal interrupts pipelines only, so that a log is always returned and converted to evidence.
        with finishing(), start_blocking_portal() as portal:
            try:
                _run_all(works, settings, portal, progress, results)
            finally:
                for caller, _ in dict.fromkeys(shared for of_job in models for shared in of_job.all()):
                    # An error while closing a connection does not change the results.
                    with contextlib.suppress(Exception):
                        portal.call(caller.aclose)
    except KeyboardInterrupt:
        if len(results) < len(works):
            raise
    return results


def _run_all(
    works: Sequence[_Work],
    settings: RunSettings,
    portal: BlockingPortal,
    progress: ProgressCounter,
    results: list[LogRef | EngineError],
) -> None:
    """Run plans one after the other and append their logs or errors to `results`.

    Raises:
        KeyboardInterrupt: a signal arrived before the first plan had a result.
    """
    never_begun = EngineError("the run was interrupted before this task started", code=Code.NEVER_BEGUN)
    interrupted = False
    for work in works:
        log: LogRef | EngineError = never_begun
        if work.start.is_complete and work.start.earlier is not None:
            log = work.start.log_ref("lighteval", work.start.earlier)
        elif not interrupted:
            try:
                log, interrupted = _log_of(work, settings, portal, progress)
            except KeyboardInterrupt:
                if not results:
                    raise
                interrupted = True
        results.append(log)


def _shared_caller(settings: RunSettings, name: str) -> SharedCaller:
    """Return a model and its limiter. All jobs share them."""
    caller = make_caller(name, attempt_timeout=settings.attempt_timeout)
    return caller, limiter(caller, settings.max_connections)


def _name(shared: SharedCaller) -> str:
    return shared[0].name


def _replay(start: PlannedJob[Finished]) -> Replay | None:
    """Return the stored solver outputs to score again. A log without them is refused before anything runs."""
    origin = start.plan.origin
    stored = None if origin is None or origin.stored is None else Path(origin.stored)
    try:
        return replay_of(start.plan, stored, start.replay, read)
    except EvidenceError as error:
        if stored is not None:
            raise
        raise UsageError(str(error), code=error.code) from error


def _load(works: Sequence[_Work]) -> None:
    """Load the models that will be called, and check what only their tokenizers can decide.

    Raises:
        UsageError: a model cannot be loaded. The message lists all of them.
        UnsupportedPlanError: a loaded model does not support a request of a plan.
    """
    problems: list[str] = []
    for work in works:
        evaluated = work.models.evaluated if work.plan.calls_model else None
        for caller, _ in [*work.models.others.values(), *([evaluated] if evaluated else [])]:
            try:
                load_caller(caller)
            except UsageError as error:
                problems.append(str(error))
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)), code=Code.FAILED_MODEL_LOAD)
    refuse_gaps([work.start.job for work in works], chat_templates=_chat_templates(works))


def _chat_templates(works: Sequence[_Work]) -> dict[str, bool]:
    """Return whether each loaded model has a chat template, by the user's model name."""
    callers = [caller for work in works for caller, _ in work.models.all()]
    return {
        caller.name: caller.loaded.uses_chat_template
        for caller in callers
        if isinstance(caller, BackendCaller) and caller.is_loaded
    }


def _log_of(
    work: _Work, settings: RunSettings, portal: BlockingPortal, progress: ProgressCounter
) -> tuple[LogRef | EngineError, bool]:
    """Run one plan. Return its log or an error, and whether the run was interrupted."""
    checkpoint = work.start.checkpoint("lighteval", work.names(), settings.out)
    try:
        recording = work.start.recording("lighteval", work.names(), settings.recording)
        path, interrupted = _run_one(
            work, settings, portal, work.start.counter(progress, checkpoint, recording)
        )
    except Exception as error:
        if isinstance(error, BridgeError) and not isinstance(error, EngineError):
            raise
        return EngineError(explained(error), code=Code.FAILED_ENGINE), False
    finally:
        checkpoint.close()
    return work.start.log_ref("lighteval", path), interrupted


def _run_one(
    work: _Work, settings: RunSettings, portal: BlockingPortal, progress: ProgressCounter
) -> tuple[Path, bool]:
    """Run one plan. Return its results file and whether the run was interrupted."""
    plan, evaluated = work.plan, work.models.evaluated
    host = snippet_host(plan)
    started = steady_time()
    solved, scored = work.start.finished or no_outcomes()
    try:
        run = PlanRun(
            plan=plan,
            program=None if plan.entity == "system" else compile_program(plan, host),
            host=host,
            model=None if evaluated is None else HostedModel("", *evaluated),
            models=TaskModels(work.models.others, "score"),
            portal=portal,
            progress=progress,
            max_samples=settings.max_samples or _samples_in_flight(work, settings),
            attempt_timeout=settings.attempt_timeout,
            time_limit=settings.time_limit,
            token_limit=settings.token_limit,
            replay=work.replay,
            likelihoods=likelihood_solver(plan),
            solved=solved,
            scored=scored,
        )

        def block(details: str | None) -> Json:
            return {
                "format": FORMAT,
                "status": "cancelled"
                if run.interrupted
                else "error"
                if run.stopped or run.fault is not None
                else "success",
                "error": "interrupted" if run.interrupted else run.stopped or run.fault,
                "started_at": started,
                "ended_at": steady_time(),
                "models": work.names(),
                "model_usage": _contained(partial(_usage, run)),
                "datasets": {}
                if plan.origin is None
                else {key: display_path(file) for key, file in plan.origin.datasets.items()},
                "limits": [settings.time_limit, settings.token_limit],
                "details": details,
                "plan": plan.header(),
            }

        name = slug(evaluated[0].name if evaluated is not None else plan.entity)
        config = to_task_config(
            plan, [aigo_metric(run, lambda: _contained(partial(_summary, run)))], with_rows=False
        )
        with fewer_collections(*COLLECTIONS):
            path = run_pipeline(config, rows_of(plan), AigoModel(run, name), settings.out, block)
        if not (run.interrupted or run.stopped or run.fault) and progress.checkpoint is not None:
            progress.checkpoint.remove()
    finally:
        host.close()
    return path, run.interrupted


def _contained(compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Compute values for lighteval's output. On an error, return none, because the evidence reports it."""
    try:
        return compute()
    except Exception:  # noqa: BLE001  # save the samples even if their summary fails
        return {}


def _samples_in_flight(work: _Work, settings: RunSettings) -> int:
    """Return enough parallel samples for model calls, for scoring, and for full batches of a local model."""
    caller = None if work.models.evaluated is None else work.models.evaluated[0]
    batches = caller.max_concurrent if isinstance(caller, BackendCaller) else 0
    return max(DEFAULT_SAMPLES, 2 * (settings.max_connections or 0), batches)


def _usage(run: PlanRun) -> dict[str, dict[str, int]]:
    """Return input and output tokens by model. Models with a call of unknown tokens are omitted."""
    usage = dict(run.solved.usage)
    for model, tokens in run.scored.usage.items():
        usage[model] = sum_of(usage.get(model, (0, 0)), tokens)
    return {model: dict(zip(TOKEN_COUNTS, used, strict=True)) for model, used in usage.items() if used}


def _summary(run: PlanRun) -> dict[str, float]:
    """Return the plan's metrics for lighteval's output only, as `<scorer>.<metric>`."""
    plan = run.plan
    tally = RunningTotals(plan)
    if plan.entity == "system":
        metrics = system_metrics([sample for sample, _ in sample_stream(records_of(run), tally)])
    else:
        count_samples(records_of(run), tally)
        metrics = metrics_for(tally, run.host)
    return {f"{row.scorer_key}.{row.name}": float(row.value) for row in metrics.rows if row.value is not None}


def records_of(run: PlanRun) -> Iterator[TrialRecord]:
    """Yield records for metrics. The solver's output is omitted if only scorers have used it."""
    plan = run.plan
    needs_output = run.program is None or bool(plan.benchmark.actions or run.program.postprocessor)
    for number, sample in enumerate(plan.samples):
        for trial in range(plan.num_trials):
            scored = run.scored.outcome((number, trial))
            if scored is not None:
                # A failed solver has no scores.
                solved = run.solved.outcome((number, trial)) if needs_output or not scored else {}
                yield from trial_records(sample, trial, solved, scored, plan.outline)
