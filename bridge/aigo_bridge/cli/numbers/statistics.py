"""What the verbs about statistics share: reading results, and showing numbers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.cli.terminal import name_of, note, short_path
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from aigo_bridge.comparison.columns import Columns


_WIDTH = 160
"""Columns that a table may take: cells are never cut off."""


def read_result(path: Path, names: Sequence[str] = ()) -> Columns:
    """A result with the columns that are needed of it.

    Raises:
        UsageError: there is no such file, scipy is missing, or no sample has such a column.
        EvidenceError: it is no result log, or damaged.
    """
    from aigo_bridge.statistics.quantiles import special_functions

    special_functions()
    from aigo_bridge.comparison.columns import read_columns

    columns = read_columns(existing(path), names)
    for name in names:
        if len(columns) and all(value is None for value in columns.values[name]):
            raise UsageError(
                f"{path}: no sample has a value in the column {name!r}", code=Code.UNKNOWN_CHOICE
            )
    return columns


def chosen(locations: Sequence[Path]) -> list[Path]:
    """Return the named result logs, and the results in named folders without superseded attempts.

    Raises:
        UsageError: a folder is without results.
        EvidenceError: the summary of an evaluation cannot be read.
    """
    from aigo_bridge.report.sources import sources_of
    from aigo_bridge.results.superseded import without_superseded

    paths: list[Path] = []
    for location in locations:
        if not location.is_dir():
            paths.append(location)
            continue
        found = [source.path for source in sources_of([location]) if source.path is not None]
        paths += without_superseded(found, lambda text: note(f"note: {text}"))
    return paths


def existing(path: Path) -> Path:
    """The path of a file that is there.

    Raises:
        UsageError: it is not.
    """
    if not path.is_file():
        raise UsageError(f"there is no result log {str(path)!r}", code=Code.NOTHING_THERE)
    return path


def console() -> Console:
    """A console whose lines are never broken: they are there to be copied and searched for."""
    from rich.console import Console

    screen = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    screen.width = max(screen.width, _WIDTH)
    return screen


def heading(screen: Console, columns: Columns) -> None:
    """The task's name, and the file."""
    from rich.text import Text

    screen.print(Text(f"\n{name_of(columns.frame.specification.display_name)}", style="bold"))
    screen.print(Text(f"{short_path(columns.path)}: {columns.counts.text()}", style="dim"))
