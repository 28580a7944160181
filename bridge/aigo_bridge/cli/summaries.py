"""JSON summaries of a run, with the interval of each metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aigo_bridge.cli.hooks import MetricStatistics, Statistics
from aigo_bridge.evaluation.summary import benchmark_summary, summary, task_summary
from aigo_bridge.hooks import load_hook

if TYPE_CHECKING:
    from aigo_bridge.engine.outcome import Outcome
    from aigo_bridge.evaluation.running import EvaluationOutcome
    from aigo_bridge.results.assembling import MetricRow


def metric_statistics(outcome: Outcome, rows: Sequence[MetricRow]) -> list[MetricStatistics]:
    """Return the statistics of some metrics of a result, one entry for each row."""
    return load_hook("statistics", Statistics).of_metrics(outcome.result, rows) if rows else []


def task_json(outcome: Outcome, digest: str | None = None) -> dict[str, Any]:
    """Return the summary of a task, with intervals; `digest` as for `task_summary`."""
    return _with_intervals(task_summary(outcome, digest), outcome)


def benchmark_json(outcome: Outcome) -> dict[str, Any]:
    """Return the summary of an engine's benchmark, with intervals."""
    return _with_intervals(benchmark_summary(outcome), outcome)


def evaluation_json(outcome: EvaluationOutcome) -> dict[str, Any]:
    """Return the summary of an evaluation, with intervals; its file `evaluation.json` has none."""
    content = summary(outcome)
    results = zip(content["results"], outcome.results, strict=True)
    return {**content, "results": [_with_intervals(entry, result) for entry, result in results]}


def _with_intervals(content: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    statistics = metric_statistics(outcome, outcome.metrics)
    entries = zip(content["metrics"], statistics, strict=True)
    return {**content, "metrics": [{**entry, **one.content} for entry, one in entries]}
