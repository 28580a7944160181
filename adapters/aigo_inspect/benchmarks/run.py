"""Runs of existing Inspect tasks: Inspect's own `eval`, and the usual import of its log."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.hooks import Hooks, SampleEnd, TaskStart, hooks
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import GenerateConfig, Model, get_model
from inspect_ai.model._model import init_active_model, init_model_roles

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkListing, BenchmarkRun, ConvertedBenchmark
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.errors import UsageError
from aigo_bridge.execution.jobs import make_folder
from aigo_bridge.execution.progress import ATTEMPTS, ProgressCounter, Spent, Tolerance, tolerated
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.metrics.grades import graded_number
from aigo_bridge.redaction.secrets import redact
from aigo_bridge.text.plurals import plural
from aigo_inspect.benchmarks.convert import convert
from aigo_inspect.benchmarks.options import EvalSettings, settings_of, with_roles
from aigo_inspect.benchmarks.outcomes import file_name, outcome_of, unreturned, unused_roles
from aigo_inspect.benchmarks.resume import TaskWithModel, earlier_log, resolved, task_runs
from aigo_inspect.benchmarks.tasks import listing as installed
from aigo_inspect.benchmarks.tasks import load_tasks, parsed_arguments
from aigo_inspect.models import registration  # noqa: F401  # registers aigo-bridge's providers
from aigo_inspect.models.secrets import clean_log, logs_without_secrets
from aigo_inspect.running.resume import order_kept
from aigo_inspect.running.run import (
    ToleranceStopping,
    _engine_errors,
    retries_told,
)

NO_MODEL = "none/none"
"""Inspect's model name for a run without a model."""


def listing() -> BenchmarkListing:
    """Return the tasks of installed packages."""
    return installed()


def run(request: BenchmarkRun) -> list[Outcome]:
    """Run tasks (names, files, folders or patterns) with every model in one call of Inspect's `eval`.

    See `BenchmarkRunner.run`.
    """
    make_folder(request.out)
    with inspect_settings(request) as settings:
        runs = tasks_of(settings)
        if request.resume:
            runs = [replace(run, earlier=earlier_log(run, settings, request.out)) for run in runs]
        logs = evaluated(runs, settings, request)
    reused = {run.earlier.eval.task_id: run.reused for run in runs if run.earlier is not None}
    if request.on_note is not None and (unused := unused_roles(logs)):
        request.on_note(
            f"no model call in the role {', '.join(map(repr, unused))}: the code of a task defines its roles"
            " roles it has"
        )
    models = [str(model) for model in settings.models if str(model) != NO_MODEL]
    taken: dict[str, set[str]] = {}
    return [
        outcome_of(
            log,
            request,
            # With several models, results of one task are distinguished by the model.
            file_name(log.eval.task, taken.setdefault(log.eval.model, set())),
            reused.get(log.eval.task_id, 0),
            models,
        )
        for log in logs
    ]


@contextmanager
def inspect_settings(request: BenchmarkRun) -> Iterator[EvalSettings]:
    """Apply the settings of a run to this block, in which Inspect loads and runs tasks."""
    with contextlib.ExitStack() as stack:
        # Standard output may be read by a program. Output of tasks and of Inspect, such as hook banners, goes
        # to standard error.
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(logs_without_secrets())
        settings = settings_of(request)
        stack.enter_context(_engine_errors())
        yield settings


def tasks_of(settings: EvalSettings) -> list[TaskWithModel]:
    """Return the tasks, created separately for each model."""
    if not settings.tasks:
        raise UsageError("expected inspect:NAME, or a --run-config with a task", code=Code.UNKNOWN_BENCHMARK)
    tasks = []
    for model in settings.models:
        _activate(model, settings.roles, settings.generation)
        tasks += [(task, model) for task in load_tasks(settings.tasks, settings.task_arguments)]
    return task_runs(tasks, settings)


def evaluated(runs: Sequence[TaskWithModel], settings: EvalSettings, request: BenchmarkRun) -> list[EvalLog]:
    """Run tasks with one call of Inspect's `eval`, and return the logs without secrets.

    Logs of an interrupted run are included.
    """
    todo = sum(max(0, run.planned - run.reused) for run in runs)
    counter = ProgressCounter(request.on_progress, todo, trials=(settings.num_trials or 1) > 1)
    old_logs = set(request.out.glob("*.eval"))
    with counted(counter, _tolerances(runs, request)), retries_told(counter), order_kept():
        logs = _eval(runs, settings, request.out)
    new = set(request.out.glob("*.eval")) - old_logs
    for path in new:
        clean_log(path)
    return logs + unreturned(logs, new)


def _eval(runs: Sequence[TaskWithModel], settings: EvalSettings, out: Path) -> list[EvalLog]:
    # Resolved tasks already contain their models. A single model is passed in the same way as by Inspect's
    # command.
    alone = len(settings.models) == 1 and not any(run.earlier for run in runs)
    parameters = {"log_model_api": True, "max_retries": ATTEMPTS, **settings.parameters}
    return inspect_eval(
        [run.task for run in runs] if alone else resolved(runs, settings),
        model=settings.models[0] if alone else None,
        model_roles=dict(settings.roles) or None if alone else None,
        log_dir=str(out),
        log_format="eval",
        display="none",
        # A failed sample must not end the run. It is recorded in the evidence.
        fail_on_error=False,
        score_display=False,
        ctl_server=False,
        **parameters,
    )


def _tolerances(runs: Sequence[TaskWithModel], request: BenchmarkRun) -> dict[str, Tolerance]:
    """Return the failure tolerance of each task by name. A task starts no more samples when it is
    exceeded.
    """
    if request.fail_on_error is None:
        return {}
    tolerances: dict[str, Tolerance] = {}
    for run in runs:
        # Sample events only contain the task name, so tasks with the same name share one tolerance.
        tolerance = tolerances.setdefault(run.task.name, Tolerance(0))
        tolerance.allowed = (tolerance.allowed or 0) + tolerated(request.fail_on_error, len(run.samples))
        run.task.early_stopping = ToleranceStopping(tolerance, run.task.early_stopping)
    return tolerances


def converted(
    task: str,
    arguments: Sequence[str],
    key: str | None,
    *,
    data_dir: Path | None = None,
    custom_tasks: Path | None = None,
) -> ConvertedBenchmark:
    """Convert one task to an AI GO task; see `BenchmarkRunner.converted`.

    Local rows were already rejected by `Benchmarks.takes_local_rows`.
    """
    with contextlib.redirect_stdout(sys.stderr):
        _activate(get_model("none"), {}, GenerateConfig())
        tasks = load_tasks([task], parsed_arguments(arguments))
        if len(tasks) != 1:
            names = ", ".join(candidate.name for candidate in tasks)
            raise UsageError(
                f"{task!r} has {plural(len(tasks), 'task')}, expected one of {names} (FILE.py@TASK)",
                code=Code.UNKNOWN_BENCHMARK,
            )
        return convert(tasks[0], key=key)


def _activate(model: Model, roles: Mapping[str, Model | list[Model]], generation: GenerateConfig) -> None:
    """Activate the models of the run, so that tasks can call `get_model()` during their creation, as under
    `inspect eval`.
    """
    init_model_roles(with_roles(roles))
    init_active_model(model, generation)


# Progress: a hook that counts finished trials while progress is requested


_counted: list[tuple[ProgressCounter, Mapping[str, Tolerance]]] = []
"""Active counter and the tolerance of each task by name. There is at most one, since Inspect runs one `eval`
at a time in a process."""


@contextmanager
def counted(counter: ProgressCounter, tolerances: Mapping[str, Tolerance]) -> Iterator[None]:
    """Count finished trials of the `eval` in this block, and failures against the tolerance of their task."""
    _counted.append((counter, tolerances))
    try:
        yield
    finally:
        _counted.pop()


@hooks(name="aigo_bridge_progress", description="Progress of `aigo-bridge run inspect:…`")
class ProgressHook(Hooks):
    """Hook that reports each finished trial to the progress counter."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def enabled(self) -> bool:
        """Return whether progress is requested."""
        return bool(_counted)

    async def on_task_start(self, data: TaskStart) -> None:
        """Store the task name, because later events contain only the task id."""
        self._names[data.eval_id] = data.spec.task

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Count one trial."""
        error = data.sample.error
        failure = None if error is None else SampleFailure("solver", "SampleError", redact(error.message))
        name = self._names.get(data.eval_id, "")
        counter, tolerances = _counted[-1]
        part = counter.of_task(name, tolerances.get(name))
        part.finished(data.sample.id, data.sample.epoch - 1, failure, _spent(data.sample))


def _spent(sample: EvalSample) -> Spent:
    """Return the scores, tokens and cost of a sample for the progress output."""
    usages = list((sample.model_usage or {}).values())
    costs = [usage.total_cost for usage in usages if usage.total_cost is not None]
    scores: list[tuple[str, Mapping[str, Any]]] = []
    for name, score in (sample.scores or {}).items():
        values = score.value if isinstance(score.value, dict) else {name: score.value}
        scores.append((name, {key: graded_number(value) for key, value in values.items()}))
    return Spent(scores, sum(usage.total_tokens for usage in usages), sum(costs) if costs else None)
