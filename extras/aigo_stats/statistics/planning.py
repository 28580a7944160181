"""Power analysis: samples needed for a difference, and the smallest difference that some samples can detect.

Miller, E. (2024), Adding error bars to evals, arXiv:2411.00640, section 5. With ω² as the variance between
samples of the difference of two models' expected scores, and σ² as the variance between trials of one sample:

```text
n = (z₁₋α/₂ + z₁₋β)² · (ω² + σ²_A/K_A + σ²_B/K_B) / δ²
```

This formula is for many samples. With few samples, `compare` detects less. Its test of binary scores is exact
(Miettinen, O. S. 1968, The matched pairs design in the case of all-or-none responses, Biometrics 24: the
power of McNemar's test over all numbers of differing samples). Its test of other scores is close to Student's
t, whose power follows the noncentral t distribution. The functions of this module use these two tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aigo_stats.statistics.quantiles import normal_cdf, normal_quantile, special_functions, t_quantile

ALPHA = 0.05
POWER = 0.8

MOST_SAMPLES = 10**9
"""Maximum number of samples in the search."""

_MANY = 2000
"""Degrees of freedom above which Student's t equals the normal distribution to four digits."""
_MANY_DISCORDANT = 5000
"""Number of differing samples above which McNemar's test is approximated by the normal distribution.

The approximation uses a continuity correction.
"""
_REACH = 8.0
"""Number of standard deviations beyond which binomial probabilities are negligible."""


@dataclass(frozen=True)
class Spread:
    """Variances of a paired comparison."""

    between: float
    """Variance between samples of the difference of expected scores (ω²)."""
    within: float
    """Variance within a sample of the difference of one trial each (σ²_A + σ²_B)."""
    is_share: bool = False
    """Whether trials are binary, so that single trials are compared with McNemar's test."""
    shift: float = 0.0
    """Difference at which the variances were observed. Variances of binary scores depend on it."""

    def total(self, trials: int) -> float:
        """Return the variance of a sample's difference if each model has this number of trials."""
        return self.between + self.within / trials

    @property
    def discordant(self) -> float:
        """Proportion of samples that exactly one of the two models answers correctly in a single trial."""
        return min(1.0, self.total(1) + self.shift**2)


def samples_of_many(
    difference: float, spread: Spread, trials: int = 1, alpha: float = ALPHA, power: float = POWER
) -> int:
    """Return the number of samples to detect a true difference with this power, by Miller's formula for many
    samples.
    """
    reach = normal_quantile(1 - alpha / 2) + normal_quantile(power)
    return max(1, math.ceil(reach**2 * spread.total(trials) / difference**2 - 1e-9))


def samples_needed(
    difference: float, spread: Spread, trials: int = 1, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """Return the number of samples to detect a true difference with this power; `None` above the search
    limit.
    """
    low, high = 1, max(2, samples_of_many(difference, spread, trials, alpha, power))
    while high <= MOST_SAMPLES and power_of(difference, high, spread, trials, alpha) < power:
        low, high = high, 2 * high
    if high > MOST_SAMPLES:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(difference, middle, spread, trials, alpha) < power:
            low = middle
        else:
            high = middle
    return high


def smallest_difference(
    samples: int, spread: Spread, trials: int = 1, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Return the smallest true difference that the samples detect with this power; `None` if no difference is
    detected.
    """
    reach = normal_quantile(1 - alpha / 2) + normal_quantile(power)
    low, high = 0.0, reach * math.sqrt(spread.total(trials) / samples)
    most = 1.0 if spread.is_share else 1e6 * high
    while power_of(high, samples, spread, trials, alpha) < power:
        if high >= most:
            return None
        low, high = high, min(most, 2 * high)
    for _ in range(50):
        middle = (low + high) / 2
        if power_of(middle, samples, spread, trials, alpha) < power:
            low = middle
        else:
            high = middle
    return high


def power_of(difference: float, samples: int, spread: Spread, trials: int = 1, alpha: float = ALPHA) -> float:
    """Return the probability that `compare` detects a true difference."""
    if spread.is_share and trials == 1:
        return power_of_mcnemar(abs(difference), spread.discordant, samples, alpha)
    # Sign flips cannot give a smaller p-value.
    if 2.0 ** (1 - samples) > alpha:
        return 0.0
    error = math.sqrt(spread.total(trials) / samples)
    if not error:
        return 1.0 if difference else alpha
    return power_of_t(abs(difference) / error, samples - 1, alpha)


def power_of_t(shift: float, degrees: int, alpha: float = ALPHA) -> float:
    """Return the power of the two-sided t test for a mean that is `shift` standard errors from 0."""
    if degrees > _MANY:
        z = normal_quantile(1 - alpha / 2)
        return normal_cdf(shift - z) + normal_cdf(-shift - z)
    special, t = special_functions(), t_quantile(1 - alpha / 2, degrees)
    return float(1 - special.nctdtr(degrees, shift, t) + special.nctdtr(degrees, shift, -t))


def power_of_mcnemar(difference: float, discordant: float, samples: int, alpha: float = ALPHA) -> float:
    """Return the power of McNemar's exact test for two paired proportions.

    Args:
        difference: difference of the proportions, from 0 to 1.
        discordant: proportion of samples that exactly one of the two answers correctly; at least
            `difference`.
        samples: number of paired samples.
        alpha: significance level.
    """
    discordant = min(1.0, max(discordant, difference))
    if not discordant:
        return 0.0
    if samples * discordant > _MANY_DISCORDANT:
        z, correction = normal_quantile(1 - alpha / 2), 1 / samples
        spread = math.sqrt(max(discordant - difference**2, 1e-300) / samples)
        limit = z * math.sqrt(discordant / samples) + correction
        return normal_cdf((difference - limit) / spread) + normal_cdf((-difference - limit) / spread)
    gained = (1 + min(1.0, difference / discordant)) / 2
    mean, deviation = samples * discordant, math.sqrt(samples * discordant * (1 - discordant))
    low, high = math.floor(mean - _REACH * deviation - 1), math.ceil(mean + _REACH * deviation + 1)
    counts = np.arange(max(0, low), min(samples, high) + 1, dtype=np.int64)
    critical = _critical(counts, alpha)
    finds = critical >= 0
    counts, critical = counts[finds], critical[finds]
    if not len(counts):
        return 0.0
    bdtr, bdtrc = special_functions().bdtr, special_functions().bdtrc
    chance = bdtr(counts, samples, discordant) - np.where(
        counts > 0, bdtr(np.maximum(counts - 1, 0), samples, discordant), 0.0
    )
    power = bdtr(critical, counts, gained) + bdtrc(counts - critical - 1, counts, gained)
    return float(min(1.0, (chance * power).sum()))


def _critical(counts: NDArray[np.int64], alpha: float) -> NDArray[np.int64]:
    """Return the maximum number of losses for a significant test, by number of differing samples; -1 for
    none.
    """
    bdtr = special_functions().bdtr
    low, high = np.full(len(counts), -1), counts // 2
    while (low < high).any():
        middle = (low + high + 1) // 2
        rejects = 2 * bdtr(middle, counts, 0.5) <= alpha
        low, high = np.where(rejects, middle, low), np.where(rejects, high, middle - 1)
    return np.asarray(low, dtype=np.int64)


def possible_correlations(base: float, new: float) -> tuple[float, float]:
    """Return the lowest and highest possible correlation between the verdicts of two models with these
    proportions.

    At the limits, as many samples as possible are right in only one model, or in both (Fréchet bounds).
    """
    scale = math.sqrt(base * (1 - base) * new * (1 - new))
    if not scale:
        return 0.0, 0.0
    least, most = max(0.0, base + new - 1) - base * new, min(base, new) - base * new
    return least / scale, most / scale


def spread_of_shares(base: float, new: float, correlation: float = 0.0) -> Spread:
    """Return the spread of two models with these proportions of correct samples, with one trial each.

    Args:
        base: proportion of the first model.
        new: proportion of the second model.
        correlation: correlation between their verdicts on a sample.

    Raises:
        ValueError: this correlation is impossible for these proportions.
    """
    low, high = possible_correlations(base, new)
    if not low - 1e-9 <= correlation <= high + 1e-9:
        raise ValueError(f"found {correlation:g}, expected {low:.3g} to {high:.3g}")
    variances = base * (1 - base), new * (1 - new)
    covariance = correlation * math.sqrt(variances[0] * variances[1])
    return Spread(
        max(0.0, variances[0] + variances[1] - 2 * covariance), 0.0, is_share=True, shift=new - base
    )


def variance_within(trials: list[NDArray[np.float64]]) -> float | None:
    """Return the mean variance between the trials of a sample; `None` if no sample has two trials."""
    variances = [float(values.var(ddof=1)) for values in trials if len(values) > 1]
    return float(np.mean(variances)) if variances else None
