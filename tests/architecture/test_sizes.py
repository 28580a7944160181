"""Size limits: folders, number of modules, functions, and the share of vague local names."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from tests.architecture.sources import ROOT, SOURCES

FOLDER = 20
"""Modules beside each other, `__init__` included."""
MODULES = 700
"""Modules of the whole project. The bound may only fall; it was 430 on 22 November and 703 on 27 November 2026."""
LONG = 50
"""Lines of a function, from `def` to its end."""
LONG_SHARE = 0.01
VAGUE_LOCALS = 0.01
VAGUE_PARAMETERS = 0.01
VAGUE_AIM = 0.01
_VAGUE = (
    "found given made own each said told rest kept asked there here",
    "whole known other others first last before after left",
)
VAGUE = frozenset(" ".join(_VAGUE).split())
"""Names of locals and parameters that say nothing of what they hold: each is the noun it is, see CONTRIBUTING.md."""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def assigned(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Return the line and name of each assignment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def parameters(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Return the line and name of each parameter."""
    return ((node.lineno, node.arg) for node in ast.walk(tree) if isinstance(node, ast.arg))


def test_no_folder_has_too_many_modules() -> None:
    folders = Counter(str(source.path.parent.relative_to(ROOT)) for source in SOURCES.values())
    assert {folder: number for folder, number in folders.items() if number > FOLDER} == {}


def test_there_are_not_too_many_modules() -> None:
    assert len(SOURCES) <= MODULES


@pytest.mark.parametrize(("limit", "aim"), [(VAGUE_LOCALS, VAGUE_AIM), (VAGUE_PARAMETERS, VAGUE_AIM)])
def test_limit_is_not_below_its_aim(limit: float, aim: float) -> None:
    assert limit >= aim


def test_number_of_long_functions_is_limited() -> None:
    lengths = {
        f"{source}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for source in SOURCES.values()
        for node in functions(source.tree)
    }
    too_long = sorted(place for place, lines in lengths.items() if lines > LONG)
    assert len(too_long) / len(lengths) <= LONG_SHARE, "\n".join(too_long)


@pytest.mark.parametrize(
    ("names", "limit"),
    [(assigned, VAGUE_LOCALS), (parameters, VAGUE_PARAMETERS)],
    ids=["locals", "parameters"],
)
def test_share_of_vague_names_is_limited(
    names: Callable[[ast.AST], Iterator[tuple[int, str]]], limit: float
) -> None:
    places = [(source, line, name) for source in SOURCES.values() for line, name in names(source.tree)]
    vague = [f"{source}:{line} {name}" for source, line, name in places if name in VAGUE]
    assert len(vague) / len(places) <= limit, "\n".join(vague)


def test_vague_names_are_found() -> None:
    text = "def f(given, *, other=1):\n    found = [each for each in given if (rest := each)]\n    plan = 1"
    tree = ast.parse(text)
    assert [name for _, name in parameters(tree)] == ["given", "other"]
    assert {name for _, name in assigned(tree)} == {"found", "each", "rest", "plan"}
    assert "plan" not in VAGUE
    assert {"given", "other", "found", "each", "rest"} <= VAGUE
