"""Output that the verbs for results share: written files, and rows on the screen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aigo_bridge.cli.terminal import name_of, one_line, short_path
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.results.sources import ResultSource
    from aigo_report.tables.files import Written
    from aigo_report.tables.results import Results

RESULTS_HELP = (
    "Result logs (.tasklog.json, also .gz and .zst), folders, patterns, an evaluation.json, or run files with"
    " task result logs (run.yaml, or run.yaml#KEY for one specification)."
)
"""Help of an argument for results."""

_CELL = 60
"""Characters of a cell on the screen."""


def note_missing(results: Results) -> None:
    """Say which tasks of an evaluation have no result."""
    for name in results.missing:
        typer.echo(f"note: the evaluation has no result of {name!r}", err=True)


def named_results(locations: Sequence[str]) -> list[ResultSource]:
    """Return named results, and those of folders, patterns, evaluations and run files.

    Raises:
        UsageError: one of them does not exist.
        EvidenceError: a summary cannot be read.
        SpecError: a run file is invalid.
    """
    from aigo_report.tables.results import results_at

    results = results_at(locations)
    note_missing(results)
    if not results.sources:
        raise UsageError(f"{', '.join(locations)}: found no result", code=Code.NOTHING_THERE)
    return list(results.sources)


def print_written(out: Path, written: Written) -> None:
    """Say what was written, and what did not fit."""
    if written.cut:
        typer.echo(
            f"note: {plural(written.cut, 'text was', 'texts were', form=',')} cut: a cell of a"
            " sheet has 32,767 characters",
            err=True,
        )
    typer.echo(f"{short_path(out)}: {plural(written.rows, 'row', form=',')}")


def print_rows(columns: Sequence[str], rows: Iterable[dict[str, Any]], limit: int) -> None:
    """Print at most `limit` rows as a table (0: all)."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    remaining = iter(rows)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(Text(name_of(name)), no_wrap=True)
    for row in islice(remaining, limit or None):
        table.add_row(*(Text(_cell(row[name])) for name in columns))
    screen = Console(file=sys.stdout, highlight=False, soft_wrap=True, width=_width(columns))
    screen.print(table)
    if next(remaining, None) is not None:
        typer.echo(f"more rows follow; --rows shows more of them (now {limit}), 0 all", err=True)


def _width(columns: Sequence[str]) -> int:
    return max(80, (_CELL + 3) * max(1, len(columns)) + sum(map(len, columns)))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return one_line(name_of(str(value)), _CELL)


def plain_values(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows for JSON."""
    return ({name: _plain(value) for name, value in row.items()} for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, (str, int, float, list, dict, type(None))) else str(value)
