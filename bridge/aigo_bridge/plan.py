"""`TaskPlan`: a task exactly as it will run, with nothing left to decide.

Config values are bound, rows are selected, models are named. A plan is frozen; its digest is the same for the same
content on any machine, so an interrupted run can be continued only by the very plan that began it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson

from aigo_bridge import __version__
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.parameters import template_values
from aigo_bridge.spec import BenchmarkDefinition, SystemDefinition, TaskSpec, validate_task
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.spec.datasets import SAMPLE_NOTE, is_sample_data
from aigo_bridge.templates import bind_config

HEADER_FORMAT = 1
"""Version of `TaskPlan.header`; raised when a reader of older logs would misread a newer one."""

_MOST_LINES = 2**24
"""Lines of a file of the largest size that is read; a log that tells of more is damaged."""

EntityType = Literal["model", "dataset", "system"]
CachePolicy = Literal["reuse", "update", "no-cache"]


@dataclass(frozen=True)
class Sample:
    """One row of the data set, selected to be run."""

    id: str | int
    """The row's `sample_id` column if the data set has a usable one, else its 0-based number in the source."""
    data: Mapping[str, Any]
    """Column name → value, all columns of the row."""


@dataclass(frozen=True)
class PlannedDataset:
    """Where the samples come from."""

    key: str
    display_name: str
    columns: tuple[str, ...]
    digest: str
    """SHA-256 over the selected rows."""
    total: int | None = None
    """Rows in the source before subsampling; `None` when it was not read to its end."""
    tags: tuple[str, ...] = ()
    """As its file declares them."""

    @property
    def is_sample(self) -> bool:
        """Whether its rows only stand for those of another data set, so that a number says nothing of a model."""
        return is_sample_data(self.tags)


@dataclass(frozen=True)
class PlanOrigin:
    """The plain arguments from which a plan was made, so that it can be made again in another process."""

    task: str
    """Task file (absolute), the name of a shipped task, or `<run file>#<specification key>` (see `evaluation.naming`)."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Values of the task's parameters; of a run file, what was given in place of its own values for the evaluation's."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Data set key → file, for those that were given explicitly."""
    num_samples: int | None = None
    subsampling: Literal["head", "random"] | None = None
    """`None`: the first, or as the run file says."""
    num_trials: int | None = None
    root: str | None = None
    """Folder that the task's files may reach; `None` for its project, see `roots`."""
    stored: str | None = None
    """Result log whose samples and outputs are scored again; `None` to take the task's data set and call its model."""
    allow_bad_tasks: bool = False
    """Whether invalid records are left out where the task is a file of task records; otherwise they are an error."""


@dataclass(frozen=True)
class Specification:
    """The task specification of an evaluation that a plan carries out."""

    key: str
    """Its key, made from the task's key where the file gives none; the name of its result."""
    evaluation: str
    """Key of the evaluation."""
    display_name: str | None = None
    """Shown name; `None`: the task's."""
    model: Mapping[str, str] = field(default_factory=dict)
    """`key` and `display_name` of the evaluated model as the file declares it; empty when it does not, or another one was given."""
    num_runs: int = 1
    """How often the whole task is run (repeatability)."""
    run: int = 0
    """Which of these runs this is, from 0."""


@dataclass(frozen=True)
class TaskPlan:
    """A task bound to its config, its rows and the keys of its models."""

    task: TaskSpec
    """The task as written, includes resolved."""
    definition: BenchmarkDefinition | SystemDefinition
    """Its definition with every `<< config.x >>` replaced: what runs."""
    config: Mapping[str, Any]
    """Value of every parameter of the task, defaults included."""
    dataset: PlannedDataset | None
    """`None` for system tasks."""
    samples: tuple[Sample, ...]
    """Empty when the plan was restored from a log: the rows are in the log's samples."""
    num_trials: int
    """How often every sample is run, at least 1."""
    num_samples: int | None
    """Limit that was asked for; `None` means all rows."""
    subsampling: Literal["head", "random"]
    model_keys: tuple[str, ...]
    """AI GO keys of the models that the task itself names (judges, other speakers), in order of appearance."""
    digest: str
    """SHA-256 over what decides the numbers: task, config, selected rows, trials; equal for equal content on any machine."""
    origin: PlanOrigin | None = None
    """`None` for plans that were not made from a file."""
    warnings: tuple[Issue, ...] = ()
    """Notes about the task file that do not stop a run."""
    specification: Specification | None = None
    """`None` for a task that is run by itself."""
    cache: CachePolicy = "update"
    """Whether the run may stand in for a later one: not with `no-cache`."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key (`""` for the evaluated model) → SHA-256 of what is known of the model, without its secrets; empty before
    models were chosen."""
    stored_entity: Mapping[str, Any] | None = None
    """What was evaluated when the outputs that are scored again were made, as its log says; `None` for other plans."""
    pending: str | None = None
    """Key of the specification of the same evaluation whose result gives the rows: there are none before it has run."""
    snippet_places: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Path in the definition (`scorers.0.compute_scores_snippet`) → file of the author's code, as messages name it, and its
    first line there, from 1. Of code whose lines are not those of a file there is none. No part of the digests."""
    num_invalid: int = 0
    """Task records of the file that are invalid and were left out, as was allowed."""

    @property
    def name(self) -> str:
        """Name of the result: the specification's key, of a lone task the task's."""
        return self.task.key if self.specification is None else self.specification.key

    @property
    def display_name(self) -> str:
        """Name of the result as shown."""
        own = None if self.specification is None else self.specification.display_name
        return own or self.task.display_name

    @property
    def tags(self) -> tuple[str, ...]:
        """The task's tags, with a note where its rows are sample data."""
        if self.dataset is None or not self.dataset.is_sample:
            return self.task.tags
        return (*self.task.tags, SAMPLE_NOTE)

    @property
    def benchmark(self) -> BenchmarkDefinition:
        """The definition of a benchmark task; a `TypeError` for system tasks."""
        if not isinstance(self.definition, BenchmarkDefinition):
            raise TypeError(f"task {self.task.key!r} is a system task and has no solver, data set or scorers")
        return self.definition

    @property
    def entity(self) -> EntityType:
        """What the task evaluates; follows from the presence of a solver."""
        return self.definition.evaluates if isinstance(self.definition, BenchmarkDefinition) else "system"

    @property
    def calls_model(self) -> bool:
        """Whether running the plan asks the evaluated model anything; recorded traces are passed on without it."""
        return (
            self.entity == "model"
            and getattr(self.benchmark.solver, "type", None) != "pass_through_solver"
            and (self.origin is None or self.origin.stored is None)
        )

    @property
    def solver_digest(self) -> str | None:
        """SHA-256 over what decides the solver's outputs, and nothing of the scorers; `None` without a solver.

        Two plans with the same one ask the same models the same questions, whatever is made of the answers.
        """
        if self.entity != "model" or self.benchmark.solver is None:
            return None
        solver = self.benchmark.solver
        content: dict[str, Any] = {
            "solver": solver.model_dump(mode="json", by_alias=True, exclude_unset=True),
            "dataset": self.dataset and self.dataset.digest,
            "num_trials": self.num_trials,
        }
        likelihoods = _likelihoods_asked(self.benchmark)
        if likelihoods:
            content["likelihoods"] = likelihoods
        return _sha256(content)

    @property
    def solver_model_keys(self) -> tuple[str, ...]:
        """AI GO keys of the other models that the solver asks; those of scorers alone are not among them."""
        return () if self.entity == "system" else tuple(dict.fromkeys(_solver_models(self.benchmark)))

    def snippet_place(self, *path: str | int) -> tuple[str, int] | None:
        """File and first line of the code under a path in the definition; `None` where they are not known."""
        return self.snippet_places.get(".".join(map(str, path)))

    def header(self) -> dict[str, Any]:
        """The plan as JSON, without its rows: what a native log carries so that it can be read back alone."""
        dataset = self.dataset
        return {
            "format": HEADER_FORMAT,
            "version": __version__,
            "digest": self.digest,
            "solver_digest": self.solver_digest,
            "specification": self.specification and asdict(self.specification),
            "cache": self.cache,
            "fingerprints": dict(self.fingerprints),
            "task": document_of(self.task),
            "config": dict(self.config),
            "dataset": dataset
            and {
                "key": dataset.key,
                "display_name": dataset.display_name,
                "columns": list(dataset.columns),
                "digest": dataset.digest,
                "total": dataset.total,
                "tags": list(dataset.tags),
            },
            "num_trials": self.num_trials,
            "num_samples": self.num_samples,
            "subsampling": self.subsampling,
            "model_keys": list(self.model_keys),
            **({} if self.stored_entity is None else {"stored_entity": dict(self.stored_entity)}),
            **(
                {"snippet_places": {path: list(place) for path, place in self.snippet_places.items()}}
                if self.snippet_places
                else {}
            ),
        }


def document_of(spec: TaskSpec) -> dict[str, Any]:
    """A spec as the JSON document it was read from: unset fields stay out."""
    document: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return document


def plan_from_header(header: Mapping[str, Any]) -> TaskPlan:
    """Restore a plan (without rows) from what `TaskPlan.header` wrote.

    Raises:
        EvidenceError: the header is of a newer format, or damaged.
    """
    if header.get("format") != HEADER_FORMAT:
        raise EvidenceError(
            f"the log's plan has format {header.get('format')!r}, this release reads format {HEADER_FORMAT}"
        )
    try:
        dataset = header["dataset"]
        return TaskPlan(
            task=validate_task(header["task"]),
            definition=bind_task(header["task"], header["config"]).definition,
            config=header["config"],
            dataset=None
            if dataset is None
            else PlannedDataset(
                key=dataset["key"],
                display_name=dataset["display_name"],
                columns=tuple(dataset["columns"]),
                digest=dataset["digest"],
                total=dataset["total"],
                tags=tuple(dataset.get("tags", ())),
            ),
            samples=(),
            num_trials=header["num_trials"],
            num_samples=header["num_samples"],
            subsampling=header["subsampling"],
            model_keys=tuple(header["model_keys"]),
            digest=header["digest"],
            stored_entity=header.get("stored_entity"),
            specification=_specification_of(header),
            cache=header.get("cache", "update"),
            fingerprints=header.get("fingerprints") or {},
            snippet_places=_snippet_places_of(header),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise EvidenceError(f"the log's plan is damaged: {error}") from error


def _specification_of(header: Mapping[str, Any]) -> Specification | None:
    written = header.get("specification")
    return None if written is None else Specification(**written)


def _snippet_places_of(header: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    places = dict(header.get("snippet_places") or {})
    for path, place in places.items():
        file, line = place
        if not isinstance(file, str) or not isinstance(line, int) or not 0 < line <= _MOST_LINES:
            raise ValueError(f"the place of {path!r} is {place!r}, expected a file and a line")
    return {path: (file, line) for path, (file, line) in places.items()}


def bind_task(document: dict[str, Any], config: Mapping[str, Any]) -> TaskSpec:
    """A task document with its config put in.

    Raises:
        TemplateError: it names a parameter that `config` lacks; the issues carry paths into `document`.
        pydantic.ValidationError: a value does not fit the field it was put in.
    """
    parameters = validate_task(document).config_spec
    values = template_values(parameters, config)
    return validate_task({**document, "definition": bind_config(document["definition"], values)})


def digest_of(
    task: TaskSpec,
    config: Mapping[str, Any],
    dataset: PlannedDataset | None,
    *,
    num_trials: int,
) -> str:
    """SHA-256 over the canonical JSON of everything that decides the numbers (file paths do not)."""
    content = {
        "task": document_of(task),
        "config": dict(config),
        "dataset": dataset and {"key": dataset.key, "digest": dataset.digest},
        "num_trials": num_trials,
    }
    return _sha256(content)


def named_models(definition: BenchmarkDefinition | SystemDefinition) -> Iterator[str]:
    """Keys of the models that a definition names, in order of appearance, repeats included."""
    if isinstance(definition, SystemDefinition):
        return
    yield from _solver_models(definition)
    for scorer in definition.scorers:
        key = getattr(scorer, "model_key", None) or getattr(scorer, "judge_model_key", None)
        if key is not None:
            yield key


def _solver_models(definition: BenchmarkDefinition) -> Iterator[str]:
    if isinstance(definition.solver, solver_spec.MultiTurnSolver):
        yield from _builder_models(definition.solver.message_builders)


def _likelihoods_asked(definition: BenchmarkDefinition) -> list[Any]:
    """What the solver asks on behalf of scorers that compare likelihoods; empty where there are none.

    Without other scorers it asks for nothing else, so whether there are some belongs to it.
    """
    scorers = [scorer for scorer in definition.scorers if getattr(scorer, "method", None) == "loglikelihood"]
    if not scorers:
        return []
    asked = [
        {
            **scorer.model_dump(mode="json", include={"choices", "continuations"}),
            **({"unconditioned": True} if getattr(scorer, "length_normalisation", None) == "pmi" else {}),
        }
        for scorer in scorers
    ]
    return [len(scorers) == len(definition.scorers), *asked]


def _builder_models(builders: tuple[Any, ...]) -> Iterator[str]:
    for builder in builders:
        if isinstance(builder, solver_spec.GenerateMessageBuilder):
            yield builder.model_key
        elif isinstance(builder, solver_spec.LoopBuilder):
            yield from _builder_models(builder.message_builders)


def _sha256(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
