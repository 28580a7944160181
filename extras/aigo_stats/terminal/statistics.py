"""What the verbs about statistics share: reading results, and showing numbers."""

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
    from aigo_stats.comparison.columns import Columns
    from aigo_stats.comparison.estimates import MetricEstimate


_WIDTH = 160
"""Columns that a table may take: cells are never cut off."""


def read_result(source: ResultSource, names: Sequence[str] = ()) -> Columns:
    """Return a result with the columns that are needed of it.

    Raises:
        UsageError: there is no such file, scipy is missing, or no sample has such a column.
        EvidenceError: it is no result log, or damaged.
    """
    from aigo_stats.statistics.quantiles import special_functions

    special_functions()
    from aigo_stats.comparison.columns import read_columns

    assert source.path is not None
    columns = read_columns(source.path, names)
    columns.name = source.label
    for name in names:
        if len(columns) and all(value is None for value in columns.values[name]):
            raise UsageError(
                f"{source.label}: no sample has a value in the column {name!r}", code=Code.UNKNOWN_CHOICE
            )
    return columns


def chosen(locations: Sequence[Path]) -> list[ResultSource]:
    """Return the results at the named locations, of folders without superseded attempts.

    Raises:
        UsageError: a result is not there.
        BridgeError: an evaluation or a run file cannot be read.
    """
    from aigo_bridge.results.sources import existing_results

    return existing_results(locations, lambda text: note(f"note: {text}"))


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
    screen.print(Text(f"{short_path(columns.label)}: {columns.counts.text()}", style="dim"))


def metric_line(metric: MetricEstimate) -> MetricLine:
    """Return a metric as shown."""
    from aigo_stats.comparison.texts import interval_text

    return MetricLine(
        metric.label,
        shown_number(metric.value, metric.scale),
        interval_text(metric.estimate, metric.scale),
        shown_error(metric.shown_error, metric.scale),
        shown_number(None if metric.denominator is None else metric.denominator.scored),
        metric.scorer or ABSENT,
    )
