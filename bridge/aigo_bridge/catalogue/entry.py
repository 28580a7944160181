"""Catalogue entry of an error code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aigo_bridge.codes import Code

VALIDATE = "validate task.yaml"


@dataclass(frozen=True)
class Example:
    """An example of a mistake: a change to a file, or a wrong command.

    The starting point is `examples/capitals` with the result of its run, `result.tasklog.json`.
    """

    command: str = VALIDATE
    """The command without `aigo-bridge`."""
    right: str | None = None
    """Text in `file` that `wrong` replaces."""
    wrong: str = ""
    file: str = "task.yaml"
    files: Mapping[str, str] = field(default_factory=dict)
    """Additional files by name."""


@dataclass(frozen=True)
class CatalogueEntry:
    """Error code with its meaning and fix."""

    code: Code
    title: str
    meaning: str
    remedy: str
    example: Example | None = None
    test: str | None = None
    """Test that produces the error if a page cannot: `file::name`."""


def edited(right: str, wrong: str, *, file: str = "task.yaml", command: str = VALIDATE) -> Example:
    """Return an example that changes one file."""
    return Example(command, right, wrong, file)
