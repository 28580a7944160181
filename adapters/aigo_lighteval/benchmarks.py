"""lighteval's own tasks, run as they are: their prompts, their rows or local ones, their metrics; any model, and evidence of what happened."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from lighteval.models.abstract_model import LightevalModel

from aigo_bridge.benchmarks import (
    BenchmarkMetric,
    BenchmarkOutcome,
    BenchmarkRun,
    ConvertedBenchmark,
    Listing,
    by_kind,
)
from aigo_bridge.counting import ProgressCounter
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.results.result_files import SUFFIX, RunIdentity, result_file
from aigo_bridge.secrets import learn_environment
from aigo_bridge.tolerance import Tolerance, allowed
from aigo_lighteval import native_listing
from aigo_lighteval.asking import BackendCaller
from aigo_lighteval.calling import Caller
from aigo_lighteval.models import make_caller
from aigo_lighteval.native_evidence import write_result
from aigo_lighteval.native_faults import refusals
from aigo_lighteval.native_models import (
    BackendModel,
    CalledModel,
    Limits,
    Told,
    refuse_documents,
    refuse_methods,
)
from aigo_lighteval.native_registry import Selected, select
from aigo_lighteval.native_rows import SplitRows, folder_name, local_splits
from aigo_lighteval.native_running import Finished, finish, make_pipeline

MAX_ERRORS = 5
"""Failed samples that are named in an outcome; all are in the evidence."""

DEFAULT_SAMPLES = 20
"""Documents in flight at a time where nobody says otherwise."""

TELLS_PROGRESS = True
"""Whether runs tell how far they are."""

TAKES_LOCAL_ROWS = True
"""Whether `data_dir` and `custom_tasks` of a request mean something here."""


def listing() -> Listing:
    """Tasks and supersets."""
    with _stdout_for_people():
        return native_listing.listing()


def run(request: BenchmarkRun) -> list[BenchmarkOutcome]:
    """Run the tasks that a name stands for, one after the other; see `Benchmarks.run`."""
    _refuse_options(request)
    learn_environment()
    with _stdout_for_people():
        caller = make_caller(request.model)
        tasks = select(request.task, request.arguments, request.custom_tasks)
        _refuse_tasks(tasks, caller)
        splits = [_splits(task, request.data_dir, alone=len(tasks) == 1) for task in tasks]
        try:
            request.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"--out: {str(request.out)!r} cannot be used as a folder: {error.strerror}"
            ) from error
        with start_blocking_portal() as portal:
            try:
                if isinstance(caller, BackendCaller):
                    caller.load()
                return [
                    _run_one(task, rows, request, caller, portal, alone=len(tasks) == 1)
                    for task, rows in zip(tasks, splits, strict=True)
                ]
            finally:
                portal.call(caller.aclose)


def converted(
    task: str,
    arguments: Sequence[str],
    key: str | None,
    *,
    data_dir: Path | None = None,
    custom_tasks: Path | None = None,
    num_samples: int | None = None,
) -> ConvertedBenchmark:
    """One task as an AI GO task; see `Benchmarks.converted`."""
    from aigo_lighteval.converting import convert

    with _stdout_for_people():
        tasks = select(task, arguments, custom_tasks)
        if len(tasks) != 1:
            names = ", ".join(each.config.name for each in tasks)
            raise UsageError(f"{task!r} stands for {len(tasks)} tasks, expected one of {names}")
        return convert(tasks[0], _splits(tasks[0], data_dir, alone=True), key=key, num_samples=num_samples)


def _refuse_options(request: BenchmarkRun) -> None:
    problems = []
    if request.roles:
        problems.append("--model-map: tasks of lighteval have no model roles")
    if request.num_trials is not None:
        problems.append(
            "--num-trials: how often a task of lighteval asks is said by its metrics, e.g. TASK@n=4"
        )
    if request.cost_limit is not None:
        problems.append("--cost-limit: the lighteval engine knows no prices; use --token-limit")
    if problems:
        raise UsageError("\n".join(problems))


def _refuse_tasks(tasks: Sequence[Selected], caller: Caller) -> None:
    """Everything that is known before rows are read; all tasks are named."""
    problems: list[str] = []
    for task in tasks:
        problems += [
            f"task {task.config.name!r} cannot be run right: {each}" for each in refusals(task.config)
        ]
        try:
            refuse_methods(task.config.name, [metric.category for metric in task.config.metrics], caller)
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems))


def _splits(task: Selected, data_dir: Path | None, *, alone: bool) -> Mapping[str, SplitRows] | None:
    return None if data_dir is None else local_splits(task.config, task.shots, data_dir, alone=alone)


def _run_one(
    task: Selected,
    splits: Mapping[str, SplitRows] | None,
    request: BenchmarkRun,
    caller: Caller,
    portal: BlockingPortal,
    *,
    alone: bool,
) -> BenchmarkOutcome:
    told = Told()
    started = time.time()
    try:
        model = _model(caller, request, portal, told)
        pipeline = make_pipeline(task, model, told, splits, request.num_samples, request.out)
        refuse_documents(task.config.name, pipeline.documents_dict[task.name], caller)
        number = len(pipeline.documents_dict[task.name])
        counter = ProgressCounter(request.on_progress, number)
        told.progress = counter.of_task(task.name, Tolerance(allowed(request.fail_on_error, number)))
        finished = finish(pipeline, task, request.out)
    except (EngineError, UsageError) as error:
        if alone:
            raise
        return _broken(task, request, caller, str(error))
    name = folder_name(task.config.name if not task.shots else f"{task.config.name}_{task.shots}-shot")
    own = RunIdentity(task.config.name, caller.name, {"num_fewshots": task.shots})
    file = result_file(request.out, name, own, _of_result)
    target = file.with_name(file.name.removesuffix(SUFFIX))
    result = write_result(task.name, finished, told, target, started=started, ended=time.time())
    failures = sorted(told.failures.items(), key=lambda each: int(each[0]))
    first_errors, error_counts = by_kind([(name, failure.message) for name, failure in failures], MAX_ERRORS)
    return BenchmarkOutcome(
        task=task.name,
        status="success" if told.stopped is None else "error",
        error=told.stopped,
        model=caller.name,
        native_log=finished.results_file,
        result=result,
        metrics=_metrics(finished, len(told.failures)),
        planned=finished.planned,
        num_samples=finished.planned,
        num_failed=len(failures),
        first_errors=first_errors,
        error_counts=error_counts,
    )


def _of_result(frame: TaskResultLog) -> RunIdentity | None:
    """Which run a result of a lighteval task is of."""
    specification = frame.specification
    kept = specification.config.get("lighteval")
    entity = specification.evaluated_entity
    if not isinstance(kept, dict) or entity is None:
        return None
    name = (kept.get("config_task") or {}).get("name")
    return RunIdentity(
        str(name), entity.display_name, {"num_fewshots": specification.config.get("num_fewshots")}
    )


def _broken(task: Selected, request: BenchmarkRun, caller: Caller, message: str) -> BenchmarkOutcome:
    """One of several tasks that came to nothing."""
    return BenchmarkOutcome(
        task=task.name,
        status="error",
        error=message,
        model=caller.name,
        native_log=request.out,
        result=None,
        metrics=(),
        planned=0,
        num_samples=0,
        num_failed=0,
    )


def _model(caller: Caller, request: BenchmarkRun, portal: BlockingPortal, told: Told) -> LightevalModel:
    if isinstance(caller, BackendCaller):
        return BackendModel(caller.load(), told)
    allowed = min(caller.max_concurrent, request.max_connections or math.inf)
    limits = Limits(
        request.time_limit,
        request.token_limit,
        request.max_samples or max(DEFAULT_SAMPLES, 2 * (request.max_connections or 0)),
    )
    return CalledModel(caller, anyio.CapacityLimiter(max(1, allowed)), portal, limits, told)


def _metrics(finished: Finished, failed: int) -> tuple[BenchmarkMetric, ...]:
    scored = len({each.doc.id for each in finished.measured}) - failed
    return tuple(
        BenchmarkMetric(name.removesuffix("_stderr"), name, value if math.isfinite(value) else None, scored)
        for name, value in finished.results.items()
    )


@contextlib.contextmanager
def _stdout_for_people() -> Iterator[None]:
    """What tasks and lighteval print is for people; standard output may be read by a program."""
    with contextlib.redirect_stdout(sys.stderr):
        yield
