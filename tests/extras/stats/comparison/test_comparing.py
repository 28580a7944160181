"""Comparison of two results: pairing, hand-computed differences, flips and other differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.extras.stats.comparison.logs import MEAN, log, repeated, sample

from aigo_bridge.errors import UsageError
from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.comparing import Comparison, compare
from aigo_stats.comparison.flipped_samples import answers
from aigo_stats.comparison.pairing import pair
from aigo_stats.statistics.intervals import NoInterval
from aigo_stats.statistics.paired_differences import PairedDifference, tango


def compared(base: Path, new: Path, *, kept: tuple[str, ...] = (), **options: Any) -> Comparison:
    return compare(read_columns(base, kept), read_columns(new, kept), **options)


def rights(path: Path, scores: list[float], **options: Any) -> Path:
    samples = [sample(number, {"right": score}, answer=f"a{score}") for number, score in enumerate(scores)]
    return log(path, samples, [(MEAN, {"accuracy": sum(scores) / len(scores)})], **options)


def difference_of(comparison: Comparison) -> PairedDifference:
    (metric,) = comparison.metrics
    assert isinstance(metric.difference, PairedDifference), metric.difference
    return metric.difference


def test_difference_of_right_wrong_scores_equals_hand_computation(tmp_path: Path) -> None:
    """One of 20 samples is gained and six are lost: -5/20, and 2 · (1 + 7)/2⁷ = 0.125."""
    base = rights(tmp_path / "a.json", [1.0] * 12 + [0.0] * 8)
    new = rights(tmp_path / "b.json", [1.0] * 6 + [0.0] * 6 + [1.0] + [0.0] * 7)

    comparison = compared(base, new)

    difference = difference_of(comparison)
    assert difference.value == -0.25
    assert difference.p_value == pytest.approx(0.125)
    assert difference.estimate == tango(1, 6, 20)
    (metric,) = comparison.metrics
    assert metric.values == (0.6, 0.35)
    assert metric.flips is not None
    assert metric.flips.lost.tolist() == [[number, number] for number in range(6, 12)]
    assert metric.flips.gained.tolist() == [[12, 12]]
    assert metric.flips.agreement == 0.65
    assert answers(base, [6, 12]) == {6: "a1.0", 12: "a0.0"}


def test_renumbered_and_shuffled_rows_are_paired(tmp_path: Path) -> None:
    rows = [{"question": f"q{number}"} for number in range(12)]
    base = [sample(number, {"right": float(number < 6)}, row) for number, row in enumerate(rows)]
    new = [sample(100 - number, {"right": float(number < 6)}, row) for number, row in enumerate(rows)][::-1]
    metrics = [(MEAN, {"accuracy": 0.5})]

    comparison = compared(log(tmp_path / "a.json", base, metrics), log(tmp_path / "b.json", new, metrics))

    assert comparison.pairing.num_renumbered == 12
    assert comparison.pairing.lost == ()
    assert difference_of(comparison).value == 0
    assert difference_of(comparison).p_value == 1.0


def test_equal_ids_of_different_rows_are_not_paired(tmp_path: Path) -> None:
    """The rows are shuffled and renumbered. Pairing by id results in another difference."""
    rows = [{"question": f"q{number}"} for number in range(10)]
    metrics = [(MEAN, {"accuracy": 0.5})]
    base = [sample(number, {"right": float(number % 2)}, row) for number, row in enumerate(rows)]
    turned = [*rows[1:], rows[0]]
    new = [sample(number, {"right": float((number + 1) % 2)}, row) for number, row in enumerate(turned)]
    files = log(tmp_path / "a.json", base, metrics), log(tmp_path / "b.json", new, metrics)

    assert difference_of(compared(*files)).p_value == 1.0
    (metric,) = compared(*files, by_id=True).metrics
    assert metric.flips is not None
    assert len(metric.flips.lost) + len(metric.flips.gained) == 10


def test_unmatched_samples_are_counted_with_reasons(tmp_path: Path) -> None:
    same = [sample(number, {"right": 1.0}) for number in range(3)]
    base = [
        *same,
        sample(7, {"right": 1.0}),
        sample(8, {"right": 0.0}),
        sample("d", {"right": 1.0}),
        sample("d", {"right": 0.0}),
    ]
    new = [
        *same,
        sample(7, {"right": 1.0}, {"question": "another"}),
        sample("8", {"right": 1.0}, {"question": "?"}),
    ]
    metrics = [(MEAN, {"accuracy": 5 / 7})], [(MEAN, {"accuracy": 1.0})]

    pairing = pair(
        read_columns(log(tmp_path / "a.json", base, metrics[0])),
        read_columns(log(tmp_path / "b.json", new, metrics[1])),
    )

    assert len(pairing.base) == 3
    assert {lost.reason: lost.examples for lost in pairing.lost} == {
        "in base: the row with this id differs in the other result": (7,),
        "only in base": (8,),
        "in base: the id occurs more than once": ("d", "d"),
        "in new: the row with this id differs in the other result": (7,),
        "only in new": ("8",),
    }


def test_sample_failed_in_one_result_is_excluded_and_counted(tmp_path: Path) -> None:
    base = [sample(number, {"right": 1.0}) for number in range(12)]
    new = [sample(number, {"right": 1.0} if number else None) for number in range(12)]
    metrics = [(MEAN, {"accuracy": 1.0})]

    comparison = compared(log(tmp_path / "a.json", base, metrics), log(tmp_path / "b.json", new, metrics))

    assert (comparison.metrics[0].num_unpaired, difference_of(comparison).num_pairs) == (1, 11)


def test_scores_over_trials_are_compared_by_sample(tmp_path: Path) -> None:
    scores = [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]] * 5
    better = [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]] * 5
    files = [
        log(
            tmp_path / f"{name}.json",
            [repeated(number, each) for number, each in enumerate(trials)],
            [(MEAN, {"accuracy": sum(map(sum, trials)) / 60})],
        )
        for name, trials in (("a", scores), ("b", better))
    ]

    difference = difference_of(compared(*files))

    means = [[sum(each) / 3 for each in trials] for trials in (scores, better)]
    expected = stats.ttest_rel(means[1], means[0]).confidence_interval()
    assert difference.value == pytest.approx(0.25)
    assert not isinstance(difference.estimate, NoInterval)
    assert (difference.estimate.low, difference.estimate.high) == pytest.approx((expected.low, expected.high))


def test_configuration_differences_between_results_are_listed(tmp_path: Path) -> None:
    base = rights(
        tmp_path / "a.json", [1.0] * 10, app_version="aigo-bridge 1", specification={"config": {"shots": 1}}
    )
    new = rights(
        tmp_path / "b.json",
        [1.0] * 10,
        app_version="aigo-bridge 2",
        specification={"config": {"shots": 5}},
        task={"solver": {"type": "single_turn_solver"}},
    )

    found = [(each.kind, each.place, each.base, each.new) for each in compared(base, new).divergences]

    assert ("config", "config.shots", "1", "5") in found
    assert ("bridge version", "app_version", "aigo-bridge 1", "aigo-bridge 2") in found
    assert (
        "prompt and solver",
        "task.definition.solver",
        "not there",
        "{'type': 'single_turn_solver'}",
    ) in found


def test_metric_missing_in_one_result_is_reported(tmp_path: Path) -> None:
    base = rights(tmp_path / "a.json", [1.0] * 10)
    new = log(tmp_path / "b.json", [sample(number, {"right": 1.0}) for number in range(10)], [])

    (metric,) = compared(base, new).metrics

    assert metric.difference == NoInterval("new does not have this metric")


def test_text_scores_are_not_compared_with_a_reason(tmp_path: Path) -> None:
    files = [
        log(
            tmp_path / f"{name}.json",
            [sample(number, {"right": "yes"}) for number in range(10)],
            [(MEAN, {"accuracy": 1.0})],
        )
        for name in "ab"
    ]

    (metric,) = compared(*files).metrics

    assert metric.difference == NoInterval("the score 'yes' is not a number")
    assert metric.num_unpaired == 0


def test_precision_is_compared_sample_by_sample(tmp_path: Path) -> None:
    metric = {"type": "precision", "num_true_positives_field": "tp", "num_false_positives_field": "fp"}
    files = []
    for name, false in (("a", 1), ("b", 0)):
        samples = [
            sample(number, {"tp": 1 + number % 2, "fp": false * (number % 3 == 0)}) for number in range(60)
        ]
        files.append(
            log(tmp_path / f"{name}.json", samples, [(metric, {"precision": 90 / (90 + 20 * false)})])
        )

    difference = difference_of(compared(*files))

    assert difference.value == pytest.approx(1 - 90 / 110)
    assert not isinstance(difference.estimate, NoInterval)
    assert difference.estimate.low > 0
    assert difference.test == "t"


def test_standard_deviations_are_compared_by_jackknife_over_pairs(tmp_path: Path) -> None:
    """In the jackknife over pairs, effects of a sample that are equal in both results cancel out."""
    metric = {"type": "std_dev", "field": "points", "name": "spread"}
    random = np.random.default_rng(11)
    base = random.exponential(size=120)
    new = base + random.normal(scale=0.3, size=120)
    spreads = base.std(ddof=1), new.std(ddof=1)
    files = [
        log(
            tmp_path / f"{name}.json",
            [sample(number, {"points": float(value)}) for number, value in enumerate(values)],
            [(metric, {"spread": float(spread)})],
        )
        for name, values, spread in (("a", base, spreads[0]), ("b", new, spreads[1]))
    ]

    difference = difference_of(compared(*files))

    without = [np.delete(new, n).std(ddof=1) - np.delete(base, n).std(ddof=1) for n in range(120)]
    assert difference.value == pytest.approx(spreads[1] - spreads[0], rel=1e-9)
    assert not isinstance(difference.estimate, NoInterval)
    assert difference.estimate.standard_error == pytest.approx(
        np.sqrt(119 / 120 * ((without - np.mean(without)) ** 2).sum()), rel=1e-6
    )
    assert difference.num_pairs == 120


def test_standard_deviations_are_not_compared_on_few_pairs(tmp_path: Path) -> None:
    metric = {"type": "std_dev", "field": "points", "name": "spread"}
    values = [float(number % 7) for number in range(40)]
    files = [
        log(
            tmp_path / f"{name}.json",
            [sample(number + first, {"points": value}) for number, value in enumerate(values)],
            [(metric, {"spread": float(np.std(values, ddof=1))})],
        )
        for name, first in (("a", 0), ("b", 35))
    ]

    (metric_of_both,) = compared(*files).metrics

    assert isinstance(metric_of_both.difference, NoInterval)
    assert "5 pairs are too few" in metric_of_both.difference.reason


def test_breakdown_lists_each_value_and_rejects_too_many(tmp_path: Path) -> None:
    files = []
    for name, right in (("a", 0.0), ("b", 1.0)):
        samples = [
            sample(number, {"right": right if number < 40 else 0.0}, {"topic": number // 40, "n": number})
            for number in range(80)
        ]
        files.append(log(tmp_path / f"{name}.json", samples, [(MEAN, {"accuracy": right / 2})]))

    (metric,) = compared(*files, kept=("topic",), by="topic").metrics

    assert [(value, part.value, part.num_pairs) for value, part in metric.parts] == [
        ("0", 1.0, 40),
        ("1", 0.0, 40),
    ]
    assert metric.part_values == ((0.0, 1.0), (0.0, 0.0)), "the numbers of both results, for each group"
    assert [(part["base"], part["new"]) for part in metric.to_json()["breakdown"]] == [(0.0, 1.0), (0.0, 0.0)]
    with pytest.raises(UsageError, match="has 80 values"):
        compared(*files, kept=("n",), by="n")


def test_breakdown_names_other_values_than_texts_as_json(tmp_path: Path) -> None:
    values = [None, True, 1.5, "None"]
    samples = [sample(number, {"right": 1.0}, {"topic": value}) for number, value in enumerate(values)]
    file = log(tmp_path / "a.json", samples, [(MEAN, {"accuracy": 1.0})])

    (metric,) = compared(file, file, kept=("topic",), by="topic").metrics

    assert [value for value, _ in metric.parts] == ["1.5", "None", "null", "true"]


def test_different_trial_counts_are_compared_by_sample_with_a_note(tmp_path: Path) -> None:
    single = [[float(number % 2)] for number in range(20)]
    several = [[float(number % 2), 1.0, 1.0] for number in range(20)]
    files = [
        log(
            tmp_path / f"{name}.json",
            [repeated(number, scores) for number, scores in enumerate(trials)],
            [(MEAN, {"accuracy": sum(sum(scores) / len(scores) for scores in trials) / 20})],
        )
        for name, trials in (("a", single), ("b", several))
    ]

    comparison = compared(*files)

    assert ("amount of evaluated data", "trials", "1", "3") in [
        (divergence.kind, divergence.place, divergence.base, divergence.new)
        for divergence in comparison.divergences
    ]
    difference = difference_of(comparison)
    assert difference.num_pairs == 20
    assert difference.value == pytest.approx(1 / 3)
    assert difference.test == "permutation, exact"
    assert difference.p_value == pytest.approx(2 / 2**10)


def test_pairs_with_null_or_nan_scores_are_excluded_and_counted(tmp_path: Path) -> None:
    base = [sample(number, {"right": 1.0}) for number in range(12)]
    new = [sample(number, {"right": None if number < 2 else 1.0}) for number in range(12)]
    new[2]["trials"][0]["scores"][0]["metadata"] = {"not_finite": {"right": "nan"}}
    metrics = [(MEAN, {"accuracy": 1.0})]

    comparison = compared(log(tmp_path / "a.json", base, metrics), log(tmp_path / "b.json", new, metrics))

    assert (comparison.metrics[0].num_unpaired, difference_of(comparison).num_pairs) == (3, 9)
