"""Intervals of the numbers that a run shows, read from its evidence file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.errors import BridgeError
from aigo_bridge.evaluation.summary import benchmark_summary, summary, task_summary
from aigo_bridge.text.json_text import key_of

if TYPE_CHECKING:
    from aigo_bridge.engine.outcome import Outcome
    from aigo_bridge.evaluation.running import EvaluationOutcome
    from aigo_bridge.results.assembling import MetricRow
    from aigo_bridge.results.counts import Counts
    from aigo_stats.comparison.estimates import MetricEstimate

Estimates = Mapping[tuple[str, str, str], "MetricEstimate"]
"""Scorer, key of the metric and name of the number → the number with its interval."""


def result_estimates(result: Path | None) -> Estimates:
    """The numbers of a result; none where there is no result or it cannot be read: then a run is shown
    without intervals.
    """
    return {} if result is None else result_numbers(result)[0]


def result_numbers(result: Path) -> tuple[Estimates, Counts | None]:
    """Return the numbers and the counts of a result; none of either if it cannot be read."""
    from aigo_stats.comparison.columns import read_columns
    from aigo_stats.comparison.estimates import estimates

    try:
        columns = read_columns(result)
    except (BridgeError, OSError):
        return {}, None
    metrics = estimates(columns)
    return {(each.scorer or "", each.metric, each.name): each for each in metrics}, columns.counts


def row_estimate(estimates: Estimates, row: MetricRow) -> MetricEstimate | None:
    """The number of a row of a table; rows of benchmarks have no key of a metric, so that the name decides
    where it is the only one.
    """
    if row.value is None:
        return None
    if row.metric_key:
        # Numbers of a system task have no scorer in the evidence.
        scorers = (row.scorer_key, key_of(row.scorer_key), "")
        keys = ((scorer, row.metric_key, row.name) for scorer in scorers)
        return next((estimates[key] for key in keys if key in estimates), None)
    candidates = [
        estimate
        for (scorer, _, name), estimate in estimates.items()
        if (scorer, name) == (row.scorer_key, row.name)
    ]
    return candidates[0] if len(candidates) == 1 and candidates[0].value == row.value else None


def task_json(outcome: Outcome, digest: str | None = None) -> dict[str, Any]:
    """A task by itself, with intervals; `digest` as of `task_summary`."""
    return _with_intervals(task_summary(outcome, digest), outcome)


def benchmark_json(outcome: Outcome) -> dict[str, Any]:
    """A benchmark of an engine, with intervals."""
    return _with_intervals(benchmark_summary(outcome), outcome)


def evaluation_json(outcome: EvaluationOutcome) -> dict[str, Any]:
    """An evaluation, with the intervals of its results; its file `evaluation.json` is without."""
    content = summary(outcome)
    results = zip(content["results"], outcome.results, strict=True)
    return {**content, "results": [_with_intervals(entry, result) for entry, result in results]}


def _with_intervals(content: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    estimates = result_estimates(outcome.result) if outcome.metrics else {}
    rows = zip(content["metrics"], outcome.metrics, strict=True)
    return {**content, "metrics": [{**entry, **_interval_json(estimates, row)} for entry, row in rows]}


def _interval_json(estimates: Estimates, row: MetricRow) -> dict[str, Any]:
    """As in `aigo-bridge stats --json`."""
    from aigo_stats.comparison.estimates import estimate_json, missing_json
    from aigo_stats.statistics.intervals import NoInterval

    estimate = row_estimate(estimates, row)
    if estimate is not None:
        return {**estimate_json(estimate.estimate), **missing_json(estimate)}
    reason = "the metric has no value" if row.value is None else "the evidence has no such number"
    return estimate_json(NoInterval(reason))
