"""What aigo-bridge needs from an evaluation framework: three verbs over a plan.

An engine says what it cannot do (`gaps`), does it (`run`) and says what happened (`read`). Running and reading
are separate on purpose: a log can be read back later, on another machine, without any model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Protocol

from aigo_bridge.errors import EngineError
from aigo_bridge.importing.report import ImportReport
from aigo_bridge.models import Model
from aigo_bridge.plan import TaskPlan
from aigo_bridge.results.result_files import LoggedRun
from aigo_bridge.results.trials import TrialRecord


class Fidelity(Enum):
    """How faithfully an engine carries out one part of a plan."""

    EXACT = "exact"
    """Same inputs, same numbers."""
    APPROXIMATE = "approximate"
    """Runs, with a stated difference; recorded in the evidence."""
    UNSUPPORTED = "unsupported"
    """Refused before any model call."""


@dataclass(frozen=True)
class Gap:
    """One departure of an engine from the plan, stated before anything runs."""

    part: str
    """The part of the task concerned, e.g. `scorers[1] (rag_checker)`."""
    reason: str
    """What is lost or different."""
    fidelity: Fidelity
    hint: str | None = None
    """What the user can do about it."""


@dataclass(frozen=True)
class Retry:
    """A call of a model has failed, and will be made again."""

    model: str
    """The engine's name of the model."""
    attempt: int
    """Number of the attempt that failed, from 1."""
    wait: float
    """Seconds until the next one."""
    reason: str
    """Why it failed."""


@dataclass(frozen=True)
class Progress:
    """Where a run stands; handed to `RunSettings.on_progress` after every finished trial, and whenever a call is to be made again."""

    done: int
    """Trials finished, failed ones included."""
    total: int
    """Trials of the whole run (samples × trials)."""
    failed: int
    """Trials that ended with an error in the solver."""
    sample_id: str | int | None = None
    """The sample whose trial has just finished; `None` at the start."""
    error: str | None = None
    """First line of the trial's error, if it failed."""
    task: str | None = None
    """Name of the plan that the trial belongs to (`TaskPlan.name`); `None` at the start."""
    trials: bool = False
    """Whether samples have several trials, so that what is counted are not samples."""
    trial: int | None = None
    """Number of the trial, from 0; `None` at the start and where each sample has one."""
    retry: Retry | None = None
    """The call that will be made again; `None`: a trial has finished, or the run begins."""


@dataclass(frozen=True)
class RunSettings:
    """Everything about a run that does not change what is computed."""

    out: Path
    """Folder for the native logs; created when missing."""
    model: str | None = None
    """The engine's model string for the evaluated model; `None` for tasks that call none."""
    model_map: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key → the engine's model string, for judges and other models of the task."""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    """Extra arguments for the evaluated model's provider (the engine's own names)."""
    max_connections: int | None = None
    """Concurrent model calls; `None` leaves it to the engine."""
    max_samples: int | None = None
    """Samples in flight at a time; `None` leaves it to the engine."""
    time_limit: int | None = None
    """Seconds that one sample may take; `None` means no limit."""
    token_limit: int | None = None
    """Tokens that one sample may use; `None` means no limit."""
    cost_limit: float | None = None
    """Cost that one sample may incur, in the currency of the engine's price table; `None` means no limit."""
    resume: bool = False
    """Re-use the finished samples of an earlier, interrupted run of the same plan in `out`."""
    reuse_earlier: bool = False
    """Take an earlier, finished run of the same plan in `out` in place of a new one; failing that, score the solver outputs of such a run of the same solver."""
    reuse: Path | None = None
    """Native log of an earlier run with the same solver, rows and models: its solver outputs are scored, the model is not called.
    Samples that it lacks, or on which its solver failed, are solved."""
    tolerated: int | None = None
    """Failed samples that the run may have: with one more no further sample is begun, and the run can be resumed. `None`: any number."""
    on_progress: Callable[[Progress], None] | None = None
    """Called from the engine's own thread after each finished trial, and whenever a call is to be made again."""


EarlierRuns = Literal["ignore", "resume", "reuse"]
"""What becomes of earlier runs in the same folder.

`ignore`: nothing. `resume`: the newest run of the same plan with the same models is finished, if it is not. `reuse`: as `resume` for a run that
came to its end and may be cached; failing that, solver outputs of such a run of the same solver are scored again.
"""


@dataclass(frozen=True)
class Job:
    """One plan of a run of several, with what is its own."""

    plan: TaskPlan
    model: str | None = None
    """The engine's model string for the evaluated model; `None` for tasks that call none."""
    model_map: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key → the engine's model string."""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    """Extra arguments for the evaluated model's provider."""
    earlier: EarlierRuns = "ignore"
    """What becomes of earlier runs."""
    reuse: Path | None = None
    """As in `RunSettings`: an earlier log that was named, not looked for."""
    tolerated: int | None = None
    """As in `RunSettings`."""

    @staticmethod
    def of(plan: TaskPlan, settings: RunSettings) -> Job:
        """The one job of a run of one plan."""
        earlier: EarlierRuns = (
            "resume" if settings.resume else "reuse" if settings.reuse_earlier else "ignore"
        )
        return Job(
            plan,
            settings.model,
            settings.model_map,
            settings.model_args,
            earlier,
            settings.reuse,
            settings.tolerated,
        )


@dataclass(frozen=True)
class LogRef:
    """Where an engine put its native log."""

    engine: str
    path: Path
    reused: int = 0
    """Trials taken over from an earlier run, scores and all."""
    earlier: Path | None = None
    """Native log of the earlier run that was continued, or whose solver outputs were scored again; `None`: there was none."""
    replayed: bool = False
    """Whether only solver outputs were taken over, and scored again."""
    other_model: bool = False
    """Whether a model of the earlier run is known to have changed since, though it has the same name: what was taken over is its."""
    error: str | None = None
    """Why the run as a whole failed, as far as its engine could tell but not write into the log (a full disk, say); `None` when it did not."""


@dataclass(frozen=True)
class Execution:
    """When and how a native run took place."""

    status: str
    """`success`, or the engine's own word for anything else (`error`, `cancelled`, `started`)."""
    started_at: float
    """Unix time in seconds."""
    ended_at: float
    """Unix time in seconds; equal to `started_at` when the run never ended."""
    error: str | None = None
    """Why the run as a whole failed; `None` when it did not."""
    model_usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Engine's model name → `num_prompt_tokens`, `num_completion_tokens` over the whole run."""


@dataclass(frozen=True)
class Evidence:
    """What happened, as one engine's log tells it."""

    plan: TaskPlan
    """The plan as the log carries it (without the rows)."""
    execution: Execution
    models: Mapping[str, str]
    """AI GO model key (`""` for the evaluated model) → the engine's model name that really answered."""
    trials: Callable[[], Iterator[TrialRecord]]
    """Opens a fresh stream of trial records, those of one sample next to each other, in the plan's order."""


@dataclass(frozen=True)
class ImportOptions:
    """How foreign logs are imported."""

    context: Literal["full", "delta", "none"] = "full"
    """How much of the models' inputs is written; `full` is what AI GO expects."""
    output_format: Literal["json", "json.gz", "json.zst", "parquet"] = "json"
    events: Literal["all", "default", "minimal"] = "default"
    """Which events the traces keep."""
    jobs: int | None = None
    """Processes; `None` for as many as there are cores."""
    redact: bool = True
    """Take out what looks like a secret."""
    patterns: tuple[str, ...] = ()
    """Further regular expressions of secrets."""
    bounds: Mapping[str, float] = field(default_factory=dict)
    """Bounds on what is read, by the engine's names for them, in place of its defaults."""
    max_loss: int | None = None
    """More dropped things than this in a log are an error; `None`: any number is fine."""


class EngineLogs(Protocol):
    """What an adapter makes of the files that its framework leaves behind; the framework itself need not be installed."""

    expected: str
    """The files, for people: `logs of Inspect (*.eval, *.json)`."""

    def files(self, location: str) -> Sequence[str]:
        """Such files at a location: a file, a folder, a pattern or a URL. The content decides, not the name."""
        ...

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """See `Engine.import_logs`."""
        ...


class Engine(Protocol):
    """An adapter around one evaluation framework."""

    name: str
    """Short name used on the command line, e.g. `inspect`."""

    @staticmethod
    def logs() -> EngineLogs:
        """The framework's own logs; asked of the class, so that they can be read where the framework is missing."""
        ...

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """What this engine would do differently, or not at all; empty when everything is exact."""
        ...

    def run(self, plan: TaskPlan, settings: RunSettings) -> LogRef:
        """Run the plan and return where the native log is.

        Raises:
            UsageError: a model is missing or cannot be made from its string.
            EngineError: the framework failed before or while running.
        """
        ...

    def run_all(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        """Run several plans together, so that they share the limits on concurrency; one result per job, in their order.

        What stands in both, `Job` and `RunSettings`, is taken from the job. A job that fails, or was not reached before the run was
        interrupted, is an error in its place and does not touch the others.

        Raises:
            UsageError: a model is missing or cannot be made from its string; all are named.
            EngineError: the framework failed before anything ran.
        """
        ...

    def trace_rows(self, location: str) -> Iterator[Mapping[str, Any]]:
        """Rows of a data set made of the framework's own logs: one per sample, the trace in the column `trace`.

        Raises:
            UsageError: the location names no log.
            EvidenceError: a log cannot be read.
        """
        ...

    def model(self, name: str) -> Model:
        """A model for calls outside a run (generating data sets), by the engine's string for it.

        Raises:
            UsageError: there is no such model, or it cannot be used.
        """
        ...

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Turn the framework's own logs, whoever wrote them, into result logs in `out`.

        Returns:
            The worst exit code of all logs.

        Raises:
            UsageError: a location names nothing, or an option is wrong.
        """
        ...

    def logged_runs(self, out: Path) -> Iterable[LoggedRun]:
        """The runs of ours whose native logs stand in a folder."""
        ...

    def read(self, log: Path) -> Evidence:
        """Read back a native log that `run` has written, with nothing but the file.

        Raises:
            EvidenceError: the file is not such a log.
        """
        ...
