"""Base class of metric specifications: everything that other code needs without knowing the type.

A class defines which scores a metric reads, the name of its value, and its checks. The computation is a
function in `metrics`, with a row in `metrics.registry`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from aigo_bridge.errors import Issue
from aigo_bridge.spec.base import Key, Path, TypedSpec, TypeTable


class MetricSpec(TypedSpec):
    """Base class of metric specifications."""

    score_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that contain the name of a score to read."""
    snippet: ClassVar[str | None] = None
    """Field with the author's code."""
    is_extension: ClassVar[bool] = False
    """Whether the metric is an extension that AI GO does not have."""

    key: Key | None = None
    """Name of the metric in the evidence; `None`: its type."""

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        """Yield contradictions in a metric as written, which may also be invalid otherwise."""
        yield from ()

    @property
    def value_name(self) -> str | None:
        """Return the name of the only value; `None` if there can be several, or if task code names them."""
        return None

    @property
    def scores(self) -> tuple[str, ...]:
        """Return the names of the scores to read."""
        return tuple(getattr(self, name) for name in self.score_fields)


METRICS: TypeTable[MetricSpec] = TypeTable("metrics", MetricSpec)
"""Metric type → specification, from `spec.metrics` and plug-ins."""


class NamedMetric(MetricSpec):
    """A metric with one value."""

    name: str | None = None
    """Name of the value; `None`: a name such as `{field}_mean` or `precision`."""

    @property
    def value_name(self) -> str:
        """Return the name of the value."""
        return self.name or self.type


class FieldMetric(NamedMetric):
    """A metric with one value, over one score."""

    score_fields = ("field",)

    field: str
    """Score to read, for example `is_correct`."""

    @property
    def value_name(self) -> str:
        """Return the name of the value."""
        return self.name or f"{self.field}_{self.type}"
