"""Outline of a task: the scorer names and score arithmetic that are needed to read its logs. It contains no
executable code.

A log can come from anyone, so an outline has only fields without code or templates. It keeps only the key of
a Python metric or an action rule. Running code requires a `TaskPlan`, which is created only from the user's
own files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.spec.base import Key, has_marker
from aigo_bridge.spec.metric import METRICS, MetricSpec
from aigo_bridge.spec.scorer import default_keys
from aigo_bridge.spec.trials import ScoreOfTrials

if TYPE_CHECKING:
    from aigo_bridge.spec.task import BenchmarkDefinition, SystemDefinition

EntityType = Literal["model", "dataset", "system"]
Purpose = Literal["score", "qa"]

LATE = ConfigDict(defer_build=True)
"""Adapter types are built when a log is read, not when its modules are loaded."""

_AGGREGATORS: TypeAdapter[tuple[ScoreOfTrials, ...] | None] = TypeAdapter(
    tuple[ScoreOfTrials, ...] | None, config=LATE
)
_KEY: TypeAdapter[Key | None] = TypeAdapter(Key | None, config=LATE)
_TEXT: TypeAdapter[str | None] = TypeAdapter(str | None, config=LATE)
_PURPOSE: TypeAdapter[Purpose] = TypeAdapter(Purpose, config=LATE)

ENTITIES: tuple[EntityType, ...] = ("model", "dataset", "system")
CODE = "python"


@dataclass(frozen=True)
class CodeMetric:
    """Metric that the author's code computes. Only its key is kept."""

    key: str | None
    type: Literal["python"] = "python"
    value_name: ClassVar[None] = None
    """Always `None`: the code names the values."""


OutlineMetric = MetricSpec | CodeMetric


@dataclass(frozen=True)
class OutlineScorer:
    """Scorer with the names of its scores and the metrics computed from them."""

    key: str | None
    type: str
    purpose: Purpose
    display_name: str | None
    metrics: tuple[OutlineMetric, ...] | None
    """Metrics as in the task; `None` for the default metrics."""


@dataclass(frozen=True)
class TaskOutline:
    """Part of a task that is needed to read its logs."""

    entity: EntityType
    scorers: tuple[OutlineScorer, ...] = ()
    aggregators: tuple[ScoreOfTrials, ...] | None = None
    """Aggregators that combine the scores of several trials."""
    rules: tuple[str, ...] = ()
    """Keys of the action rules."""

    @property
    def scorer_keys(self) -> tuple[str, ...]:
        """Key of each scorer, as in the evidence."""
        return default_keys([(scorer.key, scorer.type) for scorer in self.scorers])

    @property
    def needs_code(self) -> bool:
        """Whether a metric depends on the author's code or on a template, so that scores alone do not
        determine it.
        """
        return bool(self.rules) or any(isinstance(metric, CodeMetric) for metric in self._metrics())

    def _metrics(self) -> Iterator[OutlineMetric]:
        for scorer in self.scorers:
            yield from scorer.metrics or ()

    def to_json(self) -> dict[str, Any]:
        """Return the outline in the form of the header of a log."""
        return {
            "entity": self.entity,
            "scorers": [
                {
                    "key": scorer.key,
                    "type": scorer.type,
                    "purpose": scorer.purpose,
                    "display_name": scorer.display_name,
                    "metrics": None if scorer.metrics is None else list(map(_dumped, scorer.metrics)),
                }
                for scorer in self.scorers
            ],
            "aggregators": _AGGREGATORS.dump_python(self.aggregators, mode="json", exclude_unset=True),
            "rules": list(self.rules),
        }


def outline_of(definition: BenchmarkDefinition | SystemDefinition) -> TaskOutline:
    """Return the outline of a task whose config is bound."""
    if definition.type == "system_task":
        return TaskOutline("system")
    return TaskOutline(
        definition.evaluates,
        tuple(
            OutlineScorer(
                scorer.key,
                scorer.type,
                scorer.purpose,
                scorer.display_name,
                None
                if scorer.metrics is None
                else tuple(
                    CodeMetric(metric.key) if metric.snippet is not None else metric
                    for metric in scorer.metrics
                ),
            )
            for scorer in definition.scorers
        ),
        None if definition.trials is None else definition.trials.score_aggregators,
        tuple(rule.key for rule in definition.actions or ()),
    )


def outline_from_json(stored: Any) -> TaskOutline:
    """Convert the output of `TaskOutline.to_json`. Anyone may have written the log; code in it is dropped.

    Raises:
        EvidenceError: the value is not an outline.
    """
    try:
        if stored["entity"] not in ENTITIES:
            raise EvidenceError(
                f"the log's plan evaluates {stored['entity']!r:.80}, expected {ENTITIES}",
                code=Code.DAMAGED_LOG,
            )
        return TaskOutline(
            stored["entity"],
            tuple(map(_scorer, _listed(stored["scorers"]))),
            _AGGREGATORS.validate_python(stored["aggregators"]),
            tuple(key for key in map(_KEY.validate_python, _listed(stored["rules"])) if key is not None),
        )
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise EvidenceError(f"the log's plan is damaged: {error}", code=Code.DAMAGED_LOG) from error


def outline_json(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outline of a task definition as written, including placeholders (`<< config.x >>`)."""
    if definition.get("type") == "system_task":
        return TaskOutline("system").to_json()
    names = ("key", "type", "purpose", "display_name", "metrics")
    scorers = [
        {"purpose": "score", **{name: scorer.get(name) for name in names if name != "purpose"}}
        | ({"purpose": scorer["purpose"]} if "purpose" in scorer else {})
        for scorer in _listed(definition.get("scorers") or [])
    ]
    for scorer in scorers:
        if scorer["metrics"] is not None:
            scorer["metrics"] = [
                {"type": CODE, "key": metric.get("key")} if metric.get("type") == CODE else dict(metric)
                for metric in _listed(scorer["metrics"])
            ]
    return {
        "entity": "dataset" if definition.get("solver") is None else "model",
        "scorers": scorers,
        "aggregators": (definition.get("trials") or {}).get("score_aggregators"),
        "rules": [rule.get("key") for rule in _listed(definition.get("actions") or [])],
    }


def agrees(written: Any, bound: Any) -> bool:
    """Return whether a bound outline can result from a written one, whose placeholders match any value."""
    if isinstance(written, str) and has_marker(written):
        return True
    if isinstance(written, Mapping):
        return (
            isinstance(bound, Mapping)
            and written.keys() == bound.keys()
            and all(agrees(value, bound[name]) for name, value in written.items())
        )
    if isinstance(written, list):
        return isinstance(bound, list) and len(written) == len(bound) and all(map(agrees, written, bound))
    return type(written) is type(bound) and bool(written == bound)


def has_placeholders(outline: Any) -> bool:
    """Return whether any text of a written outline contains a placeholder for a config value."""
    if isinstance(outline, Mapping):
        return any(map(has_placeholders, outline.values()))
    if isinstance(outline, list):
        return any(map(has_placeholders, outline))
    return has_marker(outline)


def _dumped(metric: OutlineMetric) -> dict[str, Any]:
    if isinstance(metric, CodeMetric):
        return {"type": CODE, "key": metric.key}
    dumped: dict[str, Any] = metric.model_dump(mode="json", exclude_unset=True)
    return dumped


def _scorer(stored: Any) -> OutlineScorer:
    metrics = stored["metrics"]
    kind = _TEXT.validate_python(stored["type"])
    if kind is None:
        raise EvidenceError("the log's plan is damaged: a scorer lacks a type", code=Code.DAMAGED_LOG)
    return OutlineScorer(
        _KEY.validate_python(stored["key"]),
        kind,
        _PURPOSE.validate_python(stored["purpose"]),
        _TEXT.validate_python(stored["display_name"]),
        None if metrics is None else tuple(map(_metric, _listed(metrics))),
    )


def _metric(stored: Any) -> OutlineMetric:
    kind = stored["type"]
    if kind == CODE:
        return CodeMetric(_KEY.validate_python(stored.get("key")))
    metric = METRICS.get(kind)
    if metric is None:
        raise EvidenceError(
            f"the log's plan is damaged: found an unknown metric type {kind!r:.80}",
            code=Code.DAMAGED_LOG,
        )
    return metric.model_validate(stored)


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"found a {type(value).__name__}, expected a list")
    return value
