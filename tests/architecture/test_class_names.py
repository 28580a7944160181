"""A public class name has one meaning: one module defines it."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict

from tests.architecture.sources import ROOT, SOURCES, Source

BOUND = tomllib.loads((ROOT / "tests/architecture/bounds.toml").read_text("utf-8"))["classes"]["shared-names"]
ADAPTERS = ["aigo_inspect", "aigo_lighteval"]


def shared_names() -> dict[str, list[str]]:
    """Return the names that several modules define, with these modules.

    A class that each adapter defines once has one meaning: its part in an adapter.
    """
    homes: defaultdict[str, list[Source]] = defaultdict(list)
    for source in SOURCES.values():
        for name in {node.name for node in source.tree.body if isinstance(node, ast.ClassDef)}:
            homes[name].append(source)
    return {
        name: [str(source) for source in sources]
        for name, sources in sorted(homes.items())
        if len(sources) > 1
        and not name.startswith("_")
        and sorted(source.name.partition(".")[0] for source in sources) != ADAPTERS
    }


def test_few_modules_define_a_class_of_the_same_name() -> None:
    shared = shared_names()
    assert len(shared) <= BOUND, "\n".join(f"{name}: {', '.join(homes)}" for name, homes in shared.items())
