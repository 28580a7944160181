"""The corrected mean of a judge, by the formulas of the paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from aigo_stats.statistics.intervals import Interval, NoInterval, wilson
from aigo_stats.statistics.prediction import corrected_interval, corrected_mean, error_limits
from aigo_stats.statistics.ratios import RIGHT_OR_WRONG


def test_value_and_standard_error_are_those_of_the_paper() -> None:
    """Angelopoulos and others 2023, means: θ = mean f(unlabelled) - mean (f - Y), variances over N and n."""
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


def test_the_ends_by_hand() -> None:
    """80 of 100 unlabelled right; of 20 labelled the judge calls 2 right that are wrong."""
    unlabelled = np.array([1.0] * 80 + [0.0] * 20)
    judged, labels = np.array([1.0] * 15 + [0.0] * 5), np.array([1.0] * 13 + [0.0] * 7)
    share, (low, high) = wilson(80, 100), error_limits(2, 0, 20)

    interval = corrected_interval(unlabelled, judged, labels, scale=RIGHT_OR_WRONG)

    assert isinstance(interval, Interval)
    assert interval.low == pytest.approx(0.7 - math.hypot(0.8 - share.low, high - 0.1), rel=1e-12)
    assert interval.high == pytest.approx(0.7 + math.hypot(share.high - 0.8, 0.1 - low), rel=1e-12)


def test_a_judge_without_a_known_error_is_not_taken_for_perfect() -> None:
    """None of 20 labels differs; up to 10 points of error to either side are as likely."""
    labels = np.array([1.0, 0.0] * 10)

    interval = corrected_interval(np.array([1.0, 0.0] * 1000), labels, labels, scale=RIGHT_OR_WRONG)

    assert isinstance(interval, Interval)
    assert interval.low < 0.5 - 0.09
    assert interval.high > 0.5 + 0.09


@pytest.mark.parametrize(("above", "below", "count"), [(2, 1, 50), (0, 0, 30), (0, 3, 50), (40, 10, 400)])
def test_the_limits_of_the_error_are_those_of_draws_from_the_posterior(
    above: int, below: int, count: int
) -> None:
    """Of a Dirichlet distribution with a half more in each of three cells."""
    cells = [above + 0.5, below + 0.5, count - above - below + 0.5]
    drawn = np.random.default_rng(5).dirichlet(cells, 400_000)
    expected = np.quantile(drawn[:, 0] - drawn[:, 1], (0.025, 0.975))

    assert error_limits(above, below, count) == pytest.approx(expected, abs=0.001)


def test_the_limits_of_errors_to_one_side_are_jeffreys_interval_of_a_share() -> None:
    """Where many are below, and none above, the difference is nearly the share of those below."""
    expected = stats.beta.ppf((0.025, 0.975), 500.5, 501)

    low, high = error_limits(0, 500, 1000)

    assert (-high, -low) == pytest.approx(tuple(expected), abs=0.002)


def test_too_few_labels_of_scores_give_no_interval() -> None:
    scores = np.linspace(0, 1, 50)

    interval = corrected_interval(scores, scores[:4], scores[:4] / 2)

    assert isinstance(interval, NoInterval)
    assert interval.reason.startswith("4 samples with a label, and ")
