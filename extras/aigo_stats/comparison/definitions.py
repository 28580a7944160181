"""Definitions of a result's metrics, from the task in the result. No code of the task is executed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from aigo_bridge.metrics.metric import default_metrics
from aigo_bridge.spec.metric import METRICS, MetricSpec
from aigo_bridge.spec.scorer import default_keys
from aigo_stats.comparison.columns import ResultColumns

_PARAMETER = re.compile(r"\s*<<\s*config\.(?P<name>\w+)\s*>>\s*")

MetricKey = tuple[str, str]
"""Key of a scorer and of one of its metrics."""


@dataclass(frozen=True)
class ForeignMetric:
    """Unknown metric, or a known metric in an unknown form: from another tool or a newer release."""

    key: str | None
    type: str
    score: str | None = None
    """Score used by the metric, e.g. the key of a dictionary; `None` if not recorded."""
    reducer: str | None = None
    """Name of the Inspect reducer that combined several epochs into one score."""
    group: str | None = None
    """Inspect metric that returned this value together with others, e.g. `grouped`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the metric."""
    package: str | None = None
    """Package that defines the metric; `None` if not recorded."""


def metric_definitions(columns: ResultColumns) -> dict[MetricKey, MetricSpec | ForeignMetric]:
    """Return the definition of each metric by scorer and metric key, with task parameters filled in."""
    scorers = [scorer for scorer in columns.definition.get("scorers") or () if isinstance(scorer, dict)]
    keys = default_keys([(scorer.get("key"), str(scorer.get("type"))) for scorer in scorers])
    config = columns.frame.specification.config
    definitions: dict[MetricKey, MetricSpec | ForeignMetric] = {}
    for scorer, scorer_key in zip(scorers, keys, strict=True):
        metrics = list(_metrics(scorer, scorer_key, columns, config))
        metric_names = default_keys([(metric.key, metric.type) for metric in metrics])
        for metric, key in zip(metrics, metric_names, strict=True):
            definitions[scorer_key, key] = metric
    return definitions


def _metrics(
    scorer: Mapping[str, Any], scorer_key: str, columns: ResultColumns, config: Mapping[str, Any]
) -> Iterator[MetricSpec | ForeignMetric]:
    if scorer.get("metrics") is None:
        yield from default_metrics(str(scorer.get("type")), [_example(columns, scorer_key)])
        return
    listed = scorer["metrics"]
    for written in listed if isinstance(listed, list) else ():
        yield _metric(_bound(written, config) if isinstance(written, dict) else {})


def _metric(written: Mapping[str, Any]) -> MetricSpec | ForeignMetric:
    spec = METRICS.get(str(written.get("type")))
    if spec is not None:
        with contextlib.suppress(ValidationError):
            return spec.model_validate(written)
    parameters = written.get("params")
    parts = {name: written.get(name) for name in ("score", "reducer", "group", "package")}
    return ForeignMetric(
        written.get("key"),
        str(written.get("type")),
        **{name: part if isinstance(part, str) else None for name, part in parts.items()},
        parameters=parameters if isinstance(parameters, dict) else {},
    )


def _example(columns: ResultColumns, scorer_key: str) -> dict[str, Any]:
    """Return the scores of a scorer, each with one example value. Numbers are preferred."""
    example: dict[str, Any] = {}
    for (scorer, name), column in columns.scores.items():
        if scorer == scorer_key:
            numbers = (value for value in column.values if isinstance(value, bool | int | float))
            example[name] = next(numbers, None)
    return example


def _bound(value: Any, config: Mapping[str, Any]) -> Any:
    """Return a value with each `<< config.x >>` replaced by the parameter's value."""
    if isinstance(value, str) and (match := _PARAMETER.fullmatch(value)):
        return config.get(match["name"], value)
    if isinstance(value, dict):
        return {name: _bound(item, config) for name, item in value.items()}
    if isinstance(value, list):
        return [_bound(item, config) for item in value]
    return value
