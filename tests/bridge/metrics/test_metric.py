"""Metrics of scorers that list none, and default keys of metrics and scorers."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from aigo_bridge.metrics.metric import default_metrics, metric_keys, metrics_of
from aigo_bridge.scoring.registry import scorer_keys
from aigo_bridge.spec.metrics import Metric
from aigo_bridge.spec.scorers import Scorer

METRICS: TypeAdapter[list[Metric]] = TypeAdapter(list[Metric])
SCORERS: TypeAdapter[list[Scorer]] = TypeAdapter(list[Scorer])


def python_scorer(**fields: Any) -> Scorer:
    return SCORERS.validate_python([{"type": "python", "compute_scores_snippet": "", **fields}])[0]


@pytest.mark.parametrize("kind", ["string_equals", "string_equals_mcqa", "model_as_a_judge_classifier"])
def test_correctness_scorers_have_accuracy_as_default_metric(kind: str) -> None:
    (metric,) = default_metrics(kind, [])
    assert metric.model_dump(exclude_none=True) == {"type": "mean", "field": "is_correct", "name": "accuracy"}


def test_judges_and_labelers_have_their_default_metrics() -> None:
    assert [metric.type for metric in default_metrics("model_as_a_judge_scorer", [])] == ["mean"]
    assert [metric.type for metric in default_metrics("labeler_via_model", [])] == ["frequency"]


def test_python_scorer_has_a_mean_for_every_numeric_score() -> None:
    scores = [{"text": "x", "length": 3}, {"length": 4, "polite": True, "list": [1], "none": None}]
    metrics = default_metrics("python", scores)
    assert [getattr(metric, "field", None) for metric in metrics] == ["length", "polite"]


def test_empty_metric_list_means_no_metrics_and_null_means_defaults() -> None:
    assert metrics_of(python_scorer(metrics=[]), [{"x": 1}]) == ()
    assert len(metrics_of(python_scorer(metrics=None), [{"x": 1}])) == 1


def test_default_metric_key_is_the_type_with_a_number_if_taken() -> None:
    metrics = METRICS.validate_python(
        [
            {"type": "mean", "field": "a"},
            {"type": "mean", "field": "b", "key": "mean_2"},
            {"type": "mean", "field": "c"},
            {"type": "max", "field": "c", "key": "top"},
        ]
    )
    assert metric_keys(metrics) == ("mean", "mean_2", "mean_3", "top")


def test_explicit_scorer_keys_take_precedence_over_default_keys() -> None:
    scorers = SCORERS.validate_python(
        [
            {"type": "string_equals", "ground_truth": "a"},
            {"type": "string_equals", "ground_truth": "b"},
            {"type": "string_equals", "ground_truth": "c", "key": "string_equals"},
        ]
    )
    keys = scorer_keys(scorers)
    assert keys == ("string_equals_2", "string_equals_3", "string_equals")
    assert len(set(keys)) == len(keys)
