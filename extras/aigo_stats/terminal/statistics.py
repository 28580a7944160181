"""Shared functions of the statistics verbs: reading results and printing metrics."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.cli.tables import MetricLine
from aigo_bridge.cli.terminal import name_of, note, short_path
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.text.numbers import ABSENT, shown_error, shown_number

if TYPE_CHECKING:
    from rich.console import Console

    from aigo_bridge.results.sources import ResultSource
    from aigo_stats.comparison.columns import ResultColumns
    from aigo_stats.comparison.estimates import MetricEstimate


_WIDTH = 160
"""Maximum width of a table in columns. Cells are never truncated."""


def read_result(source: ResultSource, names: Sequence[str] = ()) -> ResultColumns:
    """Return a result with the requested columns. Errors of the log are printed as notes.

    Raises:
        UsageError: the file does not exist, scipy is missing, or all samples lack a requested column.
        EvidenceError: the file is damaged or is not a result log.
    """
    from aigo_stats.statistics.quantiles import require_scipy

    require_scipy()
    from aigo_stats.comparison.columns import read_columns

    assert source.path is not None
    columns = read_columns(source.path, names)
    columns.name = source.label
    for message in columns.errors:
        note(f"note: {source.label}: {message}")
    for name in names:
        if len(columns) and all(value is None for value in columns.values[name]):
            raise UsageError(
                f"{source.label}: no sample has a value in the column {name!r}", code=Code.UNKNOWN_CHOICE
            )
    return columns


def chosen(locations: Sequence[Path]) -> list[ResultSource]:
    """Return the results at the named locations. For folders, skip superseded attempts.

    Raises:
        UsageError: a result does not exist.
        BridgeError: an evaluation or a run file cannot be read.
    """
    from aigo_bridge.results.sources import existing_results

    return existing_results(locations, lambda text: note(f"note: {text}"))


def console() -> Console:
    """Return a console that does not wrap lines, so that they can be copied and searched."""
    from rich.console import Console

    screen = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    screen.width = max(screen.width, _WIDTH)
    return screen


def heading(screen: Console, columns: ResultColumns) -> None:
    """Print the task name and the file."""
    from rich.text import Text

    screen.print(Text(f"\n{name_of(columns.frame.specification.display_name)}", style="bold"))
    screen.print(Text(f"{short_path(columns.label)}: {columns.counts.text()}", style="dim"))


def metric_line(metric: MetricEstimate) -> MetricLine:
    """Return a metric for display."""
    from aigo_stats.comparison.texts import interval_text

    return MetricLine(
        metric.label,
        shown_number(metric.value, metric.scale),
        interval_text(metric.estimate, metric.scale),
        shown_error(metric.shown_error, metric.scale),
        shown_number(None if metric.denominator is None else metric.denominator.scored),
        metric.scorer or ABSENT,
    )
