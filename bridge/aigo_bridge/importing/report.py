"""What the command line tells of an imported log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ImportReport:
    """What became of one log."""

    log: str
    """Its location as the user named it."""
    output: Path | None
    """What was written; `None` when nothing could be read, or nothing written."""
    lines: tuple[str, ...]
    """The report for people; safe to print."""
    exit_code: int
    """0 done, 1 more was dropped than allowed, 3 only a part (or nothing) could be read or written."""
    summary: Mapping[str, Any]
    """The report for programs."""
