"""Samples, trials and power, compared with published examples, statsmodels and simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import NormalIndPower, TTestPower

from aigo_stats.statistics.paired_differences import mcnemar, of_scores, right_or_wrong
from aigo_stats.statistics.planning import (
    Spread,
    possible_correlations,
    power_of,
    power_of_mcnemar,
    samples_needed,
    samples_of_many,
    smallest_difference,
    spread_of_shares,
    variance_within,
)


def test_sample_size_equals_miller_2024_section_5() -> None:
    """ω² = 1/9, a difference of 3 points and power 80 %: 969 questions if the answer noise is averaged out."""
    assert samples_of_many(0.03, Spread(1 / 9, 0.0)) == 969
    assert samples_of_many(0.03, Spread(1 / 9, 1 / 3)) == pytest.approx(4 * 969, rel=0.001)
    # With Student's t instead of the normal quantile, two more are needed.
    assert samples_needed(0.03, Spread(1 / 9, 0.0)) == 971


@pytest.mark.parametrize("count", [12, 400])
def test_power_of_scores_equals_statsmodels(count: int) -> None:
    power = power_of(0.05, count, Spread(0.25, 0.0))

    assert power == pytest.approx(TTestPower().power(0.05 / 0.5, count, 0.05), rel=1e-9)


def test_power_of_many_samples_equals_statsmodels() -> None:
    power = power_of(0.01, 4000, Spread(0.25, 0.0))

    assert power == pytest.approx(NormalIndPower(ddof=0).power(0.01 / 0.5, 4000, 0.05, ratio=0), rel=1e-9)


def test_power_of_proportions_equals_exact_summation() -> None:
    """Sum the probabilities of all gains and losses among 40 samples with an exact p <= 0.05."""
    gained, lost, count = 0.25, 0.05, 40
    expected = sum(
        stats.multinomial.pmf(
            [gains, losses, count - gains - losses], count, [gained, lost, 1 - gained - lost]
        )
        for gains in range(count + 1)
        for losses in range(count + 1 - gains)
        if mcnemar(gains, losses) <= 0.05
    )

    assert power_of_mcnemar(gained - lost, gained + lost, count) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_power_of_proportions_is_continuous_at_the_normal_approximation(share: float) -> None:
    count, difference = round(4_990 / share), 0.035 * share
    few, many = (power_of_mcnemar(difference, share, number) for number in (count, count + round(20 / share)))

    assert 0.5 < few < 0.9
    assert many == pytest.approx(few, abs=0.003)


@pytest.mark.parametrize("is_share", [True, False])
def test_smallest_difference_has_the_requested_power(is_share: bool) -> None:
    spread = Spread(0.1, 0.3, is_share)
    for trials in (1, 5):
        difference = smallest_difference(500, spread, trials)
        assert difference is not None
        assert power_of(difference, 500, spread, trials) == pytest.approx(0.8, abs=1e-4)
        assert samples_needed(difference, spread, trials) == pytest.approx(500, abs=2)


@pytest.mark.parametrize("is_share", [True, False])
def test_five_samples_have_no_power(is_share: bool) -> None:
    """Five differing samples all agree in sign by chance with probability 1/16."""
    spread = Spread(0.5, 0.0, is_share)

    assert power_of(1.0, 5, spread) == 0
    assert smallest_difference(5, spread) is None
    assert power_of(1.0, 6, spread) > 0


def test_zero_spread_detects_every_difference() -> None:
    assert power_of(0.1, 10, Spread(0.0, 0.0)) == 1.0


def test_unreachable_sample_size_is_undefined() -> None:
    assert samples_needed(1e-9, Spread(0.25, 0.0)) is None


def test_impossible_correlation_of_two_proportions_is_rejected() -> None:
    """For 0.9 and 0.9, between none and a fifth of the samples differ."""
    assert possible_correlations(0.9, 0.9) == pytest.approx((-0.01 / 0.09, 1.0))
    assert possible_correlations(1.0, 0.5) == (0.0, 0.0)
    with pytest.raises(ValueError, match=r"expected -0\.111 to 1"):
        spread_of_shares(0.9, 0.9, -0.5)


def test_trials_reduce_the_variance_within_samples() -> None:
    assert Spread(0.1, 0.3).total(3) == pytest.approx(0.2)
    assert variance_within([np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0])]) == 0.25
    assert variance_within([np.array([1.0])]) is None


@pytest.mark.parametrize(
    ("both", "base_only", "new_only", "count"),
    [(0.70, 0.06, 0.11, 600), (0.40, 0.10, 0.35, 40), (0.80, 0.01, 0.06, 150)],
)
def test_power_of_proportions_holds_in_simulations(
    both: float, base_only: float, new_only: float, count: int
) -> None:
    """`compare` detects a difference of proportions as often as `power` predicts, within 3 points."""
    random = np.random.default_rng(7)
    base, new = both + base_only, both + new_only
    correlation = (both - base * new) / np.sqrt(base * (1 - base) * new * (1 - new))
    expected = power_of(new - base, count, spread_of_shares(base, new, correlation))
    found = 0
    for _ in range(2000):
        cells = random.choice(4, count, p=[both, base_only, new_only, 1 - both - base_only - new_only])
        one, other = np.isin(cells, (0, 1)).astype(float), np.isin(cells, (0, 2)).astype(float)
        found += (right_or_wrong(one, other).p_value or 0.0) <= 0.05
    assert 0.4 < expected < 0.95
    assert found / 2000 == pytest.approx(expected, abs=0.03)


def test_power_of_scores_holds_in_simulations() -> None:
    """With 12 samples, the sign flip test is exact."""
    random = np.random.default_rng(8)
    expected = power_of(0.8, 12, Spread(1.0, 0.0))
    differences = 0.8 + random.normal(size=(1000, 12))
    found = sum((of_scores(np.zeros(12), each).p_value or 0.0) <= 0.05 for each in differences)
    assert found / 1000 == pytest.approx(expected, abs=0.03)
