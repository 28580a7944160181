"""Evidence of a task: results of the samples, per trial, and the metrics computed from them."""

from collections.abc import Iterable
from typing import Any, Self

from pydantic import Field, field_validator

from aigo_bridge.dtypes.base import Key, LFBaseModel
from aigo_bridge.dtypes.chat import (
    DirectModelIO,
    LFModelInput,
    LFModelOutput,
    ModelEndpointInput,
    ModelEndpointOutput,
    TraceFormat,
)
from aigo_bridge.dtypes.conversion import model_input_to_trace_items, model_output_to_trace_items
from aigo_bridge.dtypes.enums import ActionRuleAction, ScorerPurpose, TaskResultErrorStage
from aigo_bridge.dtypes.solver_outputs import SingleSolverOutput, SolverOutput, SolverTrace, direct_ios
from aigo_bridge.dtypes.trace import Trace

MetricValues = dict[str, float | int]
"""Metric values by name. Integers stay integers."""


class MetricData(LFBaseModel):
    """Values of one metric, computed from the scores of one scorer."""

    values: MetricValues
    """Metric values by name."""
    metric_key: str
    """Key of the metric."""
    metric_type: str | None = None
    """Type of the metric; missing in results of earlier releases."""
    scorer_name: str | None = None
    """Display name of the scorer; benchmark tasks only."""
    scorer_key: str | None = None
    """Key of the scorer; benchmark tasks only."""
    scorer_purpose: ScorerPurpose | None = ScorerPurpose.score
    """Purpose of the scorer; benchmark tasks only."""
    reason: str | None = None
    """Explanation of the values; system tasks only."""


class FieldMetadata(LFBaseModel):
    """Display options for a column of an evidence table."""

    display_name: str | None = None
    """Heading of the column; `None` for its name."""
    description: str | None = None
    """Meaning of the column."""
    primary: bool = True
    """Whether the column is essential for understanding the result."""


class SystemTaskMetricEntry(LFBaseModel):
    """Metric value that a system task computed."""

    value: float | int
    """Metric value."""
    reason: str | None = None
    """Explanation of the value, copied to `MetricData.reason`."""


class SystemTaskOutput(LFBaseModel):
    """Return value of a system task's snippet."""

    metrics: dict[str, SystemTaskMetricEntry]
    """Metric values by metric key."""


ScoreValues = dict[str, Any]
"""Scores by name."""

RawSample = dict[str, Any]
"""Row of a dataset: column → value."""

RawSampleMapping = dict[str, RawSample]
"""One row from each of several datasets: dataset key → row."""

RawSamplesMapping = dict[str, list[RawSample]]
"""Rows of several datasets: dataset key → rows."""

LFSample = RawSample | RawSampleMapping
"""Input of a task: a row, or one row from each dataset."""

ScoreMetadata = dict[str, Any]
"""Additional data of a scorer about its scores."""


class TaskResultError(LFBaseModel):
    """Error in a task or a sample."""

    error_type: str
    """Kind of error."""
    message: str
    """Error message."""
    hint: str | None = None
    """Suggested fix."""
    stage: TaskResultErrorStage | None = None
    """Step that failed; `None` if unknown."""


SampleErrors = list[TaskResultError]
"""Errors of a sample."""


class TaskResultFailures(LFBaseModel):
    """Number of failed samples."""

    num_errors: int
    """Number of samples with an error."""
    num_total: int
    """Total number of samples."""


class SampleScore(LFBaseModel):
    """Return value of a scorer for a sample."""

    values: dict[str, Any]
    """Scores by name."""
    metadata: dict[str, Any] | None = None
    """Explanation of the scores."""
    direct_ios: list[DirectModelIO] = Field(default=[])
    """Raw requests and responses of the scorer's own model calls."""


class ScoresData(LFBaseModel):
    """Result of one scorer for one sample."""

    scorer_key: str
    """Key of the scorer."""
    scorer_purpose: ScorerPurpose = ScorerPurpose.score
    """Purpose of the scorer."""
    scorer_name: str | None = None
    """Display name of the scorer."""
    values: dict[str, Any]
    """Scores by name."""
    metadata: dict[str, Any] | None = None
    """Explanation of the scores."""
    direct_ios: list[DirectModelIO] = Field(default=[])
    """Raw requests and responses of the scorer's own model calls."""


class SampleData(LFBaseModel):
    """Sample as stored in the dataset."""

    data: dict[str, Any]
    """Values by column."""


class SolverData(LFBaseModel):
    """Output of the solver for one sample."""

    output: SolverOutput
    """One or several conversations."""


class ActionRecord(LFBaseModel):
    """Action rule that applied to a sample."""

    action: ActionRuleAction
    """Action that was applied."""
    rule_key: Key
    """Key of the rule."""


class SampleTrialEvidence(LFBaseModel):
    """One trial of one sample."""

    index: int
    """Number of the trial, from 0."""
    sample_id: str | int
    """Identifier of the sample; `1` and `"1"` are different."""
    sample: SampleData | None
    """Values of the sample; `None` if they could not be read."""
    solver: SolverData | None
    """Output of the solver; `None` if it failed."""
    scores: list[ScoresData] | None
    """Scores of the trial; `None` if no scorer ran."""
    errors: list[TaskResultError]
    """Errors of this trial."""


class SampleEvidence(LFBaseModel):
    """One sample with its trials."""

    sample_id: str | int | None
    """Identifier of the sample; `1` and `"1"` are different."""
    sample: SampleData | None
    """Values of the sample in legacy evidence and in repeatability results; otherwise in the trials."""
    solver: SolverData | None
    """Output of the solver in legacy evidence; otherwise in the trials."""
    scores: list[ScoresData] | None
    """Scores in legacy evidence, and scores aggregated over trials or runs."""
    action_records: list[ActionRecord] | None = None
    """Action rules that applied to the sample."""
    errors: list[TaskResultError]
    """Errors outside the trials."""
    trials: list[SampleTrialEvidence] = Field(default_factory=list)
    """Trials of the sample; empty in legacy evidence."""

    @classmethod
    def build(
        cls,
        model_input: LFModelInput | None,
        model_output: LFModelOutput | None,
        score_values: LFBaseModel | ScoreValues,
        score_metadata: LFBaseModel | dict[str, Any] | None = None,
        sample_id: int | str | None = None,
        sample_data: dict[str, Any] | None = None,
        scorer_key: str | None = None,
        solver_model_direct_input: ModelEndpointInput | None = None,
        solver_model_direct_output: ModelEndpointOutput | None = None,
        scorer_model_direct_input: ModelEndpointInput | None = None,
        scorer_model_direct_output: ModelEndpointOutput | None = None,
        message_format: TraceFormat = "open_responses",
    ) -> Self:
        """Create evidence of one sample with one trial, from one model call and one scorer.

        Pass the arguments by name, because their order differs between AI GO releases. `sample_id` is
        required in practice. With `open_responses` and any input or output, both direct arguments of the
        solver are required.

        Raises:
            pydantic.ValidationError: an argument is missing or invalid.
            ValueError: the chat format cannot represent the output (without choices or without an
                assistant message).
        """
        score = ScoresData(
            scorer_key="my_scorer_key" if scorer_key is None else scorer_key,
            values=_in_full(score_values),
            metadata=_in_full(score_metadata),
            direct_ios=direct_ios(scorer_model_direct_input, scorer_model_direct_output),
        )
        return cls.build_with_1_trial(
            sample_id=sample_id,  # type: ignore[arg-type]  # refused by validation, as promised
            sample=SampleData(data=sample_data or {}),
            solver=_solver_data(
                model_input,
                model_output,
                solver_model_direct_input,
                solver_model_direct_output,
                message_format,
            ),
            scores=[score],
            errors=[],
        )

    @classmethod
    def build_with_1_trial(
        cls,
        *,
        sample_id: str | int,
        sample: SampleData | None,
        solver: SolverData | None,
        scores: list[ScoresData] | None,
        errors: list[TaskResultError],
    ) -> Self:
        """Create evidence of one sample with one trial, in the form that AI GO writes.

        Raises:
            pydantic.ValidationError: an argument is invalid.
        """
        trial = SampleTrialEvidence(
            index=0, sample_id=sample_id, sample=sample, solver=solver, scores=scores, errors=errors
        )
        return cls(sample_id=sample_id, sample=None, solver=None, scores=None, errors=[], trials=[trial])


class RunEvidence(LFBaseModel):
    """One run of a task that runs several times to measure its repeatability."""

    index: int
    """Number of the run, from 0."""
    metrics: list[MetricData] | None
    """Metrics of the run; `None` if an error prevented them."""
    samples: list[SampleEvidence] | None = None
    """Samples of the run."""
    errors: list[TaskResultError] = Field(default=[])
    """Errors of the run as a whole."""
    failures: TaskResultFailures | None = None
    """Number of failed samples."""


class TaskResultEvidence(LFBaseModel):
    """Evidence of a task: metrics, samples, runs and errors."""

    metrics: list[MetricData] | None
    """Metrics of the task; `None` if an error prevented them."""
    samples: list[SampleEvidence] | None = None
    """Samples of the task."""
    runs: list[RunEvidence] | None = None
    """Runs of a repeatability result; `None` otherwise."""
    errors: list[TaskResultError] = Field(default=[])
    """Errors of the task as a whole."""
    failures: TaskResultFailures | None = None
    """Number of failed samples."""

    @field_validator("metrics", mode="before")
    @classmethod
    def adapt_metrics_if_needed(cls, value: Any) -> Any:
        """Convert a dictionary of numbers to a list with one metric; return any other value unchanged.

        Raises:
            pydantic.ValidationError: a value of the dictionary is not a number.
        """
        if not isinstance(value, dict):
            return value
        return [
            MetricData(
                values=value,
                metric_key="task_metric",
                metric_type="task_metric_type",
                scorer_key="task_scorer",
            )
        ]

    def build_flat_metrics_dict(self) -> MetricValues:
        """Return all metric values in one dictionary, under the shortest names that are distinct.

        By default, each value has its own name. If two names are equal, all names become `metric_name`. If
        two are still equal, all names become `scorer_metric_name`, and later values replace earlier ones.
        """
        named = [
            (name, value, metric) for metric in self.metrics or () for name, value in metric.values.items()
        ]
        short = [name for name, _, _ in named]
        longer = [f"{metric.metric_key}_{name}" for name, _, metric in named]
        longest = [f"{metric.scorer_key}_{metric.metric_key}_{name}" for name, _, metric in named]
        names = next((names for names in (short, longer) if _distinct(names)), longest)
        return {name: value for name, (_, value, _) in zip(names, named, strict=True)}


def _distinct(names: Iterable[str]) -> bool:
    names = list(names)
    return len(set(names)) == len(names)


def _in_full(value: Any) -> Any:
    return value.model_dump(exclude_unset=False) if isinstance(value, LFBaseModel) else value


def _solver_data(
    model_input: Any,
    model_output: Any,
    request: ModelEndpointInput | None,
    response: ModelEndpointOutput | None,
    message_format: TraceFormat,
) -> SolverData | None:
    if model_input is None and model_output is None:
        return None
    output: SolverOutput
    if message_format == "open_responses":
        output = SolverTrace(
            trace=Trace(
                items=[*model_input_to_trace_items(model_input), *model_output_to_trace_items(model_output)]
            ),
            raw_outputs=[model_output],
            direct_ios=[DirectModelIO(direct_input=request, direct_output=response)],
        )
    else:
        output = SingleSolverOutput.from_input_and_output(model_input, model_output, request, response)
    return SolverData(output=output)
