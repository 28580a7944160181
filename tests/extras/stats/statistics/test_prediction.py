"""Corrected mean of a judge, compared with the formulas of the paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from aigo_stats.statistics.intervals import Interval, NoInterval, wilson
from aigo_stats.statistics.prediction import corrected_interval, corrected_mean, error_limits
from aigo_stats.statistics.ratios import RIGHT_OR_WRONG


def test_corrected_mean_and_error_equal_the_paper() -> None:
    """Angelopoulos et al. 2023: θ = mean f(unlabeled) - mean (f - Y), with variances divided by N and n."""
    random = np.random.default_rng(1)
    unlabelled = (random.random(20_000) < 0.8).astype(float)
    labels = (random.random(4000) < 0.7).astype(float)
    judged = np.where(random.random(4000) < 0.15, 1.0, labels)

    interval = corrected_interval(unlabelled, judged, labels, scale=RIGHT_OR_WRONG)

    value = corrected_mean(unlabelled, judged, labels)
    error = math.sqrt(unlabelled.var() / 20_000 + (judged - labels).var() / 4000)
    assert value == pytest.approx(unlabelled.mean() - judged.mean() + labels.mean(), rel=1e-12)
    assert isinstance(interval, Interval)
    assert interval.standard_error == pytest.approx(error, rel=1e-9)
    assert (interval.low, interval.high) == pytest.approx(
        (value - 1.96 * error, value + 1.96 * error), abs=0.0005
    )


def test_corrected_interval_equals_hand_computation() -> None:
    """80 of 100 unlabeled samples are scored right, and 2 of 20 labeled ones are false positives."""
    unlabelled = np.array([1.0] * 80 + [0.0] * 20)
    judged, labels = np.array([1.0] * 15 + [0.0] * 5), np.array([1.0] * 13 + [0.0] * 7)
    share, (low, high) = wilson(80, 100), error_limits(2, 0, 20)

    interval = corrected_interval(unlabelled, judged, labels, scale=RIGHT_OR_WRONG)

    assert isinstance(interval, Interval)
    assert interval.low == pytest.approx(0.7 - math.hypot(0.8 - share.low, high - 0.1), rel=1e-12)
    assert interval.high == pytest.approx(0.7 + math.hypot(share.high - 0.8, 0.1 - low), rel=1e-12)


def test_judge_without_observed_errors_is_not_assumed_perfect() -> None:
    """None of 20 labels differs, but errors of up to 10 points in either direction are plausible."""
    labels = np.array([1.0, 0.0] * 10)

    interval = corrected_interval(np.array([1.0, 0.0] * 1000), labels, labels, scale=RIGHT_OR_WRONG)

    assert isinstance(interval, Interval)
    assert interval.low < 0.5 - 0.09
    assert interval.high > 0.5 + 0.09


@pytest.mark.parametrize(("above", "below", "count"), [(2, 1, 50), (0, 0, 30), (0, 3, 50), (40, 10, 400)])
def test_judge_error_limits_equal_posterior_sampling(above: int, below: int, count: int) -> None:
    """Sample from a Dirichlet distribution with 0.5 added to each of three cells."""
    cells = [above + 0.5, below + 0.5, count - above - below + 0.5]
    drawn = np.random.default_rng(5).dirichlet(cells, 400_000)
    expected = np.quantile(drawn[:, 0] - drawn[:, 1], (0.025, 0.975))

    assert error_limits(above, below, count) == pytest.approx(expected, abs=0.001)


def test_one_sided_judge_error_limits_equal_the_jeffreys_interval() -> None:
    """If errors are only negative, their difference is nearly the proportion of negative errors."""
    expected = stats.beta.ppf((0.025, 0.975), 500.5, 501)

    low, high = error_limits(0, 500, 1000)

    assert (-high, -low) == pytest.approx(tuple(expected), abs=0.002)


def test_too_few_labels_have_no_interval() -> None:
    scores = np.linspace(0, 1, 50)

    interval = corrected_interval(scores, scores[:4], scores[:4] / 2)

    assert isinstance(interval, NoInterval)
    assert interval.reason.startswith("4 samples with a label, and ")
