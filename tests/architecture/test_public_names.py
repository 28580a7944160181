"""The public names of `aigo_bridge` exist, are documented, and are not hidden by a package with the same name."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import aigo_bridge

NAMES = [name for name in aigo_bridge.__all__ if name != "__version__"]


def test_every_public_name_exists_with_a_docstring() -> None:
    assert [name for name in NAMES if not inspect.getdoc(getattr(aigo_bridge, name))] == []
    assert set(NAMES) <= set(dir(aigo_bridge))


def test_functions_document_their_arguments_and_errors() -> None:
    functions = [
        getattr(aigo_bridge, name) for name in NAMES if inspect.isfunction(getattr(aigo_bridge, name))
    ]
    assert len(functions) == 10
    for function in functions:
        doc = inspect.getdoc(function) or ""
        missing = [name for name in inspect.signature(function).parameters if f"{name}:" not in doc]
        assert (function.__name__, missing) == (function.__name__, [])
        assert "Raises:\n" in doc, function.__name__
        assert "```python\n" in doc, function.__name__


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(aigo_bridge.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    homes = {
        alias.name: node.module
        for node in imports
        for alias in node.names
        if alias.name != "__version__" and str(node.module).startswith("aigo_")
    }
    assert homes == aigo_bridge._HOMES
    assert sorted(NAMES) == sorted(homes)


def test_no_package_has_the_name_of_a_public_function() -> None:
    """A loaded subpackage would replace the attribute with the same name."""
    rooms = {path.stem for path in Path(aigo_bridge.__file__).parent.iterdir()}
    assert rooms.isdisjoint(NAMES)
