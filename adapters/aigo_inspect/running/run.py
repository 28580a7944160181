"""Runs of new and interrupted plans with one call of Inspect's `eval`, including runs in a notebook.

In a notebook, Inspect expects widgets for output that these runs disable. It also patches asyncio for the
whole process to run inside the notebook's event loop. aigo-bridge uses a separate event loop (see
`api.running`).
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai._eval.loader import (
    resolve_tasks,
)  # Inspect's own task preparation; no public API
from inspect_ai._eval.task import PreviousTask
from inspect_ai._eval.task.resolved import ResolvedTask
from inspect_ai._util import platform  # no public API
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSpec
from inspect_ai.model import GenerateConfig, Model, get_model
from inspect_ai.model import (
    _model as model_module,  # a hook would do, but each one makes Inspect print a banner
)
from inspect_ai.scorer import SampleScore
from inspect_ai.util import EarlyStop, EarlyStopping
from pydantic import JsonValue
from tenacity import RetryCallState

from aigo_bridge.access.display_paths import display_path
from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Job, LogRef, Retry, RunSettings
from aigo_bridge.errors import EngineError
from aigo_bridge.execution.checkpoint import Checkpoint
from aigo_bridge.execution.jobs import (
    Identity,
    JobModels,
    PlannedJob,
    identity_of,
    make_folder,
    make_models,
    progress_of,
    start_jobs,
)
from aigo_bridge.execution.permissions import SharedHosts
from aigo_bridge.execution.progress import ATTEMPTS, ProgressCounter, Tolerance
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.process import fewer_collections
from aigo_bridge.process.signals import finishing, interruptible
from aigo_bridge.redaction.secrets import redact
from aigo_bridge.results.internal_errors import explained
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.text.summaries import summary_of
from aigo_inspect.logs.shapes import HEADER_KEY
from aigo_inspect.models import registration  # noqa: F401  # registers aigo-bridge's providers
from aigo_inspect.models.models import InspectModel, native_model, plain_text, refuse_unfit
from aigo_inspect.models.secrets import clean_log, logs_without_secrets
from aigo_inspect.running.resume import EARLIER_LOGS, earlier_runs, order_kept
from aigo_inspect.running.translate import BridgeRun, aigo_task, running

_OURS: ContextVar[bool] = ContextVar("ours", default=False)


@contextmanager
def no_notebook() -> Iterator[None]:
    """Make Inspect ignore the notebook in this block."""
    _watch()
    token = _OURS.set(True)
    try:
        yield
    finally:
        _OURS.reset(token)


@cache
def _watch() -> None:
    """Patch Inspect's notebook check once. It depends on a context variable, because another thread may run
    at the same time.
    """
    in_notebook = platform.running_in_notebook
    platform.running_in_notebook = lambda: not _OURS.get() and in_notebook()


COLLECTIONS = (10_000, 10, 10)
"""Garbage collection thresholds while samples run. With Python's 700, most samples in progress reach the
oldest generation, whose collections take a tenth of a run's time. After 10,000 objects, most samples have
ended."""

MAX_TASKS = 10
"""Maximum number of tasks at the same time. They share the connections to their models."""

WRITTEN_AT_ONCE = 100
"""Maximum number of trials of a run that saves each trial immediately. Each save writes the whole file."""


@dataclass(frozen=True)
class _Work:
    """A job to run, with its models."""

    start: PlannedJob[EvalLog]
    models: JobModels[Model]
    checkpoint: Checkpoint
    """Checkpoint of the model answers."""

    @property
    def plan(self) -> TaskPlan:
        return self.start.plan


@no_notebook()
def run(jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
    """Run plans; see `Engine.run`."""
    # Standard output may be read by a program. Output of Inspect, such as hook banners, goes to standard
    # error.
    with contextlib.redirect_stdout(sys.stderr):
        config = GenerateConfig(attempt_timeout=settings.attempt_timeout)
        models = make_models(jobs, partial(native_model, config=config))
    make_folder(settings.out)
    for job, of_job in zip(jobs, models, strict=True):
        if of_job.evaluated is not None:
            refuse_unfit(job.plan, of_job.evaluated)
    starts = start_jobs(jobs, [of_job.names(str) for of_job in models], settings, EARLIER_LOGS)
    works = [
        # Older releases used the name `None` for the evaluated model in the checkpoint.
        _Work(start, of_job, start.checkpoint("inspect", {"": "None", **of_job.names(str)}, settings.out))
        for start, of_job in zip(starts, models, strict=True)
    ]
    todo = [work for work in works if not work.start.is_complete]
    earlier_logs = set(settings.out.glob("*.eval"))
    logs: list[EvalLog] = []
    problem: str | None = None
    results: list[LogRef | EngineError] = []
    try:
        # A signal interrupts the evaluation only. Finished samples are then converted to evidence.
        with finishing():
            try:
                with interruptible(), fewer_collections(*COLLECTIONS):
                    logs = _eval(todo, settings) if todo else []
            except (Exception, KeyboardInterrupt) as error:
                if not set(settings.out.glob("*.eval")) - earlier_logs:
                    raise
                # Finished samples are already in logs, so the run has a result. The error is the reason for
                # its end. An interruption is visible in the logs.
                problem = explained(error) if isinstance(error, Exception) else None
            finally:
                _close_checkpoints(works, logs)
            for path in set(settings.out.glob("*.eval")) - earlier_logs:
                clean_log(path)
            written = _written(logs, settings.out, earlier_logs)
            results = [_contained_result(work.start, written, settings.out, problem) for work in works]
    except KeyboardInterrupt:
        if not results:
            raise
    return results


def _close_checkpoints(works: Sequence[_Work], logs: Sequence[EvalLog]) -> None:
    headers = [(log.eval.metadata or {}).get(HEADER_KEY) for log in logs if log.status == "success"]
    ended = {identity_of(header) for header in headers if isinstance(header, dict)}
    for work in works:
        if work.start.is_complete or identity_of(work.plan.header()) in ended:
            work.checkpoint.remove()
        else:
            work.checkpoint.close()


def _eval(works: Sequence[_Work], settings: RunSettings) -> list[EvalLog]:
    progress = progress_of([work.start for work in works], settings)
    with (
        _engine_errors(),
        contextlib.redirect_stdout(sys.stderr),
        logs_without_secrets(),
        retries_told(progress),
        order_kept(),
        contextlib.closing(SharedHosts()) as hosts,
    ):
        tasks = [
            _native(
                work,
                work.start.counter(
                    progress,
                    work.checkpoint,
                    work.start.recording("inspect", work.models.names(str), settings.recording),
                ),
                hosts.of_plan(work.plan),
            )
            for work in works
        ]
        return inspect_eval(
            _resolved(works, tasks) if any(work.start.finished for work in works) else tasks,
            model=None,
            log_dir=str(settings.out),
            log_format="eval",
            display="none",
            fail_on_error=False,
            max_tasks=min(len(works), MAX_TASKS),
            max_samples=settings.max_samples,
            max_connections=settings.max_connections,
            max_retries=ATTEMPTS,
            time_limit=settings.time_limit,
            token_limit=settings.token_limit,
            cost_limit=settings.cost_limit,
            # Logs the raw request and response of every call for the evidence's `direct_ios`.
            log_model_api=True,
            log_buffer=_log_buffer(works),
            # Scoring during the run would recompute all metrics after each sample.
            score_display=False,
            ctl_server=False,
        )


def _log_buffer(works: Sequence[_Work]) -> int | None:
    """Return the number of finished trials that may be missing in the log file; `None` if Inspect decides."""
    trials = max(len(work.plan.samples) * work.plan.num_trials for work in works)
    return 1 if trials <= WRITTEN_AT_ONCE else None


def _native(work: _Work, progress: ProgressCounter, host: SnippetHost) -> Task:
    """Return the registered task with its models. Its arguments are plain values for `inspect eval-retry`."""
    origin = work.plan.origin
    if origin is None:
        raise EngineError(
            "the plan was not read from a file, so Inspect cannot create its task again",
            code=Code.FAILED_ENGINE,
        )
    with running(BridgeRun(work.plan, progress, host)):
        native = aigo_task(**_arguments(work, origin))
    if work.start.job.tolerated is not None:
        native.early_stopping = ToleranceStopping(progress.tolerance)
    native.model = work.models.evaluated or get_model("none")
    native.model_roles = dict(work.models.others) or None
    return native


def _arguments(work: _Work, origin: PlanOrigin) -> dict[str, Any]:
    """Return the arguments of the registered task. Copies of stored files are named by their URLs."""
    job, replay = work.start.job, work.start.replay
    return {
        "task": display_path(origin.task),
        "config": dict(origin.config),
        "dataset": {key: display_path(file) for key, file in origin.datasets.items()},
        "num_samples": origin.num_samples,
        "subsampling": origin.subsampling,
        "model_map": {key: job.model_map[key] for key in work.models.others},
        "root": None if origin.root is None else display_path(origin.root),
        "num_trials": origin.num_trials,
        "stored": origin.stored,
        "reuse": None if replay is None else str(replay.resolve()),
        "digest": work.plan.digest,
        "allow_bad_tasks": origin.allow_bad_tasks,
        **({} if origin.shard is None else {"shard": origin.shard}),
    }


def _resolved(works: Sequence[_Work], tasks: Sequence[Task]) -> list[ResolvedTask | PreviousTask]:
    """Return new and resumed tasks in the form that Inspect accepts together."""
    none = get_model("none")
    resolved: list[ResolvedTask | PreviousTask] = []
    for work, task in zip(works, tasks, strict=True):
        earlier = work.start.finished
        if earlier is None:
            resolved += resolve_tasks(task, {}, none, None, None, None, input_media_policy="trusted_pre_run")
        else:
            resolved.append(
                PreviousTask(
                    id=earlier.eval.task_id,
                    task=task,
                    # Arguments in the earlier log are not used, because they may name any task.
                    task_args={} if work.plan.origin is None else _arguments(work, work.plan.origin),
                    model=task.model,
                    model_roles=task.model_roles,
                    sandbox=task.sandbox,
                    log=earlier,
                    log_info=None,
                )
            )
    return resolved


def _written(logs: Sequence[EvalLog], out: Path, earlier_logs: set[Path]) -> dict[Identity, EvalLog | Path]:
    """Return the log of each started plan. After an interruption, Inspect returns no logs but has written
    some.
    """
    written: dict[Identity, EvalLog | Path] = {}
    with contextlib.suppress(Exception):  # other files in the folder must not affect the logs of this run
        for run in () if logs else reversed(earlier_runs(out)):
            if run.path not in earlier_logs:
                written[identity_of(run.plan)] = run.path
    for log in logs:
        header = (log.eval.metadata or {}).get(HEADER_KEY)
        if isinstance(header, dict):
            written[identity_of(header)] = log
    return written


def _contained_result(
    start: PlannedJob[EvalLog], written: Mapping[Identity, EvalLog | Path], out: Path, problem: str | None
) -> LogRef | EngineError:
    try:
        return _result(start, written, out, problem)
    except Exception as error:  # noqa: BLE001  # the log is kept and can be imported
        return EngineError(
            f"the log of the run could not be found: {explained(error)}", code=Code.FAILED_ENGINE
        )


def _result(
    start: PlannedJob[EvalLog],
    written: Mapping[Identity, EvalLog | Path],
    out: Path,
    problem: str | None = None,
) -> LogRef | EngineError:
    if start.is_complete and start.earlier is not None:
        return start.log_ref("inspect", start.earlier)
    log = written.get(identity_of(start.plan.header()))
    path = log if isinstance(log, Path) else None
    error = problem
    if isinstance(log, EvalLog):
        # Inspect returns an absolute path. The result uses the folder as the user named it.
        path = out / Path(log.location.removeprefix("file://")).name if log.location else None
        error = redact(log.error.message) if log.error is not None else None
        if path is None or not path.is_file():
            return EngineError(error or "no log was written", code=Code.FAILED_ENGINE)
    if path is None:
        return EngineError(problem or "the run ended before this task started", code=Code.FAILED_ENGINE)
    return start.log_ref("inspect", path, error)


def single_model(name: str) -> InspectModel:
    """Return a model for calls outside a run."""
    return InspectModel(name, native_model(name))


@contextmanager
def _engine_errors() -> Iterator[None]:
    """Convert exceptions that Inspect raises before it writes a log to `EngineError`."""
    try:
        yield
    except PrerequisiteError as error:
        raise EngineError(plain_text(error), code=Code.FAILED_ENGINE) from error
    except FileNotFoundError as error:
        raise EngineError(str(error), code=Code.FAILED_ENGINE) from error
    except ExceptionGroup as group:
        # Inspect stores running samples in a database in the user's home folder, whose disk may be full.
        unwritable = group.subgroup((OSError, sqlite3.Error))
        if unwritable is None:
            raise
        raise EngineError(
            f"Inspect cannot write its files: {_first(unwritable)}", code=Code.UNUSABLE_OUTPUT
        ) from group


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


# `--fail-on-error`: start no more samples when the tolerance is exceeded
#
# This uses Inspect's early stopping: running samples end normally, the log gets the status `error` with the
# reason, and a resumed run starts the remaining samples. Inspect's `fail_on_error` would discard running
# samples, and does not count failed scorers.


class ToleranceExceededError(EngineError):
    """The number of failed samples exceeds the tolerance."""

    usual_code = Code.TOO_MANY_FAILURES

    def __repr__(self) -> str:
        # Inspect logs this text as the error of the run.
        return str(self)


class ToleranceStopping:
    """Early stopping that starts no more samples when the tolerance of a task is exceeded.

    Args:
        tolerance: failure counter of the task.
        other: early stopping of the task itself, which stays active.
    """

    def __init__(self, tolerance: Tolerance, other: EarlyStopping | None = None):
        self._tolerance = tolerance
        self._other = other
        self._stopped = False

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Return the name of the early stopping manager."""
        self._tolerance.num_trials = epochs
        if self._other is not None:
            return await self._other.start_task(task, samples, epochs)
        return "aigo_bridge_fail_on_error"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:  # noqa: A002  # Inspect's signature
        """Return an `EarlyStop` if a trial must not start."""
        if self._tolerance.is_spent:
            self._stopped = True
            return EarlyStop(id=id, epoch=epoch, reason=self._tolerance.reason)
        return None if self._other is None else await self._other.schedule_sample(id, epoch)

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:  # noqa: A002  # as above
        """Forward the call to the task's own early stopping."""
        if self._other is not None:
            await self._other.complete_sample(id, epoch, scores)

    async def complete_task(self) -> dict[str, JsonValue]:
        """Return metadata for the log.

        Raises:
            StoppedError: samples were not started, so the task as a whole has failed.
        """
        metadata = {} if self._other is None else await self._other.complete_task()
        if self._stopped:
            raise ToleranceExceededError(self._tolerance.reason)
        return metadata


# Reporting of retried model calls


@contextmanager
def retries_told(counter: ProgressCounter) -> Iterator[None]:
    """Report retried calls in this block to a counter. Inspect logs them as before.

    After the last attempt, the original error is raised. The retry library's own error would only contain the
    class name.
    """
    module: Any = model_module
    logged, config = module.log_model_retry, module.model_retry_config

    async def told(model_name: str, state: RetryCallState, *args: Any, **kwargs: Any) -> None:
        counter.retrying(Retry(model_name, state.attempt_number, state.upcoming_sleep, _reason(state)))
        await logged(model_name, state, *args, **kwargs)

    module.log_model_retry = told
    module.model_retry_config = lambda *args, **kwargs: {**config(*args, **kwargs), "reraise": True}
    try:
        yield
    finally:
        module.log_model_retry, module.model_retry_config = logged, config


def _reason(state: RetryCallState) -> str:
    """Return the reason of a failed attempt. The cause is added to short messages such as `Connection
    error.`.
    """
    error = state.outcome.exception() if state.outcome is not None else None
    if error is None:
        return "the call failed"
    message = summary_of(error)
    cause = "" if error.__cause__ is None else summary_of(error.__cause__)
    return redact(f"{message} ({cause})" if cause and cause not in message else message)
