"""Tables. On narrow terminals, rows are printed as entries below each other, and nothing is truncated."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer

from aigo_bridge.cli.terminal import name_of, one_line, width_of
from aigo_bridge.text.numbers import ABSENT

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NARROWEST = 20
"""Minimum columns of wrapped lines."""

_WIDEST = 100_000
"""More columns than any terminal has."""

_CELL = 60
"""Maximum characters of a cell in a table of rows."""


def print_table(console: Console, table: Table) -> None:
    """Print a table with one line per row; on a narrower terminal, print its rows as entries."""
    from rich.measure import Measurement

    width = width_of(sys.stdout)
    # Measure the width that the table needs, independent of the console's width.
    options = console.options.update(max_width=_WIDEST)
    if width is None or Measurement.get(console, options, table).maximum <= width:
        console.print(table)
        return
    headers = [str(column.header) for column in table.columns]
    rows = zip(*(map(str, column.cells) for column in table.columns), strict=True)
    print_entries(headers, list(rows), width)


def print_entries(headers: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> None:
    """Print rows below each other: the first cell is the name of the entry, the others follow with their
    headers.

    Args:
        headers: names of the columns.
        rows: texts of each row, as many as `headers`; a row without a first text belongs to the entry above.
        width: columns of the terminal.
    """
    for name, *details in rows:
        if name:
            typer.echo(textwrap.fill(name, max(width, _NARROWEST), subsequent_indent="  "))
        for header, detail in zip(headers[1:], details, strict=True):
            if detail:
                text = f"{header}: {detail}"
                typer.echo(
                    textwrap.fill(
                        text,
                        max(width, _NARROWEST),
                        initial_indent="  ",
                        subsequent_indent="    ",
                        break_on_hyphens=False,
                    )
                )


@dataclass(frozen=True)
class MetricLine:
    """One metric of a result, as shown."""

    label: str
    value: str
    interval: str = ""
    """Empty: without an interval."""
    error: str = ""
    """Standard error; empty: not shown."""
    samples: str = ""
    scorer: str = ""


def print_metrics(console: Console, lines: Sequence[MetricLine], level: str = "95 %") -> None:
    """Print metrics with the columns of the pages; intervals and errors only if there are any."""
    from rich.table import Table
    from rich.text import Text

    shown: list[tuple[str, Sequence[str]]] = [
        ("metric", [name_of(line.label) for line in lines]),
        ("value", [line.value for line in lines]),
        (f"{level} interval", [line.interval for line in lines]),
        ("std. error", [line.error for line in lines]),
        ("samples", [line.samples for line in lines]),
        ("scorer", [name_of(line.scorer) for line in lines]),
    ]
    optional = {f"{level} interval", "std. error"}
    columns = [(name, cells) for name, cells in shown if name not in optional or any(cells)]
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name, _ in columns:
        table.add_column(name, no_wrap=True, justify="left" if name in ("metric", "scorer") else "right")
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(
            *(
                Text(cell or (ABSENT if name in optional else ""))
                for (name, _), cell in zip(columns, row, strict=True)
            )
        )
    if lines:
        print_table(console, table)


def print_cells(
    console: Console, headers: Sequence[str], rows: Iterable[tuple[Sequence[str], str | None]], right: slice
) -> None:
    """Print rows with their styles; `right`: the columns of numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*headers, box=None, padding=(0, 3, 0, 0), header_style="dim")
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[right]:
        column.justify = "right"
    for cells, style in rows:
        table.add_row(*map(Text, cells), style=style)
    if table.row_count:
        print_table(console, table)


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
        typer.echo(f"more rows follow; show more with --rows N (now {limit}), or all with --rows 0", err=True)


def _width(columns: Sequence[str]) -> int:
    return max(80, (_CELL + 3) * max(1, len(columns)) + sum(map(len, columns)))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return one_line(name_of(str(value)), _CELL)
