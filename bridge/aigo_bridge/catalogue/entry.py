"""What the catalogue says of a code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aigo_bridge.codes import Code

VALIDATE = "validate task.yaml"


@dataclass(frozen=True)
class Example:
    """A mistake to look at: one change of a folder that is right, or a command that is wrong on it.

    The folder is `examples/capitals` with the result of its run, `result.tasklog.json`.
    """

    command: str = VALIDATE
    """Without the `aigo-bridge` in front."""
    right: str | None = None
    """Text in `file` that the mistake stands in place of."""
    wrong: str = ""
    file: str = "task.yaml"
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that are there besides, by name."""


@dataclass(frozen=True)
class Entry:
    """A kind of mistake."""

    code: Code
    title: str
    meaning: str
    remedy: str
    example: Example | None = None
    test: str | None = None
    """The test that makes the mistake, where a page cannot: `file::name`."""


def edited(right: str, wrong: str, *, file: str = "task.yaml", command: str = VALIDATE) -> Example:
    """A change of a file of the folder."""
    return Example(command, right, wrong, file)
