"""Quantiles and tails of distributions: normal ones from Python, all others from scipy, which is an extra
and is loaded when a number is needed.
"""

from __future__ import annotations

import importlib
import math
from statistics import NormalDist
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process import install_command

LEVEL = 0.95
"""Confidence of every interval that names no other."""


class MissingScipyError(UsageError):
    """Scipy is not installed."""

    usual_code = Code.MISSING_PACKAGE


def special_functions() -> Any:
    """`scipy.special`.

    Raises:
        MissingScipyError: scipy is not installed.
    """
    try:
        return importlib.import_module("scipy.special")
    except ModuleNotFoundError as error:
        hint = install_command("stats") or "pip install scipy"
        raise MissingScipyError(f"statistics need scipy, which is not installed; run: {hint}") from error


def normal_quantile(probability: float) -> float:
    """The value below which a standard normal number is with this probability."""
    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, degrees: float) -> float:
    """The same of Student's t."""
    return float(special_functions().stdtrit(degrees, probability))


def two_sided(level: float, degrees: float | None = None) -> float:
    """How many standard errors an interval of a level reaches to either side; `degrees` of freedom: `None`
    for a normal.
    """
    probability = (1 + level) / 2
    return normal_quantile(probability) if degrees is None else t_quantile(probability, degrees)


def normal_cdf(value: float) -> float:
    """Probability that a standard normal number is at most `value`."""
    return math.erfc(-value / math.sqrt(2)) / 2


def t_two_tails(statistic: float, degrees: float) -> float:
    """Probability that Student's t is as far from 0 as `statistic`, or further."""
    return min(1.0, 2 * float(special_functions().stdtr(degrees, -abs(statistic))))


def binomial_tail(successes: int, trials: int, probability: float) -> float:
    """Probability of at most so many successes."""
    return float(special_functions().bdtr(successes, trials, probability))
