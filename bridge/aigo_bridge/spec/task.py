"""Tasks: what is asked, how it is solved, how it is scored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from aigo_bridge.spec.base import DisplayName, Key, MLTask, SpecModel, TemplatedKey
from aigo_bridge.spec.filters import ActionRule
from aigo_bridge.spec.parameters import Parameter
from aigo_bridge.spec.scorers import Scorer
from aigo_bridge.spec.solvers import Solver
from aigo_bridge.spec.trials import Trials

SOLVER_WITHOUT_DATASET = "a task with a solver needs 'dataset', found none"


def dataset_ref_problem(source: object, key: object, keys: object) -> str | None:
    """What is wrong with the combination of a data set reference's fields; `None` when nothing is."""
    if source == "task_result":
        if key is None:
            return "a 'task_result' needs 'key'"
        return "a 'task_result' takes 'key' only" if keys is not None else None
    if (key is None) == (keys is None):
        return f"expected one of 'key' and 'keys', found {'neither' if key is None else 'both'}"
    return None


class TaskDatasetRef(SpecModel):
    """Which rows a task runs on."""

    source: Literal["dataset", "task_result"] = "dataset"
    """Whether `key` names a data set or an earlier task result."""
    key: TemplatedKey | None = None
    """The data set (or result); `None` when `keys` is given."""
    keys: Annotated[tuple[TemplatedKey, ...], Field(min_length=1)] | None = None
    """Several data sets side by side: sample n is `{key: row n of that data set}`; `None` when `key` is given."""

    @model_validator(mode="after")
    def _one_of_key_and_keys(self) -> TaskDatasetRef:
        if (problem := dataset_ref_problem(self.source, self.key, self.keys)) is not None:
            raise PydanticCustomError("relation", "{problem}", {"problem": problem})
        return self


class BenchmarkDefinition(SpecModel):
    """A model is asked the samples of a data set (with a solver), or a data set is scored (without)."""

    type: Literal["benchmark_task"] = "benchmark_task"
    evaluated_entity_type: Literal["model", "dataset"] | None = None
    """Deprecated: a task with a solver evaluates a model, one without a data set."""
    dataset: TaskDatasetRef | None = None
    """Rows; needed with a solver, `None` when the specification names them."""
    solver: Solver | None = None
    """How the answer comes about; `None`: the samples themselves are scored."""
    scorers: tuple[Scorer, ...] = ()
    """What is judged, in order."""
    trials: Trials | None = None
    """Several tries per sample; `None`: one."""
    actions: tuple[ActionRule, ...] | None = None
    """Rules for scored samples; `None`: none."""

    @model_validator(mode="after")
    def _solver_needs_dataset(self) -> BenchmarkDefinition:
        if self.solver is not None and self.dataset is None:
            raise PydanticCustomError("relation", "{problem}", {"problem": SOLVER_WITHOUT_DATASET})
        return self

    @property
    def evaluates(self) -> Literal["model", "dataset"]:
        """What is evaluated: it follows from the presence of a solver."""
        return "model" if self.solver is not None else "dataset"


class SystemDefinition(SpecModel):
    """Evidence computed by the author's code, without model or data set."""

    type: Literal["system_task"]
    compute_evidence_snippet: str
    """Defines `compute_evidence()`, sync or async; returns `{"metrics": {name: {"value": number}}}`."""


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
    """Shown name."""
    description: str
    """Short text, may be empty."""
    long_description: str | None = None
    """Markdown."""
    tasks: tuple[MLTask, ...] = ()
    """Kinds of machine learning task that the evaluated model may have; empty: not said."""
    config_spec: tuple[Parameter, ...] = ()
    """Parameters, used as `<< config.KEY >>` anywhere in the definition."""
    definition: Definition
    """What is done."""
    tags: tuple[str, ...] = ()
    """Free labels."""
