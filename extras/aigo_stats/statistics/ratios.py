"""Numbers that are a ratio of two sums over samples: a mean (of a score over 1), a share, precision, recall,
F1.

Samples that belong together (one document, one source row) are a group, and groups are what is independent:
the standard error is clustered (Miller, E. 2024, Adding error bars to evals, arXiv:2411.00640, section 2.2;
for ratios the linearisation of Cochran, W. G. 1977, Sampling techniques, section 6.3). Trials of a sample
have become one score before they come here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.text.plurals import plural
from aigo_stats.statistics.intervals import (
    FEWEST,
    FEWEST_GROUPS,
    Estimate,
    NoInterval,
    Numbers,
    bounded_mean,
    same,
    skewed_mean,
    skewness_of,
    wilson,
)
from aigo_stats.statistics.quantiles import LEVEL

SHARE = (0.0, 1.0)
"""Ends of the scale of a proportion."""


@dataclass(frozen=True)
class Scale:
    """The values that a score can have, as its scorer, its metric or its type declares them."""

    ends: tuple[float, float] | None = None
    """Lowest and highest value; `None`: not declared."""
    right_or_wrong: bool = False
    """Whether every value is 1 (right) or 0 (wrong)."""


UNDECLARED = Scale()
RIGHT_OR_WRONG = Scale(SHARE, right_or_wrong=True)
FRACTION = Scale(SHARE)


@dataclass(frozen=True)
class Ratio:
    """The sum of one thing over the sum of another."""

    numerator: Numbers
    """Per sample."""
    denominator: Numbers
    """Per sample; a sample with 0 in both takes no part."""
    transformed: bool = False
    """Whether the number is F1: the ratio is F* = TP / (TP + FP + FN) then, and F1 = 2 F* / (1 + F*)."""
    scale: Scale = UNDECLARED
    """Declared values of the score. Observed values never declare a scale; values outside of it refute it."""

    @staticmethod
    def mean(values: Numbers, scale: Scale = UNDECLARED) -> Ratio:
        """Return the mean of a score."""
        return Ratio(values, np.ones(len(values)), scale=scale)

    @property
    def value(self) -> float | None:
        """The number; `None` where there is nothing to divide by."""
        total = float(self.denominator.sum())
        if not total:
            return None
        ratio = float(self.numerator.sum()) / total
        return f1_of(ratio) if self.transformed else ratio

    @property
    def is_share(self) -> bool:
        """Return whether every sample that takes part is right or wrong, by declaration."""
        return self.scale.right_or_wrong and bool(
            np.isin(self.denominator, SHARE).all() and np.isin(self.numerator, SHARE).all()
        )

    @property
    def is_mean(self) -> bool:
        """Whether every sample counts once."""
        return bool((self.denominator == 1.0).all())

    def bounds(self) -> tuple[float, float] | None:
        """Return the lowest and highest value that the number can have, by declaration; `None`: not known."""
        if self.scale.ends is None:
            return None
        low, high = self.scale.ends
        top, bottom = self.numerator, self.denominator
        return self.scale.ends if bool(((low * bottom <= top) & (top <= high * bottom)).all()) else None


def f1_of(ratio: float) -> float:
    """F1 from F*. Hand, D. J., Christen, P. and Kirielle, N. (2021), F*: an interpretable transformation of
    the F-measure, Machine Learning 110.
    """
    return 2 * ratio / (1 + ratio)


def ratio_interval(ratio: Ratio, groups: NDArray[np.int64] | None = None, level: float = LEVEL) -> Estimate:
    """The interval of a ratio, or why there is none.

    Args:
        ratio: over samples that are in the number.
        groups: number of each sample's group, from 0; `None`: every sample stands for itself.
        level: of confidence.
    """
    if ratio.value is None:
        return NoInterval("the denominator is zero")
    estimate = _plain_interval(ratio, groups, level)
    if not ratio.transformed or isinstance(estimate, NoInterval):
        return estimate
    untransformed = float(ratio.numerator.sum() / ratio.denominator.sum())
    return estimate.mapped(f1_of, 2 / (1 + untransformed) ** 2)


def _plain_interval(ratio: Ratio, groups: NDArray[np.int64] | None, level: float) -> Estimate:
    if groups is None and ratio.is_share:
        return wilson(float(ratio.numerator.sum()), float(ratio.denominator.sum()), level)
    numerator, denominator = grouped(ratio, groups)
    units = len(denominator)
    if groups is not None and units < FEWEST_GROUPS:
        return NoInterval(
            f"{units} groups are too few to estimate the variance between them; at least "
            f"{FEWEST_GROUPS} are needed"
        )
    if units < FEWEST:
        return NoInterval(
            f"{plural(units, 'sample is', 'samples are')} too few for the interval of a mean; "
            f"{FEWEST} are needed"
        )
    total = float(denominator.sum())
    centre = float(numerator.sum()) / total
    residuals = numerator - centre * denominator
    bounds = ratio.bounds()
    if same(float(np.abs(residuals).max()), float(np.abs(numerator).max())):
        if bounds is not None and centre in bounds:
            # All wrong or all right: each group counts as one sample, the most careful reading.
            successes = units if centre == bounds[1] else 0
            return wilson(successes, units, level)
        return NoInterval("all samples have the same score, so their spread is not known")
    variance = units / (units - 1) * float((residuals**2).sum()) / total**2
    if bounds is not None:
        return bounded_mean(centre, variance, units - 1, bounds, level)
    return skewed_mean(centre, float(np.sqrt(variance)), skewness_of(residuals), units, level)


def sums_of(groups: NDArray[np.int64], values: Numbers) -> Numbers:
    """The sum of each group's values."""
    return np.asarray(np.bincount(groups, weights=values), dtype=np.float64)


def grouped(ratio: Ratio, groups: NDArray[np.int64] | None) -> tuple[Numbers, Numbers]:
    """Numerators and denominators of what is independent: groups, or samples; those that take no part left
    out.
    """
    numerator, denominator = ratio.numerator, ratio.denominator
    if groups is not None:
        numerator, denominator = sums_of(groups, numerator), sums_of(groups, denominator)
    takes_part = (denominator != 0) | (numerator != 0)
    return numerator[takes_part], denominator[takes_part]


Totals = Callable[[NDArray[Any]], NDArray[Any]]
"""From sums over samples, one row per resample, to a number per resample."""
