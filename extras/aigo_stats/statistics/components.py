"""Variance components of repeated scores.

Searle, S. R., Casella, G. and McCulloch, C. E. (1992), Variance components, sections 3.6 and 5.2: estimators
of the nested analysis of variance with unequal group sizes. Negative estimates are set to 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aigo_stats.statistics.intervals import Numbers

Keys = Sequence[Sequence[Hashable]]
"""One key for each score, by sample."""


@dataclass(frozen=True)
class Components:
    """Variance components of one score of one sample. `sampling` and `within` add up to the total
    variance.
    """

    sampling: float
    """Variance of the expected scores between samples."""
    within: float
    """Variance between the scores of one sample, from the model and the judge if known."""
    model: float | None
    """Variance between answers to one sample; `None` if unknown or inseparable from the judge's variance."""
    judge: float | None
    """Variance between scores of one answer; `None` if no answer was scored twice."""


@dataclass(frozen=True)
class _Level:
    """Sums of squares of nested groups around the mean of the parent group, with related values."""

    squares: float
    degrees: int
    weights: float
    """Sum over groups of n² / n of the parent group."""


def components(scores: Sequence[Numbers], draws: Keys, texts: Keys) -> Components | None:
    """Return the variance components of repeated scores.

    Args:
        scores: scores of each sample, one for each repetition.
        draws: number of the model call. It is equal if the same answer was scored again.
        texts: the answers. Scores of equal answers show the variance of the judge.

    Returns:
        Variance components; `None` if no sample was scored twice, or there is only one sample.
    """
    if len(scores) < 2 or all(len(numbers) < 2 for numbers in scores):
        return None
    values = np.concatenate(scores)
    samples = np.repeat(np.arange(len(scores)), [len(numbers) for numbers in scores])
    answers = _nested(samples, draws)
    judge = _pooled(values, _nested(samples, texts))
    between_answers, between_samples = _levels(values, samples, answers)
    total = float(len(values))
    model = None
    if between_answers.degrees:
        size = (total - between_answers.weights) / between_answers.degrees
        model = max(0.0, between_answers.squares / between_answers.degrees - (judge or 0.0)) / size
    of_all = float((np.bincount(answers) ** 2).sum()) / total
    counts = np.bincount(samples)
    shared = (between_answers.weights - of_all) / between_samples.degrees
    size = (total - float((counts**2).sum()) / total) / between_samples.degrees
    noise = (judge or 0.0) + shared * (model or 0.0)
    sampling = max(0.0, between_samples.squares / between_samples.degrees - noise) / size
    within = (judge or 0.0) + (model or 0.0)
    return Components(sampling, within, None if judge is None else model, judge)


def _nested(samples: NDArray[np.int64], keys: Keys) -> NDArray[np.int64]:
    """Return a number for each pair of a sample and a key."""
    numbers: dict[tuple[int, Hashable], int] = {}
    flat = (key for of_sample in keys for key in of_sample)
    pairs = zip(samples.tolist(), flat, strict=True)
    return np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs], dtype=np.int64)


def _means(values: Numbers, groups: NDArray[np.int64]) -> Numbers:
    means = np.bincount(groups, weights=values) / np.bincount(groups)
    return np.asarray(means[groups], dtype=np.float64)


def _pooled(values: Numbers, groups: NDArray[np.int64]) -> float | None:
    """Return the pooled variance within groups; `None` if no group has two values."""
    degrees = len(values) - int(groups.max()) - 1
    return None if not degrees else float(((values - _means(values, groups)) ** 2).sum()) / degrees


def _levels(values: Numbers, samples: NDArray[np.int64], answers: NDArray[np.int64]) -> tuple[_Level, _Level]:
    of_answers, of_samples = _means(values, answers), _means(values, samples)
    num_answers, num_samples = int(answers.max()) + 1, int(samples.max()) + 1
    weights = float((np.bincount(answers)[answers] / np.bincount(samples)[samples]).sum())
    return (
        _Level(float(((of_answers - of_samples) ** 2).sum()), num_answers - num_samples, weights),
        _Level(float(((of_samples - values.mean()) ** 2).sum()), num_samples - 1, 0.0),
    )
