"""Result log: the task, its configuration and results. Logs of other releases are converted to it."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from pydantic import model_validator

from aigo_bridge.dtypes.base import AtLeastOne, LFBaseModel, sparse_serializer
from aigo_bridge.dtypes.entities import StoredDataset, StoredModel, StoredTask
from aigo_bridge.dtypes.enums import CachePolicy, Subsampling
from aigo_bridge.dtypes.evidence import (
    SampleData,
    ScoresData,
    SolverData,
    TaskResultError,
    TaskResultEvidence,
)
from aigo_bridge.dtypes.task_templates import RepeatabilityConfig, TrialsConfig

LATER_PARAMETER_FIELDS = frozenset({"usage", "default_file_content"})
"""Parameter fields that later releases added. Inside a union, readers would not ignore them."""


def adapted(log: Any) -> Any:
    """Convert a log to the format of this release without changing the input. Values that are not plain data
    are returned unchanged.

    * A definition with the type `declarative_task` becomes a `benchmark_task`.
    * The kind of the evaluated entity, which later releases leave out, is derived from the entity.
    * Fields that later releases add to models and parameters are dropped.
    * A sample without trials, in the legacy form, becomes a sample with one trial.
    """
    return _changed(log, specification=_specification, evidence=_evidence)


def _changed(data: Any, **changes: Callable[[Any], Any]) -> Any:
    """Return `data` with functions applied to the named fields, if present."""
    if not isinstance(data, dict):
        return data
    return {
        key: changes[key](value) if isinstance(key, str) and key in changes else value
        for key, value in data.items()
    }


def _specification(specification: Any) -> Any:
    specification = _changed(
        specification,
        evaluated_entity=_entity,
        task=lambda task: _changed(task, config_spec=_config_spec),
    )
    if not isinstance(specification, dict):
        return specification
    entity = specification.get("evaluated_entity")

    def definition(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value.get("type") == "declarative_task":
            value = {**value, "type": "benchmark_task"}
        if value.get("type") == "benchmark_task" and value.get("evaluated_entity_type") is None:
            kind = "dataset" if isinstance(entity, dict) and "config" not in entity else "model"
            value = {**value, "evaluated_entity_type": kind}
        return value

    return _changed(specification, task=lambda task: _changed(task, definition=definition))


def _entity(entity: Any) -> Any:
    if isinstance(entity, dict) and "usage" in entity:
        return {key: value for key, value in entity.items() if key != "usage"}
    return entity


def _config_spec(parameters: Any) -> Any:
    if not isinstance(parameters, list):
        return parameters
    return [
        {key: value for key, value in parameter.items() if key not in LATER_PARAMETER_FIELDS}
        if isinstance(parameter, dict)
        else parameter
        for parameter in parameters
    ]


def _evidence(evidence: Any) -> Any:
    return _changed(
        evidence,
        samples=partial(_each, one_trial),
    )


def one_trial(sample: Any) -> Any:
    """Convert a legacy sample to a sample with one trial. Samples with trials and other values are returned
    unchanged.

    The parts of the trial are written in full, as if each field had been set.

    Raises:
        pydantic.ValidationError: a part is invalid.
    """
    if not isinstance(sample, dict) or sample.get("trials"):
        return sample
    return {
        **{key: value for key, value in sample.items() if key != "trials"},
        "sample": None,
        "solver": None,
        "scores": None,
        "action_records": sample.get("action_records", []),
        "errors": [],
        "trials": [
            {
                "index": 0,
                "sample_id": sample.get("sample_id"),
                "sample": _in_full(SampleData, sample.get("sample")),
                "solver": _in_full(SolverData, sample.get("solver")),
                "scores": _each(_score, sample.get("scores")),
                "errors": _each(partial(_in_full, TaskResultError), sample.get("errors") or []),
            }
        ],
    }


def _each(change: Callable[[Any], Any], values: Any) -> Any:
    return [change(value) for value in values] if isinstance(values, list) else values


def _in_full(model: type[LFBaseModel], value: Any) -> Any:
    return (
        sparse_serializer(model).to_python(model.model_validate(value)) if isinstance(value, dict) else value
    )


def _score(value: Any) -> Any:
    """Reject a score with unknown fields, because the legacy form never contained any."""
    return sparse_serializer(ScoresData).to_python(ScoresData(**value)) if isinstance(value, dict) else value


class ModelUsageStats(LFBaseModel):
    """Usage of the evaluated model."""

    num_samples: int
    """Number of samples that called the evaluated model. A sample with several trials counts as one."""
    num_completion_tokens: int | None = None
    """Output tokens of the evaluated model; `None` if unknown."""
    num_prompt_tokens: int | None = None
    """Input tokens of the evaluated model; `None` if unknown."""


class TaskExecution(LFBaseModel):
    """Time and model usage of a task run."""

    runtime: float
    """Duration in seconds."""
    started_at: int
    """Start time, in Unix seconds."""
    ended_at: int
    """End time, in Unix seconds."""
    model_usage: ModelUsageStats | None = None
    """Usage of the evaluated model; `None` if unknown."""


class EvaluationConfig(LFBaseModel):
    """Number and selection of samples, and run options."""

    num_samples: AtLeastOne | None = None
    """Number of samples to evaluate; `None` for all."""
    subsampling: Subsampling | None = None
    """Selection of samples; `None` for the first ones."""
    cache_policy: CachePolicy = CachePolicy.reuse
    """Use of earlier results."""
    trials_config: TrialsConfig | None = None
    """Number of trials per sample; `None` for the task's number."""


class TaskResultSpecification(LFBaseModel):
    """Evaluated task, model and configuration."""

    display_name: str
    """Display name of the evaluation."""
    task: StoredTask
    """Evaluated task."""
    config: dict[str, Any]
    """Values of the task parameters."""
    evaluated_entity: StoredDataset | StoredModel | None = None
    """Evaluated model or dataset; benchmark tasks only."""
    run_config: EvaluationConfig
    """Number of samples and trials, and cache policy."""
    repeatability_config: RepeatabilityConfig | None = None
    """Number of runs; `None` if repeatability was not measured."""


class TaskResultLog(LFBaseModel):
    """Result of one task."""

    format_version: Literal["v1"]
    """Always `v1`."""
    app_version: str
    """Version of the program that wrote the log."""
    status: Literal["success", "failure"]
    """Whether the task finished."""
    evidence: TaskResultEvidence | None
    """Metrics and samples; `None` if an error prevented them."""
    specification: TaskResultSpecification
    """Evaluated task, model and configuration."""
    execution: TaskExecution
    """Time and model usage of the run."""
    errors: list[TaskResultError]
    """Errors of the task as a whole."""

    @model_validator(mode="before")
    @classmethod
    def _read_other_releases(cls, data: Any) -> Any:
        return adapted(data)


class PolicyRuleMetricsInput(LFBaseModel):
    """Metrics of one scorer of one task, as input of a policy rule."""

    evaluation_key: str
    """Key of the evaluation."""
    evaluation_id: str
    """Identifier of the evaluation."""
    task_result_id: str
    """Identifier of the task result."""
    task_specification_key: str
    """Key of the task within the evaluation."""
    task_specification_display_name: str
    """Display name of the task."""
    scorer_key: str | None
    """Key of the scorer; `None` for tasks without scorers."""
    metric_key: str
    """Key of the metric."""
    values: dict[str, float | int]
    """Metric values by name."""
