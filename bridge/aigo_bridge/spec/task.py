"""Tasks: what is asked, how it is solved, how it is scored."""

from __future__ import annotations

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
    Templated,
    TemplatedKey,
    mapping,
    mappings,
)
from aigo_bridge.spec.metric import METRICS
from aigo_bridge.spec.parameters import Parameter
from aigo_bridge.spec.scorer import SCORERS
from aigo_bridge.spec.scorers import Scorer
from aigo_bridge.spec.solvers import SOLVERS, Solver

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
    """Several data sets side by side: sample n is `{key: row n of that data set}`; `None` when `key` is
    given.
    """

    @model_validator(mode="after")
    def _one_of_key_and_keys(self) -> TaskDatasetRef:
        if (problem := dataset_ref_problem(self.source, self.key, self.keys)) is not None:
            raise PydanticCustomError("relation", "{problem}", {"problem": problem})
        return self


class ActionRule(SpecModel):
    """What to do with scored samples that a filter selects."""

    key: Key
    """Name of the rule in the evidence (`action_records[].rule_key`)."""
    action: Literal["exclude_from_metrics"]
    """The sample stays in the evidence and out of every metric."""
    filter: Filter
    """Sees `sample`, `solver_output` and `scores` (scorer key → score values)."""


class _Aggregator(SpecModel):
    score_name: str | None = None
    """Name of the aggregated score; `None`: made from the score and the function."""


class MeanAggregator(_Aggregator):
    """Mean over trials."""

    function: Literal["mean"]


class MinAggregator(_Aggregator):
    """Smallest value over trials."""

    function: Literal["min"]


class MaxAggregator(_Aggregator):
    """Largest value over trials."""

    function: Literal["max"]


class PassAtKAggregator(_Aggregator):
    """Chance that at least one of k tries succeeds: 1 - (1 - p)^k with p the share of true trials."""

    function: Literal["pass@k"]
    k: int = Field(ge=1)
    """Number of tries."""


class PassHatKAggregator(_Aggregator):
    """Chance that all of k tries succeed: p^k with p the share of true trials."""

    function: Literal["pass^k"]
    k: int = Field(ge=1)
    """Number of tries."""


Aggregator = Annotated[
    MeanAggregator | MinAggregator | MaxAggregator | PassAtKAggregator | PassHatKAggregator,
    Field(discriminator="function"),
]


class ScoreAggregator(SpecModel):
    """How one score of the trials becomes one score of the sample."""

    score_name: str
    """Score that is read in each trial."""
    aggregator: Aggregator
    """What is computed from it."""


class Trials(SpecModel):
    """Each sample is solved and scored several times."""

    num_trials: Templated[Annotated[int, Field(ge=1)]]
    """How many times."""
    score_aggregators: tuple[ScoreAggregator, ...] | None = None
    """Scores without one here get the mean, if they are numbers or booleans."""


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
    needs: Literal["network"] | None = None
    """Our extension: what the author's code needs beyond the jail that it runs in, and the user has to allow;
    `None`: nothing.
    """

    @classmethod
    def model_validate(cls, obj: Any, **settings: Any) -> Self:
        """Validate a document, whose scorers, metrics and solver may be of types that plug-ins add.

        Raises:
            ValidationError: the document is not a task.
            PluginError: a plug-in that it needs cannot be loaded.
        """
        if isinstance(obj, Mapping) and _loads_types(obj):
            rebuild()
        return super().model_validate(obj, **settings)


def _loads_types(document: Mapping[str, Any]) -> bool:
    """Whether a type that the document names was added to the tables just now."""
    before = len(SCORERS), len(METRICS), len(SOLVERS)
    definition = mapping(document.get("definition"))
    SOLVERS.get(str(mapping(definition.get("solver")).get("type")))
    for _, scorer in mappings(definition.get("scorers")):
        SCORERS.get(str(scorer.get("type")))
        for _, metric in mappings(scorer.get("metrics")):
            METRICS.get(str(metric.get("type")))
    return before != (len(SCORERS), len(METRICS), len(SOLVERS))


def rebuild() -> None:
    """Let tasks have the scorers, solvers and metrics that were defined after the first task was read."""
    # A model that is not built yet finds them when it is.
    models: list[type[SpecModel]] = [*SCORERS.values(), BenchmarkDefinition, TaskSpec]
    for model in models:
        if model.__pydantic_complete__:
            model.model_rebuild(force=True)


class TrialsConfig(SpecModel):
    """Another number of trials, for one specification or a whole run."""

    num_trials: int
    """How many times each sample is solved and scored."""


class RepeatabilityConfig(SpecModel):
    """How often a whole task is run."""

    num_runs: int = Field(ge=2)
    """How many times."""
