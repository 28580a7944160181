"""Metrics of samples with several labels: counts have intervals, and lists have a reason."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.extras.stats.comparison.logs import log, sample

from aigo_stats.comparison.columns import ResultColumns, read_columns
from aigo_stats.comparison.comparing import MetricComparison, compare
from aigo_stats.comparison.estimates import MetricEstimate, estimates
from aigo_stats.comparison.judges import judge_quality
from aigo_stats.statistics.intervals import Interval, NoInterval
from aigo_stats.statistics.paired_differences import PairedDifference

TP, FP, FN = "num_true_positives_field", "num_false_positives_field", "num_false_negatives_field"
PRECISION = {"type": "precision", TP: "tp", FP: "fp"}
RECALL = {"type": "recall", TP: "tp", FN: "fn"}
F1 = {"type": "f1_score", TP: "tp", FP: "fp", FN: "fn"}


def counted(path: Path, counts: list[tuple[int, int, int] | None]) -> ResultColumns:
    """Write a result with true positives, false positives and false negatives per sample, or `None` for a failed sample."""
    samples = [
        sample(number, None if each is None else dict(zip(("tp", "fp", "fn"), each, strict=True)))
        for number, each in enumerate(counts)
    ]
    hits, false, missed = (sum(column) for column in zip(*filter(None, counts), strict=True))
    metrics: list[Any] = [
        (PRECISION, {"precision": hits / (hits + false) if hits + false else 0.0}),
        (RECALL, {"recall": hits / (hits + missed)}),
        (F1, {"f1_score": 2 * hits / (2 * hits + false + missed)}),
    ]
    return read_columns(log(path, samples, metrics))


def by_name(columns: ResultColumns) -> dict[str, MetricEstimate]:
    return {metric.name: metric for metric in estimates(columns)}


COUNTS: list[tuple[int, int, int] | None] = [
    (1 + number % 3, int(number % 4 == 0), int(number % 5 < 2)) for number in range(40)
]


def test_count_metrics_treat_samples_as_independent_units(tmp_path: Path) -> None:
    """Compare with Cochran's standard error of a ratio and Wilson's interval for the effective sample size."""
    metric = by_name(counted(tmp_path / "a.json", COUNTS))["recall"]

    table = np.array(COUNTS, dtype=float)
    hits, labels = table[:, 0], table[:, 0] + table[:, 2]
    recall = hits.sum() / labels.sum()
    error = math.sqrt(40 / 39 * ((hits - recall * labels) ** 2).sum()) / labels.sum()
    effective, t = recall * (1 - recall) / error**2, stats.t.ppf(0.975, 39)
    centre = (recall + t * t / (2 * effective)) / (1 + t * t / effective)
    half = (
        t
        * math.sqrt(recall * (1 - recall) / effective + (t / (2 * effective)) ** 2)
        / (1 + t * t / effective)
    )
    assert isinstance(metric.estimate, Interval)
    assert metric.value == pytest.approx(recall, abs=1e-12)
    assert metric.estimate.standard_error == pytest.approx(error, abs=1e-9)
    assert (metric.estimate.low, metric.estimate.high) == pytest.approx(
        (centre - half, centre + half), abs=1e-9
    )


def test_f1_error_is_computed_over_all_labels(tmp_path: Path) -> None:
    """Compare with the delta method for F1 = 2 TP / (2 TP + FP + FN)."""
    metric = by_name(counted(tmp_path / "a.json", COUNTS))["f1_score"]

    table = np.array(COUNTS, dtype=float)
    top, bottom = 2 * table[:, 0], 2 * table[:, 0] + table[:, 1] + table[:, 2]
    value = top.sum() / bottom.sum()
    error = math.sqrt(40 / 39 * ((top - value * bottom) ** 2).sum()) / bottom.sum()
    assert isinstance(metric.estimate, Interval)
    assert metric.value == pytest.approx(value, abs=1e-12)
    assert metric.estimate.standard_error == pytest.approx(error, abs=1e-9)
    assert metric.estimate.low < value < metric.estimate.high


def test_failed_sample_is_counted_and_removes_bounds(tmp_path: Path) -> None:
    """The number of labels of a failed sample is unknown."""
    metric = by_name(counted(tmp_path / "a.json", [*COUNTS, None]))["precision"]

    assert metric.denominator is not None
    assert (metric.denominator.scored, metric.denominator.failed) == (40, 1)
    assert metric.bounds is None


def test_precision_without_predicted_positives_has_a_reason(tmp_path: Path) -> None:
    metric = by_name(counted(tmp_path / "a.json", [(0, 0, 1)] * 40))["precision"]

    assert metric.estimate == NoInterval("0.0 replaces an undefined ratio: the denominator is zero")


def test_difference_of_count_metrics_is_computed_over_pairs(tmp_path: Path) -> None:
    """The 39 paired samples contribute to both ratios."""
    others: list[tuple[int, int, int] | None] = [
        (1 + number % 3, 0, int(number % 5 == 0)) for number in range(39)
    ]
    base, new = counted(tmp_path / "a.json", COUNTS), counted(tmp_path / "b.json", [*others, None])

    metrics: dict[str, MetricComparison] = {metric.name: metric for metric in compare(base, new).metrics}

    metric = metrics["recall"]
    assert metric.num_unpaired == 1
    assert isinstance(metric.difference, PairedDifference)
    parts = []
    for counts in (COUNTS[:39], others):
        table = np.array(counts, dtype=float)
        hits, labels = table[:, 0], table[:, 0] + table[:, 2]
        ratio = hits.sum() / labels.sum()
        parts.append((ratio, (hits - ratio * labels) / labels.mean()))
    value, influences = parts[1][0] - parts[0][0], parts[1][1] - parts[0][1]
    error = influences.std(ddof=1) / math.sqrt(39)
    half = stats.t.ppf(0.975, 38) * error
    assert metric.difference.value == pytest.approx(value, abs=1e-12)
    assert isinstance(metric.difference.estimate, Interval)
    ends = (metric.difference.estimate.low, metric.difference.estimate.high)
    assert ends == pytest.approx((value - half, value + half), abs=1e-9)
    assert metric.difference.p_value == pytest.approx(2 * stats.t.sf(abs(value / error), 38), abs=1e-9)


def several(path: Path, human: Any = "x") -> ResultColumns:
    """Write samples whose score is a list of labels, as in logs of other tools."""
    samples = [
        sample(
            number,
            {"said": ["x", "y"] if number % 2 else ["x"], "true": ["x"]},
            {"q": number, "human": human},
        )
        for number in range(60)
    ]
    labels = {"type": "multiclass-classification", "field_gt": "true", "field_pred": "said"}
    metrics: list[Any] = [
        ({"type": "mean", "field": "said"}, {"said_mean": 0.5}),
        (labels, {"accuracy": 0.5}),
    ]
    return read_columns(log(path, samples, metrics), ["human"])


def test_list_score_is_a_label_and_not_a_number(tmp_path: Path) -> None:
    metrics = by_name(several(tmp_path / "a.json"))

    assert metrics["said_mean"].estimate == NoInterval("the score ['x'] is not a number")
    assert isinstance(metrics["accuracy"].estimate, Interval)


@pytest.mark.parametrize(("human", "whose"), [("x", "scores"), (["x"], "labels")])
def test_agreement_is_only_defined_for_single_labels(tmp_path: Path, human: Any, whose: str) -> None:
    qualities = judge_quality(several(tmp_path / "a.json", human), "human")

    for quality in qualities:
        assert quality.agreement == NoInterval(
            f"the {whose} are lists: agreement is only defined for single labels"
        )
        assert quality.corrected_mean is None
