"""Inspect's reducers: one score of a sample from the scores of its epochs."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from aigo_bridge.metrics.grades import graded_number

_COUNTED = re.compile(r"(?P<name>at_least|pass_at|pass_k)_(?P<k>\d{1,6})")


def reducer(name: str) -> Callable[[Sequence[Any]], float | None] | None:
    """Return the function of a reducer's name in a log; `None` if the name is not one of Inspect's.

    The function takes the values of a sample's epochs and returns the reduced number, or `None`
    if the score is unscored. A log contains only the parameter `k`; other parameters have their defaults.
    """
    if name in _PLAIN:
        return _PLAIN[name]
    match = _COUNTED.fullmatch(name)
    if match is None:
        return None
    counted, k = _COUNTING[match["name"]], int(match["k"])
    return lambda values: counted(_numbers(values), k) if values else None


def _numbers(values: Sequence[Any]) -> list[float]:
    return [graded_number(value) or 0.0 for value in values]


def _mean(values: Sequence[Any]) -> float | None:
    return statistics.mean(_numbers(values)) if values else None


def _median(values: Sequence[Any]) -> float | None:
    return statistics.median(_numbers(values)) if values else None


def _mode(values: Sequence[Any]) -> float | None:
    """Return the most frequent unconverted value: `I` and `N` differ although both are 0."""
    try:
        counts = Counter(values)
    except TypeError:  # lists
        return None
    return _numbers([counts.most_common(1)[0][0]])[0] if counts else None


def _max(values: Sequence[Any]) -> float | None:
    return max(_numbers(values)) if values else None


def _at_least(values: Sequence[float], k: int) -> float:
    return float(sum(value >= 1.0 for value in values) >= k)


def _pass_at(values: Sequence[float], k: int) -> float | None:
    """Return the pass@k estimator of Chen et al. (2021)."""
    total, right = len(values), sum(value >= 1.0 for value in values)
    if total < k:
        return None
    if total - right < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / number for number in range(total - right + 1, total + 1))


def _pass_k(values: Sequence[float], k: int) -> float | None:
    total, right = len(values), sum(value >= 1.0 for value in values)
    return None if total < k else math.comb(right, k) / math.comb(total, k)


_PLAIN: dict[str, Callable[[Sequence[Any]], float | None]] = {
    "mean": _mean,
    "median": _median,
    "mode": _mode,
    "max": _max,
}
_COUNTING: dict[str, Callable[[Sequence[float], int], float | None]] = {
    "at_least": _at_least,
    "pass_at": _pass_at,
    "pass_k": _pass_k,
}
