"""The result log: what was evaluated, how, and what came out; logs of other releases rewritten to its
fields.
"""

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
"""Fields that later releases added to parameters; inside a union they would not be ignored."""


def adapted(log: Any) -> Any:
    """The log as this release writes it; the input is left as it is, so is what is not plain data.

    * a definition of type `declarative_task` is a `benchmark_task`;
    * later releases do not say what kind of entity is evaluated: it follows from the entity;
    * later releases add fields to models and parameters, which are dropped;
    * a sample without trials, in the legacy form, becomes a sample with one trial.
    """
    return _changed(log, specification=_specification, evidence=_evidence)


def _changed(data: Any, **changes: Callable[[Any], Any]) -> Any:
    """`data` with the named fields passed through a function, where they are present."""
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
    """A legacy sample as a sample with one trial; a sample with trials, and what is no sample, as it is.

    The parts of the trial are written in full, as if each field had been set.

    Raises:
        pydantic.ValidationError: A part does not fit.
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
    """A score with unknown fields is not read: in this form there never were any."""
    return sparse_serializer(ScoresData).to_python(ScoresData(**value)) if isinstance(value, dict) else value


class ModelUsageStats(LFBaseModel):
    """Usage of the evaluated model."""

    num_samples: int
    """Samples that called the evaluated model; a sample with several trials counts once."""
    num_completion_tokens: int | None = None
    """Output tokens of the evaluated model; `None` when unknown."""
    num_prompt_tokens: int | None = None
    """Input tokens of the evaluated model; `None` when unknown."""


class TaskExecution(LFBaseModel):
    """When a task ran and what it used."""

    runtime: float
    """Duration in seconds."""
    started_at: int
    """Unix time in seconds."""
    ended_at: int
    """Unix time in seconds."""
    model_usage: ModelUsageStats | None = None
    """Usage of the evaluated model; `None` when unknown."""


class EvaluationConfig(LFBaseModel):
    """How much of a task is run, and how."""

    num_samples: AtLeastOne | None = None
    """Samples to evaluate; `None` for all."""
    subsampling: Subsampling | None = None
    """Which samples are taken; `None` for the first ones."""
    cache_policy: CachePolicy = CachePolicy.reuse
    """How earlier results are used."""
    trials_config: TrialsConfig | None = None
    """Trials per sample; `None` for what the task says."""


class TaskResultSpecification(LFBaseModel):
    """Evaluated task, model and configuration."""

    display_name: str
    """Display name of the evaluation."""
    task: StoredTask
    """The task."""
    config: dict[str, Any]
    """Values of the task's parameters."""
    evaluated_entity: StoredDataset | StoredModel | None = None
    """Evaluated model or dataset; benchmark tasks only."""
    run_config: EvaluationConfig
    """Number of samples and trials, and cache policy."""
    repeatability_config: RepeatabilityConfig | None = None
    """Number of runs; `None` when repeatability was not assessed."""


class TaskResultLog(LFBaseModel):
    """The result of one task."""

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
    """The metrics of one scorer of one task, as a policy rule sees them."""

    evaluation_key: str
    """Key of the evaluation."""
    evaluation_id: str
    """Identifier of the evaluation."""
    task_result_id: str
    """Identifier of the task result."""
    task_specification_key: str
    """Key of the task within the evaluation."""
    task_specification_display_name: str
    """Name of the task as shown."""
    scorer_key: str | None
    """Key of the scorer; `None` for tasks without scorers."""
    metric_key: str
    """Key of the metric."""
    values: dict[str, float | int]
    """Values by name."""
