"""Display texts of estimates and differences, shared by the terminal and the report page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aigo_bridge.text.numbers import (
    ABSENT,
    Scale,
    short_number,
    shown_change_range,
    shown_number,
    shown_range,
)
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_stats.comparison.comparing import Flips, MetricComparison
    from aigo_stats.comparison.estimates import Denominator, MetricEstimate
    from aigo_stats.statistics.intervals import Estimate


def interval_text(estimate: Estimate, scale: Scale = None, otherwise: str = ABSENT) -> str:
    """Return an interval as display text, or the other text without an interval."""
    from aigo_stats.statistics.intervals import NoInterval

    return otherwise if isinstance(estimate, NoInterval) else shown_range(estimate.low, estimate.high, scale)


def change_interval_text(estimate: Estimate, scale: Scale = None) -> str:
    """Return the interval of a difference as shown."""
    from aigo_stats.statistics.intervals import NoInterval

    return (
        ABSENT if isinstance(estimate, NoInterval) else shown_change_range(estimate.low, estimate.high, scale)
    )


def missing_trials_text(counts: Denominator) -> str:
    """Return a text about missing trials of the samples in a metric."""
    verb = "is" if counts.missing_trials == 1 else "are"
    return f"{counts.missing_trials:,} of {plural(counts.trials, 'trial', form=',')} {verb} missing"


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
    worst, best = (shown_number(bound, metric.scale) for bound in metric.bounds)
    return f"{worst} if every missing {units} had scored worst, {best} if best"


def p_text(value: float | None) -> str:
    """Return a p-value as display text."""
    if value is None:
        return ABSENT
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def level_text(level: float) -> str:
    """Return a confidence level as display text."""
    return f"{short_number(level * 100)} %"


def flips_text(flips: Flips) -> str:
    """Return how many verdicts changed, and how many are the same."""
    kappa = "" if flips.kappa is None else f" (Cohen's kappa {short_number(flips.kappa)})"
    return (
        f"{len(flips.lost):,} right → wrong, {len(flips.gained):,} wrong → right;"
        f" the same verdict in {shown_number(flips.agreement, (0, 1))}{kappa}"
    )


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
            f"{plural(metric.num_unpaired, 'sample is', 'samples are')} in this metric of only"
            " one result, and left out"
        )
