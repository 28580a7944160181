"""Evaluations (tasks with their configurations), run files and assessment plans; policies, which the results
must satisfy, risk scorers and their methodologies; and apps, the workspaces that evaluations belong to, which
have no effect on results.
"""

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
from aigo_bridge.spec.task import RepeatedRuns, TaskSpec, TrialsOverride

Operator = Literal[">", ">=", "=", "<", "<="]


class ThresholdRule(SpecModel):
    """Comparison of a metric value with a number."""

    type: Literal["threshold"]
    metric: str
    """Name of the metric value."""
    operator: Operator
    """Comparison operator, from the metric to the threshold."""
    threshold: float
    """Threshold."""


class ExistsRule(SpecModel):
    """Requirement that a metric value exists."""

    type: Literal["exists"]
    metric: str
    """Name of the metric value."""


class ResultScope(SpecModel):
    """Results that a rule checks; `None` in a field: all."""

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
    """Rule of a policy."""

    key: Key
    """Unique key in the policy."""
    display_name: str
    """Display name; can be empty."""
    description: str | None = None
    """Short description."""
    definition: Annotated[ThresholdRule | ExistsRule, Field(discriminator="type")]
    """Requirement."""
    scope: Scope
    """Results that the rule checks."""
    methodology: str | None = None
    """Explanation of the rule in Markdown."""


class PolicySpec(SpecModel):
    """Policy file."""

    key: Key
    """Unique key."""
    display_name: str
    """Display name; can be empty."""
    description: str | None = None
    """Short description."""
    rules: tuple[PolicyRule, ...]
    """Rules; all must be satisfied."""


class RiskScorerSpec(SpecModel):
    """Risk score over results."""

    key: Key
    """Unique key."""
    display_name: DisplayName
    """Display name."""
    description: str | None = None
    """Short description."""
    domain: str | None = None
    """Area of risk."""
    risk_scoring_methodology_key: str
    """Formula."""
    scope: Scope = "all_latest"
    """Results that the score uses."""
    config: JsonMap = Field(default_factory=dict)
    """Values of the methodology parameters."""
    aggregation: Literal["mean", "max", "min"] | None = None
    """Aggregation of several metric values."""
    metric: str | None = None
    """Name of the metric value."""
    tags: tuple[str, ...] = ()
    """Free labels."""


class RiskMethodologySpec(SpecModel):
    """Formula over a metric and parameters."""

    key: Key
    """Unique key."""
    display_name: DisplayName
    """Display name."""
    description: str | None = None
    """Short description."""
    function: str
    """Formula."""
    metric_key: str
    """Name of the metric in the formula."""
    config_spec: tuple[
        Annotated[FloatParameter | IntParameter | CategoricalParameter, Field(discriminator="type")], ...
    ] = ()
    """Parameters of the formula."""


class RiskProfile(SpecModel):
    """Possible harm of the app."""

    deployment_reach: Literal[
        "internal_restricted", "internal_broad", "external_authenticated", "external_public"
    ] = "external_authenticated"
    """Users of the app."""
    autonomy: Literal["human_in_the_loop", "human_on_the_loop", "fully_autonomous"] = "human_on_the_loop"
    """Autonomy of the app."""
    data_sensitivity: Literal[
        "public_data_only", "internal_business_data", "personal_data_pii", "special_category_data"
    ] = "internal_business_data"
    """Data that the app sees."""
    action_capability: Literal[
        "generates_text_advice_only",
        "read_only_tool_access",
        "reversible_write_actions",
        "irreversible_or_high_impact_write_actions",
    ] = "read_only_tool_access"
    """Actions that the app can take."""
    untrusted_content_exposure: Literal[
        "direct_user_input_only",
        "curated_internal_knowledge_base",
        "user_uploaded_or_third_party_documents",
        "live_web_email_or_peer_agent_content",
    ] = "curated_internal_knowledge_base"
    """Content that the app reads."""
    domain_criticality: Literal[
        "general_information", "business_operations", "consequential_decisions", "safety_critical"
    ] = "business_operations"
    """Systems that depend on the app."""
    audience_vulnerability: Literal[
        "internal_experts_trained_operators", "professional_users", "general_public", "vulnerable_groups"
    ] = "professional_users"
    """Affected people."""


class AppSpec(SpecModel):
    """App file."""

    key: Key
    """Unique key."""
    display_name: DisplayName
    """Display name."""
    description: str | None = None
    """Short description."""
    long_description: str | None = None
    """Long description in Markdown."""
    risk_profile: RiskProfile | None = None
    """Possible harm of the app; `None`: unknown."""
    tags: tuple[str, ...] = ()
    """Free labels."""
    model_under_test_key: str | None = None
    """Default model to evaluate."""
    judge_model_key: str | None = None
    """Default judge model."""
    risk_scorers: tuple[str, ...] = ()
    """Keys of risk scorers."""
    key_info: JsonMap | None = None
    """Deprecated form of `risk_profile`; kept unchanged."""


Subsampling = Literal["head", "random"]
CachePolicy = Literal["reuse", "update", "no-cache"]
AnyOf = Literal["any"] | tuple[str, ...]
"""The word `any`, or a list."""


class TaskSpecification(SpecModel):
    """Run of a task: parameters and evaluated model."""

    type: Literal["standard"] = "standard"
    key: Key | None = None
    """Key of the result; `None`: `task_key`, numbered if necessary."""
    task_key: Key
    """Key of the task."""
    task_config: JsonMap = Field(default_factory=dict)
    """Values of the task parameters."""
    model_key: TemplatedModelKey | None = None
    """Key of the model to evaluate."""
    dataset_key: TemplatedKey | None = None
    """Deprecated: dataset under evaluation; the same as `task_config.dataset_key`."""
    num_samples: Templated[int] | None = None
    """Number of samples; `None`: as in `run_config`."""
    subsampling: Templated[Subsampling] | None = None
    """Selection of samples; `None`: as in `run_config`."""
    repeatability: RepeatedRuns | None = None
    """Number of runs of the whole task; `None`: one."""
    trials: TrialsOverride | None = None
    """Number of trials; `None`: as in the task."""
    display_name: DisplayName | None = None
    """Display name."""
    task_result_log_path: str | None = None
    """Stored result to use instead of a run; path relative to the run file."""


class RepeatabilityInput(SpecModel):
    """Existing result to repeat."""

    evaluation_key: str
    """Key of the evaluation."""
    task_specification_key: str | None = None
    """Key of the specification; `None`: all specifications."""


class RepeatabilitySpecification(SpecModel):
    """Repetition of task specifications of an existing evaluation."""

    type: Literal["repeatability"]
    key: Key | None = None
    """Key of the result; `None`: `repeatability_N`."""
    repeatability_config: RepeatedRuns
    """Number of runs."""
    num_samples: Templated[int] | None = None
    """Number of samples; `None`: as in `run_config`."""
    subsampling: Templated[Subsampling] | None = None
    """Selection of samples; `None`: as in `run_config`."""
    inputs: Annotated[tuple[RepeatabilityInput, ...], Field(min_length=1)]
    """Results to repeat."""
    display_name: DisplayName | None = None
    """Display name."""


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
    """Evaluation."""

    key: Key
    """Unique key."""
    display_name: DisplayName
    """Display name."""
    description: str | None = ""
    """Short description."""
    long_description: str | None = None
    """Long description in Markdown."""
    config_spec: tuple[Parameter, ...] = ()
    """Parameters, used as `<< config.KEY >>` in the specifications."""
    task_specifications: tuple[AnyTaskSpecification, ...] = ()
    """Task specifications to run."""
    tags: tuple[str, ...] = ()
    """Free labels."""
    use_cases: AnyOf = ()
    """Intended use cases."""
    domains: AnyOf = ()
    """Intended domains."""
    providers: AnyOf = ()
    """Intended providers."""
    num_samples: int | None = None
    """Deprecated place of `run_config.num_samples`, which takes precedence."""
    subsampling: Subsampling | None = None
    """Deprecated place of `run_config.subsampling`, which takes precedence."""
    cache_policy: CachePolicy | None = None
    """Deprecated place of `run_config.cache_policy`, which takes precedence."""


class RunTrialsConfig(SpecModel):
    """Number of trials for a whole run."""

    num_trials: int = Field(ge=2)
    """Number of trials per sample."""


class RunConfig(SpecModel):
    """Run settings of an evaluation."""

    num_samples: Annotated[int, Field(ge=1)] | None = None
    """Number of samples per task; `None`: all."""
    subsampling: Subsampling | None = None
    """Selection of samples; `None`: the first ones."""
    cache_policy: CachePolicy = "reuse"
    """Policy for reusing earlier results."""
    trials_config: RunTrialsConfig | None = None
    """Number of trials; `None`: as in the tasks."""


def _model_entry_type(value: Any) -> str:
    declared = "$provider" in value if isinstance(value, dict) else isinstance(value, ProviderModel)
    return "declared" if declared else "model"


ModelEntry = Annotated[
    Annotated[ModelSpec, Tag("model")] | Annotated[ProviderModel, Tag("declared")],
    Discriminator(_model_entry_type),
]


class RunSpec(SpecModel):
    """Run file: an evaluation and everything that it needs."""

    config: JsonMap = Field(default_factory=dict)
    """Values of the evaluation parameters."""
    run_config: RunConfig = RunConfig.model_construct(
        num_samples=None, subsampling=None, cache_policy="reuse", trials_config=None
    )
    """Run settings."""
    secrets: dict[str, str] | None = Field(default=None, repr=False)
    """Values for `<< secrets.NAME >>`."""
    model_adapters: tuple[AdapterSpec, ...] = ()
    """Model adapters."""
    models: tuple[ModelEntry, ...] = ()
    """Models, complete or declared with `$provider`."""
    dataset_generators: tuple[DatasetGeneratorSpec, ...] = ()
    """Dataset generators."""
    datasets: tuple[DatasetSpec, ...] = ()
    """Datasets."""
    tasks: tuple[TaskSpec, ...] = ()
    """Tasks."""
    evaluation: EvaluationSpec | None = None
    """Evaluation to run; `None`: the file only declares entities."""
    policies: tuple[PolicySpec, ...] = ()
    """Rules for the results."""


class EvaluationPlanEntry(SpecModel):
    """Evaluation of an assessment plan."""

    key: Key | None = None
    """Unique key in the plan."""
    evaluation_key: str
    """Evaluation to run."""
    evaluation_config: JsonMap = Field(default_factory=dict)
    """Values of the evaluation parameters."""
    evaluation_run_config: RunConfig = RunConfig.model_construct(
        num_samples=None, subsampling=None, cache_policy="reuse", trials_config=None
    )
    """Run settings."""


class AssessmentPlanSpec(SpecModel):
    """Assessment plan: several evaluations."""

    key: Key
    """Unique key."""
    display_name: DisplayName
    """Display name."""
    evaluation_specifications: Annotated[tuple[EvaluationPlanEntry, ...], Field(min_length=1)] | None = None
    """Evaluations by key."""
    evaluations: Annotated[tuple[RunSpec, ...], Field(min_length=1)] | None = None
    """Deprecated: complete run files."""
