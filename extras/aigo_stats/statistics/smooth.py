"""Numbers that are a smooth function of sums over samples: a standard deviation, an average of F1 over
classes.

The jackknife makes one pseudo-value per sample (or group), whose mean is as uncertain as the number: Tukey,
J. W. (1958), Bias and confidence in not quite large samples, Annals of Mathematical Statistics 29; Efron, B.
and Stein, C. (1981), The jackknife estimate of variance, Annals of Statistics 9. Their interval is that of a
mean. Bootstraps (percentile, BCa) were tried in its place and covered less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aigo_stats.statistics.intervals import (
    FEWEST_GROUPS,
    Estimate,
    NoInterval,
    Numbers,
    bounded_mean,
    same,
    skewed_mean,
    skewness_of,
)
from aigo_stats.statistics.quantiles import LEVEL


@dataclass(frozen=True)
class Smooth:
    """A function of sums over samples."""

    table: Numbers
    """What a kind of sample adds to the sums, one row per kind."""
    kinds: NDArray[np.int64]
    """The row of each sample."""
    function: Callable[[Numbers], Numbers]
    """From sums, one row each, to numbers."""
    bounds: tuple[float, float] | None
    """Lowest and highest value there can be; `None`: none is known."""
    fewest: int
    """Samples below which simulated intervals did not cover what they promise."""

    @property
    def value(self) -> float:
        """The number."""
        return float(self.function(self._sums()[None])[0])

    def _sums(self) -> Numbers:
        counts = np.bincount(self.kinds, minlength=len(self.table)).astype(float)
        return np.asarray(counts @ self.table)

    def pseudo_values(self, groups: NDArray[np.int64] | None = None) -> Numbers:
        """One per sample, or per group: how much the number owes to it."""
        sums = self._sums()
        value = self.value
        if groups is None:
            units = len(self.kinds)
            without = self.function(sums - self.table)[self.kinds]
        else:
            parts = np.zeros((int(groups.max()) + 1, self.table.shape[1]))
            np.add.at(parts, groups, self.table[self.kinds])
            parts = parts[np.bincount(groups) > 0]
            units = len(parts)
            without = self.function(sums - parts)
        return np.asarray(units * value - (units - 1) * without)


def smooth_interval(
    smooth: Smooth, groups: NDArray[np.int64] | None = None, level: float = LEVEL
) -> Estimate:
    """The interval of a smooth function of sums, or why there is none; groups as in `ratio_interval`."""
    units = len(smooth.kinds) if groups is None else len(np.unique(groups))
    fewest, what = (
        (smooth.fewest, "samples") if groups is None else (max(FEWEST_GROUPS, smooth.fewest), "groups")
    )
    if units < fewest:
        return NoInterval(f"{units} {what} are too few for the interval of this number; {fewest} are needed")
    pseudo = smooth.pseudo_values(groups)
    value = smooth.value
    deviations = pseudo - pseudo.mean()
    variance = float((deviations**2).sum()) / (units - 1) / units
    if not np.isfinite(variance) or same(float(np.abs(deviations).max()), float(np.abs(pseudo).max())):
        return NoInterval("no sample changes the number, so its spread is not known")
    if smooth.bounds is not None and smooth.bounds[0] < value < smooth.bounds[1]:
        return bounded_mean(value, variance, units - 1, smooth.bounds, level)
    if smooth.bounds is not None:
        return NoInterval("the number is at the end of its scale, where samples do not tell its spread")
    return skewed_mean(value, variance**0.5, skewness_of(deviations), units, level)
