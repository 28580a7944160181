"""Display texts of estimates and differences, shared by the terminal and the report page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_stats.comparison.comparing import MetricComparison
    from aigo_stats.comparison.estimates import Denominator, MetricEstimate
    from aigo_stats.statistics.intervals import Estimate

ABSENT = "–"
"""Placeholder for an unknown value. The reason is displayed next to it."""


def number_text(value: float | None) -> str:
    """Return a value as display text."""
    return ABSENT if value is None else f"{value:.4g}"


def signed_text(value: float) -> str:
    """Return a difference as display text."""
    return f"{value:+.4g}"


def interval_text(estimate: Estimate, otherwise: str = ABSENT) -> str:
    """Return an interval as display text, or the other text without an interval."""
    from aigo_stats.statistics.intervals import NoInterval

    if isinstance(estimate, NoInterval):
        return otherwise
    return f"[{estimate.low:.4g}, {estimate.high:.4g}]"


def missing_trials_text(counts: Denominator) -> str:
    """Return a text about missing trials of the samples in a metric."""
    verb = "is" if counts.missing_trials == 1 else "are"
    return f"{counts.missing_trials} of {plural(counts.trials, 'trial')} {verb} missing"


def bounds_text(metric: MetricEstimate) -> str | None:
    """Return the worst and best value of a metric if samples or trials are missing.

    Return `None` if none are missing, or if the scale is unbounded.
    """
    counts = metric.denominator
    if counts is None or not counts.is_partial or metric.bounds is None:
        return None
    units = " and ".join(
        unit for number, unit in ((counts.unscored, "sample"), (counts.missing_trials, "trial")) if number
    )
    worst, best = map(number_text, metric.bounds)
    return f"{worst} if every missing {units} had scored worst, {best} if best"


def p_text(value: float | None) -> str:
    """Return a p-value as display text."""
    if value is None:
        return ABSENT
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def level_text(level: float) -> str:
    """Return a confidence level as display text."""
    return f"{level * 100:.4g} %"


def metric_notes(metric: MetricComparison) -> Iterator[str]:
    """Yield remarks on a metric: why it is not compared or lacks an interval, and which samples are not
    included.
    """
    from aigo_stats.statistics.intervals import NoInterval

    if isinstance(metric.difference, NoInterval):
        yield f"not compared: {metric.difference.reason}"
    elif isinstance(metric.difference.estimate, NoInterval):
        yield f"no interval: {metric.difference.estimate.reason}"
    if metric.num_unpaired:
        yield (
            f"{plural(metric.num_unpaired, 'sample is', 'samples are')} in this number of one"
            " result alone, and left out"
        )
