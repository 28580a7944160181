"""What a metric reads and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Scores = Sequence[Mapping[str, Any]]
"""One mapping of score name to value, or `NoAggregate`, for each sample that was scored."""


@dataclass(frozen=True)
class NoAggregate:
    """Stands for a score that has values in the trials of a sample, but no aggregated one: no metric can leave it out silently."""

    reason: str
    is_number: bool
    """Whether one of the trials at least gave a number."""


@dataclass(frozen=True)
class MetricResult:
    """What one metric came to."""

    values: Mapping[str, int | float]
    """Value name → number; empty when the metric could not be computed."""
    num_used: int
    """Samples that had a value."""
    num_skipped: int
    """Samples that are in no number: without a value (missing, null or NaN), or all when the metric failed as a whole."""
    problem: str | None = None
    """Why there is no value, or what is doubtful about it; `None` when all is well."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What stands behind the values and is no number itself, e.g. a confusion matrix; JSON."""
