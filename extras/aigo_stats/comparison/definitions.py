"""How each number of a result is computed, from the task that stands in it; nothing of it is run."""

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
from aigo_stats.comparison.columns import Columns

_PARAMETER = re.compile(r"\s*<<\s*config\.(?P<name>\w+)\s*>>\s*")

MetricKey = tuple[str, str]
"""Key of a scorer, and of one of its metrics."""


@dataclass(frozen=True)
class ForeignMetric:
    """A metric that this process does not know, or not in this form: another tool's, or a newer one."""

    key: str | None
    type: str
    score: str | None = None
    """Score that it is computed from, e.g. the key of a dictionary; `None`: not recorded."""
    reducer: str | None = None
    """Inspect's name of the function that made one score of several epochs."""
    group: str | None = None
    """Inspect's metric that gave this number and others, e.g. `grouped`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the metric."""
    package: str | None = None
    """Package that the metric is defined in; `None`: not recorded."""


def metric_definitions(columns: Columns) -> dict[MetricKey, MetricSpec | ForeignMetric]:
    """Scorer and metric → its definition, the task's parameters put in."""
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
    scorer: Mapping[str, Any], scorer_key: str, columns: Columns, config: Mapping[str, Any]
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


def _example(columns: Columns, scorer_key: str) -> dict[str, Any]:
    """The scores of a scorer, each with one value that is a number where there is one."""
    example: dict[str, Any] = {}
    for (scorer, name), column in columns.scores.items():
        if scorer == scorer_key:
            numbers = (value for value in column.values if isinstance(value, bool | int | float))
            example[name] = next(numbers, None)
    return example


def _bound(value: Any, config: Mapping[str, Any]) -> Any:
    """What is written, with the values of parameters in the place of `<< config.x >>`."""
    if isinstance(value, str) and (match := _PARAMETER.fullmatch(value)):
        return config.get(match["name"], value)
    if isinstance(value, dict):
        return {name: _bound(item, config) for name, item in value.items()}
    if isinstance(value, list):
        return [_bound(item, config) for item in value]
    return value
