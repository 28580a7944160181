"""Runs of lighteval's tasks with their own prompts and metrics, lighteval's or local rows, any model, and
evidence.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal
from lighteval.models.abstract_model import LightevalModel
from lighteval.tasks.requests import Doc

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.engine.benchmarks import BenchmarkListing, BenchmarkRun, ConvertedBenchmark
from aigo_bridge.engine.outcome import Outcome, errors_by_kind, uncomputed
from aigo_bridge.engine.protocol import LogRef
from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.execution.checkpoint import Checkpoint
from aigo_bridge.execution.jobs import make_folder
from aigo_bridge.execution.progress import ProgressCounter, Tolerance, allowed
from aigo_bridge.process import steady_time
from aigo_bridge.redaction.secrets import learn_environment
from aigo_bridge.results.assembling import MetricRow
from aigo_bridge.results.counts import read_counts
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.result_files import SUFFIX, RunIdentity, result_file
from aigo_bridge.text.plurals import plural
from aigo_lighteval.benchmarks.faults import refusals
from aigo_lighteval.benchmarks.models import (
    BackendModel,
    CalledModel,
    DocumentNotes,
    Limits,
    refuse_documents,
    refuse_methods,
)
from aigo_lighteval.benchmarks.outcomes import TaskOutput, finish, write_result
from aigo_lighteval.benchmarks.pipeline import (
    SplitRows,
    folder_name,
    local_splits,
    make_pipeline,
)
from aigo_lighteval.benchmarks.requests import apply_settings
from aigo_lighteval.benchmarks.tasks import SelectedTask, select
from aigo_lighteval.benchmarks.tasks import listing as native_listing
from aigo_lighteval.models.batches import BackendCaller
from aigo_lighteval.models.callers import make_caller
from aigo_lighteval.models.messages import Caller
from aigo_lighteval.models.models import limiter

MAX_ERRORS = 5
"""Maximum number of failed samples shown in an outcome. The evidence contains all of them."""

DEFAULT_SAMPLES = 20
"""Default number of documents in progress."""


def listing() -> BenchmarkListing:
    """Return the available tasks and supersets."""
    with stdout_for_people():
        return native_listing()


def run(request: BenchmarkRun) -> list[Outcome]:
    """Run the tasks of a name, one after the other. See `BenchmarkRunner.run`."""
    refuse_options(request)
    if request.max_samples is not None and request.num_samples is None and request.on_note is not None:
        number = request.max_samples
        request.on_note(
            f"--max-samples: {plural(number, 'document is', 'documents are')} in flight at a"
            " time, and all are run; for the first"
            f" {number}, as with lighteval's own --max-samples, use -n {number}"
        )
    learn_environment()
    with stdout_for_people():
        caller = make_caller(request.model, attempt_timeout=request.attempt_timeout)
        tasks = tasks_of(request)
        refuse_tasks(tasks, caller)
        splits = splits_of(tasks, request)
        refuse_resuming(request, caller)
        make_folder(request.out)
        checkpoints = [checkpoint_of(task, request) for task in tasks]
        with start_blocking_portal() as portal:
            try:
                if isinstance(caller, BackendCaller):
                    caller.load()
                outcomes = [
                    _run_one(task, rows, request, caller, portal, checkpoint, alone=len(tasks) == 1)
                    for task, rows, checkpoint in zip(tasks, splits, checkpoints, strict=True)
                ]
                # Remove checkpoints only at the end, so that a run stopped in a later task can resume earlier
                # ones.
                for outcome, checkpoint in zip(outcomes, checkpoints, strict=True):
                    if outcome.status == "success" and not outcome.num_failed:
                        checkpoint.remove()
                return outcomes
            finally:
                for checkpoint in checkpoints:
                    checkpoint.close()
                portal.call(caller.aclose)


def tasks_of(request: BenchmarkRun) -> list[SelectedTask]:
    """Return the requested tasks.

    Raises:
        UsageError: a task or parameter does not exist.
    """
    names = ",".join([request.task, *request.more_tasks])
    return select(names, request.arguments, request.custom_tasks)


def splits_of(tasks: Sequence[SelectedTask], request: BenchmarkRun) -> list[Mapping[str, SplitRows] | None]:
    """Return the rows of each task from a local folder; `None`: lighteval loads them."""
    return [_splits(task, request.data_dir, alone=len(tasks) == 1) for task in tasks]


def checkpoint_of(task: SelectedTask, request: BenchmarkRun) -> Checkpoint:
    """Return the checkpoint that stores a task's answers as they arrive."""
    identity = ["lighteval benchmark", task.name, request.model]
    return Checkpoint(request.out, identity, goes_on=request.resume)


def refuse_resuming(request: BenchmarkRun, caller: Caller) -> None:
    """Refuse to resume a run that stores no partial answers.

    Raises:
        UsageError: the model answers all documents in one call.
    """
    if request.resume and isinstance(caller, BackendCaller):
        raise UsageError(
            f"--resume: {caller.name!r} answers all documents in one lighteval call, so an"
            " interrupted run cannot reuse answers",
            code=Code.OPTIONS_APART,
        )


def converted(
    task: str,
    arguments: Sequence[str],
    key: str | None,
    *,
    data_dir: Path | None = None,
    custom_tasks: Path | None = None,
    num_samples: int | None = None,
) -> ConvertedBenchmark:
    """Convert one task to an AI GO task. See `BenchmarkRunner.converted`."""
    from aigo_lighteval.benchmarks.convert import convert

    with stdout_for_people():
        tasks = select(task, arguments, custom_tasks)
        if len(tasks) != 1:
            names = ", ".join(candidate.config.name for candidate in tasks)
            raise UsageError(
                f"{task!r} matches {plural(len(tasks), 'task')}, expected one of {names}",
                code=Code.UNKNOWN_BENCHMARK,
            )
        return convert(tasks[0], _splits(tasks[0], data_dir, alone=True), key=key, num_samples=num_samples)


def refuse_options(request: BenchmarkRun) -> None:
    """Refuse options that lighteval tasks do not support.

    Raises:
        UsageError: such an option was given. The message lists all of them.
    """
    problems = []
    if request.roles:
        problems.append("--model-map: lighteval tasks do not have model roles")
    if request.num_trials is not None:
        problems.append(
            "--num-trials: the metrics of a lighteval task define the number of answers, e.g. TASK@n=4"
        )
    if request.cost_limit is not None:
        problems.append("--cost-limit: the lighteval engine does not know prices; use --token-limit")
    if request.sample_id is not None and request.num_samples is not None:
        problems.append("--sample-id and -n: use only one of them")
    if problems:
        raise UsageError("\n".join(problems), code=Code.UNFIT_BENCHMARK)


def sample_ids(request: BenchmarkRun) -> list[str] | None:
    """Return the chosen documents; `None`: all."""
    if request.sample_id is None:
        return None
    return [name.strip() for name in request.sample_id.split(",") if name.strip()]


def refuse_tasks(tasks: Sequence[SelectedTask], caller: Caller) -> None:
    """Refuse tasks that cannot be run correctly, as far as this is known before rows are read.

    Raises:
        UsageError: a task is refused. The message lists all of them.
    """
    problems: list[str] = []
    for task in tasks:
        problems += [
            f"task {task.config.name!r} cannot be run correctly: {reason}" for reason in refusals(task.config)
        ]
        try:
            refuse_methods(task.config.name, [metric.category for metric in task.config.metrics], caller)
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems), code=Code.UNFIT_BENCHMARK)


def _splits(task: SelectedTask, data_dir: Path | None, *, alone: bool) -> Mapping[str, SplitRows] | None:
    return None if data_dir is None else local_splits(task.config, task.shots, data_dir, alone=alone)


def _run_one(
    task: SelectedTask,
    splits: Mapping[str, SplitRows] | None,
    request: BenchmarkRun,
    caller: Caller,
    portal: BlockingPortal,
    checkpoint: Checkpoint,
    *,
    alone: bool,
) -> Outcome:
    told = DocumentNotes()
    started = steady_time()
    try:
        model = model_of(caller, request, portal, told)
        pipeline = make_pipeline(
            task, model, told, splits, request.num_samples, request.out, sample_ids=sample_ids(request)
        )
        documents = pipeline.documents_dict[task.name]
        settle(documents, task, caller)
        watch(documents, task, request, told, checkpoint)
        finished = finish(pipeline, task, request.out)
    except (EngineError, UsageError) as error:
        if alone:
            raise
        return _broken(task, request, caller, str(error))
    times = (started, steady_time())
    return concluded(task, finished, told, request.out, caller.name, times, num_reused=checkpoint.num_given)


def settle(documents: Sequence[Doc], task: SelectedTask, caller: Caller) -> None:
    """Apply the user's answer settings to the documents.

    Raises:
        UsageError: a setting would not reach the model.
    """
    apply_settings(documents, caller.settings)
    refuse_documents(task.config.name, documents, caller)


def watch(
    documents: Sequence[Doc],
    task: SelectedTask,
    request: BenchmarkRun,
    told: DocumentNotes,
    checkpoint: Checkpoint,
) -> None:
    """Count finished documents and store their answers as they arrive."""
    number = len(documents)
    counter = ProgressCounter(request.on_progress, number)
    tolerance = Tolerance(allowed(request.fail_on_error, number))
    told.progress = counter.of_task(task.name, tolerance, checkpoint)


def concluded(
    task: SelectedTask,
    finished: TaskOutput,
    told: DocumentNotes,
    out: Path,
    model: str,
    times: tuple[float, float],
    *,
    num_reused: int = 0,
) -> Outcome:
    """Write the evidence of a finished task.

    Args:
        task: the task.
        finished: output of the run.
        told: information that lighteval cannot store.
        out: folder of the evidence.
        model: model name.
        times: start and end of the run, as Unix times.
        num_reused: number of answers reused from an earlier run.
    """
    name = folder_name(task.config.name if not task.shots else f"{task.config.name}_{task.shots}-shot")
    identity = RunIdentity(task.config.name, model, {"num_fewshots": task.shots})
    file = result_file(out, name, identity, _of_result)
    target = file.with_name(file.name.removesuffix(SUFFIX))
    result = write_result(task.name, finished, told, target, started=times[0], ended=times[1])
    failures = sorted(told.failures.items(), key=lambda each: int(each[0]))
    metrics = _metrics(finished, told)
    counts, stop_reasons = read_counts(LogReader(result))
    return Outcome(
        task=task.name,
        status="success" if told.stopped is None else "error",
        error=told.stopped,
        models={"": model},
        logs=(LogRef("lighteval", finished.results_file, num_reused),),
        result=result,
        metrics=metrics,
        uncomputed=uncomputed(metrics, counts.samples, counts.failed),
        num_planned=finished.planned,
        counts=counts,
        stop_reasons=stop_reasons,
        num_unscored=max(map(len, told.unscored.values()), default=0),
        first_errors=errors_by_kind([(name, failure.message) for name, failure in failures], MAX_ERRORS),
        doubts=tuple(
            f"scorer {name}: {plural(len(documents), 'sample was', 'samples were')} not scored, and left"
            " out of its metrics"
            for name, documents in told.unscored.items()
        ),
    )


def _of_result(frame: TaskResultLog) -> RunIdentity | None:
    specification = frame.specification
    header = specification.config.get("lighteval")
    entity = specification.evaluated_entity
    if not isinstance(header, dict) or entity is None:
        return None
    name = (header.get("config_task") or {}).get("name")
    return RunIdentity(
        str(name), entity.display_name, {"num_fewshots": specification.config.get("num_fewshots")}
    )


def _broken(task: SelectedTask, request: BenchmarkRun, caller: Caller, message: str) -> Outcome:
    return Outcome(
        task=task.name,
        status="error",
        error=message,
        models={"": caller.name},
        logs=(LogRef("lighteval", request.out),),
    )


def model_of(
    caller: Caller, request: BenchmarkRun, portal: BlockingPortal, notes: DocumentNotes
) -> LightevalModel:
    """Return the model with lighteval's interface."""
    if isinstance(caller, BackendCaller):
        return BackendModel(caller.load(), notes)
    limits = Limits(
        request.time_limit,
        request.token_limit,
        request.max_samples or max(DEFAULT_SAMPLES, 2 * (request.max_connections or 0)),
        request.attempt_timeout,
    )
    return CalledModel(caller, limiter(caller, request.max_connections), portal, limits, notes)


def _metrics(finished: TaskOutput, told: DocumentNotes) -> tuple[MetricRow, ...]:
    measured = len({document.doc.id for document in finished.measured}) - len(told.failures)
    rows = []
    for name, value in finished.results.items():
        scorer = name.removesuffix("_stderr")
        scored = measured - len(told.unscored.get(scorer, ()))
        rows.append(MetricRow(scorer, name, value if math.isfinite(value) else None, scored))
    return tuple(rows)


@contextlib.contextmanager
def stdout_for_people() -> Iterator[None]:
    """Redirect printed output to standard error, because a program may read standard output."""
    with contextlib.redirect_stdout(sys.stderr):
        yield
