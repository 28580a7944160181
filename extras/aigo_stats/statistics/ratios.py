"""Metrics that are a ratio of two sums over samples: means, proportions, precision, recall and F1.

Related samples (from one document or source row) form a group, and only groups are independent. The standard
error is therefore clustered (Miller, E. 2024, Adding error bars to evals, arXiv:2411.00640, section 2.2). For
ratios it uses the linearisation of Cochran, W. G. (1977), Sampling techniques, section 6.3. The trials of a
sample are already combined into one score.
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
"""Limits of a proportion."""


@dataclass(frozen=True)
class Scale:
    """Possible values of a score, as declared by its scorer, its metric or its type."""

    ends: tuple[float, float] | None = None
    """Lowest and highest value; `None` if not declared."""
    right_or_wrong: bool = False
    """Whether every value is 1 (right) or 0 (wrong)."""


UNDECLARED = Scale()
RIGHT_OR_WRONG = Scale(SHARE, right_or_wrong=True)
FRACTION = Scale(SHARE)


@dataclass(frozen=True)
class Ratio:
    """Ratio of two sums over samples."""

    numerator: Numbers
    """Numerator of each sample."""
    denominator: Numbers
    """Denominator of each sample. A sample with 0 in both is ignored."""
    transformed: bool = False
    """Whether the metric is F1. The ratio is then F* = TP / (TP + FP + FN), and F1 = 2 F* / (1 + F*)."""
    scale: Scale = UNDECLARED
    """Declared values of the score. Observed values cannot declare a scale, but they can contradict it."""

    @staticmethod
    def mean(values: Numbers, scale: Scale = UNDECLARED) -> Ratio:
        """Return the mean of a score."""
        return Ratio(values, np.ones(len(values)), scale=scale)

    @property
    def value(self) -> float | None:
        """Value of the metric; `None` if the denominator is 0."""
        total = float(self.denominator.sum())
        if not total:
            return None
        ratio = float(self.numerator.sum()) / total
        return f1_of(ratio) if self.transformed else ratio

    @property
    def is_share(self) -> bool:
        """Whether every included sample is right or wrong by declaration."""
        return self.scale.right_or_wrong and bool(
            np.isin(self.denominator, SHARE).all() and np.isin(self.numerator, SHARE).all()
        )

    @property
    def is_mean(self) -> bool:
        """Whether every sample counts once."""
        return bool((self.denominator == 1.0).all())

    def bounds(self) -> tuple[float, float] | None:
        """Lowest and highest possible value by declaration; `None` if unknown."""
        if self.scale.ends is None:
            return None
        low, high = self.scale.ends
        top, bottom = self.numerator, self.denominator
        return self.scale.ends if bool(((low * bottom <= top) & (top <= high * bottom)).all()) else None


def f1_of(ratio: float) -> float:
    """Return F1 for F*.

    Hand, D. J., Christen, P. and Kirielle, N. (2021), F*: an interpretable transformation of the F-measure,
    Machine Learning 110.
    """
    return 2 * ratio / (1 + ratio)


def ratio_interval(ratio: Ratio, groups: NDArray[np.int64] | None = None, level: float = LEVEL) -> Estimate:
    """Return the interval of a ratio, or the reason why it is missing.

    Args:
        ratio: ratio over the samples of the metric.
        groups: group number of each sample, from 0; `None` for independent samples.
        level: confidence level.
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
            # All samples are right or all are wrong. Each group counts as one sample, which is the most
            # conservative choice.
            successes = units if centre == bounds[1] else 0
            return wilson(successes, units, level)
        return NoInterval("all samples have the same score, so their spread is unknown")
    variance = units / (units - 1) * float((residuals**2).sum()) / total**2
    if bounds is not None:
        return bounded_mean(centre, variance, units - 1, bounds, level)
    return skewed_mean(centre, float(np.sqrt(variance)), skewness_of(residuals), units, level)


def sums_of(groups: NDArray[np.int64], values: Numbers) -> Numbers:
    """Return the sum of the values in each group."""
    return np.asarray(np.bincount(groups, weights=values), dtype=np.float64)


def grouped(ratio: Ratio, groups: NDArray[np.int64] | None) -> tuple[Numbers, Numbers]:
    """Return the numerators and denominators of the independent units, without ignored samples."""
    numerator, denominator = ratio.numerator, ratio.denominator
    if groups is not None:
        numerator, denominator = sums_of(groups, numerator), sums_of(groups, denominator)
    takes_part = (denominator != 0) | (numerator != 0)
    return numerator[takes_part], denominator[takes_part]


Totals = Callable[[NDArray[Any]], NDArray[Any]]
"""Function from sums over samples (one row for each resample) to the metric of each resample."""
