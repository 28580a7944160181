"""Variances in past results, for planning a comparison: between samples, and between trials of a sample."""

from __future__ import annotations

import numpy as np

from aigo_bridge.metrics.grades import score_number
from aigo_stats.comparison.columns import ResultColumns
from aigo_stats.comparison.comparing import compare
from aigo_stats.comparison.numbers import Quantity, quantities
from aigo_stats.statistics.intervals import NoInterval, same
from aigo_stats.statistics.planning import Spread, variance_within
from aigo_stats.statistics.ratios import Ratio


def means(columns: ResultColumns) -> list[Quantity]:
    """Return the metrics that are means of a score. Power analysis only supports these metrics."""
    return [
        quantity
        for quantity in quantities(columns)
        if isinstance(quantity.content, Ratio) and quantity.content.is_mean
    ]


def spread_of_two(
    base: ResultColumns, new: ResultColumns, key: tuple[str | None, str, str]
) -> tuple[Spread, int] | NoInterval:
    """Return the spread of the difference between two results with the number of pairs, or a reason."""
    metrics = {
        (metric.scorer, metric.identity.metric, metric.name): metric for metric in compare(base, new).metrics
    }
    metric = metrics.get(key)
    if metric is None:
        return NoInterval("it is not in both results")
    difference = metric.difference
    if isinstance(difference, NoInterval):
        return difference
    if isinstance(difference.estimate, NoInterval):
        return difference.estimate
    variance = difference.estimate.standard_error**2 * difference.num_pairs
    if not variance:
        return NoInterval("the difference is the same in every pair, so its spread is unknown")
    within = sum((_within(columns, key) or 0.0) / max(1, columns.num_trials) for columns in (base, new))
    between = max(0.0, variance - within)
    trials = max(1, min(base.num_trials, new.num_trials))
    is_share = all(_is_right_or_wrong(columns, key) for columns in (base, new))
    return Spread(between, within * trials, is_share, difference.value), difference.num_pairs


def spread_of_one(columns: ResultColumns, quantity: Quantity) -> tuple[Spread, int] | NoInterval:
    """Return the spread of the difference to an equally good, independent second model, or a reason.

    The scores of two models are usually correlated, so fewer samples are sufficient. The correlation can only
    be estimated from two results. With one trial for each sample, the variance of trials is unknown. The
    whole spread is then attributed to a single trial.
    """
    assert isinstance(quantity.content, Ratio)
    values = quantity.content.numerator
    if len(values) < 2:
        return NoInterval("the variance of one sample is undefined")
    variance = float(values.var(ddof=1))
    within = _within(columns, quantity.key)
    if same(variance**0.5, float(abs(values).max())) and not within:
        return NoInterval("all samples have the same score, so their spread is unknown")
    is_share = _is_right_or_wrong(columns, quantity.key)
    if within is None:
        return Spread(0.0, 2 * variance, is_share), len(values)
    between = max(0.0, variance - within / columns.num_trials)
    return Spread(2 * between, 2 * within, is_share), len(values)


def _within(columns: ResultColumns, key: tuple[str | None, str, str]) -> float | None:
    """Return the variance between the trials of a sample, for the score of a mean."""
    return variance_within([np.array(numbers) for numbers in _trials(columns, _quantity(columns, key))])


def _is_right_or_wrong(columns: ResultColumns, key: tuple[str | None, str, str]) -> bool:
    """Return whether one trial of a sample is binary. The mean of several trials is not binary."""
    quantity = _quantity(columns, key)
    if quantity is None or not isinstance(quantity.content, Ratio):
        return False
    trials = _trials(columns, quantity)
    if trials and quantity.content.scale.right_or_wrong:
        return all(number in (0.0, 1.0) for numbers in trials for number in numbers)
    return quantity.content.is_share


def _quantity(columns: ResultColumns, key: tuple[str | None, str, str]) -> Quantity | None:
    return next((quantity for quantity in quantities(columns) if quantity.key == key), None)


def _trials(columns: ResultColumns, quantity: Quantity | None) -> list[list[float]]:
    """Return the trial scores of each sample with several trials."""
    if quantity is None or not quantity.fields:
        return []
    column = columns.scores.get((quantity.scorer or "", quantity.fields[0]))
    if column is None:
        return []
    numbers = (
        [score_number(value, graded=columns.graded) for value in values] for values in column.trials.values()
    )
    return [[number for number in of_sample if number is not None] for of_sample in numbers]
