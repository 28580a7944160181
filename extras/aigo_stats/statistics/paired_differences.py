"""Differences between two models on the same samples.

Sources:

- McNemar, Q. (1947), Note on the sampling error of the difference between correlated proportions,
  Psychometrika 12: exact binomial test of the samples on which the models differ
- Tango, T. (1998), Equivalence test and confidence interval for the difference in proportions for the
  paired-sample design, Statistics in Medicine 17: interval
- Miller (2024), arXiv:2411.00640, section 4.2: Student's t over differences with clustered errors
- Fisher (1935); Good, P. (2005), Permutation, parametric and bootstrap tests of hypotheses: permutation by
  sign flips
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aigo_stats.statistics.intervals import (
    FEWEST,
    FEWEST_GROUPS,
    Estimate,
    Interval,
    NoInterval,
    Numbers,
    same,
    t_interval,
)
from aigo_stats.statistics.quantiles import LEVEL, binomial_tail, t_two_tails, two_sided
from aigo_stats.statistics.ratios import sums_of

MOST_PERMUTED = 1000
"""Maximum number of differing units for sign flips. With more units, Student's t gives the same result."""

DRAWS = 9999
_EXACT = 13
"""Maximum number of differing units for testing all sign flips."""
_SAME = 1e-12
"""Rounding error of a sum, relative to the size of the differences."""
_SEED = 20241101
_STEPS = 60
"""Number of bisection steps in the search for a limit."""


@dataclass(frozen=True)
class PairedDifference:
    """Difference between the second and the first model on their common samples."""

    value: float
    """Second value minus first value."""
    estimate: Estimate
    p_value: float | None
    """Two-sided p-value of the difference; `None` if unknown."""
    test: str | None
    effect: float | None
    """Effect size; `None` if unknown."""
    effect_name: str | None
    num_pairs: int


def right_or_wrong(base: Numbers, new: Numbers, level: float = LEVEL) -> PairedDifference:
    """Return the difference of two models that are right or wrong on each sample.

    The effect size is the odds ratio of the samples on which they differ: gains divided by losses, unknown
    without losses.
    """
    gained = int(((new == 1) & (base == 0)).sum())
    lost = int(((new == 0) & (base == 1)).sum())
    count = len(base)
    return PairedDifference(
        (gained - lost) / count,
        tango(gained, lost, count, level),
        mcnemar(gained, lost),
        "McNemar, exact",
        gained / lost if lost else None,
        "odds ratio",
        count,
    )


def mcnemar(gained: int, lost: int) -> float:
    """Return the two-sided exact p-value for equal probabilities of gains and losses."""
    total = gained + lost
    return 1.0 if not total else min(1.0, 2 * binomial_tail(min(gained, lost), total, 0.5))


def tango(gained: int, lost: int, count: int, level: float = LEVEL) -> Estimate:
    """Return the score interval of a paired difference: all differences that the score test does not
    reject.
    """
    z = two_sided(level)
    value = (gained - lost) / count
    low = _crossing(gained, lost, count, -1.0, value, z)
    high = _crossing(gained, lost, count, value, 1.0, -z)
    error = math.sqrt((gained + lost - (gained - lost) ** 2 / count) / count**2)
    return Interval(low, high, error, "Tango")


def _crossing(gained: int, lost: int, count: int, low: float, high: float, target: float) -> float:
    """Return the difference at which the score statistic equals `target`. The statistic decreases with the
    difference.
    """
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _score(gained, lost, count, middle) > target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _score(gained: int, lost: int, count: int, supposed: float) -> float:
    """Return Tango's statistic, with the maximum-likelihood proportion of losses for the assumed
    difference.
    """
    square, linear = 2 * count, -gained - lost + (2 * count - gained + lost) * supposed
    constant = -lost * supposed * (1 - supposed)
    losses = (math.sqrt(max(linear**2 - 4 * square * constant, 0.0)) - linear) / (2 * square)
    variance = count * (2 * losses + supposed * (1 - supposed))
    distance = gained - lost - count * supposed
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def of_scores(
    base: Numbers, new: Numbers, groups: NDArray[np.int64] | None = None, level: float = LEVEL
) -> PairedDifference:
    """Return the difference of two scores of each sample.

    The effect size is the mean difference divided by its standard deviation (Cohen's d of paired samples).
    """
    differences = new - base
    value = float(differences.mean())
    if abs(value) <= _SAME * float(np.abs(differences).mean()):
        value = 0.0  # except for rounding errors
    estimate = mean_difference(differences, groups, level)
    units = differences - value if groups is None else sums_of(groups, differences - value)
    sums = differences if groups is None else sums_of(groups, differences)
    p_value, test = _p_value(sums, units, len(differences))
    return PairedDifference(
        value,
        estimate,
        p_value,
        test,
        None if _is_flat(differences) else value / float(differences.std(ddof=1)),
        "Cohen's d, paired",
        len(differences),
    )


def mean_difference(
    differences: Numbers, groups: NDArray[np.int64] | None = None, level: float = LEVEL
) -> Estimate:
    """Return the interval of a mean of differences. The arguments are the same as in `of_scores`."""
    value = float(differences.mean())
    units = differences - value if groups is None else sums_of(groups, differences - value)
    return _interval(value, units, len(differences), _is_flat(differences), groups is not None, level)


def _is_flat(differences: Numbers) -> bool:
    spread = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    return same(spread, float(np.abs(differences).max()))


def linearised(
    value: float, influences: Numbers, groups: NDArray[np.int64] | None = None, level: float = LEVEL
) -> PairedDifference:
    """Return the difference of two metrics that are not means over samples, such as precision or macro F1.

    Args:
        value: difference of the metrics.
        influences: contribution of each sample to the difference, on the scale of a mean. The mean is about
            0.
        groups: group numbers, as in `ratio_interval`.
        level: confidence level.
    """
    count = len(influences)
    centred = influences - influences.mean()
    units = centred if groups is None else sums_of(groups, centred)
    flat = same(float(np.abs(centred).max()), 1.0)
    estimate = _interval(value, units, count, flat, groups is not None, level)
    if isinstance(estimate, NoInterval) or not estimate.standard_error:
        return PairedDifference(value, estimate, None, None, None, None, count)
    p_value = t_two_tails(value / estimate.standard_error, len(units) - 1)
    return PairedDifference(value, estimate, p_value, "t", None, None, count)


def _interval(
    value: float, units: Numbers, count: int, flat: bool, clustered: bool, level: float
) -> Estimate:
    fewest = FEWEST_GROUPS if clustered else FEWEST
    if len(units) < fewest:
        what = "groups" if clustered else "pairs"
        return NoInterval(
            f"{len(units)} {what} are too few for the interval of a difference; {fewest} are needed"
        )
    if flat:
        return NoInterval("the difference is the same in every pair, so its spread is unknown")
    error = math.sqrt(len(units) / (len(units) - 1) * float((units**2).sum())) / count
    return t_interval(value, error, len(units), level)


def _p_value(sums: Numbers, units: Numbers, count: int) -> tuple[float | None, str | None]:
    moved = sums[sums != 0]
    if not len(moved):
        return 1.0, "no pair differs"
    if len(moved) <= MOST_PERMUTED:
        return _flipped(moved)
    error = math.sqrt(len(units) / (len(units) - 1) * float((units**2).sum())) / count
    return t_two_tails(float(sums.sum()) / count / error, len(units) - 1), "t"


def _flipped(sums: Numbers) -> tuple[float, str]:
    """Return the proportion of sign flips whose sum is at least as far from 0, and the method.

    All flips are tested, or a random sample of them (Phipson and Smyth 2010).
    """
    # Sums within the rounding error count as equal, because flips of equal scores add them in another order.
    observed = max(0.0, abs(float(sums.sum())) - _SAME * float(np.abs(sums).sum()))
    if len(sums) <= _EXACT:
        numbers = np.arange(2 ** len(sums))
        every = 1.0 - 2.0 * ((numbers[:, None] >> np.arange(len(sums))) & 1)
        return float((np.abs(every @ sums) >= observed).mean()), "permutation, exact"
    random = np.random.default_rng(_SEED)
    extreme = 0
    for start in range(0, DRAWS, 1000):
        drawn = random.choice((-1.0, 1.0), (min(1000, DRAWS - start), len(sums)))
        extreme += int((np.abs(drawn @ sums) >= observed).sum())
    return (extreme + 1) / (DRAWS + 1), "permutation"
