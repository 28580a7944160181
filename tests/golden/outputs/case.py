"""A golden case: files, and the commands that are run on them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Files = Mapping[str, Path | str | bytes]
"""Names in the folder of a case, with their content or with the file or folder to copy."""


@dataclass(frozen=True)
class Case:
    """Commands and their input files."""

    name: str
    files: Files
    commands: tuple[tuple[str, ...], ...]
    engine: str = "inspect"
    """Engine that the commands load; `lighteval` loads slowly and stays in one test process."""
    members: tuple[str, ...] = ("header.json", "reductions.json")
    """Members of Inspect's logs whose text is held; of what a run writes, its samples are held in the result
    log."""


def case(name: str, files: Files, *commands: str, **rest: Any) -> Case:
    """Return a case from commands as typed in a shell."""
    return Case(name, files, tuple(tuple(shlex.split(each)) for each in commands), **rest)
