"""Names of the platform's modules that snippets use: what is not offered here would fail on every sample."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from functools import lru_cache

from aigo_bridge.errors import Issue
from aigo_bridge.reading.checks.trees import Path
from aigo_bridge.snippets.aliases import MODULES, PACKAGES, is_installed, offered_names

ROOT = "latticeflow"
"""The platform's top-level package."""

_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"})
"""What a handler must catch for a missing name to be no error."""


def check_imports(tree: ast.Module, text: str, path: Path) -> Iterator[Issue]:
    """Imports and uses of names that the platform's modules do not have here.

    Names under `if TYPE_CHECKING:` are never looked up, and those in a `try` that catches their absence are the author's affair.

    Args:
        tree: the parsed snippet.
        text: its source.
        path: where it stands.
    """
    if ROOT not in text:
        return
    lines = text.split("\n")
    modules: dict[str, str] = {}
    for node in _reached(tree):
        for place, message, hint in _problems(node, modules):
            offset = place.col_offset  # in bytes
            column = len(lines[place.lineno - 1].encode()[:offset].decode("utf-8", "ignore")) + 1
            yield Issue(message, line=place.lineno, column=column, path=path, hint=hint)


_Problem = tuple[ast.alias | ast.expr | ast.stmt, str, str]


def _problems(node: ast.AST, modules: dict[str, str]) -> Iterator[_Problem]:
    """What is wrong with one import or attribute; `modules` keeps under which names modules are known from there on."""
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
        yield place, f"there is no module {module!r} here", f"the types are those of {MODULES[0]!r}"


def _name(module: str, name: str, place: ast.alias | ast.expr) -> Iterator[_Problem]:
    if name in offered_names():
        return
    near = difflib.get_close_matches(name, offered_names(), n=3, cutoff=0.75)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?"
        if near
        else "docs/core-types.md says which names there are; one that only annotations use can stand under `if TYPE_CHECKING:`"
    )
    yield place, f"{module!r} has no {name!r} here", hint


def _dotted(node: ast.Attribute, modules: dict[str, str]) -> str | None:
    """An attribute of a module by its full name; `None` for every other attribute."""
    parts = [node.attr]
    value = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name) or value.id not in modules:
        return None
    return ".".join([modules[value.id], *reversed(parts)])


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes in the order of the source, without those that are never run or may fail."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for other in child.orelse:
                yield from _reached(other)
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
    """A snippet's tree.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not Python.
    """
    return ast.parse(text)
