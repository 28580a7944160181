"""Which packages the author's code imports, found without running it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

from aigo_bridge.plan import TaskPlan

OWN = frozenset({"aigo_bridge", "latticeflow"})
"""What a snippet may import that comes with aigo-bridge: its types, also under the platform's name."""


def snippet_imports(plan: TaskPlan) -> tuple[str, ...]:
    """Top-level packages that the snippets of a task import and that come neither with Python nor with aigo-bridge, sorted."""
    definition = plan.definition.model_dump(mode="json")
    found = {name for source in _snippets(definition) for name in _imported(source)}
    return tuple(sorted(found - OWN - _dependencies() - sys.stdlib_module_names))


def _dependencies() -> set[str]:
    """What is installed with aigo-bridge, by the name that the distribution has in Python (mostly its own)."""
    try:
        lines = requires("aigo-bridge") or []
    except PackageNotFoundError:
        return set()
    names = [re.split(r"[^\w.-]", line)[0] for line in lines if "extra ==" not in line]
    return {name.lower().replace("-", "_") for name in names}


def _snippets(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.endswith("_snippet") and isinstance(inner, str):
                yield inner
            else:
                yield from _snippets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _snippets(inner)


def _imported(source: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # it will fail in every run, and say so there
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
