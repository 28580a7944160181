"""Metrics that the author writes in Python; they run in the snippet worker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aigo_bridge.dtypes import SampleScore
from aigo_bridge.errors import SnippetError
from aigo_bridge.metrics.numbers import short
from aigo_bridge.metrics.result import MetricResult
from aigo_bridge.snippets import Snippet, SnippetHost
from aigo_bridge.snippets.signatures import OLD_METRICS, metrics_function
from aigo_bridge.spec.metrics import PythonMetric


def python_metric(
    metric: PythonMetric,
    samples: Sequence[SampleScore],
    host: SnippetHost,
    place: tuple[str, int] | None = None,
) -> MetricResult:
    """`compute_metrics(scores: list[SampleScore]) -> dict[str, int | float]`, sync or async; the older form is `aggregate(scores: list[dict])`.

    Blocks while the snippet runs; `place` is its file and first line, where they are known. Whatever goes wrong is the result's problem, so that other metrics are not concerned. A value that is
    null, NaN or infinite is left out and named; a value that is no number at all leaves the metric without values.
    """
    label = "compute_metrics_snippet"
    function = metrics_function(metric.compute_metrics_snippet)
    snippet = Snippet(metric.compute_metrics_snippet, function, label).at(place)
    scores = [dict(score.values) for score in samples] if function == OLD_METRICS else list(samples)
    try:
        returned = host.call_blocking(snippet, (scores,), {})
    except SnippetError as error:
        return MetricResult({}, 0, len(samples), str(error))
    if not isinstance(returned, dict):
        reason = f"{function} returned a {type(returned).__name__}, expected a mapping of names to numbers"
        return MetricResult({}, 0, len(samples), snippet.told(reason))
    wrong = [name for name, value in returned.items() if not _is_numeric(value)]
    if wrong:
        shown = ", ".join(f"{name!r} is {short(returned[name])}" for name in wrong[:3])
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        reason = f"{function} returned what is no number: {shown}{more}"
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
    """Booleans as 0 and 1: metrics are numbers."""
    return int(value) if isinstance(value, bool) else value
