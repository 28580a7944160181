"""Serializable references to Inspect's scorers, solvers and metrics, so that another process can create them
again.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inspect_ai._util.registry import (
    is_registry_object,
    registry_info,
    registry_lookup,
    registry_params,
)

from aigo_bridge.exporting.carried_code import NotCarriedError, carried, module_of

Json = dict[str, Any]

CALLS = frozenset(
    {
        "get_model",
        "model_graded_fact",
        "model_graded_qa",
        "sandbox",
        "sandbox_with",
        "scores",
        "store",
        "store_as",
        "subprocess",
        "tool_calls",
        "tools",
    }
)
"""Names in code that need more than a question and its answer: models, sandboxes, and values that a solver
stored."""


class NotFoundAgainError(Exception):
    """An object cannot be created again in another process. The message gives the reason."""


def name_of(thing: object) -> str:
    """Return the registered name of an object, otherwise the function name."""
    return registry_info(thing).name if is_registry_object(thing) else getattr(thing, "__name__", "?")


class OwnCode:
    """Code in the user's files that references refer to."""

    def __init__(self) -> None:
        self._names: dict[Path, set[str]] = {}

    def module(self, thing: Any) -> str:
        """Return the name of the module that will contain a function, and store the code of the function.

        Raises:
            NotFoundAgainError: the code cannot be copied.
        """
        function = _written(thing)
        name = getattr(function, "__module__", "")
        if _is_importable(name):
            return str(name)
        try:
            file = Path(inspect.getsourcefile(function) or "")
            carried(file, [function.__qualname__])
        except (NotCarriedError, TypeError) as error:
            raise NotFoundAgainError(f"its code is in one of your files, and {error}") from error
        self._names.setdefault(file, set()).add(function.__qualname__)
        return module_of(file)

    def texts(self) -> dict[Path, str]:
        """Return the code of each file."""
        return {file: carried(file, names) for file, names in self._names.items()}


def reference(thing: object, code: OwnCode | None = None) -> Json:
    """Return a reference from which a registered scorer, solver or metric can be created again.

    Args:
        thing: the scorer, solver or metric.
        code: collects code from the user's files that must be copied.

    Raises:
        NotFoundAgainError: the object cannot be created again.
    """
    code = code or OwnCode()
    if not is_registry_object(thing):
        raise NotFoundAgainError("it is not registered with Inspect")
    info = registry_info(thing)
    factory: Any = registry_lookup(info.type, info.name)
    if factory is None:
        raise NotFoundAgainError("Inspect does not find it by name")
    module = code.module(factory)
    values = captured(thing)
    annotations = _annotations(factory)
    params = {}
    for name, recorded in registry_params(thing).items():
        # Inspect records only the name of a function parameter. The closure of the scorer still has the
        # function.
        is_number = recorded is None or type(recorded) in (bool, int, float)
        if is_number or (_is_plain(recorded) and not _may_be_code(annotations.get(name, "_empty"))):
            params[name] = recorded
        elif name in values:
            params[name] = _encoded(name, values[name], code)
        else:
            raise NotFoundAgainError(f"its parameter {name!r} cannot be read back")
    return {"type": info.type, "name": info.name, "module": module, "params": params}


def _written(thing: Any) -> Any:
    """Return the function inside Inspect's wrappers. Some wrappers do not set `__wrapped__`."""
    function = inspect.unwrap(thing)
    kept = captured(function) if isinstance(function, types.FunctionType) else {}
    for name in ("metric_type", "scorer_type", "solver_type", "reducer_type"):
        if callable(kept.get(name)):
            return _written(kept[name])
    return function


def _is_importable(name: str) -> bool:
    loaded = sys.modules.get(name)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    return spec is not None and loaded is not None and getattr(loaded, "__file__", None) == spec.origin


def captured(thing: Any) -> dict[str, Any]:
    """Return the closure variables of a function that a factory created, including the original
    parameters.
    """
    function = inspect.unwrap(thing)
    if not isinstance(function, types.FunctionType):
        return dict(getattr(thing, "__dict__", {}))
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
    return values


def _annotations(factory: Any) -> dict[str, str]:
    parameters = inspect.signature(factory).parameters.values()
    return {parameter.name: str(parameter.annotation) for parameter in parameters}


def _may_be_code(annotation: str) -> bool:
    return any(word in annotation for word in ("Callable", "Scorer", "Metric", "Solver", "Any", "_empty"))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return value is None or type(value) in (bool, int, float, str)


def _encoded(name: str, value: Any, code: OwnCode) -> Any:
    """Return a parameter as JSON: a plain value, the import path of a function, or a reference."""
    if _is_plain(value):
        return value
    if is_registry_object(value):
        return {"$reference": reference(value, code)}
    place = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
    module, _, qualname = place.partition(":")
    target: Any = sys.modules.get(module)
    for part in qualname.split("."):
        target = getattr(target, part, None)
    if target is None or target is not value:
        raise NotFoundAgainError(f"its parameter {name!r} is code that cannot be found by name")
    return {"$import": f"{code.module(value)}:{qualname}"}


def reaching(thing: Any) -> list[str]:
    """Return the names in the code of a scorer or solver that need more than a question and its answer."""
    package = str(getattr(inspect.unwrap(thing), "__module__", "")).partition(".")[0]
    names: set[str] = set()
    for code in _codes(inspect.unwrap(thing), package, set()):
        names |= CALLS & {*code.co_names, *code.co_freevars}
    return sorted(names)


def _codes(thing: Any, package: str, seen: set[int]) -> Iterator[types.CodeType]:
    """Yield the code of a function, of nested functions, and of called functions in the same package."""
    if isinstance(thing, types.MethodType):
        thing = thing.__func__
    if not isinstance(thing, types.FunctionType | type) or id(thing) in seen:
        if not isinstance(thing, types.FunctionType | type) and callable(thing) and id(thing) not in seen:
            seen.add(id(thing))
            yield from _codes(type(thing), package, seen)
        return
    seen.add(id(thing))
    if str(getattr(thing, "__module__", "")).partition(".")[0] != package:
        return
    if isinstance(thing, type):
        for member in vars(thing).values():
            yield from _codes(inspect.unwrap(member) if callable(member) else member, package, seen)
        return
    thing = inspect.unwrap(thing)
    reached: Mapping[str, Any] = {**thing.__globals__, **captured(thing)}
    for code in _nested(thing.__code__):
        yield code
        for name in (*code.co_names, *code.co_freevars):
            if callable(reached.get(name)):
                yield from _codes(reached[name], package, seen)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


MAKING = """
def made(reference):
    importlib.import_module(reference["module"])
    params = {name: value_of(value) for name, value in reference["params"].items()}
    return registry_create(reference["type"], reference["name"], **params)


def value_of(value):
    if isinstance(value, dict) and "$import" in value:
        module, _, name = value["$import"].partition(":")
        target = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
        return target
    return made(value["$reference"]) if isinstance(value, dict) and "$reference" in value else value
"""
"""Python code that creates the object of a reference. It needs `importlib` and `registry_create`."""
