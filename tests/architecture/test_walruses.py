"""`:=` in a comprehension must not change a name that the surrounding function uses otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for folder in ("bridge", "adapters", "extras") for path in (ROOT / folder).rglob("*.py"))
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module, ast.ClassDef)


def nodes(scope: ast.AST, *, comprehended: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Return the nodes of a scope without nested scopes, and whether each is in a comprehension."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, SCOPES):
            continue
        inside = comprehended or isinstance(child, COMPREHENSIONS)
        yield child, inside
        yield from nodes(child, comprehended=inside)


def rebound(source: str) -> list[str]:
    """Return names bound by `:=` in a comprehension and also by the function or the comprehension itself."""
    found = []
    for scope in ast.walk(ast.parse(source)):
        if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        arguments = {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)}
        walruses = [node for node, inside in nodes(scope) if inside and isinstance(node, ast.NamedExpr)]
        own = {id(node.target) for node in walruses}
        bound = arguments | {
            node.id
            for node, inside in nodes(scope)
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and not inside
            and id(node) not in own
        }
        found += [f"{node.lineno}: {node.target.id}" for node in walruses if node.target.id in bound]
    return found


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(spec):\n    return [spec for v in vs if (spec := g(v))]", ["2: spec"]),
        ("def f():\n    spec = 1\n    d = {'a': [spec for v in vs if (spec := g(v))]}", ["3: spec"]),
        ("def f(spec):\n    return [each for v in vs if (each := g(v))]", []),
        ("def f(spec):\n    return [spec for spec in vs if (each := g(spec))]", []),
        ("def f(spec):\n    if spec := g(spec):\n        return spec", []),
    ],
)
def test_rebound_names_are_found(source: str, names: list[str]) -> None:
    assert rebound(source) == names


def test_no_walrus_in_a_comprehension_rebinds_a_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{place}" for path in FILES for place in rebound(path.read_text("utf-8"))
    ]
    assert found == []
