"""Evaluations (tasks with their configurations), run files and assessment plans."""

from __future__ import annotations

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
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.generators import DatasetGeneratorSpec
from aigo_bridge.spec.models import AdapterSpec, ModelSpec, ProviderModel
from aigo_bridge.spec.parameters import Parameter
from aigo_bridge.spec.policies import PolicySpec
from aigo_bridge.spec.task import TaskSpec
from aigo_bridge.spec.trials import RepeatabilityConfig, TrialsConfig

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
    """Deprecated: data set under evaluation; the same as `task_config.dataset_key`."""
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
    """Data set generators."""
    datasets: tuple[DatasetSpec, ...] = ()
    """Data sets."""
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
