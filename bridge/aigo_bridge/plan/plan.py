"""`TaskPlan`: a task exactly as it will run, with nothing left to decide.

Config values are bound, rows are selected, models are named. A plan is frozen; its digest is the same for the
same content on any machine, so an interrupted run can be continued only by the very plan that began it.
Fingerprints tell a model apart from another one of the same name: two runs may only share answers where it is
equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import orjson

from aigo_bridge.errors import Issue
from aigo_bridge.plan.outline import EntityType, Outline, outline_of
from aigo_bridge.plan.shards import ShardRows
from aigo_bridge.spec import BenchmarkDefinition, SystemDefinition, TaskSpec
from aigo_bridge.spec.datasets import SAMPLE_NOTE, is_sample_data, rows_tags
from aigo_bridge.spec.parameters import template_values
from aigo_bridge.templates import bind_config
from aigo_bridge.text.plurals import plural
from aigo_bridge.version import __version__

HEADER_FORMAT = 1
"""Version of `TaskPlan.header`; raised when a reader of older logs would misread a newer one."""

SNIPPET_LEVELS = ("jailed", "worker", "in-process")
"""How far an author's code may be confined, the strictest first."""

CachePolicy = Literal["reuse", "update", "no-cache"]

TEXT = "<text>"
"""Stands in an origin where a task's file would, if there is none."""

_ROWS = "<rows "


def rows_name(digest: str) -> str:
    """Stands in an origin where a dataset's file would, if its rows were given; of other rows it is
    another.
    """
    return f"{_ROWS}{digest[:12]}>"


def is_unsaved(name: str) -> bool:
    """Whether a name stands for what was given in memory, and is no file."""
    return name == TEXT or name.startswith(_ROWS)


@dataclass(frozen=True)
class Sample:
    """One row of the dataset, selected to be run."""

    id: str | int
    """The row's `sample_id` column if the dataset has a usable one, else its 0-based number in the source.
    """
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
        """Whether its rows only stand for those of another dataset, so that a number says nothing of a
        model.
        """
        return is_sample_data(self.tags)

    @property
    def notes(self) -> tuple[str, ...]:
        """What evidence says of the rows: that they are sample data, or which published ones they are."""
        return (*rows_tags(self.tags), *((SAMPLE_NOTE,) if self.is_sample else ()))


@dataclass(frozen=True)
class PlanOrigin:
    """The plain arguments from which a plan was made, so that it can be made again in another process."""

    task: str
    """Task file (absolute), the name of a shipped task, or `<run file>#<specification key>` (see
    `evaluation.run_files`); `TEXT` where there is no file.
    """
    config: Mapping[str, Any] = field(default_factory=dict)
    """Values of the task's parameters; of a run file, what was given in place of its own values for the
    evaluation's.
    """
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Dataset key → file, for those that were given explicitly; `rows_name` of those given as rows."""
    num_samples: int | None = None
    subsampling: Literal["head", "random"] | None = None
    """`None`: the first, or as the run file says."""
    num_trials: int | None = None
    root: str | None = None
    """Folder that the task's files may reach; `None` for its project, see `access.opening`."""
    stored: str | None = None
    """Result log whose samples and outputs are scored again; `None` to take the task's dataset and call its
    model.
    """
    allow_bad_tasks: bool = False
    """Whether invalid records are left out where the task is a file of task records; otherwise they are an
    error.
    """
    shard: str | None = None
    """The part of the selected rows that is run, `3/16`; `None`: all."""

    @property
    def unsaved(self) -> tuple[str, ...]:
        """What stands for things that no other process can read again."""
        return tuple(name for name in (self.task, *self.datasets.values()) if is_unsaved(name))


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
    """`key` and `display_name` of the evaluated model as the file declares it; empty when it does not, or
    another one was given.
    """
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
    """In the order in which they are run."""
    num_trials: int
    """How often every sample is run, at least 1."""
    num_samples: int | None
    """Limit that was asked for; `None` means all rows."""
    subsampling: Literal["head", "random"]
    model_keys: tuple[str, ...]
    """AI GO keys of the models that the task itself names (judges, other speakers), in order of appearance.
    """
    digest: str
    """SHA-256 over what decides the numbers: task, config, selected rows, trials; equal for equal content on
    any machine.
    """
    origin: PlanOrigin | None = None
    """`None` for plans that were not made from a file."""
    warnings: tuple[Issue, ...] = ()
    """Notes about the task file that do not stop a run."""
    specification: Specification | None = None
    """`None` for a task that is run by itself."""
    cache: CachePolicy = "update"
    """Whether the run may stand in for a later one: not with `no-cache`."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key (`""` for the evaluated model) → SHA-256 of what is known of the model, without its
    secrets; empty before models were chosen."""
    stored_entity: Mapping[str, Any] | None = None
    """What was evaluated when the outputs that are scored again were made, as its log says; `None` for other
    plans.
    """
    pending: str | None = None
    """Key of the specification of the same evaluation whose result gives the rows: there are none before it
    has run.
    """
    snippet_places: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Path in the definition (`scorers.0.compute_scores_snippet`) → file of the author's code, as messages
    name it, and its first line there, from 1. Of code whose lines are not those of a file there is none. No
    part of the digests."""
    snippets: str | None = None
    """Level of confinement that the author's code ran at; `None`: there is none, or nothing was run yet."""
    num_invalid: int = 0
    """Task records of the file that are invalid and were left out, as was allowed."""
    shard: ShardRows | None = None
    """Which of the plan's rows `samples` are; `None`: all."""
    every_sample: tuple[Sample, ...] | None = None
    """The rows of all shards, where this one's scorers see them; `None`: they do not, or `samples` are all.
    """

    def __repr__(self) -> str:
        parts = [
            *([] if self.dataset is None else [plural(len(self.samples), "sample")]),
            *([plural(self.num_trials, "trial")] if self.num_trials > 1 else []),
            *([plural(len(self.warnings), "warning")] if self.warnings else []),
            f"digest {self.digest[:12]}",
        ]
        return f"<TaskPlan of {self.name!r}: {', '.join(parts)}>"

    @property
    def name(self) -> str:
        """Name of the result: the specification's key, of a lone task the task's."""
        return self.task.key if self.specification is None else self.specification.key

    @property
    def display_name(self) -> str:
        """Name of the result as shown."""
        name = None if self.specification is None else self.specification.display_name
        return name or self.task.display_name

    @property
    def tags(self) -> tuple[str, ...]:
        """The task's tags, with what is to be said of its rows."""
        return (*self.task.tags, *self.dataset.notes) if self.dataset is not None else self.task.tags

    @property
    def benchmark(self) -> BenchmarkDefinition:
        """The definition of a benchmark task; a `TypeError` for system tasks."""
        if not isinstance(self.definition, BenchmarkDefinition):
            raise TypeError(f"task {self.task.key!r} is a system task and has no solver, dataset or scorers")
        return self.definition

    @property
    def entity(self) -> EntityType:
        """What the task evaluates; follows from the presence of a solver."""
        return self.definition.evaluates if isinstance(self.definition, BenchmarkDefinition) else "system"

    @property
    def document(self) -> dict[str, Any]:
        """The task as the JSON document it was read from."""
        return document_of(self.task)

    @cached_property
    def outline(self) -> Outline:
        """What its logs are read with."""
        return outline_of(self.definition)

    @property
    def calls_model(self) -> bool:
        """Whether running the plan asks the evaluated model anything; recorded traces are passed on without
        it.
        """
        return (
            self.entity == "model"
            and (self.benchmark.solver is None or self.benchmark.solver.calls_model)
            and (self.origin is None or self.origin.stored is None)
        )

    @property
    def runs_tools(self) -> bool:
        """Whether the evaluated model has tools that run what it writes."""
        return self.calls_model and self.benchmark.solver is not None and self.benchmark.solver.runs_tools

    @property
    def solver_digest(self) -> str | None:
        """SHA-256 over what decides the solver's outputs, and nothing of the scorers; `None` without a
        solver.

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
        return content_digest(content)

    @property
    def solver_model_keys(self) -> tuple[str, ...]:
        """AI GO keys of the other models that the solver asks; those of scorers alone are not among them."""
        solver = None if self.entity == "system" else self.benchmark.solver
        return () if solver is None else tuple(dict.fromkeys(solver.model_keys()))

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
            "task": self.document,
            "outline": self.outline.to_json(),
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
            **({} if self.snippets is None else {"snippets": self.snippets}),
            **({} if self.shard is None else {"shard": self.shard.to_json()}),
        }


def document_of(spec: TaskSpec) -> dict[str, Any]:
    """A spec as the JSON document it was read from: unset fields stay out."""
    document: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return document


def bind_task(document: dict[str, Any], config: Mapping[str, Any]) -> TaskSpec:
    """A task document with its config put in.

    Raises:
        TemplateError: it names a parameter that `config` lacks; the issues carry paths into `document`.
        pydantic.ValidationError: a value does not fit the field it was put in.
    """
    parameters = TaskSpec.model_validate(document).config_spec
    values = template_values(parameters, config)
    return TaskSpec.model_validate({**document, "definition": bind_config(document["definition"], values)})


def digest_of(
    task: TaskSpec,
    config: Mapping[str, Any],
    dataset: PlannedDataset | None,
    *,
    num_trials: int,
) -> str:
    """SHA-256 over the canonical JSON of everything that decides the numbers (file paths do not)."""
    return content_digest(deciding_content(document_of(task), config, dataset, num_trials))


def deciding_content(
    document: Mapping[str, Any],
    config: Mapping[str, Any],
    dataset: PlannedDataset | None,
    num_trials: int,
) -> dict[str, Any]:
    """What the digest of a plan is a digest of."""
    return {
        "task": document,
        "config": dict(config),
        "dataset": dataset and {"key": dataset.key, "digest": dataset.digest},
        "num_trials": num_trials,
    }


def named_models(definition: BenchmarkDefinition | SystemDefinition) -> Iterator[str]:
    """Keys of the models that a definition names, in order of appearance, repeats included."""
    if isinstance(definition, SystemDefinition):
        return
    if definition.solver is not None:
        yield from definition.solver.model_keys()
    for scorer in definition.scorers:
        if scorer.judge_key is not None:
            yield scorer.judge_key


def _likelihoods_asked(definition: BenchmarkDefinition) -> list[Any]:
    """What the solver asks on behalf of scorers that compare likelihoods; empty where there are none.

    Without other scorers it asks for nothing else, so whether there are some belongs to it.
    """
    scorers = [scorer for scorer in definition.scorers if scorer.compares_likelihoods]
    if not scorers:
        return []
    fields = [
        {
            **scorer.model_dump(mode="json", include={"choices", "continuations"}),
            **({"unconditioned": True} if scorer.weighs_unconditioned else {}),
        }
        for scorer in scorers
    ]
    return [len(scorers) == len(definition.scorers), *fields]


def content_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of what decides something."""
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


SCRIPTED = "scripted/"


def fingerprint_of(name: str) -> str:
    """SHA-256 of what is known of a model that is named by an engine's string.

    Of a file, a scripted model's rules or a model entity (`model.yaml`, `run.yaml#key`), its content counts
    too; of a folder of weights (`transformers/FOLDER,dtype=float16`) the names, sizes and times of its files.
    That a provider has changed a model behind its name cannot be seen.
    """
    return sha256_of([name, _content_of(name)])


def _content_of(name: str) -> Any:
    file = Path(name.removeprefix(SCRIPTED) if name.startswith(SCRIPTED) else name.partition("#")[0])
    try:
        if file.is_file():
            return hashlib.sha256(file.read_bytes()).hexdigest()
        folder = _folder_of(name)
        if folder is None:
            return None
        return sorted(
            [str(entry.relative_to(folder)), entry.stat().st_size, entry.stat().st_mtime_ns]
            for entry in folder.iterdir()
            if entry.is_file()
        )
    except OSError:
        return None  # whoever makes the model says why it cannot be read


def _folder_of(name: str) -> Path | None:
    """The folder in an engine's string, after the names of engine and backend."""
    path = name.partition(",")[0]
    for _ in range(2):
        _, _, path = path.partition("/")
        if path and Path(path).is_dir():
            return Path(path)
    return None


def mixed(earlier: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Fingerprints of a run that goes on from an earlier one: of a model that has changed since, neither the
    old one nor the new one.
    """
    return {
        key: fingerprint
        if earlier.get(key, fingerprint) == fingerprint
        else sha256_of([earlier[key], fingerprint])
        for key, fingerprint in own.items()
    }


def sha256_of(content: Any) -> str:
    """SHA-256 over the canonical JSON of a value."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
