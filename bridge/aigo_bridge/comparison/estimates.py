"""The numbers of one result, each with its interval, its denominator, and its bounds if every sample without
a score had scored worst or best.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.comparison.columns import Columns, State
from aigo_bridge.comparison.numbers import Quantity, quantities
from aigo_bridge.statistics.intervals import Estimate, NoInterval
from aigo_bridge.statistics.quantiles import LEVEL, MissingScipyError
from aigo_bridge.statistics.ratios import Ratio, f1_of, ratio_interval
from aigo_bridge.statistics.smooth import Smooth, smooth_interval


@dataclass(frozen=True)
class Denominator:
    """What became of the samples of a result in one number; the counts add up to all of them."""

    scored: int
    """In the number."""
    failed: int
    """The scorer has nothing to say of them: it, or the solver, failed; or a rule could not be evaluated."""
    excluded: int
    """Kept out by an action rule."""
    no_aggregate: int
    """Scored in trials, but their scores have no aggregate (labels)."""
    no_value: int
    """Scored, but without this score: null, NaN, or a label that the metric does not know."""

    @property
    def unscored(self) -> int:
        """Samples that should be in the number and are not."""
        return self.failed + self.no_aggregate + self.no_value


@dataclass(frozen=True)
class MetricEstimate:
    """One number of a result."""

    scorer: str | None
    metric: str
    name: str
    value: float | int
    estimate: Estimate
    denominator: Denominator | None
    """`None`: it is not known which samples are in the number."""
    bounds: tuple[float, float] | None
    """The number if every unscored sample had scored worst, and best; `None`: not known."""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "scorer": self.scorer,
            "metric": self.metric,
            "name": self.name,
            "value": self.value,
            **estimate_json(self.estimate),
            "samples": None if self.denominator is None else asdict(self.denominator),
            "bounds": None if self.bounds is None else list(self.bounds),
        }


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """An interval for programs, or its reason."""
    if isinstance(estimate, NoInterval):
        return {"interval": None, "standard_error": None, "method": None, "reason": estimate.reason}
    return {
        "interval": [estimate.low, estimate.high],
        "standard_error": estimate.standard_error,
        "method": estimate.method,
        "reason": None,
    }


@dataclass(frozen=True)
class MissingNumber:
    """A metric of a result that has no value at all."""

    scorer: str | None
    metric: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {"scorer": self.scorer, "metric": self.metric, "reason": self.reason}


def missing_numbers(columns: Columns) -> list[MissingNumber]:
    """The metrics without a value, with what the result says of them, and with how many samples failed."""
    evidence = columns.frame.evidence
    counts = outcome_text(columns)
    return [
        MissingNumber(
            metric.scorer_key,
            metric.metric_key,
            counts if metric.reason is None else f"{metric.reason} ({counts})",
        )
        for metric in (evidence.metrics if evidence is not None else None) or ()
        if not metric.values
    ]


def outcome_text(columns: Columns) -> str:
    """What became of the samples of a result, in words."""
    failed = int(np.isin(columns.states, (State.FAILED, State.UNDECIDED)).sum())
    excluded = int((columns.states == State.EXCLUDED).sum())
    return f"of {len(columns)} samples {failed} failed, {excluded} are excluded by a rule"


def estimates(columns: Columns, *, cluster: str | None = None, level: float = LEVEL) -> list[MetricEstimate]:
    """Every number of a result with its interval; without scipy those alone that are shares of samples.

    Args:
        columns: the result.
        cluster: column of the data set, read with it, whose equal values make samples a group; `None`: rows
            of one sample are a group.
        level: of confidence.
    """
    groups = columns.groups(cluster)
    return [
        _metric_estimate(columns, quantity, _interval(quantity, groups, level))
        for quantity in quantities(columns)
    ]


def _metric_estimate(columns: Columns, quantity: Quantity, estimate: Estimate) -> MetricEstimate:
    """A number with its interval, its denominator and its bounds."""
    denominator = denominator_of(columns, quantity) if len(quantity.positions) else None
    return MetricEstimate(
        quantity.scorer,
        quantity.metric,
        quantity.name,
        quantity.value,
        estimate,
        denominator,
        None if denominator is None else _bounds(quantity, denominator.unscored),
    )


def _interval(quantity: Quantity, groups: NDArray[np.int64] | None, level: float) -> Estimate:
    try:
        return interval_of(quantity, groups, level)
    except MissingScipyError as error:
        return NoInterval(str(error))


def interval_of(
    quantity: Quantity, groups: NDArray[np.int64] | None = None, level: float = LEVEL
) -> Estimate:
    """The interval of a number; `groups` has a number for every sample of the result."""
    numbers = None if groups is None else _renumbered(groups[quantity.positions])
    match quantity.content:
        case Ratio():
            return ratio_interval(quantity.content, numbers, level)
        case Smooth():
            return smooth_interval(quantity.content, numbers, level)
        case NoInterval():
            return quantity.content


def _renumbered(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def denominator_of(columns: Columns, quantity: Quantity) -> Denominator:
    """What became of the samples in a number."""
    total = len(columns)
    excluded = int((columns.states == State.EXCLUDED).sum())
    unscored = columns.counted.copy()
    unscored[quantity.positions] = False
    scored_by = columns.scored_by.get(quantity.scorer or "")
    has_scores = np.zeros(total, dtype=bool)
    if scored_by is not None:
        has_scores[np.array(scored_by, dtype=np.int64)] = True
    in_trials = np.zeros(total, dtype=bool)
    for field in quantity.fields:
        column = columns.scores.get((quantity.scorer or "", field))
        if column is not None and column.trials:
            in_trials[np.array(list(column.trials), dtype=np.int64)] = True
            in_trials[np.array(column.positions, dtype=np.int64)] = False
    scored = len(quantity.positions)
    no_aggregate = int((unscored & in_trials).sum())
    no_value = int((unscored & has_scores & ~in_trials).sum())
    failed = total - excluded - scored - no_aggregate - no_value
    return Denominator(scored, failed, excluded, no_aggregate, no_value)


def _bounds(quantity: Quantity, unscored: int) -> tuple[float, float] | None:
    """Of means on a scale with ends, shares, and ratios to which a sample adds at most one; what a failed
    sample would have added to other numbers has no worst and best.
    """
    if not unscored:
        return float(quantity.value), float(quantity.value)
    content = quantity.content
    if not isinstance(content, Ratio) or not (content.is_mean or content.is_share):
        return None
    limits = content.bounds()
    if limits is None:
        return None
    total, count = float(content.numerator.sum()), float(content.denominator.sum()) + unscored
    worst, best = ((total + unscored * limit) / count for limit in limits)
    return (f1_of(worst), f1_of(best)) if content.transformed else (worst, best)
