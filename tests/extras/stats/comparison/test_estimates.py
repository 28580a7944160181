"""Metrics of a result with their intervals, denominators and bounds."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.extras.stats.comparison.logs import MEAN, log, repeated, sample
from tests.support.metric_example import AT_LEAST, AtLeastMetric

from aigo_bridge.metrics.registry import METRIC_TYPES, register
from aigo_bridge.spec import task
from aigo_bridge.spec.metric import METRICS
from aigo_bridge.spec.scorers import SCORERS
from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.comparing import compare
from aigo_stats.comparison.estimates import Denominator, MetricEstimate, estimates
from aigo_stats.statistics.intervals import Interval, NoInterval, wilson


def estimated(path: Path, **options: Any) -> list[MetricEstimate]:
    kept = [options["cluster"]] if "cluster" in options else []
    return estimates(read_columns(path, kept), **options)


def denominator(**counts: int) -> Denominator:
    return Denominator(**{field.name: counts.get(field.name, 0) for field in fields(Denominator)})


def reason(metric: MetricEstimate) -> str:
    assert isinstance(metric.estimate, NoInterval), metric
    return metric.estimate.reason


def test_proportion_has_a_wilson_interval(tmp_path: Path) -> None:
    samples = [sample(number, {"right": float(number < 15)}) for number in range(20)]

    (accuracy,) = estimated(log(tmp_path / "a.json", samples, [(MEAN, {"accuracy": 0.75})]))

    assert accuracy.estimate == wilson(15, 20)
    assert accuracy.denominator == denominator(scored=20, trials=20)
    assert accuracy.bounds == (0.75, 0.75)


def test_unscored_samples_are_counted_and_bound_the_metric(tmp_path: Path) -> None:
    samples = [
        *(sample(number, {"right": 1.0}) for number in range(6)),
        *(sample(number, {"right": 0.0}) for number in range(6, 8)),
        sample(8, None),
        sample(9, {"right": None}),
        sample(10, {"right": 1.0}, excluded=True),
    ]

    (accuracy,) = estimated(log(tmp_path / "a.json", samples, [(MEAN, {"accuracy": 0.75})]))

    counts = {"scored": 8, "failed": 1, "excluded": 1, "no_value": 1, "unscored": 2, "trials": 8}
    assert accuracy.denominator == denominator(**counts)
    assert accuracy.bounds == (6 / 10, 8 / 10)


def test_trials_of_a_sample_count_as_one_independent_sample(tmp_path: Path) -> None:
    samples = [
        repeated(number, [1.0, 1.0, 0.0, 1.0, 1.0] if number % 2 else [0.0] * 5) for number in range(30)
    ]

    (accuracy,) = estimated(log(tmp_path / "a.json", samples, [(MEAN, {"accuracy": 0.4})]))

    assert isinstance(accuracy.estimate, Interval)
    assert accuracy.estimate.standard_error == pytest.approx(0.4 * math.sqrt(30 / 29 / 30))
    assert accuracy.estimate.method == "Wilson, effective n"


def test_trial_that_failed_in_another_scorer_is_not_missing(tmp_path: Path) -> None:
    one = repeated("a", [1.0, 0.0])
    one["trials"][1]["errors"] = [{"error_type": "SnippetError", "message": "other scorer", "stage": "score"}]

    (metric,) = estimated(log(tmp_path / "a.tasklog.json", [one], [(MEAN, {"accuracy": 0.5})]))

    assert metric.denominator is not None
    assert (metric.denominator.missing_trials, metric.bounds) == (0, (0.5, 0.5))


def test_samples_of_a_group_are_clustered(tmp_path: Path) -> None:
    samples = [
        sample(number, {"right": float(number // 4 % 2)}, {"document": number // 4}) for number in range(100)
    ]
    path = log(tmp_path / "a.json", samples, [(MEAN, {"accuracy": 0.48})])

    (alone,) = estimated(path)
    (grouped,) = estimated(path, cluster="document")

    assert isinstance(alone.estimate, Interval)
    assert isinstance(grouped.estimate, Interval)
    assert grouped.estimate.standard_error == pytest.approx(2 * alone.estimate.standard_error, rel=0.03)


def test_rows_of_one_sample_are_clustered(tmp_path: Path) -> None:
    samples = [
        sample(f"s{number // 5}#{number % 5}", {"right": float(number // 5 % 2)}) for number in range(150)
    ]
    metrics = [(MEAN, {"accuracy": 0.5})]

    (alone,) = estimated(log(tmp_path / "a.json", samples, metrics))
    (rows,) = estimated(
        log(
            tmp_path / "b.json",
            samples,
            metrics,
            task={"solver": {"type": "x", "postprocessor": {"type": "y"}}},
        )
    )

    assert isinstance(alone.estimate, Interval)
    assert isinstance(rows.estimate, Interval)
    assert alone.estimate == wilson(75, 150)
    assert rows.estimate.standard_error == pytest.approx(math.sqrt(0.25 / 29))


def test_every_metric_type_has_an_interval_or_a_reason(tmp_path: Path) -> None:
    rows = [
        {
            "right": 1.0,
            "mark": number % 5 + 0.5,
            "tp": 2,
            "fp": number % 2,
            "fn": 1,
            "true": "ab"[number % 2],
            "said": "abb"[number % 3],
        }
        for number in range(120)
    ]
    labels = {"type": "multiclass-classification", "field_gt": "true", "field_pred": "said"}
    metrics: list[Any] = [
        ({"type": "std_dev", "field": "mark"}, {"mark_std_dev": math.sqrt(120 / 119 * 2)}),
        ({"type": "max", "field": "mark"}, {"mark_max": 4.5}),
        ({"type": "frequency", "field": "true"}, {"true_a": 0.5, "true_b": 0.5}),
        (
            {"type": "weighted_average", "field": "true", "weights": {"a": 1, "b": 3}},
            {"true_weighted_average": 2.0},
        ),
        (
            {"type": "precision", "num_true_positives_field": "tp", "num_false_positives_field": "fp"},
            {"precision": 0.8},
        ),
        ({"type": "python", "compute_metrics_snippet": "x"}, {"mine": 1.0}),
        (labels, {"accuracy": 0.5, "a_precision": 0.5, "macro_recall": 0.5}),
    ]
    samples = [sample(number, row) for number, row in enumerate(rows)]

    found = {metric.name: metric for metric in estimated(log(tmp_path / "a.json", samples, metrics))}

    assert {name for name, metric in found.items() if isinstance(metric.estimate, Interval)} == {
        *("mark_std_dev", "true_a", "true_b", "true_weighted_average", "precision"),
        *("accuracy", "a_precision", "macro_recall"),
    }
    assert "does not generalize to other samples" in reason(found["mark_max"])
    assert "the author's code computes it" in reason(found["mine"])
    assert found["mine"].denominator is None
    assert found["a_precision"].estimate == wilson(20, 40)


def test_metric_that_does_not_match_its_samples_has_no_interval(tmp_path: Path) -> None:
    samples = [sample(number, {"right": 1.0}) for number in range(20)]

    (accuracy,) = estimated(log(tmp_path / "a.json", samples, [(MEAN, {"accuracy": 0.9})]))

    assert reason(accuracy) == "the samples' scores give 1, which differs from the result"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["yes", "no"], "the score 'yes' is not a number"),
        ([None, None], "no sample has a value for 'right'"),
        ([0.25], "1 sample is too few"),
        ([0.25] * 12, "all samples have the same score"),
    ],
)
def test_invalid_scores_have_no_interval_with_a_reason(
    tmp_path: Path, values: list[Any], expected: str
) -> None:
    samples = [sample(number, {"right": value}) for number, value in enumerate(values)]

    (accuracy,) = estimated(log(tmp_path / "a.json", samples, [(MEAN, {"accuracy": 0.25})]))

    assert expected in reason(accuracy)


def test_infinite_scores_are_not_skipped(tmp_path: Path) -> None:
    odd = sample(0, {"right": None})
    odd["trials"][0]["scores"][0]["metadata"] = {"not_finite": {"right": "inf"}}
    samples = [odd, *(sample(number, {"right": 1.0}) for number in range(1, 20))]

    (accuracy,) = estimated(log(tmp_path / "a.json", samples, [(MEAN, {"accuracy": 1.0})]))

    assert reason(accuracy) == "a score is not finite"


def test_a_result_without_samples_gives_a_reason(tmp_path: Path) -> None:
    (accuracy,) = estimated(log(tmp_path / "a.json", [], [(MEAN, {"accuracy": 0.9})]))

    assert reason(accuracy) == "the result does not contain samples"


def test_result_with_only_failed_samples_has_no_estimates(tmp_path: Path) -> None:
    assert estimated(log(tmp_path / "a.json", [sample(0, None), sample(1, None)], [])) == []


def test_inspect_grades_are_converted_like_inspect_accuracy(tmp_path: Path) -> None:
    samples = [sample(number, {"includes": mark}) for number, mark in enumerate("CCCI" * 5)]
    metric = {"type": "accuracy", "key": "accuracy"}

    inspect: dict[str, Any] = {"config": {"inspect": {}}}
    path = log(tmp_path / "a.json", samples, [(metric, {"accuracy": 0.75})], specification=inspect)
    (accuracy,) = estimated(path)

    assert accuracy.estimate == wilson(15, 20)


def test_letter_grades_of_another_tool_are_not_numbers(tmp_path: Path) -> None:
    samples = [sample(number, {"includes": mark}) for number, mark in enumerate("CCCI" * 5)]
    metric = {"type": "accuracy", "key": "accuracy"}

    (accuracy,) = estimated(log(tmp_path / "a.json", samples, [(metric, {"accuracy": 0.75})]))

    assert reason(accuracy) == "the score 'C' is not a number"


def test_without_scipy_only_proportions_have_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    samples = [sample(number, {"right": float(number < 15), "mark": number}) for number in range(20)]
    metrics = [
        (MEAN, {"accuracy": 0.75}),
        ({"type": "mean", "field": "mark", "key": "m"}, {"mark_mean": 9.5}),
    ]

    accuracy, mark = estimated(log(tmp_path / "a.json", samples, metrics))

    assert accuracy.estimate == wilson(15, 20)
    assert "scipy, which is not installed; run: pip install" in reason(mark)


def test_bounds_of_class_metrics_account_for_failed_samples(tmp_path: Path) -> None:
    """3 hits, 1 false positive, 2 misses and 4 others. Each of 2 failed samples may be a hit or an error of the class."""
    rows = [("a", "a")] * 3 + [("b", "a")] + [("a", "b")] * 2 + [("b", "b")] * 4
    samples = [sample(number, {"true": true, "pred": pred}) for number, (true, pred) in enumerate(rows)]
    metric = {"type": "multiclass-classification", "field_gt": "true", "field_pred": "pred"}
    values = {
        "accuracy": 0.7,
        "a_precision": 3 / 4,
        "a_recall": 3 / 5,
        "a_f1_score": 2 / 3,
        "macro_recall": 0.7,
    }
    failed = [sample(10, None), sample(11, None)]

    numbers = estimated(log(tmp_path / "a.json", [*samples, *failed], [(metric, values)]))
    complete = estimated(log(tmp_path / "b.json", samples, [(metric, values)]))

    assert {number.name: number.bounds for number in numbers} == {
        "accuracy": pytest.approx((7 / 12, 9 / 12)),
        "a_precision": pytest.approx((3 / 6, 5 / 6)),
        "a_recall": pytest.approx((3 / 7, 5 / 7)),
        "a_f1_score": pytest.approx((2 * 3 / (2 * 3 + 1 + 2 + 2), 2 * 5 / (2 * 5 + 1 + 2))),
        "macro_recall": None,
    }
    assert [number.bounds for number in complete] == [(value, value) for value in values.values()]


@pytest.fixture
def at_least() -> Iterator[None]:
    """Metric type that aigo-bridge does not know."""
    register(AT_LEAST)
    yield
    del METRICS["at_least"], METRIC_TYPES[AtLeastMetric]
    task.rebuild()


@pytest.mark.usefixtures("at_least")
@pytest.mark.parametrize("listed", [True, False])
def test_unknown_metric_type_has_no_interval_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    """This includes the default metric of a scorer, which the task does not list."""
    metric = {"type": "at_least", "field": "right", "name": "reached"}
    samples = [sample(number, {"right": float(number < 15)}) for number in range(20)]
    scorers = {"scorers": [{"key": "judge", "type": "string_equals"}]}
    usual = (AtLeastMetric.model_validate(metric),)
    monkeypatch.setattr(SCORERS["string_equals"], "usual_metrics", usual)

    path = log(
        tmp_path / "a.json", samples, [(metric, {"reached": 0.75})], **({} if listed else {"task": scorers})
    )

    (reached,) = estimated(path)
    assert reason(reached) == "how 'at_least' is computed is unknown"
    (compared,) = compare(read_columns(path), read_columns(path)).metrics
    assert compared.difference == reached.estimate
