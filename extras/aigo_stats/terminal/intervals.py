"""Intervals of a run's metrics, read from its result log, and the hook `statistics`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.cli.hooks import MetricStatistics, ResultComparison, Statistics
from aigo_bridge.errors import BridgeError
from aigo_bridge.text.json_text import key_of
from aigo_bridge.text.plurals import plural
from aigo_stats.comparison.texts import bounds_text, missing_trials_text

if TYPE_CHECKING:
    from aigo_bridge.results.assembling import MetricRow
    from aigo_bridge.results.counts import Counts
    from aigo_stats.comparison.estimates import MetricEstimate

Estimates = Mapping[tuple[str, str, str], "MetricEstimate"]
"""Metrics with intervals, by scorer, metric key and metric name."""


def result_estimates(result: Path | None) -> Estimates:
    """Return the metrics of a result; empty if it is missing or unreadable. The run is then displayed without
    intervals.
    """
    return {} if result is None else result_numbers(result)[0]


def result_numbers(result: Path) -> tuple[Estimates, Counts | None]:
    """Return the metrics and the sample counts of a result; empty and `None` if it cannot be read."""
    from aigo_stats.comparison.columns import read_columns
    from aigo_stats.comparison.estimates import estimates

    try:
        columns = read_columns(result)
    except (BridgeError, OSError):
        return {}, None
    metrics = estimates(columns)
    return {(each.scorer or "", each.metric, each.name): each for each in metrics}, columns.counts


def row_estimate(estimates: Estimates, row: MetricRow) -> MetricEstimate | None:
    """Return the metric of a table row.

    Rows of benchmarks lack a metric key. They are matched by name if the name is unique.
    """
    if row.value is None:
        return None
    if row.metric_key:
        # In the evidence, metrics of a system task are stored without a scorer.
        scorers = (row.scorer_key, key_of(row.scorer_key), "")
        keys = ((scorer, row.metric_key, row.name) for scorer in scorers)
        return next((estimates[key] for key in keys if key in estimates), None)
    candidates = [
        estimate
        for (scorer, _, name), estimate in estimates.items()
        if (scorer, name) == (row.scorer_key, row.name)
    ]
    return candidates[0] if len(candidates) == 1 and candidates[0].value == row.value else None


def metric_statistics(result: Path | None, rows: Sequence[MetricRow]) -> list[MetricStatistics]:
    """Return the statistics of a result's metrics, one entry for each row."""
    estimates = result_estimates(result)
    return [_statistics(row, row_estimate(estimates, row)) for row in rows]


def _statistics(row: MetricRow, estimate: MetricEstimate | None) -> MetricStatistics:
    from aigo_stats.comparison.estimates import estimate_json, missing_json
    from aigo_stats.statistics.intervals import NoInterval

    if estimate is None:
        reason = (
            "the value of the metric is missing"
            if row.value is None
            else "the evidence does not have this metric"
        )
        return MetricStatistics(None, None, None, estimate_json(NoInterval(reason)))
    content: dict[str, Any] = {**estimate_json(estimate.estimate), **missing_json(estimate)}
    interval = estimate.estimate
    ends = None if isinstance(interval, NoInterval) else (interval.low, interval.high)
    return MetricStatistics(ends, estimate.scale, _missing(estimate), content)


def _missing(metric: MetricEstimate) -> str | None:
    """Return the missing samples and trials of a metric, and its worst and best value."""
    counts = metric.denominator
    if counts is None or not counts.is_partial:
        return None
    parts: list[str] = []
    if counts.unscored:
        verb = "is" if counts.unscored == 1 else "are"
        samples = plural(counts.unscored + counts.scored, "sample", form=",")
        parts.append(f"{counts.unscored:,} of {samples} {verb} missing")
    if counts.missing_trials:
        parts.append(missing_trials_text(counts))
    bounds = bounds_text(metric)
    return "; ".join([*parts, *([] if bounds is None else [bounds])])


def _compare(folders: Sequence[Path]) -> ResultComparison:
    from aigo_stats.terminal.comparisons import compare_results

    return compare_results(folders)


STATISTICS = Statistics(metric_statistics, _compare)
