"""Static checks of snippets: missing names in AI GO's modules, and functions with unsuitable parameters."""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.snippets.snippet import MODULES, OLD_SCORES, PACKAGES, is_installed, offered_names
from aigo_bridge.spec.base import Path
from aigo_bridge.spec.scorers import SCORERS

ROOT = "latticeflow"
"""AI GO's top-level package."""

_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"})
"""Exceptions that a handler must catch so that a missing name is not an error."""


def check_imports(tree: ast.Module, text: str, path: Path) -> Iterator[Issue]:
    """Yield imports and uses of names that AI GO's modules do not provide here.

    Names under `if TYPE_CHECKING:` are never looked up. Names in a `try` that handles their absence are
    ignored.

    Args:
        tree: parsed snippet.
        text: source of the snippet.
        path: path of the snippet.
    """
    if ROOT not in text:
        return
    lines = text.split("\n")
    modules: dict[str, str] = {}
    for node in _reached(tree):
        for place, message, hint in _problems(node, modules):
            offset = place.col_offset  # Offset in bytes
            column = len(lines[place.lineno - 1].encode()[:offset].decode("utf-8", "ignore")) + 1
            yield Issue(
                message, line=place.lineno, column=column, path=path, hint=hint, code=Code.UNKNOWN_IMPORT
            )


_Problem = tuple[ast.alias | ast.expr | ast.stmt, str, str]


def _problems(node: ast.AST, modules: dict[str, str]) -> Iterator[_Problem]:
    """Yield the problems of an import or attribute. `modules` collects names of imported modules."""
    match node:
        case ast.Import(names=names):
            for alias in names:
                if _is_ours(alias.name):
                    yield from _module(alias.name, alias)
                    modules[alias.asname or ROOT] = alias.name if alias.asname else ROOT
        case ast.ImportFrom(module=str(module), level=0, names=names) if _is_ours(module):
            yield from _from(module, names, node, modules)
        case ast.Attribute():
            dotted = _dotted(node, modules)
            if dotted is not None:
                module, _, name = dotted.rpartition(".")
                if module in MODULES and not is_installed(module) and not name.startswith("__"):
                    yield from _name(module, name, node)


def _from(
    module: str, names: list[ast.alias], node: ast.ImportFrom, modules: dict[str, str]
) -> Iterator[_Problem]:
    problem = list(_module(module, node))
    yield from problem
    for alias in () if problem else names:
        inner = f"{module}.{alias.name}"
        if inner in (*MODULES, *PACKAGES):
            modules[alias.asname or alias.name] = inner
        elif module in MODULES:
            if alias.name != "*" and not is_installed(module):
                yield from _name(module, alias.name, alias)
        elif not is_installed(inner):
            yield from _module(inner, alias)


def _is_ours(module: str) -> bool:
    return module == ROOT or module.startswith(f"{ROOT}.")


def _module(module: str, place: ast.alias | ast.stmt) -> Iterator[_Problem]:
    if module not in (*MODULES, *PACKAGES) and not is_installed(module):
        yield place, f"module {module!r} is not available", f"the AI GO types are in {MODULES[0]!r}"


def _name(module: str, name: str, place: ast.alias | ast.expr) -> Iterator[_Problem]:
    if name in offered_names():
        return
    near = difflib.get_close_matches(name, offered_names(), n=3, cutoff=0.75)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?"
        if near
        else "docs/reference/core-types.md lists all names; import names that only annotations use"
        " under `if TYPE_CHECKING:`"
    )
    yield place, f"{module!r} does not provide {name!r}", hint


def _dotted(node: ast.Attribute, modules: dict[str, str]) -> str | None:
    """Return the full name of a module attribute; `None` for every other attribute."""
    parts = [node.attr]
    value = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name) or value.id not in modules:
        return None
    return ".".join([modules[value.id], *reversed(parts)])


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes in source order, without nodes that never run or may fail."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for statement in child.orelse:
                yield from _reached(statement)
        elif isinstance(child, ast.Try) and any(map(_catches_absence, child.handlers)):
            for part in (*child.handlers, *child.orelse, *child.finalbody):
                yield from _reached(part)
        else:
            yield from _reached(child)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _ERRORS) for kind in kinds)


@lru_cache(maxsize=512)
def parsed(text: str) -> ast.Module:
    """Parse a snippet.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the text is not Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ignore warnings about invalid escapes in the author's code.
        return ast.parse(text)


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@lru_cache(maxsize=512)
def top_level(text: str) -> dict[str, tuple[Definition | None, ...]]:
    """Return the names at the top level of a module, each with its function definitions; `None` for any other
    definition.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the text is not Python.
    """
    names: dict[str, tuple[Definition | None, ...]] = {}
    for statement in _statements(parsed(text).body):
        for name, definition in _bindings(statement):
            names[name] = (*names.get(name, ()), definition)
    return names


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, Definition | None]]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, statement
        case ast.ClassDef(name=name):
            yield name, None
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name, None) for alias in names)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value):
            yield name, value
        case ast.Assign(targets=targets):
            yield from ((target.id, None) for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name, None


@dataclass(frozen=True)
class PositionalCall:
    """Call of a function with positional arguments."""

    arguments: tuple[str, ...]
    other: tuple[tuple[str, ...], ...] = ()
    """Longer argument lists that are also supported, if the function accepts them."""
    named: tuple[str, ...] = ()
    """Keyword arguments that are passed if the function declares them."""
    old: tuple[str, ...] | None = None
    """Arguments of a deprecated form, recognized by exactly these names."""
    hint: str | None = None
    """Hint that explains the call."""


_CALLS = {
    "compute_metrics_snippet": PositionalCall(("scores",)),
    "postprocess_snippet": PositionalCall(("sample", "solver_output")),
    "run_solver_snippet": PositionalCall(("sample", "model", "trace")),
    "compute_evidence_snippet": PositionalCall(()),
    "synthesize_snippet": PositionalCall(("source",)),
    "run_inference_snippet": PositionalCall(
        ("body", "environment"), other=(("body", "environment", "sample"),), named=("sample",)
    ),
}
_OF_A_MODEL = PositionalCall(("sample", "solver_output"), old=OLD_SCORES)
_OF_A_DATA_SET = PositionalCall(
    ("sample",), hint="without a solver there is no output, so the scorer only receives the sample"
)
_OF_ALL_SAMPLES = PositionalCall(("samples",), hint="it is called once, with the list of all samples")


def call_of(field: str, part: Mapping[str, Any], *, solved: bool) -> PositionalCall | None:
    """Return how the function in a field, for example of a scorer, is called; `None` without a function."""
    if field != "compute_scores_snippet":
        return _CALLS.get(field)
    spec = SCORERS.get(str(part.get("type")))
    if spec is not None and spec.sees_all_samples:
        return _OF_ALL_SAMPLES
    return _OF_A_MODEL if solved else _OF_A_DATA_SET


def check_signature(text: str, path: Path, function: str, call: PositionalCall) -> Iterator[Issue]:
    """Check the parameters of the function if its text shows them. Decorated functions and callable objects
    may accept any arguments.
    """
    definitions = _definitions(text, function)
    if not definitions or any(_fits(node, call) for node in definitions):
        swapped = [node for node in definitions if _is_swapped(node, call)]
        for node in swapped[:1]:
            yield _issue(node, path, function, call, "arguments are passed by position", "warning")
        return
    yield _issue(definitions[-1], path, function, call, call.hint, "error")


def _issue(
    node: Definition, path: Path, function: str, call: PositionalCall, hint: str | None, severity: Any
) -> Issue:
    message = f"found {function}({ast.unparse(node.args)}), expected {function}({', '.join(call.arguments)})"
    place = (node.lineno, node.col_offset + 1)
    return Issue(
        message,
        line=place[0],
        column=place[1],
        path=path,
        hint=hint,
        severity=severity,
        code=Code.WRONG_SIGNATURE,
    )


def _definitions(text: str, function: str) -> tuple[Definition, ...]:
    """Return every top-level definition of a function; empty if another object has the same name."""
    definitions: list[Definition] = []
    for definition in top_level(text).get(function, ()):
        if definition is None or getattr(definition, "decorator_list", None):
            return ()
        definitions.append(definition)
    return tuple(definitions)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for branch in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, branch, []))
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _fits(node: Definition, call: PositionalCall) -> bool:
    names = _positional(node)
    parameters = node.args
    if call.old is not None and names[: len(names) - len(parameters.defaults)] == call.old:
        return True
    for name, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        if default is None and name.arg not in call.named:
            return False
    least = len(names) - len(parameters.defaults)
    most = len(names) if parameters.vararg is None else float("inf")
    return any(least <= len(arguments) <= most for arguments in (call.arguments, *call.other))


def _is_swapped(node: Definition, call: PositionalCall) -> bool:
    """Return whether the parameters have the usual names in another order, which is a mistake."""
    names = _positional(node)[: len(call.arguments)]
    return names != call.arguments and set(names) == set(call.arguments)


def _positional(node: Definition) -> tuple[str, ...]:
    return tuple(argument.arg for argument in (*node.args.posonlyargs, *node.args.args))
