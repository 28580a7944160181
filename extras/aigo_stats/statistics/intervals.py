"""Confidence intervals of proportions and means over independent units.

A unit is a sample or a group of related samples. The formula for each kind of metric was chosen by simulated
coverage (`benchmarks/coverage.py`, table in `benchmarks/coverage.md`). Sources:

- Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference, JASA 22:
  interval of a proportion.
- Korn, E. L. and Graubard, B. I. (1998), Confidence intervals for proportions with small expected number of
  positive counts estimated from survey data, Survey Methodology 24; Dean, N. and Pagano, M. (2015),
  Evaluating confidence interval methods for binomial proportions in clustered surveys, J. Survey Statistics
  and Methodology 3: the same interval with the effective number of samples.
- Hall, P. (1992), On the removal of skewness by transformation, JRSS B 54: Student's t, corrected for
  skewness by a monotone cubic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aigo_stats.statistics.quantiles import LEVEL, two_sided

Numbers = NDArray[np.float64]

FEWEST = 10
"""Minimum number of samples for the interval of a mean."""

FEWEST_GROUPS = 20
"""Minimum number of groups for an interval. With fewer groups, their variance is too uncertain."""

WILSON = "Wilson"
"""Method name for the interval of a proportion."""

_SAME = 1e-12
"""Spread relative to the size of the values, below which all values count as equal."""


@dataclass(frozen=True)
class Interval:
    """Confidence interval of a metric over other samples of the same kind."""

    low: float
    high: float
    standard_error: float
    method: str
    """Display name of the method."""

    def mapped(self, function: Callable[[float], float], slope: float) -> Interval:
        """Return the interval of an increasing function of the metric.

        `slope` is the derivative at the metric's value, used for the standard error.
        """
        return Interval(
            function(self.low), function(self.high), self.standard_error * abs(slope), self.method
        )


@dataclass(frozen=True)
class NoInterval:
    """Missing interval, with the reason."""

    reason: str


Estimate = Interval | NoInterval


def wilson(successes: float, trials: float, level: float = LEVEL, degrees: float | None = None) -> Interval:
    """Return the score interval of a proportion.

    Args:
        successes: number of successes, at most `trials`.
        trials: number of trials. An effective number may be fractional.
        level: confidence level.
        degrees: degrees of freedom if `trials` was estimated from the data; `None` if it was counted.
    """
    z = two_sided(level, degrees)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    # At the limits, the formula gives 0 and 1 except for rounding errors.
    low = 0.0 if successes <= 0 else max(0.0, centre - half)
    high = 1.0 if successes >= trials else min(1.0, centre + half)
    return Interval(low, high, math.sqrt(share * (1 - share) / trials), WILSON)


def bounded_mean(
    mean: float, variance: float, degrees: float, bounds: tuple[float, float], level: float = LEVEL
) -> Interval:
    """Return the interval of a mean within fixed bounds.

    This is Wilson's interval with the number of binary samples that would have the same variance.

    Args:
        mean: mean, strictly between the bounds.
        variance: positive variance of the mean, not of the samples.
        degrees: degrees of freedom of the variance.
        bounds: lowest and highest possible score.
        level: confidence level.
    """
    lowest, highest = bounds
    width = highest - lowest
    share = (mean - lowest) / width
    effective = share * (1 - share) * width * width / variance
    scaled = wilson(share * effective, effective, level, degrees)
    return Interval(
        lowest + width * scaled.low, lowest + width * scaled.high, math.sqrt(variance), "Wilson, effective n"
    )


def skewed_mean(
    mean: float, standard_error: float, skewness: float, units: int, level: float = LEVEL
) -> Interval:
    """Return Student's t interval with Hall's correction for skewness. With zero skewness, it equals
    Student's interval.

    Args:
        mean: mean of the units.
        standard_error: standard error of the mean.
        skewness: skewness of the units: the third central moment divided by the cubed standard deviation.
        units: number of units. The degrees of freedom are `units - 1`.
        level: confidence level.
    """
    quantile = two_sided(level, units - 1)
    tail = skewness / math.sqrt(units)

    def reach(value: float) -> float:
        if abs(tail) < 1e-9:
            return value
        return 3 / tail * (math.cbrt(1 + tail * (value - tail / 6)) - 1)

    low, high = mean - reach(quantile) * standard_error, mean - reach(-quantile) * standard_error
    return Interval(low, high, standard_error, "t, corrected for skewness")


def t_interval(mean: float, standard_error: float, units: int, level: float = LEVEL) -> Interval:
    """Return Student's t interval."""
    half = two_sided(level, units - 1) * standard_error
    return Interval(mean - half, mean + half, standard_error, "t")


def skewness_of(deviations: Numbers) -> float:
    """Return the skewness of values with mean 0; 0 if all values are equal."""
    spread = float(np.sqrt(np.mean(deviations**2)))
    return 0.0 if spread == 0 else float(np.mean((deviations / spread) ** 3))


def same(spread: float, size: float) -> bool:
    """Return whether a spread is zero except for rounding errors."""
    return spread <= _SAME * max(size, 1e-300)
