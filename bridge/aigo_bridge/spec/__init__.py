"""AI GO specifications as written: strict, frozen models of every kind of file. No input or output here."""

from __future__ import annotations

from aigo_bridge.spec.base import (
    ComparisonFilter,
    Filter,
    Key,
    MembershipFilter,
    ModelKey,
    SpecModel,
    Templated,
    TemplatedKey,
    TemplatedModelKey,
    UnaryFilter,
    has_marker,
    is_whole_marker,
)
from aigo_bridge.spec.datasets import (
    DatasetGeneratorSpec,
    DatasetSource,
    DatasetSpec,
    GeneratorSource,
    GeneratorSpecification,
    Synthesizer,
)
from aigo_bridge.spec.evaluations import (
    AppSpec,
    AssessmentPlanSpec,
    EvaluationSpec,
    PolicySpec,
    RepeatabilitySpecification,
    RiskMethodologySpec,
    RiskScorerSpec,
    RunConfig,
    RunSpec,
    TaskSpecification,
)
from aigo_bridge.spec.metrics import Metric
from aigo_bridge.spec.models import AdapterSpec, Connection, ModelSpec, ProviderModel
from aigo_bridge.spec.parameters import Parameter
from aigo_bridge.spec.schema import json_schema
from aigo_bridge.spec.scorers import Scorer
from aigo_bridge.spec.solvers import InputBuilder, MessageBuilder, Solver
from aigo_bridge.spec.task import (
    ActionRuleSpec,
    Aggregator,
    BenchmarkDefinition,
    ScoreOfTrials,
    SystemDefinition,
    TaskDatasetRef,
    TaskSpec,
    Trials,
)

__all__ = [
    "ActionRuleSpec",
    "AdapterSpec",
    "Aggregator",
    "AppSpec",
    "AssessmentPlanSpec",
    "BenchmarkDefinition",
    "ComparisonFilter",
    "Connection",
    "DatasetGeneratorSpec",
    "DatasetSource",
    "DatasetSpec",
    "EvaluationSpec",
    "Filter",
    "GeneratorSource",
    "GeneratorSpecification",
    "InputBuilder",
    "Key",
    "MembershipFilter",
    "MessageBuilder",
    "Metric",
    "ModelKey",
    "ModelSpec",
    "Parameter",
    "PolicySpec",
    "ProviderModel",
    "RepeatabilitySpecification",
    "RiskMethodologySpec",
    "RiskScorerSpec",
    "RunConfig",
    "RunSpec",
    "ScoreOfTrials",
    "Scorer",
    "Solver",
    "SpecModel",
    "Synthesizer",
    "SystemDefinition",
    "TaskDatasetRef",
    "TaskSpec",
    "TaskSpecification",
    "Templated",
    "TemplatedKey",
    "TemplatedModelKey",
    "Trials",
    "UnaryFilter",
    "has_marker",
    "is_whole_marker",
    "json_schema",
]
