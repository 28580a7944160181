"""Names of metrics on all surfaces: the name of the number, plus the parts of its identity that make it
unique among the displayed numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from aigo_bridge.dtypes import MetricData
from aigo_bridge.spec.scorer import default_keys

STDERR = "_stderr"
"""Suffix of a standard error in lighteval, in lm-evaluation-harness and in Every Eval Ever."""
ERRORS = ("stderr", "bootstrap_stderr")
"""Inspect's metrics that are a standard error of the mean."""
MEANS = ("accuracy", "mean")
"""Inspect's metrics whose standard error these are."""

_PARTS = ("score", "scorer", "reducer", "group")
"""Parts of an identity that users know, the most informative first."""
_SHOWN = ("scorer", "score", "reducer", "group", "metric")
"""Order of the parts in a name."""


@dataclass(frozen=True)
class MetricIdentity:
    """Identity of a number in a result."""

    scorer: str | None
    metric: str
    """Key of the metric."""
    name: str
    """Name of the number."""
    score: str | None = None
    """Score that the metric reads; `None`: not recorded, or the only score of the scorer."""
    reducer: str | None = None
    """Function that reduced the scores of several trials to one, if the log names it."""
    group: str | None = None
    """Metric and column of a number that is computed over groups of samples."""
    kind: str | None = field(default=None, compare=False)
    """Type of the metric."""
    package: str | None = field(default=None, compare=False)
    """Package that defines the metric, if the log lists it."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "scorer": self.scorer,
            "score": self.score,
            "metric": self.metric,
            "reducer": self.reducer,
            "name": self.name,
        }


def metric_labels(identities: Sequence[MetricIdentity]) -> list[str]:
    """Return a unique name for each number: `accuracy`, or `accuracy (match)`, `mean (relevance, max)`.

    The same numbers in the same order always get the same names; numbers with equal identities share one.
    """
    by_name: dict[str, dict[MetricIdentity, None]] = {}
    for identity in identities:
        by_name.setdefault(identity.name, {})[identity] = None
    labels: dict[MetricIdentity, str] = {}
    for same in by_name.values():
        labels |= _labels_of(list(same))
    return [labels[identity] for identity in identities]


def _labels_of(identities: list[MetricIdentity]) -> dict[MetricIdentity, str]:
    """Return unique names for numbers with the same name, with as few additional parts as possible."""
    some = [parts for count in range(len(_PARTS) + 1) for parts in combinations(_PARTS, count)]
    for parts in [*some, *((*parts, "metric") for parts in some)]:
        labels = {identity: _label(identity, parts) for identity in identities}
        if len(set(labels.values())) == len(labels):
            return labels
    return {identity: _label(identity, _SHOWN, missing="–") for identity in identities}


def _label(identity: MetricIdentity, parts: Sequence[str], missing: str | None = None) -> str:
    shown = [getattr(identity, part) or missing for part in _SHOWN if part in parts]
    texts = [text for text in shown if text is not None]
    return f"{identity.name} ({', '.join(texts)})" if texts else identity.name


def metric_identities(definition: Mapping[str, Any], metrics: Sequence[MetricData]) -> list[MetricIdentity]:
    """Return the identity of every number of a result, in the result's order.

    Args:
        definition: task definition in the result.
        metrics: metrics of the result.
    """
    written = dict(_written(definition))
    return [
        _identity(metric, name, written.get((metric.scorer_key or "", metric.metric_key), {}))
        for metric in metrics
        for name in metric.values
    ]


def _written(definition: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    """Yield scorer and metric with the metric's definition."""
    scorers = [scorer for scorer in definition.get("scorers") or () if isinstance(scorer, dict)]
    keys = default_keys([(scorer.get("key"), str(scorer.get("type"))) for scorer in scorers])
    for scorer, scorer_key in zip(scorers, keys, strict=True):
        listed = scorer.get("metrics")
        metrics = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        names = default_keys([(metric.get("key"), str(metric.get("type"))) for metric in metrics])
        for metric, key in zip(metrics, names, strict=True):
            yield (scorer_key, key), metric


def _identity(data: MetricData, name: str, written: Mapping[str, Any]) -> MetricIdentity:
    parts = identity_parts(written, data.scorer_name, data.scorer_key)
    return MetricIdentity(
        data.scorer_key, data.metric_key, name, **{**parts, "kind": parts["kind"] or data.metric_type}
    )


def identity_parts(written: Mapping[str, Any], *scorer: str | None) -> dict[str, str | None]:
    """Return the identity parts that a metric's definition contains.

    Args:
        written: definition of the metric.
        scorer: names of the scorer; the only score of a scorer has the scorer's name.
    """
    score = _text(written.get("score")) or _text(written.get("field"))
    group = _text(written.get("group"))
    return {
        "score": score if score not in scorer else None,
        "reducer": _text(written.get("reducer")),
        "group": group and _group(group, written.get("params")),
        "kind": group or _text(written.get("type")),
        "package": _text(written.get("package")),
    }


def _group(metric: str, parameters: Any) -> str:
    """Return the text of a metric with several numbers: `accuracy by category`, or the metric's name."""
    inner = parameters.get("metric") if isinstance(parameters, dict) else None
    if not isinstance(inner, dict) or "group_key" not in parameters:
        return metric
    return f"{str(inner.get('name')).rpartition('/')[2]} by {parameters['group_key']}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def standard_errors(identities: Sequence[MetricIdentity]) -> dict[int, int]:
    """Return the standard errors: position of the error → position of its number.

    A standard error without its number remains a number.
    """
    by_name = {(each.scorer, each.metric, each.name): place for place, each in enumerate(identities)}
    means: dict[tuple[str | None, str | None, str | None], int] = {}
    for place, each in enumerate(identities):
        if _base(each.kind) in MEANS:
            means.setdefault((each.scorer, each.score, each.reducer), place)
    errors: dict[int, int] = {}
    for place, each in enumerate(identities):
        if each.name.endswith(STDERR):
            found = by_name.get((each.scorer, each.metric, each.name.removesuffix(STDERR)))
        else:
            found = None
        if found is None and _base(each.kind) in ERRORS:
            found = means.get((each.scorer, each.score, each.reducer))
        if found is not None:
            errors[place] = found
    return errors


def _base(kind: str | None) -> str:
    return (kind or "").rpartition("/")[2]
