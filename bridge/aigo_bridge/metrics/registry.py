"""Types of metrics by name, and one metric computed.

A new metric is a function and its `MetricType`, and a row here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from aigo_bridge import plugins
from aigo_bridge.dtypes import SampleScore
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
from aigo_bridge.metrics.metric import MetricContext, MetricResult, MetricType, NoAggregate, Scores
from aigo_bridge.metrics.python import PYTHON
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.spec import task
from aigo_bridge.spec.metric import METRICS, MetricSpec

METRIC_TYPES: dict[type[MetricSpec], MetricType[Any]] = {}
"""Specification → the type of metric that it is of."""


def register(metric_type: MetricType[Any]) -> None:
    """Let scorers have metrics of a type."""
    spec = metric_type.spec
    METRIC_TYPES[spec] = metric_type
    if spec.type_name() not in METRICS:
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
        PluginError: the plug-in that adds it cannot be loaded.
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

    A value that is missing, null or NaN is skipped and counted, never taken for zero. A value of the wrong
    kind (text under `mean`, a label without a weight) leaves the metric without a value and says so: a number
    over the rest would be a wrong one.

    Args:
        metric: as specified, config bound.
        scores: the values of each sample that was scored.
        host: where `python` metrics run; without one they have no value. The call blocks while they do.
        samples: what `python` metrics see, values with their metadata; `None`: the values alone.
        snippet_place: file and first line of the code of a `python` metric, for errors; `None`: not known.
    """
    reason = next(_unaggregated(metric, scores), None)
    if reason is not None:
        return MetricResult({}, 0, len(scores), f"over the trials of a sample, {reason}")
    try:
        compute = metric_type(metric).compute
        result: MetricResult = compute(metric, scores, MetricContext(samples, host, snippet_place))
    except OverflowError:
        return _too_large(scores)
    return result if all(map(_fits_json, result.values.values())) else _too_large(scores)


def _unaggregated(metric: MetricSpec, scores: Scores) -> Iterator[str]:
    """Why samples have no aggregated value of a score that the metric reads. A number over the rest would be
    a wrong one.
    """
    names = metric.scores
    for values in scores:
        for name in names:
            if isinstance(value := values.get(name), NoAggregate):
                yield value.reason


def _fits_json(value: float) -> bool:
    """Whether evidence can hold a number: JSON knows no infinity, and its readers take whole numbers for
    64-bit ones.
    """
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)


def _too_large(scores: Scores) -> MetricResult:
    return MetricResult({}, 0, len(scores), "the numbers are too large to compute with")
