"""A type of metric that no module of the bridge knows: what is asked of one, in one file.

`at_least` is the share of the samples whose score reaches a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from aigo_bridge.errors import Issue
from aigo_bridge.metrics.compute import over_field
from aigo_bridge.metrics.metric import MetricType
from aigo_bridge.spec.base import Path
from aigo_bridge.spec.metric import FieldMetric


class AtLeastMetric(FieldMetric):
    """Share of the samples whose score is at least the bound."""

    is_extension = True

    type: Literal["at_least"]
    bound: float = 0.5
    """What has to be reached."""

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        """A bound that no number reaches."""
        if document.get("bound") == float("inf"):
            yield Issue("'bound': no number reaches it", path=(*path, "bound"))


AT_LEAST = MetricType(
    AtLeastMetric,
    lambda metric, scores, _: over_field(
        metric, scores, lambda numbers: sum(number >= metric.bound for number in numbers) / len(numbers)
    ),
)
