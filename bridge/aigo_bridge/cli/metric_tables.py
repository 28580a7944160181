"""Tables of the metrics of a run: of one result, of several, and of tasks by models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from aigo_bridge.cli.summaries import metric_statistics
from aigo_bridge.cli.tables import MetricLine, print_cells
from aigo_bridge.cli.terminal import name_of
from aigo_bridge.metrics.names import metric_labels, standard_errors
from aigo_bridge.text.numbers import ABSENT, shown_error, shown_number, shown_range
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from rich.console import Console

    from aigo_bridge.cli.hooks import MetricStatistics
    from aigo_bridge.engine.outcome import Outcome
    from aigo_bridge.results.assembling import MetricRow

ShownMetrics = Sequence[tuple[MetricLine, "MetricStatistics"]]
"""Metrics as shown, each with its statistics."""


def shown_rows(rows: Sequence[MetricRow]) -> list[tuple[str, MetricRow, float | None]]:
    """Return the metrics that are shown, each with its name and its reported standard error."""
    identities = [row.identity for row in rows]
    errors = standard_errors(identities)
    reported = {base: rows[error] for error, base in errors.items()}
    kept = [place for place in range(len(rows)) if place not in errors]
    labels = metric_labels([identities[place] for place in kept])
    return [
        (label, rows[place], reported[place].value if place in reported else None)
        for place, label in zip(kept, labels, strict=True)
    ]


def shown_metrics(outcome: Outcome) -> ShownMetrics:
    """Return the metrics of a run as shown."""
    shown = shown_rows(outcome.metrics)
    statistics = metric_statistics(outcome, [row for _, row, _ in shown])
    return [
        (_metric_line(label, row, error, one), one)
        for (label, row, error), one in zip(shown, statistics, strict=True)
    ]


def _metric_line(label: str, row: MetricRow, error: float | None, statistics: MetricStatistics) -> MetricLine:
    scale = statistics.scale
    return MetricLine(
        label,
        shown_number(row.value, scale),
        "" if statistics.interval is None else shown_range(*statistics.interval, scale),
        "" if error is None else shown_error(error, scale),
        "" if row.num_scored is None else shown_number(row.num_scored),
        row.scorer_key,
    )


def missing_lines(metrics: ShownMetrics) -> Iterator[str]:
    """Return a line for each metric with missing samples or trials, with its worst and best value."""
    return (f"{name_of(line.label)}: {one.missing}" for line, one in metrics if one.missing is not None)


def print_results(console: Console, results: Sequence[Outcome], metrics: Sequence[ShownMetrics]) -> None:
    """Print a row for each metric; the first row of a result has its name, model and counts."""
    names: tuple[str, ...] = ("task", "model", "metric", "value", "95 % interval", "samples", "failed")
    rows: list[tuple[str, ...]] = []
    for result, numbers in zip(results, metrics, strict=True):
        head = name_of(result.key), name_of(result.models.get("", ""))
        counts = shown_number(result.counts.scored), _failed_cell(result)
        lines = [line for line, _ in numbers] or [MetricLine(ABSENT, ABSENT)]
        for place, line in enumerate(lines):
            cells = name_of(line.label), line.value, line.interval or ABSENT
            rows.append((*(head if not place else ("", "")), *cells, *(counts if not place else ("", ""))))
    if not any(row[4] != ABSENT for row in rows):
        names, rows = names[:4] + names[5:], [row[:4] + row[5:] for row in rows]
    print_cells(console, names, ((row, None) for row in rows), slice(3, None))


def print_matrix(console: Console, results: Sequence[Outcome], metrics: Sequence[ShownMetrics]) -> None:
    """Print the first metric of each task for each model, if a task was run with several models."""
    models: dict[str, None] = {}
    pairs = list(zip(results, metrics, strict=True))
    labels = {result.task: numbers[0][0].label for result, numbers in reversed(pairs) if numbers}
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for result, numbers in pairs:
        line = numbers[0][0] if numbers else MetricLine(labels.get(result.task, ABSENT), ABSENT)
        model = name_of(result.models.get("", ""))
        if not model:
            continue
        models[model] = None
        row = rows.setdefault((name_of(result.task), name_of(line.label)), {})
        if model in row:  # e.g. variants: the table of results has them all
            return
        row[model] = f"{line.value} ({line.interval})" if line.interval else line.value
    if not any(len(row) > 1 for row in rows.values()):
        return
    lines = ((*names, *(row.get(model, ABSENT) for model in models)) for names, row in rows.items())
    print_cells(console, ("task", "metric", *models), ((line, None) for line in lines), slice(2, None))
    console.print()


def _failed_cell(result: Outcome) -> str:
    """Failed and missing samples, and failed trials of samples with several."""
    counts, failed = result.counts, str(result.num_failed + result.num_missing)
    if not counts.has_trials or not counts.failed_trials:
        return failed
    return f"{failed}, {counts.failed_trials} of {plural(counts.trials, 'trial')}"
