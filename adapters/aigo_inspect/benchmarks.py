"""Existing Inspect tasks, run as they are: Inspect's own `eval`, its log, and the same import as for any other log."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from inspect_ai.model import GenerateConfig, Model, get_model
from inspect_ai.model._model import init_active_model, init_model_roles
from inspect_ai.model._util import resolve_model_roles

from aigo_bridge.benchmarks import (
    BenchmarkOutcome,
    BenchmarkRun,
    ConvertedBenchmark,
    Listing,
    unknown,
)
from aigo_bridge.counting import ProgressCounter
from aigo_bridge.errors import UsageError
from aigo_bridge.tolerance import Tolerance, tolerated
from aigo_inspect import (
    _registry,  # noqa: F401  # registers our providers of models with Inspect
    native_listing,
)
from aigo_inspect.benchmark_outcomes import file_name, outcome_of, unreturned
from aigo_inspect.benchmark_progress import counted
from aigo_inspect.benchmark_resuming import earlier_log, planned_trials, resumed
from aigo_inspect.converting import convert
from aigo_inspect.retries import retries_told
from aigo_inspect.running import DEFAULT_MAX_RETRIES, _engine_errors, _model, _plain
from aigo_inspect.secrets import logs_without_secrets
from aigo_inspect.stopping import ToleranceStopping

CAN_RESUME = True
"""Interrupted runs are continued."""

TELLS_PROGRESS = True
"""Whether runs tell how far they are."""


def listing() -> Listing:
    """The tasks of installed packages."""
    return native_listing.listing()


def run(request: BenchmarkRun) -> list[BenchmarkOutcome]:
    """Run the tasks that a name, file or folder stands for, with one call of Inspect's `eval`; see `Benchmarks.run`."""
    # What tasks and Inspect print (hooks, while the first model is made) is for people; standard output may be read by a program.
    with contextlib.redirect_stdout(sys.stderr):
        model = None if request.model is None else _model(request.model, {})
        roles = {role: _model(name, {}) for role, name in request.roles.items()}
    asked = None if model is None else str(model)
    try:
        request.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out: {str(request.out)!r} cannot be used as a folder: {error.strerror}"
        ) from error
    with contextlib.ExitStack() as running:
        running.enter_context(contextlib.redirect_stdout(sys.stderr))
        running.enter_context(_engine_errors())
        running.enter_context(logs_without_secrets())
        if model is None and not os.environ.get("INSPECT_EVAL_MODEL"):
            model = get_model("none")
        _activate(model, roles)
        tasks = load_tasks(request.task, request.arguments)
        earlier = [
            earlier_log(task, model, roles, request.out, request.num_trials) if request.resume else None
            for task in tasks
        ]
        reused = [len(log.samples or []) if log is not None else 0 for log in earlier]
        trials = [planned_trials(task, request.num_samples, request.num_trials) for task in tasks]
        todo = sum(max(0, all_ - done) for all_, done in zip(trials, reused, strict=True))
        counter = ProgressCounter(request.on_progress, todo, trials=(request.num_trials or 1) > 1)
        tolerances = _tolerances(tasks, request)
        running.enter_context(counted(counter, tolerances))
        running.enter_context(retries_told(counter))
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
        logs += unreturned(logs, set(request.out.glob("*.eval")) - before)
    taken: set[str] = set()
    taken_over = {
        log.eval.task_id: count for log, count in zip(earlier, reused, strict=True) if log is not None
    }
    return [
        outcome_of(log, request, file_name(log.eval.task, taken), taken_over.get(log.eval.task_id, 0), asked)
        for log in logs
    ]


def _tolerances(tasks: Sequence[Task], request: BenchmarkRun) -> dict[str, Tolerance]:
    """How many samples of each task may fail, by its name; the tasks begin no more when that is spent."""
    if request.fail_on_error is None:
        return {}
    found: dict[str, Tolerance] = {}
    for task in tasks:
        # The events by which samples are counted have the name of their task: of several with one name the allowance is common.
        number = planned_trials(task, request.num_samples, 1)
        tolerance = found.setdefault(task.name, Tolerance(0))
        tolerance.allowed = (tolerance.allowed or 0) + tolerated(request.fail_on_error, number)
        task.early_stopping = ToleranceStopping(tolerance, task.early_stopping)
    return found


def converted(task: str, arguments: Sequence[str], key: str | None) -> ConvertedBenchmark:
    """One task as an AI GO task; see `Benchmarks.converted`."""
    with contextlib.redirect_stdout(sys.stderr):
        _activate(get_model("none"), {})
        tasks = load_tasks(task, arguments)
        if len(tasks) != 1:
            names = ", ".join(each.name for each in tasks)
            raise UsageError(f"{task!r} has {len(tasks)} tasks, expected one of {names} (FILE.py@TASK)")
        return convert(tasks[0], key=key)


# Loading


def _activate(model: Model | None, roles: Mapping[str, Model]) -> None:
    """Let tasks that call `get_model()` while they are made get the models of the run, as under `inspect eval`."""
    init_model_roles(resolve_model_roles(dict(roles)) or {})
    if model is not None:
        init_active_model(model, GenerateConfig())


@dataclass(frozen=True)
class _Found:
    """A task that can be made."""

    name: str
    """Name in Inspect's registry."""
    parameters: tuple[str, ...] | None
    """Names of its parameters; `None`: it takes any."""
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
    files = Counter(each.name for each in found)
    tasks = []
    for each in found:
        own = (
            given if each.parameters is None else {key: given[key] for key in given if key in each.parameters}
        )
        tasks.append(_made(each, own, again=files[each.name] > 1))
    return tasks


def _find(name: str) -> list[_Found]:
    path, task = _path_of(name)
    if path is None:
        if _looked_up(name) is None:
            raise unknown("inspect", name, [benchmark.name for benchmark in listing().benchmarks])
        return [_Found(name, _parameters(name))]
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
        return [_Found(name, _parameters(name), file) for name in names]
    if task not in names:
        known = ", ".join(map(repr, names)) or "no task"
        raise UsageError(f"found no task {task!r} in {file.name!r}, which has {known}")
    return [_Found(task, _parameters(task), file)]


def _looked_up(name: str) -> Any:
    return _guarded(name, lambda: registry_lookup("task", name))


def _parsed(arguments: Sequence[str]) -> dict[str, Any]:
    for text in arguments:
        name, equals, _ = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"-T: found {text!r}, expected NAME=VALUE")
    return dict(parse_cli_args(tuple(arguments)))


def _parameters(name: str) -> tuple[str, ...] | None:
    """Names of the parameters of a task in the registry; `None`: it takes any."""
    factory = _looked_up(name)
    parameters = inspect.signature(factory).parameters.values() if callable(factory) else []
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return tuple(parameter.name for parameter in parameters)


def _refuse_unknown_parameters(found: Sequence[_Found], given: dict[str, Any]) -> None:
    known: list[str] = []
    for task in found:
        if task.parameters is None:
            return
        known += task.parameters
    wrong = [name for name in given if name not in known]
    if wrong:
        has = ", ".join(dict.fromkeys(known)) or "no parameters"
        raise UsageError(f"-T: found {', '.join(map(repr, wrong))}, expected one of the parameters: {has}")


def _made(task: _Found, arguments: dict[str, Any], *, again: bool) -> Task:
    """Make a task; `again`: load its file anew, because another file's task of the same name has taken its place in the registry."""

    def make() -> Task:
        if task.file is None:
            return task_create(task.name, **arguments)
        if again:
            load_file_tasks(task.file)
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
