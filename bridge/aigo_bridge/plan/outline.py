"""What of a task its logs are read with: the names of its scorers and the arithmetic over their scores, and
nothing that can be run.

A log comes from anybody. So what is made of the task in it has no place for code or a template: of a metric
in Python there is its key, of an action rule as well. Whoever is to run code needs a `TaskPlan`, and that is
made of the user's own files alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import TypeAdapter, ValidationError

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.spec import BenchmarkDefinition, SystemDefinition
from aigo_bridge.spec.base import Key, has_marker
from aigo_bridge.spec.metric import METRICS, MetricSpec
from aigo_bridge.spec.scorer import default_keys
from aigo_bridge.spec.task import ScoreAggregator

EntityType = Literal["model", "dataset", "system"]
Purpose = Literal["score", "qa"]

_AGGREGATORS: TypeAdapter[tuple[ScoreAggregator, ...] | None] = TypeAdapter(
    tuple[ScoreAggregator, ...] | None
)
_KEY: TypeAdapter[Key | None] = TypeAdapter(Key | None)
_TEXT: TypeAdapter[str | None] = TypeAdapter(str | None)
_PURPOSE: TypeAdapter[Purpose] = TypeAdapter(Purpose)

ENTITIES: tuple[EntityType, ...] = ("model", "dataset", "system")
CODE = "python"


@dataclass(frozen=True)
class CodeMetric:
    """A metric that the author's code computes: its name alone."""

    key: str | None
    type: Literal["python"] = "python"
    value_name: ClassVar[None] = None
    """The code names its values."""


OutlineMetric = MetricSpec | CodeMetric


@dataclass(frozen=True)
class OutlineScorer:
    """A scorer: what its scores are called and what is computed from them."""

    key: str | None
    type: str
    purpose: Purpose
    display_name: str | None
    metrics: tuple[OutlineMetric, ...] | None
    """As in the task: `None` for the usual ones."""


@dataclass(frozen=True)
class Outline:
    """What of a task its logs are read with."""

    entity: EntityType
    scorers: tuple[OutlineScorer, ...] = ()
    aggregators: tuple[ScoreAggregator, ...] | None = None
    """How scores of trials become one."""
    rules: tuple[str, ...] = ()
    """Keys of the action rules."""

    @property
    def scorer_keys(self) -> tuple[str, ...]:
        """One key per scorer, as in the evidence."""
        return default_keys([(scorer.key, scorer.type) for scorer in self.scorers])

    @property
    def needs_code(self) -> bool:
        """Whether some number depends on the author's code or on a template, so that scores alone do not give
        it.
        """
        return bool(self.rules) or any(isinstance(metric, CodeMetric) for metric in self._metrics())

    def _metrics(self) -> Iterator[OutlineMetric]:
        for scorer in self.scorers:
            yield from scorer.metrics or ()

    def to_json(self) -> dict[str, Any]:
        """As it stands in the header of a log."""
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


def outline_of(definition: BenchmarkDefinition | SystemDefinition) -> Outline:
    """The outline of a task whose config is bound."""
    if isinstance(definition, SystemDefinition):
        return Outline("system")
    return Outline(
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


def outline_from_json(stored: Any) -> Outline:
    """Back from `Outline.to_json`, of a log that may be anybody's; what is code in it is not taken along.

    Raises:
        EvidenceError: it is none.
    """
    try:
        if stored["entity"] not in ENTITIES:
            raise EvidenceError(
                f"the log's plan evaluates {stored['entity']!r:.80}, expected {ENTITIES}",
                code=Code.DAMAGED_LOG,
            )
        return Outline(
            stored["entity"],
            tuple(map(_scorer, _listed(stored["scorers"]))),
            _AGGREGATORS.validate_python(stored["aggregators"]),
            tuple(key for key in map(_KEY.validate_python, _listed(stored["rules"])) if key is not None),
        )
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise EvidenceError(f"the log's plan is damaged: {error}", code=Code.DAMAGED_LOG) from error


def outline_json(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The outline of a task's definition as it is written, placeholders (`<< config.x >>`) and all."""
    if definition.get("type") == "system_task":
        return Outline("system").to_json()
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
    """Whether a bound outline may come from a written one: equal but for placeholders, which may have become
    anything.
    """
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
    """Whether some text of a written outline still waits for a value of the config."""
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
        raise EvidenceError("the log's plan is damaged: a scorer has no type", code=Code.DAMAGED_LOG)
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
