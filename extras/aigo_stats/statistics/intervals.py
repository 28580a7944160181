"""Intervals of a share and of a mean over independent units (samples, or groups of samples that belong
together).

Which formula stands for which kind of number was chosen by simulated coverage (`benchmarks/coverage.py`), not
by habit; docs/reference/statistics.md has the table. Sources:

* Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference, JASA 22: the
  interval of a share.
* Korn, E. L. and Graubard, B. I. (1998), Confidence intervals for proportions with small expected number of
  positive counts estimated from survey data, Survey Methodology 24; Dean, N. and Pagano, M. (2015),
  Evaluating confidence interval methods for binomial proportions in clustered surveys, J. Survey Statistics
  and Methodology 3: the same interval with the effective number of samples.
* Hall, P. (1992), On the removal of skewness by transformation, JRSS B 54: Student's t, corrected for
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
"""Samples that a mean needs for an interval."""

FEWEST_GROUPS = 20
"""Groups that an interval needs: with fewer, their spread is not known well enough."""

WILSON = "Wilson"
"""Method of a share's interval."""

_SAME = 1e-12
"""Spread, as a share of the numbers' size, below which numbers are all the same."""


@dataclass(frozen=True)
class Interval:
    """Where the number would lie if the task had been made of other samples of the same kind."""

    low: float
    high: float
    standard_error: float
    method: str
    """How it was computed, as shown."""

    def mapped(self, function: Callable[[float], float], slope: float) -> Interval:
        """The interval of a growing function of the number; its slope at the number carries the standard
        error over.
        """
        return Interval(
            function(self.low), function(self.high), self.standard_error * abs(slope), self.method
        )


@dataclass(frozen=True)
class NoInterval:
    """Stands for an interval that cannot be had."""

    reason: str


Estimate = Interval | NoInterval


def wilson(successes: float, trials: float, level: float = LEVEL, degrees: float | None = None) -> Interval:
    """The score interval of a share.

    Args:
        successes: how many of them, at most `trials`.
        trials: how many there are; an effective number need not be whole.
        level: of confidence.
        degrees: of freedom, where `trials` was estimated from the data; `None` where it was counted.
    """
    z = two_sided(level, degrees)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    # At the ends the formula gives 0 and 1 but for rounding.
    low = 0.0 if successes <= 0 else max(0.0, centre - half)
    high = 1.0 if successes >= trials else min(1.0, centre + half)
    return Interval(low, high, math.sqrt(share * (1 - share) / trials), WILSON)


def bounded_mean(
    mean: float, variance: float, degrees: float, bounds: tuple[float, float], level: float = LEVEL
) -> Interval:
    """The interval of a mean that cannot leave its bounds: Wilson's, with the number of right/wrong samples
    that would be as uncertain.

    Args:
        mean: strictly between the bounds.
        variance: of the mean, not of the samples; positive.
        degrees: of freedom of that variance.
        bounds: the lowest and the highest score there can be.
        level: of confidence.
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
    """Student's t interval with Hall's correction for skewness; without skewness it is Student's.

    Args:
        mean: of the units.
        standard_error: of the mean.
        skewness: of the units, the third central moment over the standard deviation cubed.
        units: how many; degrees of freedom are one less.
        level: of confidence.
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
    """Student's."""
    half = two_sided(level, units - 1) * standard_error
    return Interval(mean - half, mean + half, standard_error, "t")


def skewness_of(deviations: Numbers) -> float:
    """Skewness of numbers whose mean is 0; 0 where they are all the same."""
    spread = float(np.sqrt(np.mean(deviations**2)))
    return 0.0 if spread == 0 else float(np.mean((deviations / spread) ** 3))


def same(spread: float, size: float) -> bool:
    """Whether a spread is none but for rounding."""
    return spread <= _SAME * max(size, 1e-300)
