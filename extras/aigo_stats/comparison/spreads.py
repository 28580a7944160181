"""Spreads that past results tell the next comparison: between samples, and between the trials of one."""

from __future__ import annotations

import numpy as np

from aigo_bridge.metrics.grades import score_number
from aigo_stats.comparison.columns import Columns
from aigo_stats.comparison.comparing import compare
from aigo_stats.comparison.numbers import Quantity, quantities
from aigo_stats.statistics.intervals import NoInterval, same
from aigo_stats.statistics.planning import Spread, variance_within
from aigo_stats.statistics.ratios import Ratio


def means(columns: Columns) -> list[Quantity]:
    """The numbers of a result that are means of a score: power is known for these."""
    return [
        quantity
        for quantity in quantities(columns)
        if isinstance(quantity.content, Ratio) and quantity.content.is_mean
    ]


def spread_of_two(
    base: Columns, new: Columns, key: tuple[str | None, str, str]
) -> tuple[Spread, int] | NoInterval:
    """The spread of the difference of two results, and the pairs that it was seen on, or why it is not."""
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
        return NoInterval("the difference is the same in every pair, so its spread is not known")
    within = sum((_within(columns, key) or 0.0) / max(1, columns.num_trials) for columns in (base, new))
    between = max(0.0, variance - within)
    trials = max(1, min(base.num_trials, new.num_trials))
    is_share = all(_is_right_or_wrong(columns, key) for columns in (base, new))
    return Spread(between, within * trials, is_share, difference.value), difference.num_pairs


def spread_of_one(columns: Columns, quantity: Quantity) -> tuple[Spread, int] | NoInterval:
    """The spread of the difference to a second model that is as good, and whose scores have nothing to do
    with the first one's; or why it is not known.

    Scores of two models mostly go together, so fewer samples will do; how far they do, only two results tell.
    With one trial per sample nothing is known of trials: all the spread is one trial's.
    """
    assert isinstance(quantity.content, Ratio)
    values = quantity.content.numerator
    if len(values) < 2:
        return NoInterval("one sample has no variance")
    variance = float(values.var(ddof=1))
    within = _within(columns, quantity.key)
    if same(variance**0.5, float(abs(values).max())) and not within:
        return NoInterval("all samples have the same score, so their spread is not known")
    is_share = _is_right_or_wrong(columns, quantity.key)
    if within is None:
        return Spread(0.0, 2 * variance, is_share), len(values)
    between = max(0.0, variance - within / columns.num_trials)
    return Spread(2 * between, 2 * within, is_share), len(values)


def _within(columns: Columns, key: tuple[str | None, str, str]) -> float | None:
    """Variance between the trials of a sample, of the score whose mean a number is."""
    return variance_within([np.array(numbers) for numbers in _trials(columns, _quantity(columns, key))])


def _is_right_or_wrong(columns: Columns, key: tuple[str | None, str, str]) -> bool:
    """Whether one trial of a sample is either; the mean of several is not."""
    quantity = _quantity(columns, key)
    if quantity is None or not isinstance(quantity.content, Ratio):
        return False
    trials = _trials(columns, quantity)
    if trials and quantity.content.scale.right_or_wrong:
        return all(number in (0.0, 1.0) for numbers in trials for number in numbers)
    return quantity.content.is_share


def _quantity(columns: Columns, key: tuple[str | None, str, str]) -> Quantity | None:
    return next((quantity for quantity in quantities(columns) if quantity.key == key), None)


def _trials(columns: Columns, quantity: Quantity | None) -> list[list[float]]:
    """The scores of the trials of each sample that has several."""
    if quantity is None or not quantity.fields:
        return []
    column = columns.scores.get((quantity.scorer or "", quantity.fields[0]))
    if column is None:
        return []
    numbers = (
        [score_number(value, graded=columns.graded) for value in values] for values in column.trials.values()
    )
    return [[number for number in of_sample if number is not None] for of_sample in numbers]
