"""Metric types by name, and the computation of one metric.

To add a metric, write a function and its `MetricType`, and add a row here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aigo_bridge import plugins
from aigo_bridge.metrics.compute import (
    BINARY_CLASSIFICATION,
    F1_SCORE,
    FREQUENCY,
    MAX,
    MEAN,
    MIN,
    MULTICLASS_CLASSIFICATION,
    PRECISION,
    RECALL,
    STD_DEV,
    WEIGHTED_AVERAGE,
)
from aigo_bridge.metrics.metric import MetricContext, MetricResult, MetricType, NoAggregate, Scores, fits_json
from aigo_bridge.metrics.python import PYTHON
from aigo_bridge.spec.metric import METRICS, MetricSpec

if TYPE_CHECKING:
    from aigo_bridge.dtypes import SampleScore
    from aigo_bridge.snippets import SnippetHost

METRIC_TYPES: dict[type[MetricSpec], MetricType[Any]] = {}
"""Specification class → metric type."""


def register(metric_type: MetricType[Any]) -> None:
    """Register a metric type for use in scorers."""
    spec = metric_type.spec
    METRIC_TYPES[spec] = metric_type
    if spec.type_name() not in METRICS:
        from aigo_bridge.spec import task

        METRICS[spec.type_name()] = spec
        task.rebuild()


for row in (
    MEAN,
    MIN,
    MAX,
    STD_DEV,
    FREQUENCY,
    WEIGHTED_AVERAGE,
    PRECISION,
    RECALL,
    F1_SCORE,
    BINARY_CLASSIFICATION,
    MULTICLASS_CLASSIFICATION,
    PYTHON,
):
    register(row)


def metric_type(metric: MetricSpec) -> MetricType[Any]:
    """Return the type of a metric.

    Raises:
        PluginError: the plug-in that defines the type cannot be loaded.
    """
    if type(metric) not in METRIC_TYPES:
        METRIC_TYPES[type(metric)] = plugins.load("metrics", metric.type, MetricType)
    return METRIC_TYPES[type(metric)]


def compute_metric(
    metric: MetricSpec,
    scores: Scores,
    *,
    host: SnippetHost | None = None,
    samples: Sequence[SampleScore] | None = None,
    snippet_place: tuple[str, int] | None = None,
) -> MetricResult:
    """Compute one metric over the scores of its scorer.

    A missing, null or NaN value is skipped and counted, never treated as zero. A value of the wrong type
    (text for `mean`, a label without a weight) leaves the metric without a value and with a problem, because
    a number over the remaining values would be wrong.

    Args:
        metric: metric with config bound.
        scores: values of each scored sample.
        host: worker host for `python` metrics; without one they have no value. The call blocks while they
            run.
        samples: input of `python` metrics, values with metadata; `None`: only the values.
        snippet_place: file and first line of a `python` metric's code, for errors; `None` if unknown.
    """
    reason = next(_unaggregated(metric, scores), None)
    if reason is not None:
        return MetricResult({}, 0, len(scores), f"over the trials of a sample, {reason}")
    try:
        compute = metric_type(metric).compute
        result: MetricResult = compute(metric, scores, MetricContext(samples, host, snippet_place))
    except OverflowError:
        return _too_large(scores)
    return result if all(map(fits_json, result.values.values())) else _too_large(scores)


def _unaggregated(metric: MetricSpec, scores: Scores) -> Iterator[str]:
    """Yield why samples have no aggregated value of a score that the metric reads. A number over the
    remaining samples would be wrong.
    """
    names = metric.scores
    for values in scores:
        for name in names:
            if isinstance(value := values.get(name), NoAggregate):
                yield value.reason


def _too_large(scores: Scores) -> MetricResult:
    return MetricResult({}, 0, len(scores), "the numbers are too large to compute with")
