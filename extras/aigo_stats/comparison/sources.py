"""Sources of a result's metrics: samples, scores and formulas."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.text.summaries import short
from aigo_stats.comparison.columns import ResultColumns, ScoreColumn
from aigo_stats.statistics.intervals import NoInterval, Numbers
from aigo_stats.statistics.ratios import Ratio
from aigo_stats.statistics.smooth import Smooth

FEWEST_FOR_STD_DEV = 100
"""Minimum number of samples for the interval of a standard deviation."""


@dataclass(frozen=True)
class PointValue(NoInterval):
    """Metric without an interval that the sample scores reproduce."""

    value: float


@dataclass(frozen=True)
class WrongMetric(NoInterval):
    """Metric with a known formula that the sample scores contradict."""

    value: float | None
    """Recomputed value."""


Source = tuple[NDArray[np.int64], Ratio | Smooth | NoInterval, tuple[str, ...]] | NoInterval
"""Samples, formula and input scores of a metric, or the reason why they are unknown."""


def not_known(kind: str) -> NoInterval:
    """Return the reason for an unknown formula."""
    return NoInterval(f"how {kind!r} is computed is unknown")


def present(columns: ResultColumns, column: ScoreColumn | None) -> tuple[NDArray[np.int64], list[Any]]:
    """Return indices and values of the counted samples with a value."""
    if column is None:
        return np.array([], dtype=np.int64), []
    counted = columns.counted
    positions = np.array(column.positions, dtype=np.int64)
    takes_part = counted[positions] & np.array([not is_missing(value) for value in column.values], dtype=bool)
    if takes_part.all():
        return positions, column.values
    return positions[takes_part], list(compress(column.values, takes_part.tolist()))


def as_floats(values: list[Any]) -> Numbers | NoInterval:
    """Return scores as numbers, or a reason if they contain text."""
    kinds = set(map(type, values))
    if not kinds <= {bool, int, float}:
        wrong = next(value for value in values if type(value) not in (bool, int, float))
        return NoInterval(f"the score {short(wrong)} is not a number")
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        return NoInterval("a score is larger than any floating-point number")
    return numbers if np.isfinite(numbers).all() else NoInterval("a score is not finite")


def std_dev_of(values: Numbers) -> Smooth | NoInterval:
    """Return the standard deviation (n - 1) as a function of sums."""
    if len(values) < 2:
        return NoInterval("the spread of one sample is undefined")
    # Subtract the mean first, so that squares keep their precision.
    centred = values - values.mean()
    table = np.stack([centred, centred**2, np.ones(len(values))], axis=1)

    def function(sums: Numbers) -> Numbers:
        squares = sums[:, 1] - sums[:, 0] ** 2 / sums[:, 2]
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) / (sums[:, 2] - 1)))

    return Smooth(table, np.arange(len(values)), function, None, FEWEST_FOR_STD_DEV)
