"""Carrying out plans, new ones and interrupted ones, with one call of Inspect's `eval`; in a notebook as
everywhere else.

In a notebook Inspect asks for widgets, which show what is switched off in our runs, and changes asyncio for
the whole process, so that its own loop can run within the notebook's. Ours runs beside it (see
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
)  # how Inspect itself readies a task; there is no public form
from inspect_ai._eval.task import PreviousTask
from inspect_ai._eval.task.resolved import ResolvedTask
from inspect_ai._util import platform  # there is no public form
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

from aigo_bridge.access.mirrored import named
from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Job, LogRef, Retry, RunSettings
from aigo_bridge.errors import EngineError
from aigo_bridge.execution.jobs import (
    Identity,
    JobModels,
    Start,
    identity_of,
    make_folder,
    make_models,
    progress_of,
    start_jobs,
)
from aigo_bridge.execution.journal import Journal
from aigo_bridge.execution.permissions import SharedHosts
from aigo_bridge.execution.progress import ATTEMPTS, ProgressCounter, Tolerance
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.process import fewer_collections
from aigo_bridge.process.signals import finishing
from aigo_bridge.redaction.secrets import redact
from aigo_bridge.results.faults import explained
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.text.summaries import summary_of
from aigo_inspect.logs.shapes import HEADER_KEY
from aigo_inspect.models import registration  # noqa: F401  # registers aigo-bridge's providers
from aigo_inspect.models.models import InspectModel, native_model, plain_text, refuse_unfit
from aigo_inspect.models.secrets import clean_log, logs_without_secrets
from aigo_inspect.running.resume import EARLIER_LOGS, earlier_runs, order_kept
from aigo_inspect.running.translate import Run, aigo_task, running

_OURS: ContextVar[bool] = ContextVar("ours", default=False)


@contextmanager
def no_notebook() -> Iterator[None]:
    """Let Inspect take itself to be in no notebook, in this block."""
    _watch()
    token = _OURS.set(True)
    try:
        yield
    finally:
        _OURS.reset(token)


@cache
def _watch() -> None:
    """Have Inspect ask us first, from now on: another run may be in its block in another thread."""
    in_notebook = platform.running_in_notebook
    platform.running_in_notebook = lambda: not _OURS.get() and in_notebook()


COLLECTIONS = (700, 10, 30)
"""Thresholds of garbage collection while samples run: Python's own but for the full ones, which took a tenth
of a run's time."""

MAX_TASKS = 10
"""Tasks at the same time; they share the connections to their models, and the other tasks wait."""

WRITTEN_AT_ONCE = 100
"""Most trials of a run that saves each one immediately; each time, the whole file is written."""


@dataclass(frozen=True)
class _Work:
    """A job that starts, with its models."""

    start: Start[EvalLog]
    models: JobModels[Model]
    journal: Journal
    """Keeps the answers of its models."""

    @property
    def plan(self) -> TaskPlan:
        return self.start.plan


@no_notebook()
def run(jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
    """Run plans; see `Engine.run`."""
    # What Inspect prints (hooks, while the first model is made) is for people; standard output may be read by
    # a program.
    with contextlib.redirect_stdout(sys.stderr):
        config = GenerateConfig(attempt_timeout=settings.attempt_timeout)
        models = make_models(jobs, partial(native_model, config=config))
    make_folder(settings.out)
    for job, of_job in zip(jobs, models, strict=True):
        if of_job.evaluated is not None:
            refuse_unfit(job.plan, of_job.evaluated)
    starts = start_jobs(jobs, [of_job.names(str) for of_job in models], settings, EARLIER_LOGS)
    works = [
        # Older releases have journals whose name says `None` for the evaluated model.
        _Work(start, of_job, start.journal("inspect", {"": "None", **of_job.names(str)}, settings.out))
        for start, of_job in zip(starts, models, strict=True)
    ]
    todo = [work for work in works if not work.start.is_complete]
    earlier_logs = set(settings.out.glob("*.eval"))
    logs: list[EvalLog] = []
    problem: str | None = None
    try:
        with fewer_collections(*COLLECTIONS):
            logs = _eval(todo, settings) if todo else []
    except (Exception, KeyboardInterrupt) as error:
        if not set(settings.out.glob("*.eval")) - earlier_logs:
            raise
        # Samples have been run, and stand in logs: those are the run, and this is why it ended. Of an
        # interruption the logs tell.
        problem = explained(error) if isinstance(error, Exception) else None
    finally:
        _close_journals(works, logs)
    # Whatever the signal, the samples that were run become evidence.
    with contextlib.suppress(KeyboardInterrupt), finishing():
        for path in set(settings.out.glob("*.eval")) - earlier_logs:
            clean_log(path)
        written = _written(logs, settings.out, earlier_logs)
        results = [_contained_result(work.start, written, settings.out, problem) for work in works]
    return results


def _close_journals(works: Sequence[_Work], logs: Sequence[EvalLog]) -> None:
    """Entries of finished runs are not needed any more."""
    headers = [(log.eval.metadata or {}).get(HEADER_KEY) for log in logs if log.status == "success"]
    ended = {identity_of(header) for header in headers if isinstance(header, dict)}
    for work in works:
        if work.start.is_complete or identity_of(work.plan.header()) in ended:
            work.journal.remove()
        else:
            work.journal.close()


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
                    progress, work.journal, work.start.tape("inspect", work.models.names(str), settings.tape)
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
            # Raw requests and responses of every call: the evidence's `direct_ios`.
            log_model_api=True,
            log_buffer=_log_buffer(works),
            # Scoring while running would compute all metrics again after each sample.
            score_display=False,
            ctl_server=False,
        )


def _log_buffer(works: Sequence[_Work]) -> int | None:
    """Return how many finished trials may be missing in the file of the log; `None`: Inspect decides."""
    trials = max(len(work.plan.samples) * work.plan.num_trials for work in works)
    return 1 if trials <= WRITTEN_AT_ONCE else None


def _native(work: _Work, progress: ProgressCounter, host: SnippetHost) -> Task:
    """The registered task with plain arguments, for `inspect eval-retry`, and its models."""
    origin = work.plan.origin
    if origin is None:
        raise EngineError(
            "the plan was not made from a file, so Inspect could not make its task again",
            code=Code.FAILED_ENGINE,
        )
    with running(Run(work.plan, progress, host)):
        native = aigo_task(**_arguments(work, origin))
    if work.start.job.tolerated is not None:
        native.early_stopping = ToleranceStopping(progress.tolerance)
    native.model = work.models.evaluated or get_model("none")
    native.model_roles = dict(work.models.others) or None
    return native


def _arguments(work: _Work, origin: PlanOrigin) -> dict[str, Any]:
    """Arguments of the registered task; copies of stored files are named by their addresses."""
    job, replay = work.start.job, work.start.replay
    return {
        "task": named(origin.task),
        "config": dict(origin.config),
        "dataset": {key: named(file) for key, file in origin.datasets.items()},
        "num_samples": origin.num_samples,
        "subsampling": origin.subsampling,
        "model_map": {key: job.model_map[key] for key in work.models.others},
        "root": None if origin.root is None else named(origin.root),
        "num_trials": origin.num_trials,
        "stored": origin.stored,
        "reuse": None if replay is None else str(replay.resolve()),
        "digest": work.plan.digest,
        "allow_bad_tasks": origin.allow_bad_tasks,
        **({} if origin.shard is None else {"shard": origin.shard}),
    }


def _resolved(works: Sequence[_Work], tasks: Sequence[Task]) -> list[ResolvedTask | PreviousTask]:
    """Tasks of which some go on from an earlier log, in the one form in which Inspect takes both."""
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
                    # Not those of the earlier log, which may name anybody's task.
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
    """The log of each plan that was begun; interrupted, Inspect returns none, but has written some."""
    written: dict[Identity, EvalLog | Path] = {}
    with contextlib.suppress(
        Exception
    ):  # other files of the folder are no reason to lose the logs of this run
        for run in reversed(earlier_runs(out)):
            if run.path not in earlier_logs:
                written[identity_of(run.plan)] = run.path
    for log in logs:
        header = (log.eval.metadata or {}).get(HEADER_KEY)
        if isinstance(header, dict):
            written[identity_of(header)] = log
    return written


def _contained_result(
    start: Start[EvalLog], written: Mapping[Identity, EvalLog | Path], out: Path, problem: str | None
) -> LogRef | EngineError:
    """The log of one job; a job of which it cannot be told takes no other with it."""
    try:
        return _result(start, written, out, problem)
    except Exception as error:  # noqa: BLE001  # its log stays, and can be imported
        return EngineError(
            f"the log of the run could not be found: {explained(error)}", code=Code.FAILED_ENGINE
        )


def _result(
    start: Start[EvalLog],
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
        # Inspect makes it absolute; it is named as the folder was.
        path = out / Path(log.location.removeprefix("file://")).name if log.location else None
        error = redact(log.error.message) if log.error is not None else None
        if path is None or not path.is_file():
            return EngineError(error or "no log was written", code=Code.FAILED_ENGINE)
    if path is None:
        return EngineError(problem or "the run ended before this task was begun", code=Code.FAILED_ENGINE)
    return start.log_ref("inspect", path, error)


def single_model(name: str) -> InspectModel:
    """A model for calls outside a run."""
    return InspectModel(name, native_model(name))


@contextmanager
def _engine_errors() -> Iterator[None]:
    """What Inspect raises before it has a log, as our errors."""
    try:
        yield
    except PrerequisiteError as error:
        raise EngineError(plain_text(error), code=Code.FAILED_ENGINE) from error
    except FileNotFoundError as error:
        raise EngineError(str(error), code=Code.FAILED_ENGINE) from error
    except ExceptionGroup as group:
        # Inspect keeps the samples in flight in a data base below the user's folder; that disk may be full,
        # too.
        unwritable = group.subgroup((OSError, sqlite3.Error))
        if unwritable is None:
            raise
        raise EngineError(
            f"Inspect cannot write its files: {_first(unwritable)}", code=Code.UNUSABLE_OUTPUT
        ) from group


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    """The first error of a group that is no group."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


# `--fail-on-error`: when the tolerance is spent, no further sample is begun
#
# By Inspect's own early stopping: samples in flight end as they do, the log has the status `error` and the
# reason, and a run that is resumed begins the others. Inspect's `fail_on_error` would throw away those in
# flight, and knows nothing of scorers that failed.


class StoppedError(EngineError):
    """More samples have failed than may."""

    usual_code = Code.TOO_MANY_FAILURES

    def __repr__(self) -> str:
        # Inspect logs this as the run's error.
        return str(self)


class ToleranceStopping:
    """Begins no sample when the tolerance of its task is spent.

    Args:
        tolerance: told of failures by whoever counts them.
        other: the task's own early stopping, which is asked as before.
    """

    def __init__(self, tolerance: Tolerance, other: EarlyStopping | None = None):
        self._tolerance = tolerance
        self._other = other
        self._stopped = False

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Say who stops samples."""
        self._tolerance.num_trials = epochs
        if self._other is not None:
            return await self._other.start_task(task, samples, epochs)
        return "aigo_bridge_fail_on_error"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:  # noqa: A002  # the signature that Inspect calls
        """Whether a trial is not begun."""
        if self._tolerance.is_spent:
            self._stopped = True
            return EarlyStop(id=id, epoch=epoch, reason=self._tolerance.reason)
        return None if self._other is None else await self._other.schedule_sample(id, epoch)

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:  # noqa: A002  # as above
        """Pass it on."""
        if self._other is not None:
            await self._other.complete_sample(id, epoch, scores)

    async def complete_task(self) -> dict[str, JsonValue]:
        """What the log says of it.

        Raises:
            StoppedError: samples were not begun: the task as a whole has failed.
        """
        metadata = {} if self._other is None else await self._other.complete_task()
        if self._stopped:
            raise StoppedError(self._tolerance.reason)
        return metadata


# Calls that Inspect makes again, told to whoever watches the run


@contextmanager
def retries_told(counter: ProgressCounter) -> Iterator[None]:
    """Tell a counter of calls that will be made again, in this block; Inspect logs them as before.

    After the last attempt its own error is raised, not that of the library that makes calls again, whose text
    names the error's class alone.
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
    """What the attempt met; where that came from something more telling, with it (`Connection error.`)."""
    error = state.outcome.exception() if state.outcome is not None else None
    if error is None:
        return "the call failed"
    message = summary_of(error)
    cause = "" if error.__cause__ is None else summary_of(error.__cause__)
    return redact(f"{message} ({cause})" if cause and cause not in message else message)
