"""Metrics: numbers over the scores that one scorer gave to all samples."""

from aigo_bridge.metrics.metric import (
    Exclusion,
    MetricResult,
    NoAggregate,
    default_metrics,
    excluded,
    metric_keys,
    metrics_of,
)
from aigo_bridge.metrics.registry import compute_metric
from aigo_bridge.metrics.trials import (
    NUM_TRIALS,
    RunSpread,
    TrialScores,
    aggregate_trials,
    metrics_over_runs,
    score_agreements,
)

__all__ = [
    "NUM_TRIALS",
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
]
