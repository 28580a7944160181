"""AI GO specifications as written: strict, frozen models of every kind of file. No input or output here."""

from __future__ import annotations

from aigo_bridge.spec.base import (
    Filter,
    FilterComparison,
    FilterMembership,
    FilterUnary,
    Key,
    ModelKey,
    SpecModel,
    Templated,
    TemplatedKey,
    TemplatedModelKey,
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
    ActionRule,
    Aggregator,
    BenchmarkDefinition,
    ScoreAggregator,
    SystemDefinition,
    TaskDatasetRef,
    TaskSpec,
    Trials,
)

__all__ = [
    "ActionRule",
    "AdapterSpec",
    "Aggregator",
    "AppSpec",
    "AssessmentPlanSpec",
    "BenchmarkDefinition",
    "Connection",
    "DatasetGeneratorSpec",
    "DatasetSource",
    "DatasetSpec",
    "EvaluationSpec",
    "Filter",
    "FilterComparison",
    "FilterMembership",
    "FilterUnary",
    "GeneratorSource",
    "GeneratorSpecification",
    "InputBuilder",
    "Key",
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
    "ScoreAggregator",
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
    "has_marker",
    "is_whole_marker",
    "json_schema",
]
