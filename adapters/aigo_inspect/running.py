"""Carrying out plans: one call of Inspect's `eval`, whether it is one plan or two hundred, new ones or interrupted ones."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai._eval.loader import (
    resolve_tasks,
)  # how Inspect itself readies a task; there is no public form
from inspect_ai._eval.task import PreviousTask
from inspect_ai._eval.task.resolved import ResolvedTask
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, get_model

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.engine import Job, LogRef, RunSettings
from aigo_bridge.errors import BridgeError, EngineError, UsageError
from aigo_bridge.fingerprints import mixed
from aigo_bridge.garbage import fewer_collections
from aigo_bridge.plan import TaskPlan
from aigo_bridge.results.faults import explained
from aigo_bridge.secrets import redact
from aigo_bridge.tolerance import Tolerance
from aigo_inspect import _registry  # noqa: F401  # registers what Inspect must find by name
from aigo_inspect.earlier import (
    EarlierRun,
    Identity,
    count_finished,
    earlier_runs,
    finished_part,
    identity_of,
    may_stand_in,
    same_run,
    same_solver,
)
from aigo_inspect.keys import HEADER_KEY
from aigo_inspect.models import InspectModel, native_model, refuse_unfit
from aigo_inspect.retries import retries_told
from aigo_inspect.secrets import logs_without_secrets
from aigo_inspect.stopping import ToleranceStopping
from aigo_inspect.translate import Run, aigo_task, running

COLLECTIONS = (700, 10, 30)
"""Thresholds of garbage collection while samples run: Python's own but for the full ones, which took a tenth of a run's time."""

DEFAULT_MAX_RETRIES = 8
"""Attempts per call after transient failures (Inspect's own default is without end)."""

MAX_TASKS = 10
"""Tasks at the same time; they share the connections to their models, and the other tasks wait."""


@dataclass(frozen=True)
class _Work:
    """A job with its models, and what an earlier run has done of it."""

    job: Job
    model: Model | None
    roles: Mapping[str, Model]
    earlier: EvalLog | None = None
    """The earlier run that is continued, with its finished trials only."""
    complete: Path | None = None
    """Log of an earlier run that left nothing to do."""
    replay: Path | None = None
    """Log whose solver outputs are scored again."""
    reused: int = 0
    """Trials taken over."""
    other_model: bool = False
    """Whether they are of a model that has changed since."""

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
    # What Inspect prints (hooks, while the first model is made) is for people; standard output may be read by a program.
    with contextlib.redirect_stdout(sys.stderr):
        models = _models(jobs)
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out: {str(settings.out)!r} cannot be used as a folder: {error.strerror}"
        ) from error
    runs = earlier_runs(settings.out) if any(job.earlier != "ignore" for job in jobs) else []
    works = [_work(job, models, runs, settings) for job in jobs]
    todo = [work for work in works if work.complete is None]
    before = set(settings.out.glob("*.eval"))
    logs: list[EvalLog] = []
    problem: str | None = None
    try:
        with fewer_collections(*COLLECTIONS):
            logs = _eval(todo, settings) if todo else []
    except Exception as error:
        if not set(settings.out.glob("*.eval")) - before:
            raise
        # Samples have been run, and stand in logs: those are the run, and this is why it ended.
        problem = explained(error)
    found = _found(logs, settings.out, before)
    return [_contained_result(work, found, settings.out, problem) for work in works]


def _models(jobs: Sequence[Job]) -> dict[tuple[str, str], Model]:
    """Every model of the jobs by name and arguments, each made once: they hold connections and counts of calls."""
    models: dict[tuple[str, str], Model] = {}
    problems: list[str] = []
    for job in jobs:
        wanted: list[tuple[str | None, Mapping[str, Any]]] = []
        if job.plan.calls_model or (job.plan.entity == "model" and job.model is not None):
            wanted.append((job.model, job.model_args))
        wanted += [(job.model_map[key], {}) for key in job.plan.model_keys if key in job.model_map]
        for name, arguments in wanted:
            key = _model_key(name, arguments)
            if key in models:
                continue
            try:
                models[key] = _model(name, arguments)
            except UsageError as error:
                problems.append(str(error))
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    return models


def _model_key(name: str | None, arguments: Mapping[str, Any]) -> tuple[str, str]:
    return name or "", repr(sorted(arguments.items()))


def _work(
    job: Job, models: Mapping[tuple[str, str], Model], runs: Sequence[EarlierRun], settings: RunSettings
) -> _Work:
    model = models.get(_model_key(job.model, job.model_args)) if job.plan.entity == "model" else None
    roles = {
        key: models[_model_key(job.model_map[key], {})] for key in job.plan.model_keys if key in job.model_map
    }
    if model is not None:
        refuse_unfit(job.plan, model)
    work = _Work(job, model, roles, replay=job.reuse)
    if job.earlier == "ignore":
        return work
    names = {key: str(role) for key, role in roles.items()}
    name = None if model is None else str(model)
    run = same_run(runs, job.plan, name, names)
    if job.earlier == "reuse" and run is not None and not may_stand_in(run, job.plan, settings):
        run = None
    if run is not None:
        known = mixed(run.plan.get("fingerprints") or {}, job.plan.fingerprints)
        changed = known != job.plan.fingerprints
        job = replace(job, plan=replace(job.plan, fingerprints=known))
        wanted = len(job.plan.samples) * job.plan.num_trials
        if run.status == "success" and count_finished(run.path) >= wanted:
            return _Work(job, model, roles, complete=run.path, reused=wanted, other_model=changed)
        with _without_recomputing():
            earlier = finished_part(run.path)
        reused = len(earlier.samples or [])
        return _Work(job, model, roles, earlier=earlier, reused=reused, other_model=changed and reused > 0)
    if job.earlier == "reuse" and job.reuse is None:
        other = same_solver(runs, job.plan, name, names, settings)
        return _Work(job, model, roles, replay=None if other is None else other.path)
    return work


def _eval(works: Sequence[_Work], settings: RunSettings) -> list[EvalLog]:
    total = sum(len(work.plan.samples) * work.plan.num_trials - work.reused for work in works)
    trials = any(work.plan.num_trials > 1 for work in works)
    progress = ProgressCounter(settings.on_progress, total, trials=trials)
    with (
        _engine_errors(),
        contextlib.redirect_stdout(sys.stderr),
        logs_without_secrets(),
        retries_told(progress),
    ):
        tasks = [
            _native(
                work, progress.of_task(work.plan.name, Tolerance(work.job.tolerated, work.plan.num_trials))
            )
            for work in works
        ]
        return inspect_eval(
            _resolved(works, tasks) if any(work.earlier for work in works) else tasks,
            model=None,
            log_dir=str(settings.out),
            log_format="eval",
            display="none",
            fail_on_error=False,
            max_tasks=min(len(works), MAX_TASKS),
            max_samples=settings.max_samples,
            max_connections=settings.max_connections,
            max_retries=DEFAULT_MAX_RETRIES,
            time_limit=settings.time_limit,
            token_limit=settings.token_limit,
            cost_limit=settings.cost_limit,
            # Raw requests and responses of every call: the evidence's `direct_ios`.
            log_model_api=True,
            # Scoring while running would compute all metrics again after each sample.
            score_display=False,
            ctl_server=False,
        )


def _native(work: _Work, progress: ProgressCounter) -> Task:
    """The registered task with plain arguments, so that Inspect can make it again (`inspect eval-retry`), and its own models."""
    origin = work.plan.origin
    if origin is None:
        raise EngineError("the plan was not made from a file, so Inspect could not make its task again")
    with running(Run(work.plan, progress)):
        native = aigo_task(
            task=origin.task,
            config=dict(origin.config),
            dataset=dict(origin.datasets),
            num_samples=origin.num_samples,
            subsampling=origin.subsampling,
            model_map={key: work.job.model_map[key] for key in work.roles},
            root=origin.root,
            num_trials=origin.num_trials,
            stored=origin.stored,
            reuse=None if work.replay is None else str(work.replay.resolve()),
            digest=work.plan.digest,
            allow_bad_tasks=origin.allow_bad_tasks,
        )
    if work.job.tolerated is not None:
        native.early_stopping = ToleranceStopping(progress.tolerance)
    native.model = work.model or get_model("none")
    native.model_roles = dict(work.roles) or None
    return native


def _resolved(works: Sequence[_Work], tasks: Sequence[Task]) -> list[ResolvedTask | PreviousTask]:
    """Tasks of which some go on from an earlier log: Inspect takes those, together with new ones, in this form only."""
    none = get_model("none")
    resolved: list[ResolvedTask | PreviousTask] = []
    for work, task in zip(works, tasks, strict=True):
        if work.earlier is None:
            resolved += resolve_tasks(task, {}, none, None, None, None, input_media_policy="trusted_pre_run")
        else:
            resolved.append(
                PreviousTask(
                    id=work.earlier.eval.task_id,
                    task=task,
                    task_args=dict(work.earlier.eval.task_args_passed or {}),
                    model=task.model,
                    model_roles=task.model_roles,
                    sandbox=task.sandbox,
                    log=work.earlier,
                    log_info=None,
                )
            )
    return resolved


def _found(logs: Sequence[EvalLog], out: Path, before: set[Path]) -> dict[Identity, EvalLog | Path]:
    """The log of each plan that was begun; after an interruption Inspect returns none, but has written some."""
    found: dict[Identity, EvalLog | Path] = {}
    with contextlib.suppress(
        Exception
    ):  # other files of the folder are no reason to lose the logs of this run
        for run in reversed(earlier_runs(out)):
            if run.path not in before:
                found[identity_of(run.plan)] = run.path
    for log in logs:
        carried = (log.eval.metadata or {}).get(HEADER_KEY)
        if isinstance(carried, dict):
            found[identity_of(carried)] = log
    return found


def _contained_result(
    work: _Work, found: Mapping[Identity, EvalLog | Path], out: Path, problem: str | None
) -> LogRef | EngineError:
    """The log of one job; a job of which it cannot be told takes no other with it."""
    try:
        return _result(work, found, out, problem)
    except Exception as error:  # noqa: BLE001  # its log stays, and can be imported
        return EngineError(f"the log of the run could not be found: {explained(error)}")


def _result(
    work: _Work, found: Mapping[Identity, EvalLog | Path], out: Path, problem: str | None = None
) -> LogRef | EngineError:
    if work.complete is not None:
        return LogRef(
            "inspect", work.complete, work.reused, earlier=work.complete, other_model=work.other_model
        )
    log = found.get(identity_of(work.plan.header()))
    path = log if isinstance(log, Path) else None
    error = problem
    if isinstance(log, EvalLog):
        # Inspect makes it absolute; it is named as the folder was.
        path = out / Path(log.location.removeprefix("file://")).name if log.location else None
        error = redact(log.error.message) if log.error is not None else None
        if path is None or not path.is_file():
            return EngineError(error or "no log was written")
    if path is None:
        return EngineError(problem or "the run ended before this task was begun")
    earlier = None
    if work.earlier is not None:
        earlier = Path((work.earlier.location or "").removeprefix("file://"))
    return LogRef(
        "inspect",
        path,
        work.reused,
        earlier or work.replay,
        replayed=work.replay is not None,
        other_model=work.other_model,
        error=error,
    )


def _model(name: str | None, arguments: Any) -> Model:
    """A model by Inspect's name for it, so that a bad name is told before anything runs."""
    if name is None:
        raise UsageError(
            "the task evaluates a model, and none was given; use --model, e.g. --model openai/gpt-4.1-nano"
        )
    try:
        # Not memoized: settings of the environment and files of rules may have changed since an earlier run.
        return native_model(name, arguments)
    except BridgeError:
        raise
    except (PrerequisiteError, ValueError, ImportError) as error:
        raise UsageError(f"model {name!r}: {_plain(error)}") from error


def single_model(name: str) -> InspectModel:
    """A model for calls outside a run."""
    return InspectModel(name, _model(name, {}))


@contextmanager
def _without_recomputing() -> Iterator[None]:
    """Silence about the one thing that Inspect cannot do with a recovered log: our metrics are computed from its scores anyway."""
    logger = logging.getLogger("inspect_ai.log._recover._write")

    def is_told(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Unable to recompute metrics")

    logger.addFilter(is_told)
    try:
        yield
    finally:
        logger.removeFilter(is_told)


@contextmanager
def _engine_errors() -> Iterator[None]:
    """What Inspect raises before it has a log, as our errors."""
    try:
        yield
    except PrerequisiteError as error:
        raise EngineError(_plain(error)) from error
    except FileNotFoundError as error:
        raise EngineError(str(error)) from error
    except ExceptionGroup as group:
        # Inspect keeps the samples in flight in a data base below the user's folder; that disk may be full, too.
        unwritable = group.subgroup((OSError, sqlite3.Error))
        if unwritable is None:
            raise
        raise EngineError(f"Inspect cannot write its files: {_first(unwritable)}") from group


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    """The first error of a group that is no group."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _plain(error: Exception) -> str:
    """An error's text without terminal markup."""
    from rich.errors import MarkupError
    from rich.text import Text

    text = str(getattr(error, "message", None) or error)
    with contextlib.suppress(MarkupError):
        text = Text.from_markup(text).plain
    # Some of Inspect's messages say themselves that they are errors.
    return text.strip().removeprefix("ERROR: ")
