"""What all metrics have in common, and what the rest of the bridge asks of one without looking at its type.

A metric's class says which scores it reads, what its value is called, and what is wrong with it. What
computes it stands in `metrics`, in a function and a row of `metrics.registry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from aigo_bridge.errors import Issue
from aigo_bridge.spec.base import Key, Path, TypedSpec, TypeTable


class MetricSpec(TypedSpec):
    """What a task says of any metric, and what is asked of it."""

    score_fields: ClassVar[tuple[str, ...]] = ()
    """Fields with the name of a score that is read."""
    snippet: ClassVar[str | None] = None
    """Field with the author's code."""
    is_extension: ClassVar[bool] = False
    """Whether it is ours, and AI GO has no such metric."""

    key: Key | None = None
    """Name of the metric in the evidence; `None`: its type."""

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        """Contradictions in a metric as it is written, which need not be valid."""
        yield from ()

    @property
    def value_name(self) -> str | None:
        """Name of its only value; `None` where there may be several, or the author's code names them."""
        return None

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores that are read."""
        return tuple(getattr(self, name) for name in self.score_fields)


METRICS: TypeTable[MetricSpec] = TypeTable("metrics", MetricSpec)
"""Metric type → its specification: those of `spec.metrics`, and of plug-ins."""


class NamedMetric(MetricSpec):
    """A metric with one value."""

    name: str | None = None
    """Name of the value; `None`: a name such as `{field}_mean` or `precision`."""

    @property
    def value_name(self) -> str:
        """Name of its value."""
        return self.name or self.type


class FieldMetric(NamedMetric):
    """A metric with one value, over one score."""

    score_fields = ("field",)

    field: str
    """Score to read, for example `is_correct`."""

    @property
    def value_name(self) -> str:
        """Name of its value."""
        return self.name or f"{self.field}_{self.type}"
