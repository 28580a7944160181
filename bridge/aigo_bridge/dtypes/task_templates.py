"""Stored definition of a task with its trials and action rules, and rules for metrics.

The `expression` of a filter is a template. Its variables are the columns of a dataset. Within a task, they
are `sample`, `solver_output` and `scores` (score values by scorer key).
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from aigo_bridge.dtypes.base import AtLeastOne, AtLeastTwo, Key, LFBaseModel, NonEmpty, OpenFieldsModel
from aigo_bridge.dtypes.enums import (
    ActionRuleAction,
    EvaluatedEntityType,
    FilterComparisonOp,
    FilterMembershipOp,
    FilterUnaryOp,
    ScalarDtype,
    ScorerPurpose,
    StringKind,
)


class MeanAggregator(LFBaseModel):
    """Mean of the scores."""

    function: Literal["mean"]
    """Always `mean`."""
    score_name: str | None = None
    """Name of the aggregated score; `None` for the name of the score."""


class MinAggregator(LFBaseModel):
    """Minimum of the scores."""

    function: Literal["min"]
    """Always `min`."""
    score_name: str | None = None
    """Name of the aggregated score; `None` for the name of the score."""


class MaxAggregator(LFBaseModel):
    """Maximum of the scores."""

    function: Literal["max"]
    """Always `max`."""
    score_name: str | None = None
    """Name of the aggregated score; `None` for the name of the score."""


class PassAtKAggregator(LFBaseModel):
    """Probability that at least one of `k` attempts succeeds: `1 - (1 - p)^k`, where `p` is the proportion of
    passed trials.
    """

    function: Literal["pass@k"]
    """Always `pass@k`."""
    k: AtLeastOne
    """Number of attempts."""
    score_name: str | None = None
    """Name of the aggregated score; `None` for the name of the score."""


class PassPowerKAggregator(LFBaseModel):
    """Probability that all of `k` attempts succeed: `p^k`, where `p` is the proportion of passed trials."""

    function: Literal["pass^k"]
    """Always `pass^k`."""
    k: AtLeastOne
    """Number of attempts."""
    score_name: str | None = None
    """Name of the aggregated score; `None` for the name of the score."""


Aggregator = MeanAggregator | MinAggregator | MaxAggregator | PassAtKAggregator | PassPowerKAggregator
"""Function that combines several scores into one."""


class ScoreAggregator(LFBaseModel):
    """Aggregation of one score."""

    score_name: str
    """Name of the score."""
    aggregator: Annotated[Aggregator, Field(discriminator="function")]
    """Aggregation function."""


class TrialsDefinitionTemplate(LFBaseModel):
    """Trials that a task requests."""

    num_trials: int | str
    """Number of trials per sample, or a template for it."""
    score_aggregators: list[ScoreAggregator] | None = None
    """Aggregation of scores. By default, numbers and booleans are averaged, and other scores are not
    aggregated.
    """


class TrialsConfig(LFBaseModel):
    """Trials that were run."""

    num_trials: AtLeastTwo
    """Number of trials per sample."""


class RepeatabilityConfig(LFBaseModel):
    """Runs of a task to measure its repeatability."""

    num_runs: AtLeastTwo
    """Number of runs."""


class FilterComparison(LFBaseModel):
    """Comparison of an expression with one value."""

    op: FilterComparisonOp
    """Comparison operator."""
    expression: str
    """Template of the compared value."""
    value: str | float | int | bool
    """Value to compare with."""


class FilterMembership(LFBaseModel):
    """Test whether an expression is one of several values."""

    op: FilterMembershipOp
    """Whether the value must be in the list or must not."""
    expression: str
    """Template of the value to search for."""
    values: list[str | float | bool]
    """List of values. Integers become floating-point numbers."""


class FilterUnary(LFBaseModel):
    """Test of an expression without another value."""

    op: FilterUnaryOp
    """Test operator."""
    expression: str
    """Template of the tested value."""


class ActionRule(LFBaseModel):
    """Rule that applies an action to the samples that a filter selects."""

    key: Key
    """Key of the rule, which action records contain."""
    action: ActionRuleAction
    """Action to apply."""
    filter: FilterComparison | FilterMembership | FilterUnary
    """Filter that selects the samples."""


class ExistsRuleDefinition(LFBaseModel):
    """Rule that a metric must exist."""

    type: Literal["exists"]
    """Always `exists`."""
    metric: str
    """Name of the metric value."""


class ThresholdRuleDefinition(LFBaseModel):
    """Rule that a metric must satisfy a threshold."""

    type: Literal["threshold"]
    """Always `threshold`."""
    metric: str
    """Name of the metric value."""
    operator: Literal[">", ">=", "=", "<", "<="]
    """Comparison operator between the metric and the threshold."""
    threshold: float
    """Threshold of the metric."""


RuleDefinition = ExistsRuleDefinition | ThresholdRuleDefinition
"""Requirement of a rule."""

PolicyRuleSimpleScope = Literal["all_latest"]
"""All latest results."""


class PolicyRuleFinegrainedScope(LFBaseModel):
    """Results that match all lists. `None` disables a criterion."""

    evaluation_keys: list[str] | None = None
    """Keys of evaluations."""
    task_specification_keys: list[str] | None = None
    """Keys of tasks within evaluations."""
    scorer_keys: list[str] | None = None
    """Keys of scorers."""
    metric_keys: list[str] | None = None
    """Keys of metrics."""


RuleScope = PolicyRuleSimpleScope | PolicyRuleFinegrainedScope
"""Results that a rule checks."""


class TaskDatasetTemplate(LFBaseModel):
    """Dataset of a task."""

    id: str
    """Identifier of the dataset, or a template for it."""


class TaskSolverTemplate(OpenFieldsModel):
    """Solver of a task. Its settings are additional fields."""

    type: str
    """Type of the solver."""


class TaskMetricTemplate(OpenFieldsModel):
    """Metric of a scorer. Its settings are additional fields."""

    key: str | None = None
    """Key of the metric."""
    type: str
    """Type of the metric."""


class TaskScorerTemplate(OpenFieldsModel):
    """Scorer of a task. Its settings are additional fields."""

    key: Key | None = None
    """Key of the scorer."""
    type: str
    """Type of the scorer."""
    display_name: str | None = None
    """Display name."""
    purpose: ScorerPurpose = ScorerPurpose.score
    """Purpose of the scorer: measuring the model or checking the evaluation."""
    metrics: list[TaskMetricTemplate] | None = None
    """Metrics that are computed from the scores."""


class BenchmarkTaskDefinitionTemplate(LFBaseModel):
    """Task that evaluates a model or a dataset sample by sample."""

    type: Literal["benchmark_task"]
    """Always `benchmark_task`."""
    evaluated_entity_type: EvaluatedEntityType
    """Kind of the evaluated entity."""
    dataset: TaskDatasetTemplate | None = None
    """Dataset with the samples."""
    solver: TaskSolverTemplate | None = None
    """Solver that produces an output for each sample."""
    scorers: list[TaskScorerTemplate]
    """Scorers that score the outputs."""
    trials: TrialsDefinitionTemplate | None = None
    """Trials per sample; `None` for one trial."""
    actions: list[ActionRule] | None = None
    """Actions that apply to selected samples."""


class SystemTaskDefinitionTemplate(LFBaseModel):
    """Task whose snippet computes all metrics in one call."""

    type: Literal["system_task"]
    """Always `system_task`."""
    compute_evidence_snippet: str
    """Python source with a function `compute_evidence`."""


TaskDefinition = BenchmarkTaskDefinitionTemplate | SystemTaskDefinitionTemplate


class _ParameterSpec(LFBaseModel):
    """Common fields of most parameters. A redefined field keeps its position, which matches published
    files.
    """

    type: str
    """Type of the parameter."""
    key: str
    """Name of the parameter in the task."""
    display_name: NonEmpty
    """Display name."""
    description: str | None = None
    """Purpose of the parameter."""


class _TextParameterSpec(_ParameterSpec):
    """Parameter with a text value."""

    default_value: str | None = None
    """Default value."""
    nullable: bool = False
    """Whether the value may be null."""


class FloatParameterSpec(_ParameterSpec):
    """Number parameter."""

    type: Literal["float"]
    """Always `float`."""
    min: float | None = None
    """Minimum value; `None` for unlimited."""
    max: float | None = None
    """Maximum value; `None` for unlimited."""
    default_value: float | None = None
    """Default value."""
    nullable: bool = False
    """Whether the value may be null."""


class IntParameterSpec(_ParameterSpec):
    """Integer parameter."""

    type: Literal["int"]
    """Always `int`."""
    min: int | None = None
    """Minimum value; `None` for unlimited."""
    max: int | None = None
    """Maximum value; `None` for unlimited."""
    default_value: int | None = None
    """Default value."""
    nullable: bool = False
    """Whether the value may be null."""


class BooleanParameterSpec(_ParameterSpec):
    """Boolean parameter."""

    type: Literal["boolean"]
    """Always `boolean`."""
    default_value: bool | None = None
    """Default value."""
    nullable: bool = False
    """Whether the value may be null."""


class StringParameterExample(LFBaseModel):
    """Example text of a parameter."""

    value: str
    """Example text."""
    display_name: NonEmpty
    """Display name."""


class StringParameterSpec(_TextParameterSpec):
    """Text parameter. The text may be a template or Python source."""

    type: Literal["string"]
    """Always `string`."""
    string_kind: StringKind = StringKind.freeform
    """Content of the text."""
    examples: list[StringParameterExample] | None = None
    """Example texts."""


class ModelParameterSpec(_TextParameterSpec):
    """Model parameter. Its value is the key of a model."""

    type: Literal["model"]
    """Always `model`."""
    default_value: str | None = None
    """Default key."""


class DatasetParameterSpec(_TextParameterSpec):
    """Dataset parameter. Its value is the key of a dataset."""

    type: Literal["dataset"]
    """Always `dataset`."""
    default_value: str | None = None
    """Default key."""


class DatasetColumnParameterSpec(_TextParameterSpec):
    """Dataset column parameter. Its value is the name of a column."""

    type: Literal["dataset_column"]
    """Always `dataset_column`."""
    default_value: str | None = None
    """Default column."""


class TaskResultParameterSpec(_TextParameterSpec):
    """Task result parameter of later releases. Its value is the key of an earlier task result."""

    type: Literal["task_result"]
    """Always `task_result`."""
    default_value: str | None = None
    """Default key."""


class ListParameterSpec(LFBaseModel):
    """List parameter."""

    type: Literal["list"]
    """Always `list`."""
    dtype: ScalarDtype
    """Type of the list elements."""
    key: str
    """Name of the parameter in the task."""
    display_name: NonEmpty
    """Display name."""
    description: str | None = None
    """Purpose of the parameter."""
    default_value: list[Any] | None = None
    """Default value."""
    nullable: bool = False
    """Whether the value may be null."""


class DictParameterSpec(LFBaseModel):
    """Dictionary parameter."""

    type: Literal["dict"]
    """Always `dict`."""
    value_dtype: ScalarDtype
    """Type of the values."""
    key: str
    """Name of the parameter in the task."""
    display_name: NonEmpty
    """Display name."""
    description: str | None = None
    """Purpose of the parameter."""
    default_value: dict[str, Any] | None = None
    """Default value."""
    nullable: bool = False
    """Whether the value may be null."""


class CategoricalParameterSpec(_ParameterSpec):
    """Choice parameter: one or several texts from a list."""

    type: Literal["categorical"]
    """Always `categorical`."""
    allowed_values: list[str]
    """Texts to choose from."""
    multiple: bool = False
    """Whether several may be chosen."""
    default_value: str | None = None
    """Default value."""
    nullable: bool = False
    """Whether the value may be null."""
    values_mapping: dict[str, int | float | bool | str] | None = None
    """Text → value that the task receives; `None` for the text itself."""


ParameterSpec = (
    FloatParameterSpec
    | IntParameterSpec
    | BooleanParameterSpec
    | StringParameterSpec
    | ModelParameterSpec
    | DatasetParameterSpec
    | DatasetColumnParameterSpec
    | ListParameterSpec
    | DictParameterSpec
    | CategoricalParameterSpec
    | TaskResultParameterSpec
)
"""Parameter of a task."""
