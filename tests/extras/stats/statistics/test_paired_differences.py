"""Tests and intervals of paired differences, compared with scipy and statsmodels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels
from statsmodels.stats.multitest import multipletests

from aigo_stats.statistics.intervals import Interval, NoInterval
from aigo_stats.statistics.multiplicity import holm, rank_bounds
from aigo_stats.statistics.paired_differences import mcnemar, of_scores, right_or_wrong, tango


def near(expected: Any) -> Any:
    """Return an approximation that allows differences in the last digits."""
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (3, 9), (10, 10), (25, 60)])
def test_mcnemar_equals_scipy_and_statsmodels(gained: int, lost: int) -> None:
    table = [[100, lost], [gained, 50]]

    assert mcnemar(gained, lost) == near(float(mcnemar_of_statsmodels(table, exact=True).pvalue))
    if gained + lost:
        assert mcnemar(gained, lost) == near(stats.binomtest(gained, gained + lost).pvalue)


def test_mcnemar_equals_agresti_table_10_1() -> None:
    """Agresti, Categorical data analysis: 86 and 150 of 1,600 people change their opinion, and z is 4.17."""
    assert stats.norm.isf(mcnemar(86, 150) / 2) == pytest.approx(4.17, abs=0.05)


@pytest.mark.parametrize(
    ("gained", "lost", "count"), [(0, 0, 30), (1, 0, 30), (7, 2, 44), (30, 10, 200), (5, 5, 10)]
)
def test_tango_limits_equal_a_numeric_score_test(gained: int, lost: int, count: int) -> None:
    """The restricted likelihood is maximized numerically instead of with Tango's formula."""
    interval = tango(gained, lost, count)
    assert isinstance(interval, Interval)
    for supposed in (interval.low, interval.high):

        def unlikely(losses: float, supposed: float = supposed) -> float:
            gains, equal = losses + supposed, 1 - 2 * losses - supposed
            parts = ((gained, gains), (lost, losses), (count - gained - lost, equal))
            return -sum(number * math.log(max(share, 1e-300)) for number, share in parts if number)

        bounds = (max(0.0, -supposed), (1 - supposed) / 2)
        losses = optimize.minimize_scalar(
            unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-12}
        ).x
        variance = 2 * losses + supposed - supposed**2
        z = ((gained - lost) / count - supposed) / math.sqrt(variance / count)
        assert abs(z) == pytest.approx(stats.norm.ppf(0.975), rel=1e-3)


def test_students_t_over_differences_equals_scipy() -> None:
    random = np.random.default_rng(1)
    base, new = random.normal(size=40), random.normal(0.3, 1, size=40)

    difference = of_scores(base, new)

    expected = stats.ttest_rel(new, base).confidence_interval(0.95)
    assert isinstance(difference.estimate, Interval)
    assert (difference.estimate.low, difference.estimate.high) == near((expected.low, expected.high))
    assert difference.effect == near((new - base).mean() / (new - base).std(ddof=1))


def test_exact_sign_flip_test_equals_scipy() -> None:
    base, new = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10]), np.array([1.5, 2, 2.5, 5, 6, 6.5, 8, 7, 11, 12])
    expected = stats.permutation_test(
        (new - base,),
        lambda values, axis: values.sum(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
    )

    assert of_scores(base, new).p_value == near(float(expected.pvalue))


def test_sampled_sign_flips_agree_with_students_t() -> None:
    random = np.random.default_rng(2)
    base, new = random.normal(size=300), random.normal(0.15, 1, size=300)

    assert of_scores(base, new).p_value == pytest.approx(float(stats.ttest_rel(new, base).pvalue), abs=0.01)


def test_many_pairs_are_compared_by_students_t() -> None:
    random = np.random.default_rng(2)
    base, new = random.normal(size=3000), random.normal(0.05, 1, size=3000)

    assert of_scores(base, new).p_value == near(float(stats.ttest_rel(new, base).pvalue))


def test_equal_results_have_no_difference() -> None:
    same = np.array([1.0, 0.0] * 20)

    assert right_or_wrong(same, same).p_value == 1.0
    difference = of_scores(same / 2, same / 2)
    assert (difference.value, difference.p_value) == (0.0, 1.0)
    assert isinstance(difference.estimate, NoInterval)


def test_holm_correction_equals_statsmodels() -> None:
    p_values = [0.01, 0.04, 0.03, 0.005, 0.9]

    assert holm(p_values) == near(list(multipletests(p_values, method="holm")[1]))
    assert holm([0.02, None]) == [0.02, None]


def test_rank_ranges_reflect_undecided_comparisons() -> None:
    better = {("a", "c"): True, ("b", "c"): True}

    assert rank_bounds(["a", "b", "c"], better) == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}
    assert rank_bounds(["a", "b"], {}) == {"a": (1, 2), "b": (1, 2)}


def test_false_alarm_rate_is_within_the_promised_level() -> None:
    """Compare two equal models 1,500 times: at most 5.5 % have p ≤ 0.05, for right/wrong and for skewed scores."""
    random = np.random.default_rng(9)
    alarms = [0, 0]
    for _ in range(1500):
        right = (random.random((2, 60)) < random.beta(2, 1, 60)).astype(float)
        alarms[0] += (right_or_wrong(right[0], right[1]).p_value or 0) <= 0.05
        scores = random.exponential(size=(2, 12))
        alarms[1] += (of_scores(scores[0], scores[1]).p_value or 0) <= 0.05
    assert alarms[0] / 1500 <= 0.055
    assert alarms[1] / 1500 <= 0.055 + 0.012


def test_difference_from_rounding_errors_is_zero() -> None:
    """The differences of thirds and integers sum to 0 in exact arithmetic."""
    difference = of_scores(np.array([0.0, 1.0] * 10), np.array([1 / 3, 2 / 3] * 10))

    assert (difference.value, difference.p_value, difference.effect) == (0.0, 1.0, 0.0)
