"""Existing Inspect tasks, run as they are: Inspect's own `eval`, its log, and the same import as for any other log."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai._eval.list import is_task_path, tasks_in_dir
from inspect_ai._eval.loader import create_file_tasks, load_file_tasks
from inspect_ai._eval.registry import task_create

# Inspect takes paths as patterns relative to the current folder only; these are the steps behind that.
from inspect_ai._util.config import parse_cli_args
from inspect_ai._util.decorator import parse_decorators
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_lookup
from inspect_ai.event import ModelEvent, SpanBeginEvent
from inspect_ai.log import (
    EvalLog,
    EvalSample,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)
from inspect_ai.model import get_model

from aigo_bridge.benchmarks import (
    BenchmarkMetric,
    BenchmarkOutcome,
    BenchmarkRun,
    ConvertedBenchmark,
    Listing,
    unknown,
)
from aigo_bridge.counting import ProgressCounter
from aigo_bridge.errors import EngineError, UsageError
from aigo_inspect import (
    _registry,  # noqa: F401  # registers our providers of models with Inspect
    native_listing,
)
from aigo_inspect.benchmark_progress import counted
from aigo_inspect.benchmark_resuming import earlier_log, planned_trials, resumed
from aigo_inspect.converting import convert
from aigo_inspect.importing import ImportSettings, import_file
from aigo_inspect.running import DEFAULT_MAX_RETRIES, _engine_errors, _model, _plain

CAN_RESUME = True
"""Interrupted runs are continued, and progress is told."""

MAX_ERRORS = 5
"""Failed samples that are named in an outcome; all are in the evidence."""


def listing() -> Listing:
    """The tasks of installed packages."""
    return native_listing.listing()


def run(request: BenchmarkRun) -> list[BenchmarkOutcome]:
    """Run the tasks that a name, file or folder stands for, with one call of Inspect's `eval`; see `Benchmarks.run`."""
    # What tasks and Inspect print (hooks, while the first model is made) is for people; standard output may be read by a program.
    with contextlib.redirect_stdout(sys.stderr):
        model = None if request.model is None else _model(request.model, {})
        roles = {role: _model(name, {}) for role, name in request.roles.items()}
    try:
        request.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out: {str(request.out)!r} cannot be used as a folder: {error.strerror}"
        ) from error
    with contextlib.ExitStack() as running:
        running.enter_context(contextlib.redirect_stdout(sys.stderr))
        running.enter_context(_engine_errors())
        tasks = load_tasks(request.task, request.arguments)
        if model is None and not os.environ.get("INSPECT_EVAL_MODEL"):
            model = get_model("none")
        earlier = [
            earlier_log(task, model, roles, request.out, request.num_trials) if request.resume else None
            for task in tasks
        ]
        reused = [len(log.samples or []) if log is not None else 0 for log in earlier]
        trials = [planned_trials(task, request.num_samples, request.num_trials) for task in tasks]
        todo = sum(max(0, all_ - done) for all_, done in zip(trials, reused, strict=True))
        counter = ProgressCounter(request.on_progress, todo, trials=(request.num_trials or 1) > 1)
        running.enter_context(counted(counter))
        before = set(request.out.glob("*.eval"))
        logs = inspect_eval(
            resumed(tasks, earlier, model, roles) if any(earlier) else tasks,
            model=None if any(earlier) else model,
            model_roles=None if any(earlier) else dict(roles) or None,
            log_dir=str(request.out),
            log_format="eval",
            display="none",
            limit=request.num_samples,
            epochs=request.num_trials,
            # A failed sample is a sample of the evidence; it does not take the others with it.
            fail_on_error=False,
            max_connections=request.max_connections,
            max_samples=request.max_samples,
            max_retries=DEFAULT_MAX_RETRIES,
            time_limit=request.time_limit,
            token_limit=request.token_limit,
            cost_limit=request.cost_limit,
            log_model_api=True,
            score_display=False,
            ctl_server=False,
        )
        logs += _unreturned(logs, set(request.out.glob("*.eval")) - before)
    taken: set[str] = set()
    taken_over = {
        log.eval.task_id: count for log, count in zip(earlier, reused, strict=True) if log is not None
    }
    return [
        _outcome(log, request, _file_name(log.eval.task, taken), taken_over.get(log.eval.task_id, 0))
        for log in logs
    ]


def converted(task: str, arguments: Sequence[str], key: str | None) -> ConvertedBenchmark:
    """One task as an AI GO task; see `Benchmarks.converted`."""
    with contextlib.redirect_stdout(sys.stderr):
        tasks = load_tasks(task, arguments)
        if len(tasks) != 1:
            names = ", ".join(each.name for each in tasks)
            raise UsageError(f"{task!r} has {len(tasks)} tasks, expected one of {names} (FILE.py@TASK)")
        return convert(tasks[0], key=key)


# Loading


@dataclass(frozen=True)
class _Found:
    """A task that can be made."""

    name: str
    """Name in Inspect's registry."""
    file: Path | None = None
    """The file that it comes from; `None`: a package."""


def load_tasks(name: str, arguments: Sequence[str] = ()) -> list[Task]:
    """Make the tasks that a registry name, file, `file@task` or folder stands for.

    Of several tasks, each takes the arguments that it has.

    Raises:
        UsageError: there is no such task or parameter, or the task cannot be made with these arguments.
    """
    found = _find(name)
    given = _parsed(arguments)
    _refuse_unknown_parameters(found, given)
    tasks = []
    for each in found:
        accepted = _parameters(each)
        own = given if accepted is None else {key: given[key] for key in given if key in accepted}
        tasks.append(_made(each, own))
    return tasks


def _find(name: str) -> list[_Found]:
    path, task = _path_of(name)
    if path is None:
        if _looked_up(name) is None:
            raise unknown(name, [benchmark.name for benchmark in listing().benchmarks])
        return [_Found(name)]
    if path.is_dir():
        files = sorted(tasks_in_dir(path), key=lambda file: file.as_posix())
        found = [each for file in files if parse_decorators(file, "task") for each in _in_file(file, None)]
    else:
        found = _in_file(path, task)
    if not found:
        raise UsageError(f"no task in {name!r} (a task is a function decorated with @task)")
    return found


def _path_of(name: str) -> tuple[Path | None, str | None]:
    """File or folder, and the task in it; a name that is no path is one of a registry."""
    if Path(name).exists():
        return Path(name).absolute(), None
    file, at, task = name.rpartition("@")
    if at and Path(file).is_file():
        return Path(file).absolute(), task
    looks_like_file = (file or name).endswith((".py", ".ipynb")) or name.startswith(("/", "./", "../"))
    if looks_like_file:
        raise UsageError(f"there is no file {file or name!r}")
    return None, None


def _in_file(file: Path, task: str | None) -> list[_Found]:
    if not is_task_path(file) and task is None:
        raise UsageError(f"{str(file)!r} is no file of Inspect tasks, expected .py or .ipynb")
    _guarded(str(file), lambda: load_file_tasks(file))
    names = [name for name, _ in parse_decorators(file, "task")]
    if task is None:
        return [_Found(name, file) for name in names]
    if task not in names:
        known = ", ".join(map(repr, names)) or "no task"
        raise UsageError(f"found no task {task!r} in {file.name!r}, which has {known}")
    return [_Found(task, file)]


def _looked_up(name: str) -> Any:
    return _guarded(name, lambda: registry_lookup("task", name))


def _parsed(arguments: Sequence[str]) -> dict[str, Any]:
    for text in arguments:
        name, equals, _ = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"-T: found {text!r}, expected NAME=VALUE")
    return dict(parse_cli_args(tuple(arguments)))


def _parameters(task: _Found) -> list[str] | None:
    """Names of a task's parameters; `None`: it takes any."""
    factory = _looked_up(task.name)
    parameters = inspect.signature(factory).parameters.values() if callable(factory) else []
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [parameter.name for parameter in parameters]


def _refuse_unknown_parameters(found: Sequence[_Found], given: dict[str, Any]) -> None:
    known: list[str] = []
    for task in found:
        names = _parameters(task)
        if names is None:
            return
        known += names
    wrong = [name for name in given if name not in known]
    if wrong:
        has = ", ".join(dict.fromkeys(known)) or "no parameters"
        raise UsageError(f"-T: found {', '.join(map(repr, wrong))}, expected one of the parameters: {has}")


def _made(task: _Found, arguments: dict[str, Any]) -> Task:
    def make() -> Task:
        if task.file is None:
            return task_create(task.name, **arguments)
        (made,) = create_file_tasks(task.file, [task.name], arguments)
        return made

    made: Task = _guarded(task.name, make)
    return made


def _guarded(name: str, call: Callable[[], Any]) -> Any:
    """Run code of a benchmark that is not ours: whatever it raises while it is loaded is the user's to read, not a crash of ours."""
    try:
        return call()
    except (KeyboardInterrupt, UsageError):
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"task {name!r} cannot be loaded: {type(error).__name__}: {_plain_text(error)}"
        ) from error


def _plain_text(error: BaseException) -> str:
    return _plain(error) if isinstance(error, PrerequisiteError) else str(error)


# Outcome


def _unreturned(logs: Sequence[EvalLog], written: set[Path]) -> list[EvalLog]:
    """Logs that Inspect has written and, after an interruption, does not return."""
    returned = {Path(log.location.removeprefix("file://")).name for log in logs if log.location}
    return [
        read_eval_log(str(path), header_only=True) for path in sorted(written) if path.name not in returned
    ]


def _outcome(log: EvalLog, request: BenchmarkRun, name: str, reused: int) -> BenchmarkOutcome:
    path = Path(log.location.removeprefix("file://")) if log.location else None
    if path is None or not path.is_file():
        raise EngineError(log.error.message if log.error is not None else "no log was written")
    imported = import_file(path, request.out / name, ImportSettings())
    failures = _failures(path)
    if request.model is None and any("No model specified" in message for _, message in failures):
        raise UsageError(f"task {log.eval.task!r} calls a model; say which: --model PROVIDER/MODEL")
    model = None if log.eval.model in ("none", "none/none") else log.eval.model
    return BenchmarkOutcome(
        task=log.eval.task,
        status=log.status,
        error=log.error.message if log.error is not None else _interrupted(log) or imported.reason or None,
        model=model,
        native_log=path,
        result=imported.output,
        metrics=_metrics(log),
        planned=len(log.eval.dataset.sample_ids or ()),
        num_samples=imported.samples,
        num_failed=imported.failed,
        first_errors=tuple(failures[:MAX_ERRORS]),
        reused=reused,
        warnings=_warnings(log, path),
    )


def _interrupted(log: EvalLog) -> str | None:
    return "interrupted; continue it with --resume" if log.status in ("cancelled", "started") else None


def _warnings(log: EvalLog, path: Path) -> tuple[str, ...]:
    """What makes the numbers doubtful: a scorer that had the evaluated model judge its own answers."""
    summaries = read_eval_log_sample_summaries(str(path))
    scored = next((each for each in summaries if each.error is None and each.completed), None)
    if scored is None or log.eval.model in ("none", "none/none"):
        return ()
    # One sample tells: a scorer asks the same model of all of them.
    sample = read_eval_log_sample(str(path), scored.id, scored.epoch)
    judging = _own_judges(sample, log.eval.model)
    if not judging:
        return ()
    names = ", ".join(judging)
    hint = "name another judge with --model-map grader=PROVIDER/MODEL, or with the task's own parameter"
    return (f"scorer {names}: the evaluated model {log.eval.model!r} judged its own answers ({hint})",)


def _own_judges(sample: EvalSample, model: str) -> list[str]:
    """Names of the scorers that called the evaluated model in no role of the user's choice."""
    scorers: dict[str, str] = {}
    for event in sample.events:
        if isinstance(event, SpanBeginEvent):
            parent = event.name if event.type == "scorer" else scorers.get(event.parent_id or "")
            if parent is not None:
                scorers[event.id] = parent
    called = (
        scorers[event.span_id]
        for event in sample.events
        if isinstance(event, ModelEvent) and event.span_id in scorers
        if event.role is None and event.model == model
    )
    return list(dict.fromkeys(called))


def _failures(log: Path) -> list[tuple[str | int, str]]:
    """Sample id and message of each failed sample, in order."""
    found: dict[str | int, str] = {}
    for summary in read_eval_log_sample_summaries(str(log)):
        if summary.error is not None:
            found.setdefault(summary.id, summary.error)
    return list(found.items())


def _metrics(log: EvalLog) -> tuple[BenchmarkMetric, ...]:
    rows = []
    for score in log.results.scores if log.results is not None else ():
        # The scorer says which numbers these are; of a score with several values, the name does, too.
        parts = [score.name] if score.name != score.scorer else []
        parts += [score.reducer] if score.reducer else []
        for key, metric in score.metrics.items():
            value = float(metric.value) if math.isfinite(metric.value) else None
            rows.append(BenchmarkMetric(score.scorer, "_".join([*parts, key]), value, score.scored_samples))
    return tuple(rows)


def _file_name(task: str, taken: set[str]) -> str:
    """A file name for a task's evidence; tasks of the same name get a number."""
    stem = re.sub(r"[\x00-\x1f\x7f<>:\"|?*\\/]", "_", task.rpartition("/")[2]).strip(". ")[:200] or "task"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    taken.add(name)
    return name
