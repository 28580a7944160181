"""Metrics of scorers that list none, and names of metrics that have none.

The platform computes default metrics for such scorers without documenting them (a published policy reads `accuracy` of a
multiple-choice scorer with no metrics); these are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aigo_bridge.metrics.result import NoAggregate
from aigo_bridge.spec import metrics as spec
from aigo_bridge.spec.scorers import Scorer

_BY_TYPE: dict[str, tuple[spec.Metric, ...]] = {
    "string_equals": (spec.MeanMetric(type="mean", field="is_correct", name="accuracy"),),
    "string_equals_mcqa": (spec.MeanMetric(type="mean", field="is_correct", name="accuracy"),),
    "model_as_a_judge_classifier": (spec.MeanMetric(type="mean", field="is_correct", name="accuracy"),),
    "model_as_a_judge_scorer": (spec.MeanMetric(type="mean", field="score"),),
    "labeler_via_model": (spec.FrequencyMetric(type="frequency", field="label"),),
    "code_exec": (spec.MeanMetric(type="mean", field="code_exec"),),
    "bleu": (spec.MeanMetric(type="mean", field="bleu_score"),),
}


def metrics_of(scorer: Scorer, scores: Iterable[Mapping[str, Any]]) -> tuple[spec.Metric, ...]:
    """The scorer's metrics: its own (an empty list means none), else the default ones for what it scored."""
    return scorer.metrics if scorer.metrics is not None else default_metrics(scorer.type, scores)


def default_metrics(scorer_type: str, scores: Iterable[Mapping[str, Any]]) -> tuple[spec.Metric, ...]:
    """Default metrics of a kind of scorer: a fixed one, or `{name}_mean` of every number and boolean it gave."""
    if scorer_type in _BY_TYPE:
        return _BY_TYPE[scorer_type]
    names: dict[str, None] = {}
    for values in scores:
        names |= {name: None for name, value in values.items() if _is_number(value)}
    return tuple(spec.MeanMetric(type="mean", field=name) for name in names)


def _is_number(value: object) -> bool:
    return value.is_number if isinstance(value, NoAggregate) else isinstance(value, bool | int | float)


def value_name(metric: spec.Metric) -> str | None:
    """The name of a metric's only value; `None` where there is one for each label, or the author's code gives the names."""
    name: str | None = getattr(metric, "name", None)
    if name is not None:
        return name
    match metric:
        case (
            spec.MeanMetric()
            | spec.MinMetric()
            | spec.MaxMetric()
            | spec.StdDevMetric()
            | spec.WeightedAverageMetric()
        ):
            return f"{metric.field}_{metric.type}"
        case spec.PrecisionMetric() | spec.RecallMetric() | spec.F1ScoreMetric():
            return metric.type
    return None


def metric_keys(metrics: Sequence[spec.Metric]) -> tuple[str, ...]:
    """One key per metric: its own, else its type, with `_2`, `_3` … where that is taken."""
    taken = {metric.key for metric in metrics if metric.key is not None}
    keys: list[str] = []
    for metric in metrics:
        key = metric.key
        if key is None:
            key, number = metric.type, 1
            while key in taken:
                number += 1
                key = f"{metric.type}_{number}"
            taken.add(key)
        keys.append(key)
    return tuple(keys)
