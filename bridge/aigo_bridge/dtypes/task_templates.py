"""A task's definition as it is stored, with its trials and action rules; and rules over metrics.

The `expression` of a filter is a template. It sees the columns of a dataset, or within a task `sample`,
`solver_output` and `scores` (score values by scorer key).
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
    """The mean of numbers."""

    function: Literal["mean"]
    """Always `mean`."""
    score_name: str | None = None
    """Name of the result; `None` keeps the name of the score."""


class MinAggregator(LFBaseModel):
    """The smallest number."""

    function: Literal["min"]
    """Always `min`."""
    score_name: str | None = None
    """Name of the result; `None` keeps the name of the score."""


class MaxAggregator(LFBaseModel):
    """The largest number."""

    function: Literal["max"]
    """Always `max`."""
    score_name: str | None = None
    """Name of the result; `None` keeps the name of the score."""


class PassAtKAggregator(LFBaseModel):
    """The chance that at least one of `k` attempts succeeds: `1 - (1 - p)^k`, `p` the share of passed
    trials.
    """

    function: Literal["pass@k"]
    """Always `pass@k`."""
    k: AtLeastOne
    """Number of attempts."""
    score_name: str | None = None
    """Name of the result; `None` keeps the name of the score."""


class PassPowerKAggregator(LFBaseModel):
    """The chance that all of `k` attempts succeed: `p^k`, `p` the share of passed trials."""

    function: Literal["pass^k"]
    """Always `pass^k`."""
    k: AtLeastOne
    """Number of attempts."""
    score_name: str | None = None
    """Name of the result; `None` keeps the name of the score."""


Aggregator = MeanAggregator | MinAggregator | MaxAggregator | PassAtKAggregator | PassPowerKAggregator
"""A way to make one score of several."""


class ScoreAggregator(LFBaseModel):
    """Which score is aggregated, and how."""

    score_name: str
    """Name of the score."""
    aggregator: Annotated[Aggregator, Field(discriminator="function")]
    """How."""


class TrialsDefinitionTemplate(LFBaseModel):
    """Trials as a task asks for them."""

    num_trials: int | str
    """Trials per sample, or a template of it."""
    score_aggregators: list[ScoreAggregator] | None = None
    """How scores are aggregated; numbers and booleans without an entry are averaged, other scores are not."""


class TrialsConfig(LFBaseModel):
    """Trials as they were run."""

    num_trials: AtLeastTwo
    """Trials per sample."""


class RepeatabilityConfig(LFBaseModel):
    """How often a task is run to see whether its result holds."""

    num_runs: AtLeastTwo
    """Number of runs."""


class FilterComparison(LFBaseModel):
    """Compares an expression with one value."""

    op: FilterComparisonOp
    """How."""
    expression: str
    """Template of what is compared."""
    value: str | float | int | bool
    """What it is compared with."""


class FilterMembership(LFBaseModel):
    """Looks for an expression among several values."""

    op: FilterMembershipOp
    """Whether it has to be there or must not be."""
    expression: str
    """Template of what is looked for."""
    values: list[str | float | bool]
    """The values; whole numbers become floating point."""


class FilterUnary(LFBaseModel):
    """Asks something of an expression on its own."""

    op: FilterUnaryOp
    """What."""
    expression: str
    """Template of what is asked about."""


class ActionRule(LFBaseModel):
    """Does something with the samples that a filter selects."""

    key: Key
    """Key of the rule; action records carry it."""
    action: ActionRuleAction
    """What is done."""
    filter: FilterComparison | FilterMembership | FilterUnary
    """Which samples."""


class ExistsRuleDefinition(LFBaseModel):
    """The metric has to exist."""

    type: Literal["exists"]
    """Always `exists`."""
    metric: str
    """Name of the metric value."""


class ThresholdRuleDefinition(LFBaseModel):
    """The metric has to be on the right side of a number."""

    type: Literal["threshold"]
    """Always `threshold`."""
    metric: str
    """Name of the metric value."""
    operator: Literal[">", ">=", "=", "<", "<="]
    """How the metric has to stand to the number."""
    threshold: float
    """The number."""


RuleDefinition = ExistsRuleDefinition | ThresholdRuleDefinition
"""What a rule demands."""

PolicyRuleSimpleScope = Literal["all_latest"]
"""Every latest result."""


class PolicyRuleFinegrainedScope(LFBaseModel):
    """The results that match all lists; `None` leaves that criterion out."""

    evaluation_keys: list[str] | None = None
    """Keys of evaluations."""
    task_specification_keys: list[str] | None = None
    """Keys of tasks within evaluations."""
    scorer_keys: list[str] | None = None
    """Keys of scorers."""
    metric_keys: list[str] | None = None
    """Keys of metrics."""


RuleScope = PolicyRuleSimpleScope | PolicyRuleFinegrainedScope
"""The results that a rule looks at."""


class TaskDatasetTemplate(LFBaseModel):
    """The dataset of a task."""

    id: str
    """Identifier of the dataset, or a template of it."""


class TaskSolverTemplate(OpenFieldsModel):
    """The solver of a task; its own settings are further fields."""

    type: str
    """Type of the solver."""


class TaskMetricTemplate(OpenFieldsModel):
    """A metric of a scorer; its own settings are further fields."""

    key: str | None = None
    """Key of the metric."""
    type: str
    """Type of the metric."""


class TaskScorerTemplate(OpenFieldsModel):
    """A scorer of a task; its own settings are further fields."""

    key: Key | None = None
    """Key of the scorer."""
    type: str
    """Type of the scorer."""
    display_name: str | None = None
    """Name as shown."""
    purpose: ScorerPurpose = ScorerPurpose.score
    """Whether it measures the model or the evaluation."""
    metrics: list[TaskMetricTemplate] | None = None
    """What is computed from its scores."""


class BenchmarkTaskDefinitionTemplate(LFBaseModel):
    """A task that runs a model, or looks at a dataset, sample by sample."""

    type: Literal["benchmark_task"]
    """Always `benchmark_task`."""
    evaluated_entity_type: EvaluatedEntityType
    """What is evaluated."""
    dataset: TaskDatasetTemplate | None = None
    """The samples."""
    solver: TaskSolverTemplate | None = None
    """How a sample becomes an output."""
    scorers: list[TaskScorerTemplate]
    """How outputs are judged."""
    trials: TrialsDefinitionTemplate | None = None
    """Trials per sample; `None` for one."""
    actions: list[ActionRule] | None = None
    """What is done with particular samples."""


class SystemTaskDefinitionTemplate(LFBaseModel):
    """A task that computes its metrics in one go, by a snippet."""

    type: Literal["system_task"]
    """Always `system_task`."""
    compute_evidence_snippet: str
    """Python source with a function `compute_evidence`."""


TaskDefinition = BenchmarkTaskDefinitionTemplate | SystemTaskDefinitionTemplate


class _ParameterSpec(LFBaseModel):
    """The fields that most parameters begin with; a redefined field keeps its place, which is that of
    published files.
    """

    type: str
    """Kind of parameter."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""


class _TextParameterSpec(_ParameterSpec):
    """A parameter whose value is a text."""

    default_value: str | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class FloatParameterSpec(_ParameterSpec):
    """A number."""

    type: Literal["float"]
    """Always `float`."""
    min: float | None = None
    """Smallest value allowed; `None` for no limit."""
    max: float | None = None
    """Largest value allowed; `None` for no limit."""
    default_value: float | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class IntParameterSpec(_ParameterSpec):
    """A whole number."""

    type: Literal["int"]
    """Always `int`."""
    min: int | None = None
    """Smallest value allowed; `None` for no limit."""
    max: int | None = None
    """Largest value allowed; `None` for no limit."""
    default_value: int | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class BooleanParameterSpec(_ParameterSpec):
    """Yes or no."""

    type: Literal["boolean"]
    """Always `boolean`."""
    default_value: bool | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class StringParameterExample(LFBaseModel):
    """A text to start from."""

    value: str
    """The text."""
    display_name: NonEmpty
    """Name as shown."""


class StringParameterSpec(_TextParameterSpec):
    """A text, possibly a template or Python source."""

    type: Literal["string"]
    """Always `string`."""
    string_kind: StringKind = StringKind.freeform
    """What the text is."""
    examples: list[StringParameterExample] | None = None
    """Texts to start from."""


class ModelParameterSpec(_TextParameterSpec):
    """A model, by key."""

    type: Literal["model"]
    """Always `model`."""
    default_value: str | None = None
    """Key when none is given."""


class DatasetParameterSpec(_TextParameterSpec):
    """A dataset, by key."""

    type: Literal["dataset"]
    """Always `dataset`."""
    default_value: str | None = None
    """Key when none is given."""


class DatasetColumnParameterSpec(_TextParameterSpec):
    """A column of the dataset."""

    type: Literal["dataset_column"]
    """Always `dataset_column`."""
    default_value: str | None = None
    """Column when none is given."""


class TaskResultParameterSpec(_TextParameterSpec):
    """An earlier task result, by key; later releases have it."""

    type: Literal["task_result"]
    """Always `task_result`."""
    default_value: str | None = None
    """Key when none is given."""


class ListParameterSpec(LFBaseModel):
    """A list."""

    type: Literal["list"]
    """Always `list`."""
    dtype: ScalarDtype
    """Type of the elements."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: list[Any] | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class DictParameterSpec(LFBaseModel):
    """A dictionary."""

    type: Literal["dict"]
    """Always `dict`."""
    value_dtype: ScalarDtype
    """Type of the values."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: dict[str, Any] | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class CategoricalParameterSpec(_ParameterSpec):
    """One, or several, of a list of texts."""

    type: Literal["categorical"]
    """Always `categorical`."""
    allowed_values: list[str]
    """The texts to choose from."""
    multiple: bool = False
    """Whether several may be chosen."""
    default_value: str | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""
    values_mapping: dict[str, int | float | bool | str] | None = None
    """What each text stands for; `None` when it stands for itself."""


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
"""One parameter of a task."""
