"""Carrying out plans: each in a lighteval pipeline of its own, one after the other, with models and their limits shared."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.engine import Job, LogRef, RunSettings
from aigo_bridge.errors import BridgeError, EngineError, EvidenceError, UsageError
from aigo_bridge.fingerprints import mixed
from aigo_bridge.garbage import fewer_collections
from aigo_bridge.plan import TaskPlan
from aigo_bridge.program import compile_program
from aigo_bridge.replaying import Replay, of_native_log, of_result_log
from aigo_bridge.results.assembling import Tally, count_samples, metrics_for, sample_stream, system_metrics
from aigo_bridge.results.entities import slug
from aigo_bridge.results.faults import explained
from aigo_bridge.results.trials import TrialRecord
from aigo_bridge.secrets import learn_environment
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.tolerance import Tolerance
from aigo_lighteval.asking import BackendCaller
from aigo_lighteval.calling import Caller
from aigo_lighteval.earlier import (
    EarlierRun,
    earlier_runs,
    finished_trials,
    may_stand_in,
    same_run,
    same_solver,
)
from aigo_lighteval.evidence import read, trial_records
from aigo_lighteval.hosting import DEFAULT_SAMPLES, AigoModel, TaskRun, aigo_metric
from aigo_lighteval.likelihoods import likelihood_solver
from aigo_lighteval.models import HostedModel, Models, load_caller, make_caller
from aigo_lighteval.pipeline import run_pipeline
from aigo_lighteval.recording import tokens_used
from aigo_lighteval.stored import FORMAT, Json, as_json, calls_of_scorers, calls_of_solver, is_plain
from aigo_lighteval.subset import refuse_gaps
from aigo_lighteval.translate import COLLECTIONS, rows_of, to_task_config

T = TypeVar("T")

SharedCaller = tuple[Caller, anyio.CapacityLimiter]
Callers = Mapping[tuple[str, str], SharedCaller]


@dataclass(frozen=True)
class _Work:
    """A job with its models, and what an earlier run has done of it."""

    job: Job
    evaluated: SharedCaller | None
    others: Mapping[str, SharedCaller]
    finished: Mapping[tuple[int, int], tuple[Json, Json]]
    earlier: Path | None = None
    complete: bool = False
    """Whether the earlier run has left nothing to do."""
    replay: Replay | None = None
    other_model: bool = False
    """Whether what it has done is of a model that has changed since."""

    @property
    def plan(self) -> TaskPlan:
        return self.job.plan


def run(plan: TaskPlan, settings: RunSettings) -> LogRef:
    """Run a plan; see `Engine.run`."""
    (result,) = run_all([Job.of(plan, settings)], settings)
    if isinstance(result, EngineError):
        raise result
    return result


def run_all(jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
    """Run several plans; see `Engine.run_all`."""
    if settings.cost_limit is not None:
        raise UsageError(
            "--cost-limit: the lighteval engine knows no prices; use --token-limit, or --engine inspect"
        )
    learn_environment()
    refuse_gaps(jobs)
    callers = _callers(jobs, settings)
    runs = earlier_runs(settings.out) if any(job.earlier != "ignore" for job in jobs) else []
    works = [_work(job, callers, runs, settings) for job in jobs]
    todo = [work for work in works if not work.complete]
    _load(todo)
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out: {str(settings.out)!r} cannot be used as a folder: {error.strerror}"
        ) from error
    total = sum(len(work.plan.samples) * work.plan.num_trials - len(work.finished) for work in todo)
    trials = any(work.plan.num_trials > 1 for work in todo)
    progress = ProgressCounter(settings.on_progress, total, trials=trials)
    results: list[LogRef | EngineError] = []
    interrupted = False
    with start_blocking_portal() as portal:
        try:
            for work in works:
                if work.complete:
                    assert work.earlier is not None
                    results.append(
                        LogRef(
                            "lighteval",
                            work.earlier,
                            len(work.finished),
                            earlier=work.earlier,
                            other_model=work.other_model,
                        )
                    )
                elif interrupted:
                    results.append(EngineError("the run was interrupted before this task was begun"))
                else:
                    log, interrupted = _log_of(work, settings, portal, progress)
                    results.append(log)
        finally:
            for caller, _ in callers.values():
                with contextlib.suppress(
                    Exception
                ):  # the runs are done, whatever a connection says in the end
                    portal.call(caller.aclose)
    return results


def _callers(jobs: Sequence[Job], settings: RunSettings) -> dict[tuple[str, str], SharedCaller]:
    """Every model of the jobs by name and arguments, each made once.

    Raises:
        UsageError: some cannot be made; all are named.
    """
    callers: dict[tuple[str, str], SharedCaller] = {}
    problems: list[str] = []
    for job in jobs:
        wanted: list[tuple[str | None, Mapping[str, Any]]] = []
        if _asks_model(job):
            wanted.append((job.model, job.model_args))
        wanted += [(job.model_map[key], {}) for key in job.plan.model_keys if key in job.model_map]
        for name, arguments in wanted:
            key = _caller_key(name, arguments)
            if key in callers:
                continue
            try:
                caller = make_caller(name, arguments)
            except UsageError as error:
                problems.append(str(error))
                continue
            allowed = min(caller.max_concurrent, settings.max_connections or math.inf)
            callers[key] = (caller, anyio.CapacityLimiter(max(1, allowed)))
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    return callers


def _load(works: Sequence[_Work]) -> None:
    """Load the models that will be asked; what their tokenizers decide is checked now.

    Raises:
        UsageError: some cannot be loaded; all are named.
        UnsupportedPlanError: a loaded model cannot be asked what a plan asks.
    """
    problems: list[str] = []
    for work in works:
        shared = [
            *work.others.values(),
            *([work.evaluated] if work.evaluated and work.plan.calls_model else []),
        ]
        for caller, _ in shared:
            try:
                load_caller(caller)
            except UsageError as error:
                problems.append(str(error))
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    refuse_gaps([work.job for work in works], chat_templates=_chat_templates(works))


def _chat_templates(works: Sequence[_Work]) -> dict[str, bool]:
    """Whether a loaded model has a chat template, by what the user calls it."""
    callers = [
        caller for work in works for caller, _ in [*work.others.values(), *filter(None, [work.evaluated])]
    ]
    return {
        caller.name: caller.loaded.uses_chat_template
        for caller in callers
        if isinstance(caller, BackendCaller) and caller.is_loaded
    }


def _asks_model(job: Job) -> bool:
    return job.plan.calls_model or (job.plan.entity == "model" and job.model is not None)


def _caller_key(name: str | None, arguments: Mapping[str, Any]) -> tuple[str, str]:
    return name or "", repr(sorted(arguments.items()))


def _work(job: Job, callers: Callers, runs: Sequence[EarlierRun], settings: RunSettings) -> _Work:
    evaluated = callers[_caller_key(job.model, job.model_args)] if _asks_model(job) else None
    others = {
        key: callers[_caller_key(job.model_map[key], {})]
        for key in job.plan.model_keys
        if key in job.model_map
    }
    models = _names(evaluated, others)
    if job.earlier != "ignore":
        found = same_run(runs, job.plan, models)
        if job.earlier == "reuse" and found is not None and not may_stand_in(found, job.plan, settings):
            found = None
        if found is not None:
            known = mixed(found.plan.get("fingerprints") or {}, job.plan.fingerprints)
            changed = known != job.plan.fingerprints
            job = replace(job, plan=replace(job.plan, fingerprints=known))
            finished = finished_trials(found, job.plan)
            complete = (
                found.status == "success" and len(finished) >= len(job.plan.samples) * job.plan.num_trials
            )
            other_model = changed and bool(finished)
            return _Work(job, evaluated, others, finished, found.path, complete, other_model=other_model)
    return _Work(job, evaluated, others, {}, *_replayed(job, models, runs, settings))


def _replayed(
    job: Job, models: Mapping[str, str], runs: Sequence[EarlierRun], settings: RunSettings
) -> tuple[Path | None, bool, Replay | None]:
    """The log whose solver outputs are scored again, and what gives them."""
    origin = job.plan.origin
    if origin is not None and origin.stored is not None:
        return None, False, of_result_log(Path(origin.stored))
    path = job.reuse
    if path is None and job.earlier == "reuse":
        other = same_solver(runs, job.plan, models, settings)
        path = None if other is None else other.path
    if path is None:
        return None, False, None
    try:
        return path, False, of_native_log(path, job.plan, read)
    except EvidenceError as error:
        raise UsageError(str(error)) from error


def _names(evaluated: SharedCaller | None, others: Mapping[str, SharedCaller]) -> dict[str, str]:
    """AI GO model key (`""` for the evaluated model) → what the user calls the model."""
    own = {} if evaluated is None else {"": evaluated[0].name}
    return own | {key: caller.name for key, (caller, _) in others.items()}


def _log_of(
    work: _Work, settings: RunSettings, portal: BlockingPortal, progress: ProgressCounter
) -> tuple[LogRef | EngineError, bool]:
    """Run one plan; returns its log, or why there is none, and whether it was interrupted."""
    try:
        of_task = progress.of_task(work.plan.name, Tolerance(work.job.tolerated, work.plan.num_trials))
        path, interrupted = _run_one(work, settings, portal, of_task)
    except Exception as error:
        if isinstance(error, BridgeError) and not isinstance(error, EngineError):
            raise
        return EngineError(explained(error)), False
    replayed = work.replay is not None
    reused = len(work.finished)
    log = LogRef("lighteval", path, reused, work.earlier, replayed=replayed, other_model=work.other_model)
    return log, interrupted


def _run_one(
    work: _Work, settings: RunSettings, portal: BlockingPortal, progress: ProgressCounter
) -> tuple[Path, bool]:
    """Run one plan; returns its results file, and whether it was interrupted."""
    plan = work.plan
    host = SnippetHost()
    started = time.time()
    try:
        run = TaskRun(
            plan=plan,
            program=None if plan.entity == "system" else compile_program(plan, host),
            host=host,
            model=None if work.evaluated is None else HostedModel("", *work.evaluated),
            models=Models(work.others, "score"),
            portal=portal,
            progress=progress,
            max_samples=settings.max_samples or _samples_in_flight(work, settings),
            time_limit=settings.time_limit,
            token_limit=settings.token_limit,
            finished=work.finished,
            replay=work.replay,
            likelihoods=likelihood_solver(plan),
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
                "ended_at": time.time(),
                "models": _names(work.evaluated, work.others),
                "model_usage": _contained(partial(_usage, run)),
                "datasets": {} if plan.origin is None else dict(plan.origin.datasets),
                "limits": [settings.time_limit, settings.token_limit],
                "details": details,
                "plan": plan.header(),
            }

        name = slug(work.evaluated[0].name if work.evaluated is not None else plan.entity)
        config = to_task_config(plan, [aigo_metric(run, lambda: _contained(partial(_summary, run)))])
        with fewer_collections(*COLLECTIONS):
            path = run_pipeline(config, rows_of(plan), AigoModel(run, name), settings.out, block)
    finally:
        host.close()
    return path, run.interrupted


def _contained(compute: Callable[[], dict[str, T]]) -> dict[str, T]:
    """What lighteval shows beside the evidence; the evidence says what is wrong with it."""
    try:
        return compute()
    except Exception:  # noqa: BLE001  # samples that were run are saved, whatever cannot be shown of them
        return {}


def _samples_in_flight(work: _Work, settings: RunSettings) -> int:
    """Enough for calls and scoring at a time, and for full batches of a model in this process."""
    caller = None if work.evaluated is None else work.evaluated[0]
    batches = caller.max_concurrent if isinstance(caller, BackendCaller) else 0
    return max(DEFAULT_SAMPLES, 2 * (settings.max_connections or 0), batches)


def _usage(run: TaskRun) -> dict[str, dict[str, int]]:
    """Tokens by model over the whole run."""
    found: dict[str, dict[str, int]] = {}
    records = [record for record in map(calls_of_solver, run.solved.values()) if record is not None]
    for scored in run.scored.values():
        records += calls_of_scorers(scored)
    for record in records:
        for model, used in tokens_used(record):
            of_model = found.setdefault(model, {"num_prompt_tokens": 0, "num_completion_tokens": 0})
            for name, tokens in zip(of_model, used, strict=True):
                of_model[name] += tokens
    return found


def _summary(run: TaskRun) -> dict[str, float]:
    """The plan's metrics, as lighteval shows them: `<scorer>.<metric>`. Evidence is computed from the details, not from these."""
    plan = run.plan
    tally = Tally(plan)
    if plan.entity == "system":
        metrics = system_metrics(list(sample_stream(_records(run), tally)))
    else:
        count_samples(_records(run), tally)
        metrics = metrics_for(tally, run.host)
    return {f"{row.scorer_key}.{row.name}": float(row.value) for row in metrics.rows if row.value is not None}


def _records(run: TaskRun) -> Iterator[TrialRecord]:
    """What metrics are computed from: without the solver's output where nothing but the scorers has looked at it."""
    plan = run.plan
    whole = plan.entity == "system" or bool(plan.benchmark.actions)
    for number, sample in enumerate(plan.samples):
        for trial in range(plan.num_trials):
            solved, scored = run.solved.get((number, trial)), run.scored.get((number, trial))
            if solved is not None and scored is not None:
                if whole or not is_plain(solved):
                    yield from trial_records(sample, trial, as_json(solved), as_json(scored), plan)
                else:
                    yield from trial_records(sample, trial, {}, scored, plan)
