"""Intervals of proportions and means, compared with scipy, statsmodels and published examples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from aigo_stats.statistics.intervals import (
    Interval,
    NoInterval,
    bounded_mean,
    skewed_mean,
    t_interval,
    wilson,
)
from aigo_stats.statistics.ratios import RIGHT_OR_WRONG, Ratio, f1_of, ratio_interval


def near(expected: Any) -> Any:
    """Return an approximation that allows differences in the last digits."""
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (0, 20), (3, 30), (29, 30), (512, 1000)])
def test_wilson_interval_equals_scipy_and_statsmodels(successes: int, trials: int, level: float) -> None:
    interval = wilson(successes, trials, level)

    expected = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    assert (interval.low, interval.high) == near((expected.low, expected.high))
    low, high = proportion_confint(successes, trials, 1 - level, method="wilson")
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_equals_newcombe_1998_table_1(
    successes: int, trials: int, low: float, high: float
) -> None:
    interval = wilson(successes, trials)

    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_mean_interval_without_skewness_is_students_t() -> None:
    values = np.array([1.0, 2.5, 3.0, 4.0, 4.5, 5.0, 5.5, 6.5, 7.0, 9.0, 3.5])
    error = float(stats.sem(values))
    low, high = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=error)

    for interval in (
        t_interval(values.mean(), error, len(values)),
        skewed_mean(values.mean(), error, 0.0, len(values)),
    ):
        assert (interval.low, interval.high) == near((low, high))


def test_skewness_shifts_the_interval_to_the_long_tail() -> None:
    plain, corrected = skewed_mean(1.0, 0.1, 0.0, 30), skewed_mean(1.0, 0.1, 2.0, 30)

    assert corrected.low > plain.low
    assert corrected.high > plain.high


def test_effective_sample_size_results_in_a_wilson_interval() -> None:
    mean, variance = 0.7, 0.7 * 0.3 / 100
    expected = wilson(70, 100, degrees=50)

    interval = bounded_mean(mean, variance, 50, (0.0, 1.0))

    assert (interval.low, interval.high) == near((expected.low, expected.high))
    marks = bounded_mean(1 + 4 * mean, 16 * variance, 50, (1.0, 5.0))
    assert (marks.low, marks.high) == near((1 + 4 * expected.low, 1 + 4 * expected.high))


def test_clustered_standard_errors_equal_statsmodels() -> None:
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(25), random.integers(1, 9, 25))
    values = random.normal(size=25)[groups] + random.normal(size=len(groups))

    interval = ratio_interval(Ratio.mean(values), groups)

    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert isinstance(interval, Interval)
    assert interval.standard_error == near(float(fit.bse[0]))


def test_clustered_errors_equal_millers_formula_with_a_few_groups_factor() -> None:
    """Miller 2024, section 2.2: the squared error is the sum of all residual products within groups, divided by n²."""
    groups = np.repeat(np.arange(20), 5)
    values = np.random.default_rng(4).exponential(size=20)[groups] + 0.1 * np.arange(100)
    residuals = values - values.mean()
    total = sum(
        residuals[one] * residuals[other]
        for one in range(100)
        for other in range(100)
        if groups[one] == groups[other]
    )

    interval = ratio_interval(Ratio.mean(values), groups)

    assert isinstance(interval, Interval)
    assert interval.standard_error == near(math.sqrt(total / 100**2 * 20 / 19))


def test_ratio_of_sums_has_the_linearized_error() -> None:
    top = np.array([1.0, 2, 0, 3, 1, 1, 4, 2, 0, 5])
    bottom = top + np.array([0.0, 1, 1, 0, 2, 0, 1, 0, 1, 3])

    interval = ratio_interval(Ratio(top, bottom))

    ratio = top.sum() / bottom.sum()
    variance = 10 / 9 * ((top - ratio * bottom) ** 2).sum() / bottom.sum() ** 2
    assert isinstance(interval, Interval)
    assert interval.standard_error == near(math.sqrt(variance))


def test_f1_interval_is_the_transformed_f_star_interval() -> None:
    hits = np.array([1.0] * 6 + [0.0] * 4)
    takes_part = np.ones(10)
    plain, transformed = Ratio(hits, takes_part), Ratio(hits, takes_part, transformed=True)

    one, other = ratio_interval(plain), ratio_interval(transformed)

    assert transformed.value == pytest.approx(2 * 6 / (2 * 6 + 4))
    assert isinstance(one, Interval)
    assert isinstance(other, Interval)
    assert (other.low, other.high) == pytest.approx((f1_of(one.low), f1_of(one.high)))


@pytest.mark.parametrize(
    ("values", "groups", "reason"),
    [
        ([0.3], None, "1 sample is too few for the interval of a mean; 10 are needed"),
        ([0.3, 0.4], None, "2 samples are too few"),
        ([0.3] * 30, None, "all samples have the same score"),
        ([7.5] * 30, None, "all samples have the same score"),
        (
            [0.0, 1.0] * 15,
            [0, 1, 2] * 10,
            "3 groups are too few to estimate the variance between them; at least 20 are needed",
        ),
    ],
)
def test_metrics_without_an_interval_give_a_reason(
    values: list[float], groups: list[int] | None, reason: str
) -> None:
    numbers = None if groups is None else np.array(groups)

    estimate = ratio_interval(Ratio.mean(np.array(values)), numbers)

    assert isinstance(estimate, NoInterval)
    assert reason in estimate.reason


def test_single_right_sample_has_a_wide_interval() -> None:
    estimate = ratio_interval(Ratio.mean(np.array([1.0]), RIGHT_OR_WRONG))

    assert isinstance(estimate, Interval)
    assert (round(estimate.low, 3), estimate.high) == (0.207, 1.0)


def test_uniform_groups_count_as_one_sample_each() -> None:
    estimate = ratio_interval(Ratio.mean(np.ones(200), RIGHT_OR_WRONG), np.repeat(np.arange(20), 10))

    assert estimate == wilson(20, 20)
