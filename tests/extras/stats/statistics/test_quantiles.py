"""Quantiles and tails, compared with scipy."""

from __future__ import annotations

import pytest
from scipy import stats

from aigo_stats.statistics.quantiles import (
    binomial_tail,
    normal_cdf,
    normal_quantile,
    t_quantile,
    t_two_tails,
)


@pytest.mark.parametrize("probability", [1e-12, 0.001, 0.025, 0.5, 0.8, 0.975, 0.9995])
def test_normal_quantile_and_cdf_equal_scipy(probability: float) -> None:
    quantile = float(stats.norm.ppf(probability))

    assert normal_quantile(probability) == pytest.approx(quantile, rel=1e-12, abs=1e-15)
    assert normal_cdf(quantile) == pytest.approx(probability, rel=1e-10)


def test_t_and_binomial_tails_equal_scipy() -> None:
    assert t_quantile(0.975, 7.5) == pytest.approx(float(stats.t.ppf(0.975, 7.5)), rel=1e-12)
    assert t_two_tails(-3.1, 12) == pytest.approx(2 * float(stats.t.sf(3.1, 12)), rel=1e-12)
    assert binomial_tail(3, 40, 0.2) == pytest.approx(float(stats.binom.cdf(3, 40, 0.2)), rel=1e-12)
