"""Metrics of one result with interval, sample counts, and bounds.

The bounds assume the worst or the best score for every sample without a score.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.metrics.grades import score_number
from aigo_bridge.metrics.names import MetricIdentity, metric_labels
from aigo_bridge.results.counts import SampleState
from aigo_bridge.text.plurals import plural
from aigo_stats.comparison.columns import ResultColumns
from aigo_stats.comparison.numbers import Quantity, identity_of, quantities
from aigo_stats.statistics.intervals import Estimate, NoInterval
from aigo_stats.statistics.quantiles import LEVEL, MissingScipyError
from aigo_stats.statistics.ratios import Ratio, f1_of, ratio_interval
from aigo_stats.statistics.smooth import Smooth, smooth_interval


@dataclass(frozen=True)
class Denominator:
    """Sample counts of a metric. The first six counts add up to all samples."""

    scored: int
    """Samples included in the metric."""
    failed: int
    excluded: int
    unfinished: int
    no_aggregate: int
    """Samples whose trials have scores without an aggregate (labels)."""
    no_value: int
    """Samples without this score although the scorer succeeded: null, NaN, or a label unknown to the
    metric."""
    unscored: int
    """Samples that are missing in the metric: all except scored and excluded samples."""
    trials: int
    """Trials of the included samples."""
    missing_trials: int
    """Trials of the included samples without a value."""

    @property
    def is_partial(self) -> bool:
        """Whether samples or trials are missing in the metric."""
        return bool(self.unscored or self.missing_trials)


@dataclass(frozen=True)
class MetricEstimate:
    """One metric of a result."""

    identity: MetricIdentity
    label: str
    """Display name, unique in the result."""
    value: float | int
    estimate: Estimate
    denominator: Denominator | None
    """Sample counts; `None` if the included samples are unknown."""
    bounds: tuple[float, float] | None
    """Value if every missing sample and trial had the worst or the best score; `None` if unknown."""
    reported_error: tuple[str, float] | None = None
    """Name and value of the standard error that another tool reported."""
    scale: tuple[float, float] | None = None
    """Lowest and highest possible value by declaration; `None` if not declared."""

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.identity.name

    @property
    def scorer(self) -> str | None:
        """Key of the scorer."""
        return self.identity.scorer

    @property
    def metric(self) -> str:
        """Key of the metric."""
        return self.identity.metric

    @property
    def shown_error(self) -> float | None:
        """Standard error to display: the reported one, or else the interval's."""
        if self.reported_error is not None:
            return self.reported_error[1]
        return None if isinstance(self.estimate, NoInterval) else self.estimate.standard_error

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        name, error = self.reported_error or (None, None)
        return {
            **self.identity.to_json(),
            "label": self.label,
            "value": self.value,
            **estimate_json(self.estimate),
            "reported_standard_error": error,
            "reported_as": name,
            **missing_json(self),
        }


def missing_json(metric: MetricEstimate) -> dict[str, Any]:
    """Return the sample counts and the bounds of a metric as plain data."""
    return {
        "samples": None if metric.denominator is None else asdict(metric.denominator),
        "bounds": None if metric.bounds is None else list(metric.bounds),
    }


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """Return a JSON-serializable dictionary with the interval, or the reason why it is missing."""
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
    """Metric of a result without a value."""

    scorer: str | None
    metric: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {"scorer": self.scorer, "metric": self.metric, "reason": self.reason}


def missing_numbers(columns: ResultColumns) -> list[MissingNumber]:
    """Return the metrics without a value, with the reported reason and the number of failed samples."""
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


def outcome_text(columns: ResultColumns) -> str:
    """Return a sentence about the outcome of a result's samples."""
    counts = columns.counts
    text = (
        f"of {plural(counts.samples, 'sample')} {counts.failed} failed, {counts.excluded} are"
        " excluded by a rule"
    )
    return f"{text}, {counts.unfinished} are not finished" if counts.unfinished else text


def estimates(
    columns: ResultColumns, *, cluster: str | None = None, level: float = LEVEL
) -> list[MetricEstimate]:
    """Return every metric of a result with its interval. Without scipy, return only proportions of samples.

    Args:
        columns: the result.
        cluster: dataset column that groups samples by value, read with the result. `None` groups rows of one
            sample.
        level: confidence level.
    """
    groups = columns.groups(cluster)
    numbers = quantities(columns)
    labels = metric_labels([identity_of(quantity) for quantity in numbers])
    return [
        _metric_estimate(columns, quantity, _interval(quantity, groups, level), label)
        for quantity, label in zip(numbers, labels, strict=True)
    ]


def _metric_estimate(
    columns: ResultColumns, quantity: Quantity, estimate: Estimate, label: str
) -> MetricEstimate:
    """Return a metric with its interval, sample counts and bounds."""
    denominator = denominator_of(columns, quantity) if len(quantity.positions) else None
    return MetricEstimate(
        identity_of(quantity),
        label,
        quantity.value,
        estimate,
        denominator,
        None if denominator is None else _bounds(columns, quantity, denominator),
        quantity.reported_error,
        declared_scale(quantity),
    )


def declared_scale(quantity: Quantity) -> tuple[float, float] | None:
    """Return the lowest and highest possible value by declaration; `None` if not declared."""
    return quantity.content.bounds() if isinstance(quantity.content, Ratio) else None


def part_estimate(quantity: Quantity, rows: NDArray[np.bool_], groups: NDArray[np.int64] | None) -> Estimate:
    """Return the interval of a metric over some of its samples.

    Args:
        quantity: metric that is a ratio.
        rows: whether the part contains each sample of the metric.
        groups: group number of every sample of the result; `None` for independent samples.
    """
    assert isinstance(quantity.content, Ratio)
    part = replace(
        quantity.content,
        numerator=quantity.content.numerator[rows],
        denominator=quantity.content.denominator[rows],
    )
    return _interval(replace(quantity, content=part, positions=quantity.positions[rows]), groups, LEVEL)


def _interval(quantity: Quantity, groups: NDArray[np.int64] | None, level: float) -> Estimate:
    try:
        return interval_of(quantity, groups, level)
    except MissingScipyError as error:
        return NoInterval(str(error))


def interval_of(
    quantity: Quantity, groups: NDArray[np.int64] | None = None, level: float = LEVEL
) -> Estimate:
    """Return the interval of a metric. `groups` contains a group number for every sample of the result."""
    numbers = None
    if groups is not None:
        numbers = np.unique(groups[quantity.positions], return_inverse=True)[1].astype(np.int64)
    match quantity.content:
        case Ratio():
            return ratio_interval(quantity.content, numbers, level)
        case Smooth():
            return smooth_interval(quantity.content, numbers, level)
        case NoInterval():
            return quantity.content


def denominator_of(columns: ResultColumns, quantity: Quantity) -> Denominator:
    """Return the sample counts of a metric."""
    others = np.ones(len(columns), dtype=bool)
    others[quantity.positions] = False
    state = {state: int((others & (columns.states == state)).sum()) for state in SampleState}
    without = others & np.isin(columns.states, [SampleState.SCORED, SampleState.UNSCORED])
    in_trials = np.zeros(len(columns), dtype=bool)
    for field in quantity.fields:
        column = columns.scores.get((quantity.scorer or "", field))
        if column is not None and column.trials:
            in_trials[np.array(list(column.trials), dtype=np.int64)] = True
            in_trials[np.array(column.positions, dtype=np.int64)] = False
    return Denominator(
        scored=len(quantity.positions),
        failed=state[SampleState.FAILED],
        excluded=state[SampleState.EXCLUDED],
        unfinished=state[SampleState.UNFINISHED],
        no_aggregate=int((without & in_trials).sum()),
        no_value=int((without & ~in_trials).sum()),
        unscored=int((others & ~columns.excluded).sum()),
        trials=int(columns.trials[quantity.positions].sum()),
        missing_trials=int(_missing_trials(columns, quantity).sum()),
    )


def _missing_trials(columns: ResultColumns, quantity: Quantity) -> NDArray[np.int64]:
    """Return the number of trials without a value for each sample of a metric."""
    positions = quantity.positions
    without_end = (columns.failed_trials + columns.unfinished_trials)[positions]
    if columns.num_trials == 1:
        return np.zeros_like(without_end)
    missing = []
    for field in quantity.fields:
        column = columns.scores.get((quantity.scorer or "", field))
        if column is None or not any(column.trials.values()):
            continue  # an aggregate over trials, or an engine that scores all trials of a sample together
        values = np.array([len(column.trials.get(position, ())) for position in positions.tolist()])
        # A trial that failed in another scorer has a value.
        missing.append(np.where(values > 0, columns.trials[positions] - values, without_end))
    return np.maximum.reduce(missing) if missing else without_end


def _bounds(
    columns: ResultColumns, quantity: Quantity, denominator: Denominator
) -> tuple[float, float] | None:
    """Return the metric if every missing sample and trial had the worst or the best score; `None` if unknown.

    Bounds exist for means on a bounded scale, for proportions, and for ratios with at most one for each
    sample. Missing trials also require that a sample's score is the mean of its trial scores.
    """
    if not denominator.is_partial:
        return float(quantity.value), float(quantity.value)
    content = quantity.content
    if not isinstance(content, Ratio) or not (content.is_mean or content.is_share):
        return None
    limits = content.bounds()
    if limits is None:
        return None
    missing = _missing_trials(columns, quantity) / columns.trials[quantity.positions]
    if denominator.missing_trials and not _are_means_of_trials(columns, quantity, content):
        return None
    unscored = denominator.unscored
    present = float((content.numerator * (1 - missing)).sum())
    count = float(content.denominator.sum()) + unscored
    worst, best = ((present + (unscored + float(missing.sum())) * limit) / count for limit in limits)
    return (f1_of(worst), f1_of(best)) if content.transformed else (worst, best)


def _are_means_of_trials(columns: ResultColumns, quantity: Quantity, content: Ratio) -> bool:
    """Return whether each sample's contribution is the mean of its trial scores."""
    if not content.is_mean or len(quantity.fields) != 1:
        return False
    column = columns.scores[quantity.scorer or "", quantity.fields[0]]
    for position, value in zip(quantity.positions.tolist(), content.numerator.tolist(), strict=True):
        scores = (score_number(score, graded=columns.graded) for score in column.trials.get(position, ()))
        numbers = [number for number in scores if number is not None]
        if columns.trials[position] == 1:
            continue
        if not numbers or not math.isclose(math.fsum(numbers) / len(numbers), value, abs_tol=1e-9):
            return False
    return True
