"""Hook for lakes: tables of many results that imports write and commands read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport


_NAMES = ("lake", ".lake", "-lake", "_lake")
LAKE_LOG, OLD_MARK = "logs/_delta_log", "lake.json"
"""Folder that marks a lake, and file that marked it before the introduction of Delta tables."""
_KEYS = ("by_task=", "by_model=", "by_run=")


@dataclass(frozen=True)
class LakeImport:
    """Logs to import into a lake."""

    lake: str
    logs: Sequence[str]
    options: ImportOptions
    tell: Callable[[ImportReport], None]
    """Called with the report of each log."""
    watch: float | None = None
    """Seconds between two searches for new logs; `None` for one search."""
    on_cluster: bool = False
    """Import on the workers of a cluster."""
    cluster_address: str | None = None
    workers: int | None = None
    """Number of worker processes; `None` for one per CPU."""


@dataclass(frozen=True)
class Lake:
    """Hook `lake`."""

    import_logs: Callable[[LakeImport], int]
    """Import logs and return the worst exit code.

    Raises:
        UsageError: logs are missing, or an option is wrong.
    """
    results: Callable[[str, Path], list[Path] | None]
    """Write the results of a lake as result logs into a folder; `None` if the location is not a lake.

    Raises:
        UsageError: the lake is empty.
        EvidenceError: the lake is damaged.
    """
    tables: Callable[[Sequence[str | os.PathLike[str]]], Any]
    """Return the tables of a lake for SQL, with a method `show`; `None` if no location is a lake.

    Raises:
        UsageError: a lake is given together with another location.
    """


def names_lake(out: str | os.PathLike[str]) -> bool:
    """Return whether `--format parquet --out` names a lake: an existing one, or one by its name."""
    text = os.fspath(out).rstrip("/")
    name = text.rpartition("/")[2].lower()
    return name == _NAMES[0] or name.endswith(_NAMES[1:]) or is_lake(text)


def lake_part(location: str) -> str:
    """Return a location without the partitions of a lake at its end."""
    parts = location.rstrip("/").split("/")
    while len(parts) > 1 and parts[-1].startswith(_KEYS):
        parts.pop()
    return "/".join(parts)


def is_lake(location: str) -> bool:
    """Return whether a local path is a lake, or partitions of one."""
    lake = Path(lake_part(location))
    return (lake / LAKE_LOG).is_dir() or (lake / OLD_MARK).is_file()


def may_be_lake(text: str) -> bool:
    """Return whether an argument may name a local lake, or partitions of one."""
    return any(key in text for key in _KEYS) or (
        os.path.isdir(os.path.join(text, LAKE_LOG)) or os.path.isfile(os.path.join(text, OLD_MARK))  # noqa: PTH112, PTH113, PTH118  # never raises
    )
