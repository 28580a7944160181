"""Mean score of a judge, corrected with human labels of some samples.

Angelopoulos, A. N., Bates, S., Fannjiang, C., Jordan, M. I. and Zrnic, T. (2023), Prediction-powered
inference, Science 382, section on means: the judge's mean over the unlabelled samples minus the judge's mean
error on the labelled samples.

Both parts are independent, so their intervals are combined: Zou, G. Y. and Donner, A. (2008), Construction of
confidence limits about effect measures: a general approach, Statistics in Medicine 27. With two normal
intervals, the result is the interval of the paper, but the interval of a rare error is not normal.

For binary scores, the error interval is the credible interval of Jeffreys' prior on three cells: wrongly
accepted, wrongly rejected, neither. Sources: Brown, L. D., Cai, T. T. and DasGupta, A. (2001), Interval
estimation for a binomial proportion, Statistical Science 16; Agresti, A. and Min, Y. (2005), Frequentist
performance of Bayesian confidence intervals for comparing proportions in 2 x 2 contingency tables, Biometrics
61.

The method was chosen by simulated coverage. Tango's score interval and Bonett and Price's are up to a third
wider with few errors, and covered 97 to 99 %.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.text.plurals import plural
from aigo_stats.statistics.intervals import FEWEST, Estimate, Interval, NoInterval, Numbers
from aigo_stats.statistics.paired_differences import of_scores
from aigo_stats.statistics.quantiles import LEVEL, special_functions
from aigo_stats.statistics.ratios import UNDECLARED, Ratio, Scale, ratio_interval

Groups = NDArray[np.int64]


def corrected_mean(unlabelled: Numbers, judged: Numbers, labels: Numbers, scale: Scale = UNDECLARED) -> float:
    """Return the corrected mean. For binary scores, it is limited to the range from 0 to 1.

    Args:
        unlabelled: judge scores of the samples without a label.
        judged: judge scores of the labelled samples.
        labels: labels of these samples, in the same order.
        scale: declared values of the score.
    """
    mean = float(unlabelled.mean() - (judged - labels).mean())
    return min(1.0, max(0.0, mean)) if _is_binary(scale, unlabelled, judged, labels) else mean


def _is_binary(scale: Scale, *scores: Numbers) -> bool:
    return scale.right_or_wrong and all(bool(np.isin(values, (0.0, 1.0)).all()) for values in scores)


def corrected_interval(
    unlabelled: Numbers,
    judged: Numbers,
    labels: Numbers,
    groups: tuple[Groups, Groups] | None = None,
    level: float = LEVEL,
    scale: Scale = UNDECLARED,
) -> Estimate:
    """Return the interval of the corrected mean, or the reason why it is missing.

    Args:
        unlabelled: as in `corrected_mean`.
        judged: as in `corrected_mean`.
        labels: as in `corrected_mean`.
        groups: group numbers from 0 of the unlabelled and of the labelled samples; `None` for independent
            samples.
        level: confidence level.
        scale: as in `corrected_mean`.
    """
    of_unlabelled, of_labelled = groups or (None, None)
    if len(labels) < FEWEST:
        return NoInterval(f"{plural(len(labels), 'sample')} with a label, and {FEWEST} are needed")
    judges = ratio_interval(Ratio.mean(unlabelled, scale), of_unlabelled, level)
    mean_error = float((judged - labels).mean())
    error = (
        _error_of_verdicts(labels, judged, level)
        if of_labelled is None and _is_binary(scale, judged, labels)
        else of_scores(labels, judged, of_labelled, level).estimate
    )
    if isinstance(judges, NoInterval):
        return NoInterval(f"samples without a label: {judges.reason}")
    if isinstance(error, NoInterval):
        return NoInterval(f"samples with a label: {error.reason}")
    centre = float(unlabelled.mean())
    value = centre - mean_error
    low = value - math.hypot(centre - judges.low, error.high - mean_error)
    high = value + math.hypot(judges.high - centre, mean_error - error.low)
    bounds = (0.0, 1.0) if _is_binary(scale, unlabelled, judged, labels) else (-math.inf, math.inf)
    return Interval(
        max(low, bounds[0]),
        min(high, bounds[1]),
        math.hypot(judges.standard_error, error.standard_error),
        "prediction-powered",
    )


_NODES = 1000
"""Number of quantiles of the error rate over which the error is averaged."""
_STEPS = 40
"""Number of bisection steps in the search for a limit."""


def _error_of_verdicts(labels: Numbers, judged: Numbers, level: float) -> Interval:
    above, below = int((judged > labels).sum()), int((judged < labels).sum())
    low, high = error_limits(above, below, len(labels), level)
    value = (above - below) / len(labels)
    spread = math.sqrt((above + below) / len(labels) - value**2)
    return Interval(min(low, value), max(high, value), spread / math.sqrt(len(labels)), "Jeffreys")


# Simulations request the same few counts repeatedly.
@lru_cache(maxsize=4096)
def error_limits(above: int, below: int, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the limits of the difference of two proportions of the same samples, with Jeffreys' prior on
    three cells.

    Let x and y be the proportions. Then x + y and x / (x + y) are independent beta variables. The tails of
    their difference are the tails of the second, averaged over quantiles of the first.

    Args:
        above: number of samples that increase the difference.
        below: number of samples that decrease it.
        count: total number of samples.
        level: confidence level.
    """
    special = special_functions()
    middles = (np.arange(_NODES) + 0.5) / _NODES
    sums = special.betaincinv(above + below + 1.0, count - above - below + 0.5, middles)

    def tail(difference: float) -> float:
        shares = np.clip((1 + difference / sums) / 2, 0.0, 1.0)
        return float(special.betainc(above + 0.5, below + 0.5, shares).mean())

    ends = []
    for target in ((1 - level) / 2, (1 + level) / 2):
        low, high = -1.0, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle) < target else (low, middle)
        ends.append((low + high) / 2)
    return ends[0], ends[1]
