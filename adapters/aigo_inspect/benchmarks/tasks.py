"""Listing and loading of Inspect tasks: installed tasks by name, and tasks in files and folders.

The listing reads the source code of installed packages without importing it, so a broken package does not
break it. Packages register with Inspect through an entry point in the group `inspect_ai`, whose module
imports the registered objects.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai._eval.list import is_task_path, task_files, tasks_in_dir
from inspect_ai._eval.loader import create_file_tasks, load_file_tasks
from inspect_ai._eval.registry import task_create

# Inspect's own loader resolves patterns only relative to the current folder, so its steps are called
# separately.
from inspect_ai._util.config import parse_cli_args
from inspect_ai._util.decorator import parse_decorators
from inspect_ai._util.registry import registry_lookup

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import Benchmark, BenchmarkListing, unknown
from aigo_bridge.errors import UsageError
from aigo_bridge.text.summaries import named_summary_of
from aigo_inspect.models.models import plain_text

ENTRY_POINT_GROUP = "inspect_ai"
OWN_PACKAGE = "aigo_bridge"
"""Entry point of aigo-bridge. Its task runs AI GO tasks and is not a benchmark."""

_HINT = (
    "`pip install inspect-evals` provides many; you can also run your own file: `aigo-bridge run"
    " inspect:FILE.py`"
)


def listing() -> BenchmarkListing:
    """Return the registered tasks of all installed packages, by name."""
    benchmarks: dict[str, Benchmark] = {}
    problems: list[str] = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: (entry.name, entry.value)):
        if entry.name == OWN_PACKAGE:
            continue
        try:
            for benchmark in _of_package(entry):
                benchmarks.setdefault(benchmark.name, benchmark)
        except (OSError, ImportError, ValueError, SyntaxError, RecursionError) as error:
            problems.append(f"{entry.name}: {named_summary_of(error)}")
    return BenchmarkListing(tuple(benchmarks[name] for name in sorted(benchmarks)), tuple(problems), _HINT)


def _of_package(entry: EntryPoint) -> Iterator[Benchmark]:
    package, _, rest = entry.module.partition(".")
    spec = find_spec(package)  # does not import a top-level package
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"package {package!r} cannot be found")
    folder = Path(next(iter(spec.submodule_search_locations)))
    registered = _imported_names(folder.joinpath(*rest.split(".")) if rest else folder)
    label = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else package
    for path in sorted(folder.rglob("*.py")):
        for function, name in _tasks_in(path):
            if registered is None or function.name in registered:
                summary = (ast.get_docstring(function) or "").strip().partition("\n")[0]
                yield Benchmark(f"{entry.name}/{name}", label, _arguments(function), summary)


def _imported_names(module: Path) -> set[str] | None:
    """Return the names that a registry module imports or defines; `None` if it imports with `*` or whole
    modules.
    """
    source = module.with_suffix(".py") if module.with_suffix(".py").is_file() else module / "__init__.py"
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.Import):
            return None
        if isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return None if "*" in names else names


def _tasks_in(path: Path) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Yield the functions of a file that are decorated as tasks, with their registered names."""
    source = path.read_bytes()
    if b"@task" not in source and b".task" not in source:
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return  # a template, or a file for another Python version, so it cannot register a task
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if getattr(called, "id", None) == "task" or getattr(called, "attr", None) == "task":
                    yield node, _registered_name(node, decorator)


def _registered_name(function: ast.FunctionDef, decorator: ast.expr) -> str:
    if isinstance(decorator, ast.Call):
        for keyword in decorator.keywords:
            if (
                keyword.arg == "name"
                and isinstance(keyword.value, ast.Constant)
                and isinstance(keyword.value.value, str)
            ):
                return keyword.value.value
    return function.name


def _arguments(function: ast.FunctionDef) -> tuple[str, ...]:
    arguments = function.args
    return tuple(
        argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    )


# Loading by name, file or folder


@dataclass(frozen=True)
class _Found:
    """A task that can be loaded."""

    name: str
    """Name in Inspect's registry."""
    parameters: tuple[str, ...] | None
    """Parameter names; `None` if the task accepts any parameter."""
    file: Path | None = None
    """File with the task; `None` for a task of a package."""


def load_tasks(names: Sequence[str], values: Mapping[str, Any]) -> list[Task]:
    """Load the tasks for registry names, files, `file@task`, folders or patterns.

    Each task receives only the arguments that it declares.

    Raises:
        UsageError: a task or parameter does not exist, or a task cannot be created with these arguments.
    """
    declared = [task for name in names for task in _find(name)]
    _refuse_unknown_parameters(declared, values)
    files = Counter(entry.name for entry in declared)
    tasks = []
    for entry in declared:
        task_values = (
            values
            if entry.parameters is None
            else {key: values[key] for key in values if key in entry.parameters}
        )
        tasks.append(_made(entry, task_values, again=files[entry.name] > 1))
    return tasks


def _find(name: str) -> list[_Found]:
    files = _matching(name)
    if files is not None:
        return [entry for file in files for entry in _in_file(file, None)]
    path, task = _path_of(name)
    if path is None:
        if _looked_up(name) is None:
            raise unknown("inspect", name, [benchmark.name for benchmark in listing().benchmarks])
        return [_Found(name, _parameters(name))]
    if path.is_dir():
        files = sorted(tasks_in_dir(path), key=lambda file: file.as_posix())
        declared = [
            entry for file in files if parse_decorators(file, "task") for entry in _in_file(file, None)
        ]
    else:
        declared = _in_file(path, task)
    if not declared:
        raise UsageError(
            f"no task in {name!r} (a task is a function decorated with @task)", code=Code.UNKNOWN_BENCHMARK
        )
    return declared


def _matching(name: str) -> list[Path] | None:
    """Return the task files that a pattern matches, as found by Inspect; `None` if the name is not a
    pattern.
    """
    if not has_magic(name) or Path(name).exists():
        return None
    path = Path(name)
    root = Path(path.anchor) if path.is_absolute() else Path.cwd()
    files = sorted(task_files([str(path.relative_to(path.anchor))], root), key=lambda file: file.as_posix())
    files = [file for file in files if parse_decorators(file, "task")]
    if not files:
        raise UsageError(f"no file with tasks matches {name!r}", code=Code.UNKNOWN_BENCHMARK)
    return files


def _path_of(name: str) -> tuple[Path | None, str | None]:
    """Return the file or folder, and the task in it. Both are `None` for a registry name."""
    if Path(name).exists():
        return Path(name).absolute(), None
    file, at, task = name.rpartition("@")
    if at and Path(file).is_file():
        return Path(file).absolute(), task
    looks_like_file = (file or name).endswith((".py", ".ipynb")) or name.startswith(("/", "./", "../"))
    if looks_like_file:
        raise UsageError(f"file {file or name!r} does not exist", code=Code.NOTHING_THERE)
    return None, None


def _in_file(file: Path, task: str | None) -> list[_Found]:
    if not is_task_path(file) and task is None:
        raise UsageError(
            f"{str(file)!r} is not a file of Inspect tasks, expected .py or .ipynb",
            code=Code.UNKNOWN_BENCHMARK,
        )
    _guarded(str(file), lambda: load_file_tasks(file))
    names = [name for name, _ in parse_decorators(file, "task")]
    if task is None:
        return [_Found(name, _parameters(name), file) for name in names]
    if task not in names:
        task_names = ", ".join(map(repr, names)) or "no task"
        raise UsageError(
            f"found no task {task!r} in {file.name!r}, which has {task_names}", code=Code.UNKNOWN_BENCHMARK
        )
    return [_Found(task, _parameters(task), file)]


def _looked_up(name: str) -> Any:
    return _guarded(name, lambda: registry_lookup("task", name))


def parsed_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    """Parse `NAME=VALUE` texts with Inspect's own parser.

    Raises:
        UsageError: a text is not valid.
    """
    for text in arguments:
        name, equals, _ = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"-T: found {text!r}, expected NAME=VALUE", code=Code.WRONG_BENCHMARK_OPTION)
    return dict(parse_cli_args(tuple(arguments)))


def _parameters(name: str) -> tuple[str, ...] | None:
    """Return the parameter names of a registered task; `None` if it accepts any parameter."""
    factory = _looked_up(name)
    parameters = inspect.signature(factory).parameters.values() if callable(factory) else []
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return tuple(parameter.name for parameter in parameters)


def _refuse_unknown_parameters(declared: Sequence[_Found], values: Mapping[str, Any]) -> None:
    parameters: list[str] = []
    for task in declared:
        if task.parameters is None:
            return
        parameters += task.parameters
    wrong = [name for name in values if name not in parameters]
    if wrong:
        has = ", ".join(dict.fromkeys(parameters)) or "no parameters"
        raise UsageError(
            f"-T: found {', '.join(map(repr, wrong))}, expected one of the parameters: {has}",
            code=Code.WRONG_BENCHMARK_OPTION,
        )


def _made(task: _Found, arguments: Mapping[str, Any], *, again: bool) -> Task:
    """Create a task. With `again`, reload its file, because a task of the same name in another file has
    replaced it in the registry.
    """

    def make() -> Task:
        if task.file is None:
            return task_create(task.name, **arguments)
        if again:
            load_file_tasks(task.file)
        (instance,) = create_file_tasks(task.file, [task.name], dict(arguments))
        return instance

    instance: Task = _guarded(task.name, make)
    return instance


def _guarded(name: str, call: Callable[[], Any]) -> Any:
    """Run third-party benchmark code, and report any exception as a user error, not as a crash of
    aigo-bridge.
    """
    try:
        return call()
    except (KeyboardInterrupt, UsageError):
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"task {name!r} cannot be loaded: {type(error).__name__}: {plain_text(error)}",
            code=Code.UNKNOWN_BENCHMARK,
        ) from error
