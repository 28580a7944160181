"""No file imports itself through other files, including imports in functions and for type checkers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import pytest
from tests.architecture.sources import SOURCES, Source


def imports(source: Source, modules: Mapping[str, Source]) -> set[str]:
    """Return the modules that a module imports anywhere."""
    wanted = {module for name in _names(source) if (module := _module(name, modules))}
    return wanted - {source.name}


def _names(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = source.package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def _module(name: str, modules: Mapping[str, Source]) -> str | None:
    """Return the module of a dotted name, which may name an object in it."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def circle(modules: Mapping[str, Source]) -> Sequence[str]:
    """Return one import cycle, if there is any."""
    graph = TopologicalSorter({name: imports(source, modules) for name, source in modules.items()})
    try:
        graph.prepare()
    except CycleError as error:
        names: list[str] = error.args[1]
        return names[::-1]
    return []


class Text(Source):
    """Module from a text."""

    def __init__(self, name: str, text: str):
        path = SOURCES["aigo_bridge"].path.with_name("x.py")
        super().__init__(name, path)
        self.__dict__["tree"] = ast.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "from p import b",
        "from p.b import name",
        "from .b import name",
        "import p.b",
        "def f():\n    from . import b",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import Name",
    ],
)
def test_a_cycle_is_found_at_every_import_position(text: str) -> None:
    modules = {name: Text(name, "") for name in ("p", "p.c")}
    modules |= {"p.a": Text("p.a", text), "p.b": Text("p.b", "from p.a import x\nfrom p import c")}
    assert set(circle(modules)) == {"p.a", "p.b"}
    assert not circle({**modules, "p.b": Text("p.b", "from p.c import x")})


def test_files_have_no_import_cycle() -> None:
    assert " → ".join(circle(SOURCES)) == ""
