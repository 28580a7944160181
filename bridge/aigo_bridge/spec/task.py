"""Specifications of tasks."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from aigo_bridge.spec.base import (
    DisplayName,
    Filter,
    Key,
    MLTask,
    SpecModel,
    TemplatedKey,
    TypeTable,
    mapping,
    mappings,
)
from aigo_bridge.spec.metric import METRICS
from aigo_bridge.spec.parameters import Parameter
from aigo_bridge.spec.scorers import SCORERS, Scorer
from aigo_bridge.spec.solvers import SOLVERS, Solver
from aigo_bridge.spec.trials import Trials

SOLVER_WITHOUT_DATASET = "a task with a solver needs 'dataset', found none"


def dataset_ref_problem(source: object, key: object, keys: object) -> str | None:
    """Return the problem of a combination of fields in a dataset reference; `None` if it is valid."""
    if source == "task_result":
        if key is None:
            return "a 'task_result' needs 'key'"
        return "a 'task_result' accepts only 'key'" if keys is not None else None
    if (key is None) == (keys is None):
        return f"expected one of 'key' and 'keys', found {'neither' if key is None else 'both'}"
    return None


class TaskDatasetRef(SpecModel):
    """Dataset reference of a task."""

    source: Literal["dataset", "task_result"] = "dataset"
    """Kind of entity that `key` names: a dataset or an earlier task result."""
    key: TemplatedKey | None = None
    """Key of the dataset or result; required unless you set `keys`."""
    keys: Annotated[tuple[TemplatedKey, ...], Field(min_length=1)] | None = None
    """Keys of several datasets, read in parallel: sample n is `{key: row n of that dataset}`."""

    @model_validator(mode="after")
    def _one_of_key_and_keys(self) -> Self:
        if (problem := dataset_ref_problem(self.source, self.key, self.keys)) is not None:
            raise PydanticCustomError("relation", "{problem}", {"problem": problem})
        return self


class ActionRuleSpec(SpecModel):
    """Rule for scored samples that a filter selects."""

    key: Key
    """Name of the rule in the evidence (`action_records[].rule_key`)."""
    action: Literal["exclude_from_metrics"]
    """Keep the sample in the evidence and exclude it from every metric."""
    filter: Filter
    """Condition over `sample`, `solver_output` and `scores` (scorer key → score values)."""


class BenchmarkDefinition(SpecModel):
    """Evaluation of a model on the rows of a dataset or, without a solver, of the rows themselves."""

    type: Literal["benchmark_task"] = "benchmark_task"
    evaluated_entity_type: Literal["model", "dataset"] | None = None
    """Deprecated: tasks with a solver evaluate a model, tasks without one a dataset."""
    dataset: TaskDatasetRef | None = None
    """Rows of the task; required with a solver."""
    solver: Solver | None = None
    """How to get an answer for each row; without a solver, the rows are scored."""
    scorers: tuple[Scorer, ...] = ()
    """Scorers, in order."""
    trials: Trials | None = None
    """Several attempts per sample; `None`: one attempt."""
    actions: tuple[ActionRuleSpec, ...] | None = None
    """Rules that exclude scored samples from metrics."""

    @model_validator(mode="after")
    def _solver_needs_dataset(self) -> Self:
        if self.solver is not None and self.dataset is None:
            raise PydanticCustomError("relation", "{problem}", {"problem": SOLVER_WITHOUT_DATASET})
        return self

    @property
    def evaluates(self) -> Literal["model", "dataset"]:
        """Return the evaluated entity: a model if the task has a solver, otherwise a dataset."""
        return "model" if self.solver is not None else "dataset"


SYSTEM_SAMPLE = "system"
"""ID of the only sample that engines see in a system task."""


class SystemDefinition(SpecModel):
    """Evidence computed by code, without a model or a dataset."""

    type: Literal["system_task"]
    compute_evidence_snippet: str
    """Defines `compute_evidence()`, sync or async, which returns `{"metrics": {name: {"value": number}}}`."""


def _definition_type(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "system_task" if kind == "system_task" else "benchmark_task"


Definition = Annotated[
    Annotated[BenchmarkDefinition, Tag("benchmark_task")] | Annotated[SystemDefinition, Tag("system_task")],
    Discriminator(_definition_type),
]


class TaskSpec(SpecModel):
    """A task as written."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Display name."""
    description: str
    """Short text; can be empty."""
    long_description: str | None = None
    """Long description in Markdown."""
    tasks: tuple[MLTask, ...] = ()
    """Machine learning tasks that the evaluated model supports."""
    config_spec: tuple[Parameter, ...] = ()
    """Parameters, used as `<< config.KEY >>` anywhere in the definition."""
    definition: Definition
    """Dataset, solver and scorers of the task."""
    tags: tuple[str, ...] = ()
    """Free labels."""
    needs: Literal["network"] | None = None
    """Extension: access that the task's snippets need; you allow it with `--allow network`."""

    @classmethod
    def model_validate(cls, obj: Any, **settings: Any) -> Self:
        """Validate a document, which can have scorers, metrics and solvers from plug-ins.

        Raises:
            ValidationError: the document is not a task.
            PluginError: a plug-in that it needs cannot be loaded.
        """
        if isinstance(obj, Mapping) and _loads_types(obj):
            rebuild()
        return super().model_validate(obj, **settings)


def _loads_types(document: Mapping[str, Any]) -> bool:
    """Return whether reading the document loaded a type from a plug-in."""
    before = len(SCORERS), len(METRICS), len(SOLVERS)
    definition = mapping(document.get("definition"))
    _load_type(SOLVERS, mapping(definition.get("solver")))
    for _, scorer in mappings(definition.get("scorers")):
        _load_type(SCORERS, scorer)
        for _, metric in mappings(scorer.get("metrics")):
            _load_type(METRICS, metric)
    return before != (len(SCORERS), len(METRICS), len(SOLVERS))


def _load_type(types: TypeTable[Any], part: Mapping[str, Any]) -> None:
    if isinstance(name := part.get("type"), str):
        types.load(name)


def rebuild() -> None:
    """Rebuild the task models to include scorers, solvers and metrics that were defined after the first task
    was read.
    """
    # Models that are not built yet include the new types anyway.
    models: list[type[SpecModel]] = [*SCORERS.values(), BenchmarkDefinition, TaskSpec]
    for model in models:
        if model.__pydantic_complete__:
            model.model_rebuild(force=True)


class TrialsOverride(SpecModel):
    """Another number of trials, for one specification or a whole run."""

    num_trials: int
    """Number of trials per sample."""


class RepeatedRuns(SpecModel):
    """Number of runs of a whole task."""

    num_runs: int = Field(ge=2)
    """Number of runs."""
