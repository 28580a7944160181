"""Metrics: numbers over the scores that one scorer gave to all samples."""

from aigo_bridge.metrics.actions import Exclusion, excluded
from aigo_bridge.metrics.compute import compute_metric
from aigo_bridge.metrics.defaults import default_metrics, metric_keys, metrics_of, value_name
from aigo_bridge.metrics.repeatability import RunSpread, metrics_over_runs, score_agreements
from aigo_bridge.metrics.result import MetricResult, NoAggregate
from aigo_bridge.metrics.trials import TrialScores, aggregate_trials

__all__ = [
    "Exclusion",
    "MetricResult",
    "NoAggregate",
    "RunSpread",
    "TrialScores",
    "aggregate_trials",
    "compute_metric",
    "default_metrics",
    "excluded",
    "metric_keys",
    "metrics_of",
    "metrics_over_runs",
    "score_agreements",
    "value_name",
]
