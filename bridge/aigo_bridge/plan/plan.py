"""`TaskPlan`: a task exactly as it will run, with nothing left to decide.

Config values are bound, rows are selected and models are named. A plan is frozen. Its digest is the same
for the same content on every machine, so only an identical plan can resume an interrupted run.
Fingerprints distinguish models with the same name: two runs share answers only if the fingerprints are
equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from aigo_bridge.errors import Issue
from aigo_bridge.plan.outline import EntityType, TaskOutline, outline_of
from aigo_bridge.plan.shards import ShardRows
from aigo_bridge.spec.base import SAMPLE_NOTE, is_sample_data, rows_tags
from aigo_bridge.text.json_text import sha256_of
from aigo_bridge.text.plurals import plural
from aigo_bridge.version import __version__

if TYPE_CHECKING:
    from aigo_bridge.spec.task import BenchmarkDefinition, SystemDefinition, TaskSpec

HEADER_FORMAT = 1
"""Version of `TaskPlan.header`. Increase it if a reader of older logs would misread a newer one."""

SNIPPET_LEVELS = ("jailed", "worker", "in-process")
"""Confinement levels of an author's code, the strictest first."""

CachePolicy = Literal["reuse", "update", "no-cache"]

TEXT = "<text>"
"""Placeholder for the task file in an origin if the task was given as text."""

_ROWS = "<rows "


def rows_name(digest: str) -> str:
    """Return the placeholder for a dataset file in an origin if the rows were given directly. Different rows
    have different placeholders.
    """
    return f"{_ROWS}{digest[:12]}>"


def is_unsaved(name: str) -> bool:
    """Return whether a name is a placeholder for content that was given in memory, without a file."""
    return name == TEXT or name.startswith(_ROWS)


@dataclass(frozen=True)
class Sample:
    """Row of the dataset that was selected to run."""

    id: str | int
    """Value of a usable `sample_id` column, otherwise the 0-based row number in the source."""
    data: Mapping[str, Any]
    """Column name → value, for all columns of the row."""


@dataclass(frozen=True)
class PlannedDataset:
    """Source of the samples."""

    key: str
    display_name: str
    columns: tuple[str, ...]
    digest: str
    """SHA-256 checksum of the selected rows."""
    total: int | None = None
    """Number of rows in the source before subsampling; `None` if it was not read to the end."""
    tags: tuple[str, ...] = ()
    """Tags that the dataset file declares."""

    @property
    def is_sample(self) -> bool:
        """Whether the rows are sample data, so that metrics do not describe a model."""
        return is_sample_data(self.tags)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the rows for the evidence: sample data, or a part of a published dataset."""
        return (*rows_tags(self.tags), *((SAMPLE_NOTE,) if self.is_sample else ()))


@dataclass(frozen=True)
class PlanOrigin:
    """Arguments that created a plan, so that another process can create it again."""

    task: str
    """Absolute path of the task file, the name of a shipped task, or `<run file>#<specification key>` (see
    `evaluation.run_files`). `TEXT` without a file.
    """
    config: Mapping[str, Any] = field(default_factory=dict)
    """Values of the task parameters; for a run file, values that override its evaluation parameters."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Dataset key → file, for datasets that were given explicitly. Datasets that were given as rows have a
    `rows_name` instead of a file.
    """
    num_samples: int | None = None
    subsampling: Literal["head", "random"] | None = None
    """Row selection; `None` for the first rows, or as the run file specifies."""
    num_trials: int | None = None
    root: str | None = None
    """Folder that the task may read files from; `None` for its project (see `access.opening`)."""
    stored: str | None = None
    """Result log whose samples and outputs are scored again; `None` to read rows and call the model."""
    allow_bad_tasks: bool = False
    """Whether invalid records of a file of task records are skipped instead of refused."""
    shard: str | None = None
    """Part of the selected rows to run, for example `3/16`; `None` for all."""

    @property
    def unsaved(self) -> tuple[str, ...]:
        """Names of inputs that another process cannot read again."""
        return tuple(name for name in (self.task, *self.datasets.values()) if is_unsaved(name))


@dataclass(frozen=True)
class Specification:
    """Task specification of an evaluation that a plan carries out."""

    key: str
    """Key of the specification, derived from the task key by default. It is the name of the result."""
    evaluation: str
    """Key of the evaluation."""
    display_name: str | None = None
    """Display name; `None` for the name of the task."""
    model: Mapping[str, str] = field(default_factory=dict)
    """`key` and `display_name` of the evaluated model as the file declares it. Empty if the file declares
    none or another model was given.
    """
    num_runs: int = 1
    """Number of times that the whole task runs (repeatability)."""
    run: int = 0
    """Number of this run, from 0."""


@dataclass(frozen=True)
class TaskPlan:
    """Task bound to its config, its rows and the keys of its models."""

    task: TaskSpec
    """Task as written, with includes resolved."""
    definition: BenchmarkDefinition | SystemDefinition
    """Definition with every `<< config.x >>` replaced, as it runs."""
    config: Mapping[str, Any]
    """Value of every task parameter, including defaults."""
    dataset: PlannedDataset | None
    """Dataset of the plan; `None` for system tasks."""
    samples: tuple[Sample, ...]
    """Samples in the order in which they run."""
    num_trials: int
    """Number of trials of each sample, at least 1."""
    num_samples: int | None
    """Requested number of samples; `None` for all rows."""
    subsampling: Literal["head", "random"]
    model_keys: tuple[str, ...]
    """AI GO keys of the models that the task itself names (judges, other speakers), in order of appearance.
    """
    digest: str
    """SHA-256 checksum of everything that determines the metrics: task, config, selected rows and trials.
    Equal content has the same digest on every machine.
    """
    origin: PlanOrigin | None = None
    """Arguments that created the plan; `None` if it was not created from a file."""
    warnings: tuple[Issue, ...] = ()
    """Issues of the task file that do not prevent a run."""
    specification: Specification | None = None
    """Specification that the plan carries out; `None` for a task that runs alone."""
    cache: CachePolicy = "update"
    """Cache policy. With `no-cache`, a later run cannot reuse the answers of this one."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key (`""` for the evaluated model) → SHA-256 checksum of the known model properties,
    without secrets. Empty until models are chosen.
    """
    stored_entity: Mapping[str, Any] | None = None
    """Entity that produced the rescored outputs, as recorded in their log; `None` for other plans."""
    pending: str | None = None
    """Key of the specification in the same evaluation whose result provides the rows. The rows exist only
    after it has run.
    """
    snippet_places: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Path in the definition (`scorers.0.compute_scores_snippet`) → file of the author's code, as shown in
    messages, and its first line, from 1. Code whose lines differ from the file is left out. The digests
    do not include this mapping.
    """
    snippets: str | None = None
    """Confinement level that the author's code ran at; `None` without code or before it has run."""
    num_invalid: int = 0
    """Number of invalid task records that were skipped, as the user allowed."""
    shard: ShardRows | None = None
    """Part of the plan's rows that `samples` contains; `None` for all rows."""
    every_sample: tuple[Sample, ...] | None = None
    """Rows of all shards, if the scorers of this shard need them. `None` if they do not, or if `samples`
    contains all rows.
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
        """Name of the result: the key of the specification, or of the task if it runs alone."""
        return self.task.key if self.specification is None else self.specification.key

    @property
    def display_name(self) -> str:
        """Display name of the result."""
        name = None if self.specification is None else self.specification.display_name
        return name or self.task.display_name

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the task, followed by notes about its rows."""
        return (*self.task.tags, *self.dataset.notes) if self.dataset is not None else self.task.tags

    @property
    def benchmark(self) -> BenchmarkDefinition:
        """Return the definition of a benchmark task. Raise `TypeError` for a system task."""
        if self.definition.type == "system_task":
            raise TypeError(f"task {self.task.key!r} is a system task, without solver, dataset or scorers")
        return self.definition

    @property
    def entity(self) -> EntityType:
        """Entity that the task evaluates, derived from the presence of a solver."""
        return "system" if self.definition.type == "system_task" else self.definition.evaluates

    @property
    def document(self) -> dict[str, Any]:
        """Task as the JSON document from which it was read."""
        return document_of(self.task)

    @cached_property
    def outline(self) -> TaskOutline:
        """Outline that is needed to read the logs of the task."""
        return outline_of(self.definition)

    @property
    def calls_model(self) -> bool:
        """Whether the plan calls the evaluated model. Recorded traces are passed on without a model call."""
        return (
            self.entity == "model"
            and (self.benchmark.solver is None or self.benchmark.solver.calls_model)
            and (self.origin is None or self.origin.stored is None)
        )

    @property
    def runs_tools(self) -> bool:
        """Whether the evaluated model has tools that execute code it writes."""
        return self.calls_model and self.benchmark.solver is not None and self.benchmark.solver.runs_tools

    @property
    def solver_digest(self) -> str | None:
        """SHA-256 checksum of everything that determines the solver outputs, excluding the scorers; `None`
        without a solver.

        Two plans with the same digest send the same requests to the same models, even if they score the
        answers differently.
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
        """AI GO keys of the other models that the solver calls, excluding models that only scorers call."""
        solver = None if self.entity == "system" else self.benchmark.solver
        return () if solver is None else tuple(dict.fromkeys(solver.model_keys()))

    def snippet_place(self, *path: str | int) -> tuple[str, int] | None:
        """Return the file and first line of the code at a path in the definition; `None` if unknown."""
        return self.snippet_places.get(".".join(map(str, path)))

    def header(self) -> dict[str, Any]:
        """Return the plan as JSON without rows, for native logs that are read without other files."""
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
    """Return a spec as the JSON document from which it was read, without unset fields."""
    document: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return document


def bind_task(document: dict[str, Any], config: Mapping[str, Any]) -> TaskSpec:
    """Return a task document with its config values inserted.

    Raises:
        TemplateError: the document names a parameter that `config` lacks; the issues have paths into
            `document`.
        pydantic.ValidationError: a value does not fit the field into which it was inserted.
    """
    # Reading a plan from a log does not need these.
    from aigo_bridge.spec.parameters import template_values
    from aigo_bridge.spec.task import TaskSpec
    from aigo_bridge.templates import bind_config

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
    """Return the SHA-256 checksum of the canonical JSON of all that determines metrics, without paths."""
    return content_digest(deciding_content(document_of(task), config, dataset, num_trials))


def deciding_content(
    document: Mapping[str, Any],
    config: Mapping[str, Any],
    dataset: PlannedDataset | None,
    num_trials: int,
) -> dict[str, Any]:
    """Return the content from which the digest of a plan is computed."""
    return {
        "task": document,
        "config": dict(config),
        "dataset": dataset and {"key": dataset.key, "digest": dataset.digest},
        "num_trials": num_trials,
    }


def named_models(definition: BenchmarkDefinition | SystemDefinition) -> Iterator[str]:
    """Yield the keys of the models that a definition names, in order of appearance, including repetitions."""
    if definition.type == "system_task":
        return
    if definition.solver is not None:
        yield from definition.solver.model_keys()
    for scorer in definition.scorers:
        if scorer.judge_key is not None:
            yield scorer.judge_key


def _likelihoods_asked(definition: BenchmarkDefinition) -> list[Any]:
    """Return the likelihood requests that the solver makes for scorers; empty if no scorer compares
    likelihoods.

    If all scorers compare likelihoods, the solver makes no other request, so the result also records this.
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
    """Return the SHA-256 checksum of the canonical JSON of content that determines a result."""
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


SCRIPTED = "scripted/"


def fingerprint_of(name: str) -> str:
    """Return the SHA-256 checksum of the known properties of a model that an engine's string names.

    The content of a file counts: the rules of a scripted model or a model entity (`model.yaml`,
    `run.yaml#key`). For a folder of weights (`transformers/FOLDER,dtype=float16`), the names, sizes and
    times of its files count. A model that a provider changes under the same name is not detected.
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
        return None  # The code that loads the model reports why it cannot be read.


def _folder_of(name: str) -> Path | None:
    """Return the folder in an engine's string, after the names of engine and backend."""
    path = name.partition(",")[0]
    for _ in range(2):
        _, _, path = path.partition("/")
        if path and Path(path).is_dir():
            return Path(path)
    return None


def mixed(earlier: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprints of a run that resumes an earlier one. A model that has changed since then gets
    a new fingerprint, different from both the old and the current one.
    """
    return {
        key: fingerprint
        if earlier.get(key, fingerprint) == fingerprint
        else sha256_of([earlier[key], fingerprint])
        for key, fingerprint in own.items()
    }
