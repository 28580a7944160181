"""Precision, recall, F1 and their averages, hand-computed from scikit-learn's definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aigo_bridge.spec.metrics import BinaryClassificationMetric, MulticlassClassificationMetric
from aigo_stats.comparison.labels import (
    MOST_CLASSES,
    UNDEFINED,
    LabelPairs,
    accuracy,
    class_ratio,
    label_pairs,
    macro_average,
)
from aigo_stats.statistics.intervals import NoInterval
from aigo_stats.statistics.ratios import Ratio
from aigo_stats.statistics.smooth import Smooth

TRUTH = ["a", "a", "a", "b", "b", "c"]
PREDICTED = ["a", "a", "b", "b", "a", "a"]
MULTICLASS = MulticlassClassificationMetric(
    type="multiclass-classification", field_gt="truth", field_pred="predicted"
)


def present(values: list[Any], positions: list[int] | None = None) -> tuple[Any, list[Any]]:
    return np.array(range(len(values)) if positions is None else positions), values


def pairs() -> LabelPairs:
    return label_pairs(MULTICLASS, present(TRUTH), present(PREDICTED))


@pytest.mark.parametrize(
    ("label", "kind", "value"),
    [
        ("a", "precision", 2 / 4),
        ("a", "recall", 2 / 3),
        ("a", "f1_score", 4 / 7),
        ("b", "precision", 1 / 2),
        ("b", "recall", 1 / 2),
        ("b", "f1_score", 1 / 2),
        ("c", "recall", 0.0),
        ("c", "f1_score", 0.0),
    ],
)
def test_class_ratio_equals_the_definition(label: str, kind: str, value: float) -> None:
    ratio = class_ratio(pairs(), label, kind)
    assert isinstance(ratio, Ratio)
    assert ratio.value == pytest.approx(value, rel=1e-12)


def test_metrics_that_cannot_be_computed_give_a_reason() -> None:
    assert class_ratio(pairs(), "c", "precision") == UNDEFINED
    unknown, other = class_ratio(pairs(), "d", "recall"), class_ratio(pairs(), "a", "kappa")
    assert isinstance(unknown, NoInterval)
    assert "no sample has the label 'd'" in unknown.reason
    assert isinstance(other, NoInterval)
    assert "'kappa'" in other.reason


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("precision", (2 / 4 + 1 / 2 + 0) / 3),
        ("recall", (2 / 3 + 1 / 2 + 0) / 3),
        ("f1_score", (4 / 7 + 1 / 2 + 0) / 3),
    ],
)
def test_macro_averages_count_an_undefined_class_as_zero(kind: str, value: float) -> None:
    average = macro_average(pairs(), kind)
    assert isinstance(average, Smooth)
    assert average.value == pytest.approx(value, rel=1e-12)
    assert accuracy(pairs()).value == 3 / 6


def test_only_samples_with_both_labels_are_counted() -> None:
    some = label_pairs(MULTICLASS, present(["a", "b", "a"], [1, 4, 9]), present(["b", "a", "a"], [4, 5, 9]))
    assert some.positions.tolist() == [4, 9]
    assert accuracy(some).value == 1.0


def test_labels_outside_a_binary_classification_are_excluded() -> None:
    metric = BinaryClassificationMetric(
        type="binary-classification",
        field_gt="truth",
        field_pred="predicted",
        positive_answer="yes",
        negative_answer="no",
    )
    both = label_pairs(metric, present(["yes", "no", "yes", "no"]), present(["yes", "perhaps", "no", "no"]))
    assert both.positions.tolist() == [0, 2, 3]
    assert accuracy(both).value == pytest.approx(2 / 3)


def test_empty_labels_and_too_many_classes_are_handled() -> None:
    empty = label_pairs(MULTICLASS, present([]), present([]))
    assert (len(empty.positions), empty.classes) == (0, ())
    many = [f"class-{number}" for number in range(MOST_CLASSES + 1)]
    average = macro_average(label_pairs(MULTICLASS, present(many), present(many)), "recall")
    assert isinstance(average, NoInterval)
    assert f"{MOST_CLASSES + 1} classes are too many" in average.reason
