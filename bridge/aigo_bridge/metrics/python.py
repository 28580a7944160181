"""Metrics that an author writes in Python."""

from __future__ import annotations

import math
from typing import Any

from aigo_bridge.dtypes import SampleScore
from aigo_bridge.errors import SnippetError
from aigo_bridge.metrics.metric import MetricContext, MetricResult, MetricType, Scores
from aigo_bridge.snippets.snippet import OLD_METRICS, Snippet, metrics_function
from aigo_bridge.spec.metrics import PythonMetric
from aigo_bridge.text.summaries import short


def python_metric(metric: PythonMetric, scores: Scores, context: MetricContext) -> MetricResult:
    """Call `compute_metrics(scores: list[SampleScore]) -> dict[str, int | float]`, sync or async. The
    deprecated form is `aggregate(scores: list[dict])`.

    The call blocks while the snippet runs. Every failure becomes the problem of this result, so that other
    metrics are not affected. A null, NaN or infinite value is left out and reported. A value that is not a
    number leaves the metric without values.
    """
    if context.host is None:
        return MetricResult({}, 0, len(scores), "its snippet cannot run: no worker process")
    samples = context.samples
    if samples is None:
        samples = [SampleScore(values=dict(values)) for values in scores]
    label = "compute_metrics_snippet"
    function = metrics_function(metric.compute_metrics_snippet)
    snippet = Snippet(metric.compute_metrics_snippet, function, label).at(context.snippet_place)
    argument = [dict(score.values) for score in samples] if function == OLD_METRICS else list(samples)
    try:
        returned = context.host.call_blocking(snippet, (argument,), {})
    except SnippetError as error:
        return MetricResult({}, 0, len(samples), str(error))
    if not isinstance(returned, dict):
        reason = f"{function} returned a {type(returned).__name__}, expected a mapping of names to numbers"
        return MetricResult({}, 0, len(samples), snippet.told(reason))
    wrong = [name for name, value in returned.items() if not _is_numeric(value)]
    if wrong:
        shown = ", ".join(f"{name!r} is {short(returned[name])}" for name in wrong[:3])
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        reason = f"{function} returned values that are not numbers: {shown}{more}"
        return MetricResult({}, 0, len(samples), snippet.told(reason))
    values = {name: _plain(value) for name, value in returned.items() if value is not None}
    finite = {name: value for name, value in values.items() if math.isfinite(value)}
    left_out = [name for name in returned if name not in finite]
    problem: str | None = None
    if left_out:
        shown = ", ".join(f"{name!r} is {returned[name]}" for name in left_out[:3])
        problem = f"{function} returned values that are left out: {shown}"
    elif not finite:
        problem = f"{function} returned no values"
    used = len(samples) if finite else 0
    return MetricResult(finite, used, len(samples) - used, problem)


def _is_numeric(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float)


def _plain(value: bool | float) -> int | float:
    """Convert booleans to 0 and 1, because metrics are numbers."""
    return int(value) if isinstance(value, bool) else value


PYTHON = MetricType(PythonMetric, python_metric)
