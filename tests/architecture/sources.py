"""The modules of all packages, parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "aigo_bridge": ROOT / "bridge/aigo_bridge",
    "aigo_inspect": ROOT / "adapters/aigo_inspect",
    "aigo_lighteval": ROOT / "adapters/aigo_lighteval",
    **{path.name: path for path in sorted((ROOT / "extras").glob("aigo_*"))},
}


DATA = (("projects", "templates"), ("projects", "parts"))
"""Folders of the core whose Python is what authors begin with: files to be written, and no modules."""


@dataclass(frozen=True)
class Source:
    """Parsed module."""

    name: str
    path: Path

    @property
    def package(self) -> str:
        """Return the package that relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree."""
        return ast.parse(self.path.read_text("utf-8"))

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))


def _sources() -> Iterator[Source]:
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts[:2] in DATA:
                continue
            yield Source(".".join([package, *(part for part in parts if part != "__init__")]), path)


SOURCES = {source.name: source for source in _sources()}
"""Modules by their dotted names."""
