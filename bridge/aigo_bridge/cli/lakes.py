"""Imports into a lake, and lakes where a verb takes results."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aigo_bridge.cli.terminal import note

if TYPE_CHECKING:
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport
    from aigo_bridge.lake.reading import LakeTables
    from aigo_bridge.tables.results import Results

_NAMES = ("lake", ".lake", "-lake", "_lake")
HINT_AT = 1_000
"""Logs since the last compaction from which on it is worth one."""


def names_lake(out: str | os.PathLike[str]) -> bool:
    """Whether `--format parquet --out` means a lake: one that is there, or by its name."""
    text = os.fspath(out).rstrip("/")
    name = text.rpartition("/")[2].lower()
    return name == _NAMES[0] or name.endswith(_NAMES[1:]) or (Path(text) / "lake.json").is_file()


def import_to_lake(
    lake: str,
    logs: Sequence[str],
    options: ImportOptions,
    tell: Callable[[ImportReport], None],
    watch: float | None,
) -> int:
    """Import logs into a lake; the worst exit code.

    Raises:
        UsageError: there are no logs, or the lake is none.
    """
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.lake.importing import KNOWN, NO_LOG, UNFINISHED, import_into
    from aigo_bridge.lake.pieces import Piece, pieces_at

    quiet = (KNOWN, NO_LOG, UNFINISHED)

    def told(report: ImportReport) -> None:
        if report.status not in quiet or report.exit_code:
            tell(report)

    def take(pieces: list[Piece]) -> ExitCode:
        tally = import_into(lake, pieces, options, told, finished_only=watch is not None)
        parts = [f"{tally.imported} imported", f"{tally.known} there already"]
        parts += [f"{tally.no_logs} no logs"] if tally.no_logs else []
        parts += [f"{tally.unfinished} not finished"] if tally.unfinished else []
        note(f"{lake}: {', '.join(parts)}")
        return tally.worst

    if watch is None:
        return take(pieces_at(logs))
    from aigo_bridge.lake.watching import watch as look

    look(logs, watch, lambda pieces: _nothing(take(pieces)))
    return 0


def _nothing(_: object) -> None:
    """A function that gives nothing."""


def refuse_with_lake(**given: object) -> None:
    """Refuse options that an import into a lake has no use for.

    Raises:
        UsageError: one was given.
    """
    from aigo_bridge.errors import UsageError

    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if names:
        raise UsageError(f"{', '.join(names)}: not for an import into a lake")


def lake_of(locations: Sequence[str | os.PathLike[str]]) -> LakeTables | Results | None:
    """The tables of a lake for SQL, where one is asked; `None`: results are.

    Raises:
        UsageError: it is asked together with something else.
    """
    from aigo_bridge.errors import UsageError
    from aigo_bridge.lake.reading import LakeTables, lake_at

    found = [lake_at(location) for location in locations]
    if not any(found):
        return None
    if len(found) > 1:
        raise UsageError("a lake is asked alone: name it, or results, but not several of them")
    (one,) = found
    assert one is not None
    return LakeTables(*one)


def show_count(count: int) -> None:
    """Say that a compaction would be worth it."""
    if count >= HINT_AT:
        typer.echo(f"note: {count:,} logs are not compacted: aigo-bridge lake compact", err=True)
