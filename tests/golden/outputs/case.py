"""One case: files, and the commands that are run on them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Files = Mapping[str, Path | str | bytes]
"""Names in a case's folder, and what stands there: a copy of a file or folder, or a content."""


@dataclass(frozen=True)
class Case:
    """Commands, and what they are run on."""

    name: str
    files: Files
    commands: tuple[tuple[str, ...], ...]
    engine: str = "inspect"
    """What its commands load; `lighteval` is slow to load, and stays in one process of the tests."""
    members: tuple[str, ...] = ("header.json", "reductions.json")
    """Members of Inspect's logs whose text is held; of what a run writes, its samples are held in the result log."""


def case(name: str, files: Files, *commands: str, **rest: Any) -> Case:
    """A case from commands as they are typed."""
    return Case(name, files, tuple(tuple(shlex.split(each)) for each in commands), **rest)
