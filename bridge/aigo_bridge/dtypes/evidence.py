"""What happened to the samples, per trial, and the metrics computed from it."""

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
"""Numbers by name. Whole numbers stay whole."""


class MetricData(LFBaseModel):
    """What one metric computed from the scores of one scorer."""

    values: MetricValues
    """Values by name."""
    metric_key: str
    """Key of the metric."""
    metric_type: str | None = None
    """Type of the metric; missing in old results."""
    scorer_name: str | None = None
    """Display name of the scorer; benchmark tasks only."""
    scorer_key: str | None = None
    """Key of the scorer; benchmark tasks only."""
    scorer_purpose: ScorerPurpose | None = ScorerPurpose.score
    """Purpose of the scorer; benchmark tasks only."""
    reason: str | None = None
    """Explanation of the values; system tasks only."""


class FieldMetadata(LFBaseModel):
    """How a column of a table of evidence is shown."""

    display_name: str | None = None
    """Heading; `None` shows the column's own name."""
    description: str | None = None
    """What the column means."""
    primary: bool = True
    """Whether one has to look at it to understand the result."""


class SystemTaskMetricEntry(LFBaseModel):
    """One number that a system task computed."""

    value: float | int
    """The number."""
    reason: str | None = None
    """Why it is what it is; becomes `MetricData.reason`."""


class SystemTaskOutput(LFBaseModel):
    """What the snippet of a system task returns."""

    metrics: dict[str, SystemTaskMetricEntry]
    """The numbers by metric key."""


ScoreValues = dict[str, Any]
"""Scores by name."""

RawSample = dict[str, Any]
"""A row of a dataset: column → value."""

RawSampleMapping = dict[str, RawSample]
"""One row of each of several datasets: key of the dataset → row."""

RawSamplesMapping = dict[str, list[RawSample]]
"""The rows of several datasets: key of the dataset → rows."""

LFSample = RawSample | RawSampleMapping
"""What a task is run on: a row, or one of each dataset."""

ScoreMetadata = dict[str, Any]
"""What a scorer keeps beside its scores."""


class TaskResultError(LFBaseModel):
    """Something that went wrong in a task or a sample."""

    error_type: str
    """Kind of error."""
    message: str
    """Error message."""
    hint: str | None = None
    """Suggested fix."""
    stage: TaskResultErrorStage | None = None
    """Step that failed; `None` when unknown."""


SampleErrors = list[TaskResultError]
"""What went wrong with a sample."""


class TaskResultFailures(LFBaseModel):
    """Number of failed samples."""

    num_errors: int
    """Samples with an error."""
    num_total: int
    """All samples."""


class SampleScore(LFBaseModel):
    """What a scorer returns for a sample."""

    values: dict[str, Any]
    """Scores by name."""
    metadata: dict[str, Any] | None = None
    """Explanation of the scores."""
    direct_ios: list[DirectModelIO] = Field(default=[])
    """Raw requests and responses of the scorer's own model calls."""


class ScoresData(LFBaseModel):
    """What one scorer said about one sample."""

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
    """The sample as it stands in the dataset."""

    data: dict[str, Any]
    """Values by column."""


class SolverData(LFBaseModel):
    """What the solver handed over for one sample."""

    output: SolverOutput
    """The conversation or conversations."""


class ActionRecord(LFBaseModel):
    """An action rule that applied to a sample."""

    action: ActionRuleAction
    """Action that was applied."""
    rule_key: Key
    """Key of the rule."""


class SampleTrialEvidence(LFBaseModel):
    """One trial of one sample."""

    index: int
    """Number of the trial, from 0."""
    sample_id: str | int
    """The sample; `1` and `"1"` are different."""
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
    """The sample; `1` and `"1"` are different."""
    sample: SampleData | None
    """The sample's values, in legacy evidence and in repeatability results; otherwise the trials have
    them."""
    solver: SolverData | None
    """Output of the solver, in legacy evidence; otherwise the trials have it."""
    scores: list[ScoresData] | None
    """Scores in legacy evidence, and scores aggregated over trials or runs."""
    action_records: list[ActionRecord] | None = None
    """The action rules that applied."""
    errors: list[TaskResultError]
    """Errors outside the trials."""
    trials: list[SampleTrialEvidence] = Field(default_factory=list)
    """The trials; empty in legacy evidence."""

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
        """Evidence of one sample with one trial, from one model call and one scorer.

        Pass the arguments by name: their order differs between releases of AI GO. `sample_id` cannot be left
        out in practice. With `open_responses` and any input or output, both direct arguments of the solver
        are needed.

        Raises:
            pydantic.ValidationError: An argument is missing or does not fit.
            ValueError: The chat form has no room for this output (no choices, no assistant message).
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
        """Evidence of one sample with one trial, in the form that AI GO writes.

        Raises:
            pydantic.ValidationError: An argument does not fit.
        """
        trial = SampleTrialEvidence(
            index=0, sample_id=sample_id, sample=sample, solver=solver, scores=scores, errors=errors
        )
        return cls(sample_id=sample_id, sample=None, solver=None, scores=None, errors=[], trials=[trial])


class RunEvidence(LFBaseModel):
    """One run of a task that is run several times to see whether its result holds."""

    index: int
    """Number of the run, from 0."""
    metrics: list[MetricData] | None
    """The metrics; `None` when an error prevented them."""
    samples: list[SampleEvidence] | None = None
    """The samples of this run."""
    errors: list[TaskResultError] = Field(default=[])
    """Errors of the run as a whole."""
    failures: TaskResultFailures | None = None
    """Number of failed samples."""


class TaskResultEvidence(LFBaseModel):
    """Everything that came out of a task."""

    metrics: list[MetricData] | None
    """The metrics; `None` when an error prevented them."""
    samples: list[SampleEvidence] | None = None
    """The samples."""
    runs: list[RunEvidence] | None = None
    """The runs of a repeatability result; `None` otherwise."""
    errors: list[TaskResultError] = Field(default=[])
    """Errors of the task as a whole."""
    failures: TaskResultFailures | None = None
    """Number of failed samples."""

    @field_validator("metrics", mode="before")
    @classmethod
    def adapt_metrics_if_needed(cls, value: Any) -> Any:
        """A bare dictionary of numbers as a list of one metric; anything else as it is.

        Raises:
            pydantic.ValidationError: A value of the dictionary is not a number.
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
        """All metric values in one dictionary, under the shortest names that are distinct.

        Names are those of the values; if two are equal, `metric_name` for all; if two are still equal,
        `scorer_metric_name` for all, where later values win.
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
