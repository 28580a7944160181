"""Policies: rules that results must satisfy; risk scorers and their methodologies."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from aigo_bridge.spec.base import DisplayName, JsonMap, Key, SpecModel
from aigo_bridge.spec.parameters import CategoricalParameter, FloatParameter, IntParameter

Operator = Literal[">", ">=", "=", "<", "<="]


class ThresholdRule(SpecModel):
    """A metric value must stand in a relation to a number."""

    type: Literal["threshold"]
    metric: str
    """Name of the metric value."""
    operator: Operator
    """Relation, read from the metric to the threshold."""
    threshold: float
    """The number."""


class ExistsRule(SpecModel):
    """A metric value must exist."""

    type: Literal["exists"]
    metric: str
    """Name of the metric value."""


class ResultScope(SpecModel):
    """Which results a rule looks at; `None` in a field: all."""

    evaluation_keys: tuple[str, ...] | None = None
    """Only these evaluations."""
    task_specification_keys: tuple[str, ...] | None = None
    """Only these specifications."""
    scorer_keys: tuple[str, ...] | None = None
    """Only these scorers."""
    metric_keys: tuple[str, ...] | None = None
    """Only these metrics."""


Scope = Literal["all_latest"] | ResultScope


class PolicyRule(SpecModel):
    """One rule."""

    key: Key
    """Unique name within the policy."""
    display_name: str
    """Shown name, may be empty."""
    description: str | None = None
    """Short text."""
    definition: Annotated[ThresholdRule | ExistsRule, Field(discriminator="type")]
    """What must hold."""
    scope: Scope
    """Where it must hold."""
    methodology: str | None = None
    """Markdown on how the rule came about."""


class PolicySpec(SpecModel):
    """A policy as written."""

    key: Key
    """Unique name."""
    display_name: str
    """Shown name, may be empty."""
    description: str | None = None
    """Short text."""
    rules: tuple[PolicyRule, ...]
    """All must hold."""


class RiskScorerSpec(SpecModel):
    """A risk score over results."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    description: str | None = None
    """Short text."""
    domain: str | None = None
    """Area of risk."""
    risk_scoring_methodology_key: str
    """The formula."""
    scope: Scope = "all_latest"
    """Which results it looks at."""
    config: JsonMap = Field(default_factory=dict)
    """Values of the methodology's parameters."""
    aggregation: Literal["mean", "max", "min"] | None = None
    """How several values of the metric become one."""
    metric: str | None = None
    """Name of the metric value."""
    tags: tuple[str, ...] = ()
    """Free labels."""


class RiskMethodologySpec(SpecModel):
    """A formula over a metric and parameters."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    description: str | None = None
    """Short text."""
    function: str
    """The formula."""
    metric_key: str
    """Name of the metric in the formula."""
    config_spec: tuple[
        Annotated[FloatParameter | IntParameter | CategoricalParameter, Field(discriminator="type")], ...
    ] = ()
    """Parameters of the formula."""
