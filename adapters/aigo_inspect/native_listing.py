"""Which Inspect tasks are installed, from the source of the packages: nothing is imported, so a broken package is only a line.

Packages register with Inspect by an entry point of the group `inspect_ai`, whose module imports what is registered.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from aigo_bridge.benchmarks import Benchmark, Listing

ENTRY_POINT_GROUP = "inspect_ai"
OWN_PACKAGE = "aigo_bridge"
"""Its one registered task hosts AI GO tasks and is no benchmark."""

_HINT = "`pip install inspect-evals` brings many; a file of your own runs as it is: `aigo-bridge run inspect:FILE.py`"


def listing() -> Listing:
    """Every registered task of every installed package, by name."""
    found: dict[str, Benchmark] = {}
    problems: list[str] = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: (entry.name, entry.value)):
        if entry.name == OWN_PACKAGE:
            continue
        try:
            for benchmark in _of_package(entry):
                found.setdefault(benchmark.name, benchmark)
        except (OSError, ImportError, ValueError, SyntaxError, RecursionError) as error:
            problems.append(f"{entry.name}: {type(error).__name__}: {error}")
    return Listing(tuple(found[name] for name in sorted(found)), tuple(problems), _HINT)


def _of_package(entry: EntryPoint) -> Iterator[Benchmark]:
    package, _, rest = entry.module.partition(".")
    spec = find_spec(package)  # of a top-level package: does not import it
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"package {package!r} cannot be found")
    folder = Path(next(iter(spec.submodule_search_locations)))
    registered = _imported_names(folder.joinpath(*rest.split(".")) if rest else folder)
    label = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else package
    for path in sorted(folder.rglob("*.py")):
        for function, name in _tasks_in(path):
            if registered is None or function.name in registered:
                summary = (ast.get_docstring(function) or "").strip().partition("\n")[0]
                yield Benchmark(f"{entry.name}/{name}", label, _parameters(function), summary)


def _imported_names(module: Path) -> set[str] | None:
    """Names that a registry module imports or defines; `None` when it imports by `*` or whole modules."""
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
    """Functions of a file that are decorated as tasks, with their registered names."""
    source = path.read_bytes()
    if b"@task" not in source and b".task" not in source:
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return  # a template or a file for another Python: it cannot register anything here
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


def _parameters(function: ast.FunctionDef) -> tuple[str, ...]:
    arguments = function.args
    return tuple(
        argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    )
