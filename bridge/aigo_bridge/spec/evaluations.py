"""Evaluations (tasks with their configurations), run files and assessment plans; policies, which the results
must satisfy, risk scorers and their methodologies; and apps, the workspaces that evaluations belong to, which
have no effect on results.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from aigo_bridge.spec.base import (
    DisplayName,
    JsonMap,
    Key,
    SpecModel,
    Templated,
    TemplatedKey,
    TemplatedModelKey,
    tag_of,
)
from aigo_bridge.spec.datasets import DatasetGeneratorSpec, DatasetSpec
from aigo_bridge.spec.models import AdapterSpec, ModelSpec, ProviderModel
from aigo_bridge.spec.parameters import CategoricalParameter, FloatParameter, IntParameter, Parameter
from aigo_bridge.spec.task import RepeatabilityConfig, TaskSpec, TrialsConfig

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


class RiskProfile(SpecModel):
    """How much harm the app could do."""

    deployment_reach: Literal[
        "internal_restricted", "internal_broad", "external_authenticated", "external_public"
    ] = "external_authenticated"
    """Who can use it."""
    autonomy: Literal["human_in_the_loop", "human_on_the_loop", "fully_autonomous"] = "human_on_the_loop"
    """How far it acts alone."""
    data_sensitivity: Literal[
        "public_data_only", "internal_business_data", "personal_data_pii", "special_category_data"
    ] = "internal_business_data"
    """Data that it sees."""
    action_capability: Literal[
        "generates_text_advice_only",
        "read_only_tool_access",
        "reversible_write_actions",
        "irreversible_or_high_impact_write_actions",
    ] = "read_only_tool_access"
    """What it can change."""
    untrusted_content_exposure: Literal[
        "direct_user_input_only",
        "curated_internal_knowledge_base",
        "user_uploaded_or_third_party_documents",
        "live_web_email_or_peer_agent_content",
    ] = "curated_internal_knowledge_base"
    """Content that it reads."""
    domain_criticality: Literal[
        "general_information", "business_operations", "consequential_decisions", "safety_critical"
    ] = "business_operations"
    """What depends on it."""
    audience_vulnerability: Literal[
        "internal_experts_trained_operators", "professional_users", "general_public", "vulnerable_groups"
    ] = "professional_users"
    """Who is affected."""


class AppSpec(SpecModel):
    """An app as written."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    description: str | None = None
    """Short text."""
    long_description: str | None = None
    """Markdown."""
    risk_profile: RiskProfile | None = None
    """How much harm it could do; `None`: not said."""
    tags: tuple[str, ...] = ()
    """Free labels."""
    model_under_test_key: str | None = None
    """Model that is evaluated unless a specification names another."""
    judge_model_key: str | None = None
    """Model that judges unless a specification names another."""
    risk_scorers: tuple[str, ...] = ()
    """Keys of risk scorers."""
    key_info: JsonMap | None = None
    """Older form of `risk_profile`; kept as it is."""


Subsampling = Literal["head", "random"]
CachePolicy = Literal["reuse", "update", "no-cache"]
AnyOf = Literal["any"] | tuple[str, ...]
"""The word `any`, or a list."""


class TaskSpecification(SpecModel):
    """One run of a task: its parameters and what it evaluates."""

    type: Literal["standard"] = "standard"
    key: Key | None = None
    """Name of the result; `None`: made from `task_key`."""
    task_key: Key
    """The task."""
    task_config: JsonMap = Field(default_factory=dict)
    """Values of the task's parameters."""
    model_key: TemplatedModelKey | None = None
    """Model under evaluation."""
    dataset_key: TemplatedKey | None = None
    """Deprecated: dataset under evaluation; the same as `task_config.dataset_key`."""
    num_samples: Templated[int] | None = None
    """First so many samples; `None`: as the run says."""
    subsampling: Templated[Subsampling] | None = None
    """Which samples, when not all; `None`: as the run says."""
    repeatability: RepeatabilityConfig | None = None
    """Runs the task several times; `None`: once."""
    trials: TrialsConfig | None = None
    """Another number of trials; `None`: as the task says."""
    display_name: DisplayName | None = None
    """Shown name."""
    task_result_log_path: str | None = None
    """Stored result to use in place of a run; relative to the run file."""


class RepeatabilityInput(SpecModel):
    """Which existing result is repeated."""

    evaluation_key: str
    """Its evaluation."""
    task_specification_key: str | None = None
    """Its specification; `None`: all of the evaluation."""


class RepeatabilitySpecification(SpecModel):
    """Repeats task specifications of an existing evaluation."""

    type: Literal["repeatability"]
    key: Key | None = None
    """Name of the result; `None`: `repeatability_N`."""
    repeatability_config: RepeatabilityConfig
    """How often."""
    num_samples: Templated[int] | None = None
    """First so many samples; `None`: as the run says."""
    subsampling: Templated[Subsampling] | None = None
    """Which samples, when not all; `None`: as the run says."""
    inputs: Annotated[tuple[RepeatabilityInput, ...], Field(min_length=1)]
    """What is repeated."""
    display_name: DisplayName | None = None
    """Shown name."""


def _specification_type(value: Any) -> str | None:
    return tag_of(value, "type", "standard")


AnyTaskSpecification = Annotated[
    Annotated[TaskSpecification, Tag("standard")]
    | Annotated[RepeatabilitySpecification, Tag("repeatability")],
    Discriminator(_specification_type),
]


def specification_keys(
    specifications: Sequence[TaskSpecification | RepeatabilitySpecification],
) -> tuple[str, ...]:
    """Return the key of each task specification of an evaluation.

    Specifications without a key get the key of their task, with a number if several would be equal.
    """
    named = {spec.key for spec in specifications if spec.key is not None}
    unnamed = Counter(_base_key(spec) for spec in specifications if spec.key is None)
    numbers: dict[str, Iterator[int]] = {}
    keys: list[str] = []
    for spec in specifications:
        base, key = _base_key(spec), spec.key
        if key is None and (unnamed[base] > 1 or base in named or not isinstance(spec, TaskSpecification)):
            free = (f"{base}_{n}" for n in numbers.setdefault(base, itertools.count(1)))
            key = next(name for name in free if name not in named)
        keys.append(base if key is None else key)
    return tuple(keys)


def _base_key(spec: TaskSpecification | RepeatabilitySpecification) -> str:
    return spec.task_key if isinstance(spec, TaskSpecification) else "repeatability"


class EvaluationSpec(SpecModel):
    """An evaluation as written."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    description: str | None = ""
    """Short text."""
    long_description: str | None = None
    """Markdown."""
    config_spec: tuple[Parameter, ...] = ()
    """Parameters, used as `<< config.KEY >>` in the specifications."""
    task_specifications: tuple[AnyTaskSpecification, ...] = ()
    """What is run."""
    tags: tuple[str, ...] = ()
    """Free labels."""
    use_cases: AnyOf = ()
    """Use cases it is meant for."""
    domains: AnyOf = ()
    """Domains it is meant for."""
    providers: AnyOf = ()
    """Providers it is meant for."""
    num_samples: int | None = None
    """Older place of `run_config.num_samples`; the run file's wins."""
    subsampling: Subsampling | None = None
    """Older place of `run_config.subsampling`; the run file's wins."""
    cache_policy: CachePolicy | None = None
    """Older place of `run_config.cache_policy`; the run file's wins."""


class RunTrialsConfig(SpecModel):
    """Another number of trials for a whole run."""

    num_trials: int = Field(ge=2)
    """How many times each sample is solved and scored."""


class RunConfig(SpecModel):
    """How an evaluation is run."""

    num_samples: Annotated[int, Field(ge=1)] | None = None
    """So many samples per task; `None`: all."""
    subsampling: Subsampling | None = None
    """Which samples, when not all; `None`: the first."""
    cache_policy: CachePolicy = "reuse"
    """Whether earlier results are reused."""
    trials_config: RunTrialsConfig | None = None
    """Another number of trials; `None`: as the tasks say."""


def _model_entry_type(value: Any) -> str:
    declared = "$provider" in value if isinstance(value, dict) else isinstance(value, ProviderModel)
    return "declared" if declared else "model"


ModelEntry = Annotated[
    Annotated[ModelSpec, Tag("model")] | Annotated[ProviderModel, Tag("declared")],
    Discriminator(_model_entry_type),
]


class RunSpec(SpecModel):
    """A run file as written: everything an evaluation needs, and the evaluation."""

    config: JsonMap = Field(default_factory=dict)
    """Values of the evaluation's parameters."""
    run_config: RunConfig = RunConfig.model_construct(
        num_samples=None, subsampling=None, cache_policy="reuse", trials_config=None
    )
    """How it is run."""
    secrets: dict[str, str] | None = Field(default=None, repr=False)
    """Values for `<< secrets.NAME >>`."""
    model_adapters: tuple[AdapterSpec, ...] = ()
    """Adapters."""
    models: tuple[ModelEntry, ...] = ()
    """Models, written out or declared by `$provider`."""
    dataset_generators: tuple[DatasetGeneratorSpec, ...] = ()
    """Dataset generators."""
    datasets: tuple[DatasetSpec, ...] = ()
    """Datasets."""
    tasks: tuple[TaskSpec, ...] = ()
    """Tasks."""
    evaluation: EvaluationSpec | None = None
    """What is run; `None`: nothing, the file only declares."""
    policies: tuple[PolicySpec, ...] = ()
    """Rules for the results."""


class EvaluationPlanEntry(SpecModel):
    """One evaluation of an assessment plan."""

    key: Key | None = None
    """Name within the plan."""
    evaluation_key: str
    """The evaluation."""
    evaluation_config: JsonMap = Field(default_factory=dict)
    """Values of its parameters."""
    evaluation_run_config: RunConfig = RunConfig.model_construct(
        num_samples=None, subsampling=None, cache_policy="reuse", trials_config=None
    )
    """How it is run."""


class AssessmentPlanSpec(SpecModel):
    """Several evaluations, run together."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    evaluation_specifications: Annotated[tuple[EvaluationPlanEntry, ...], Field(min_length=1)] | None = None
    """Evaluations by key."""
    evaluations: Annotated[tuple[RunSpec, ...], Field(min_length=1)] | None = None
    """Older form: whole run files."""
