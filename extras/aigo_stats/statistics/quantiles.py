"""Quantiles and tail probabilities: normal ones from Python, others from scipy.

Scipy is an optional dependency and is imported at the first use.
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
"""Default confidence level of intervals."""


class MissingScipyError(UsageError):
    """Error for a missing scipy package."""

    usual_code = Code.MISSING_PACKAGE


def require_scipy(module: str = "scipy") -> Any:
    """Return scipy. Its functions (`special_functions`) load slowly, and most results do not need them.

    Raises:
        MissingScipyError: scipy is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = install_command("stats") or "pip install scipy"
        raise MissingScipyError(f"statistics need scipy, which is not installed; run: {hint}") from error


def special_functions() -> Any:
    """Return `scipy.special` (see `require_scipy`)."""
    return require_scipy("scipy.special")


def normal_quantile(probability: float) -> float:
    """Return the quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t distribution."""
    return float(special_functions().stdtrit(degrees, probability))


def two_sided(level: float, degrees: float | None = None) -> float:
    """Return the half-width of a two-sided interval in standard errors.

    `degrees` are the degrees of freedom; `None` selects the normal distribution.
    """
    probability = (1 + level) / 2
    return normal_quantile(probability) if degrees is None else t_quantile(probability, degrees)


def normal_cdf(value: float) -> float:
    """Return the probability that a standard normal variable is at most `value`."""
    return math.erfc(-value / math.sqrt(2)) / 2


def t_two_tails(statistic: float, degrees: float) -> float:
    """Return the probability that Student's t is at least as far from 0 as `statistic`."""
    return min(1.0, 2 * float(special_functions().stdtr(degrees, -abs(statistic))))


def binomial_tail(successes: int, trials: int, probability: float) -> float:
    """Return the probability of at most this number of successes."""
    return float(special_functions().bdtr(successes, trials, probability))
