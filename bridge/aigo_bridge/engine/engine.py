"""What an engine is: three verbs over a plan, and a table of what it can do besides.

An engine says what it cannot do (`gaps`), does it (`run`) and says what happened (`read`). Running and
reading are separate on purpose: a log can be read back later, on another machine, without any model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from aigo_bridge.access.file_kinds import Head
    from aigo_bridge.engine.benchmarks import Benchmarks
    from aigo_bridge.engine.protocol import Evidence, Gap, Job, LogRef, RunSettings
    from aigo_bridge.errors import EngineError
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport, LossReport
    from aigo_bridge.models.protocol import Model
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.results.records import StoredNumbers
    from aigo_bridge.results.result_files import LoggedRun

State = Literal["ok", "warning", "missing"]
"""`ok`; `warning`: works, with a reservation; `missing`: cannot be used as it is."""


@dataclass(frozen=True)
class Check:
    """One thing of an installation that was looked at."""

    subject: str
    """What it is, e.g. `lighteval` or `engine lighteval`."""
    state: State
    found: str
    """What was found, e.g. a release; or what is wrong."""
    remedy: str | None = None
    """The command that mends it; `None` when there is nothing to mend, or no command does."""


class LogImporter(Protocol):
    """Turns the files of an engine or a format into result logs; needs no installed framework."""

    expected: str
    """The files, for people: `logs of Inspect (*.eval, *.json)`."""

    def files(self, location: str) -> Sequence[str]:
        """Such files at a location (file, folder, pattern, URL). The content decides, not the name."""
        ...

    def parts(self, location: str) -> Sequence[str]:
        """The files that the import of a local log reads, the log itself first; some may lie elsewhere.

        Raises:
            UsageError: there is no log.
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


@dataclass(frozen=True)
class LogRange:
    """What became of a part of a log's samples."""

    samples: int
    loss: LossReport
    redacted: Counter[str]
    totals: object
    """What they add up to, as the importer itself counts it; goes from one process to another."""


class RangeImporter(Protocol):
    """Turns a large log into a result log by parts, in any number of processes. Line by line the parts, then
    the frame, are what `LogImporter` writes.
    """

    def count(self, log: Path, options: ImportOptions) -> int | None:
        """How many samples a log of this machine has; `None`: it is to be read as a whole.

        Raises:
            EvidenceError: it cannot be read.
        """
        ...

    def import_range(
        self, log: Path, output: Path, options: ImportOptions, first: int, end: int
    ) -> LogRange | None:
        """Write samples `first` to `end` (not included) as a plain `.json` result log of their own.

        Returns:
            What they add up to; `None`: something is damaged, or depends on other samples, so that the log is
            to be read as a whole.

        Raises:
            EvidenceError: it cannot be read.
        """
        ...

    def import_frame(
        self, log: Path, output: Path, options: ImportOptions, ranges: Sequence[LogRange]
    ) -> ImportReport:
        """Write a result log without samples, whose numbers are those of all ranges.

        Raises:
            EvidenceError: it cannot be read.
        """
        ...


@dataclass(frozen=True)
class RunState:
    """A run that goes on, or was ended from outside."""

    version: str
    """Changes whenever there is something new."""
    alive: bool
    """Whether the process that writes the log is there."""
    trials: int | None = None
    """Number of trials that the run will have; `None`: unknown."""


class RunningLogs(Protocol):
    """Looks at runs while they go on; the framework itself need not be installed."""

    def state(self, log: Path) -> RunState | None:
        """How far a run is; `None`: the file is no log of a run that goes on."""
        ...

    def snapshot(self, log: Path, copy: Path, root: Path) -> Sequence[tuple[str, int]]:
        """Write what there is of a run at one moment as a log that `LogImporter` takes.

        Args:
            log: of the run.
            copy: the file to write.
            root: folder that the log, links followed, must lie in.

        Returns:
            The trials that are not in the log yet: id of the sample and index of the trial.

        Raises:
            OSError: the log is gone, or lies elsewhere.
        """
        ...


@dataclass(frozen=True)
class ExportOptions:
    """How a task is exported."""

    native: bool = False
    """Plain code of the engine without aigo-bridge, instead of a file that calls it."""
    force: bool = False
    """Replace what an earlier export wrote into the folder."""


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    folder: Path
    files: tuple[str, ...]
    """Paths in the folder; the first is the one that the engine loads."""
    commands: tuple[str, ...]
    """How to run it, from inside the folder."""
    notes: tuple[str, ...] = ()
    """What the user should know, e.g. which models have to be named."""


class NativeTasks(Protocol):
    """Plans as an engine's own objects, for who calls the engine's own functions."""

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """What these objects cannot say, beside what the engine cannot run."""
        ...

    def translate(self, plan: TaskPlan, model_map: Mapping[str, str]) -> Any:
        """The objects; `model_map` is as in `Job`."""
        ...


class TaskExporter(Protocol):
    """Exports tasks to one engine."""

    def export(self, plan: TaskPlan, out: Path, options: ExportOptions) -> Exported:
        """Write a plan as files that the engine's own tool runs, atomically.

        Raises:
            InexactExportError: a part of the task has no exact form there.
            UsageError: the folder is not free.
        """
        ...


class LogExporter(Protocol):
    """Exports results to one engine."""

    def export_log(self, result: Path, out: Path, *, force: bool) -> Path:
        """Write a result log as a log of the engine into the folder `out`; returns the file.

        Raises:
            EvidenceError: the file is no result log.
            UsageError: the log is there already (without `force`).
        """
        ...


def _no_runs(out: Path) -> Iterable[LoggedRun]:
    return ()


def _no_run_id(log: Path) -> str | None:
    return None


def _log_alone(log: Path) -> Sequence[Path]:
    return [log]


def _not_stored(log: Path, numbers: StoredNumbers) -> None:
    """What the log does not hold, a later import of it does not find."""


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do besides running plans: one row for each ability, `None` for what it cannot.

    Nothing is loaded until a row is called. Where there is a framework, it has to be installed for everything
    but `checks`, `logs` and `running`.
    """

    checks: Callable[[], Sequence[Check]] | None = None
    """What of its framework is installed, for `aigo-bridge doctor`; imports nothing heavy."""
    logs: Callable[[], LogImporter] | None = None
    """Import of the framework's own logs."""
    is_log: Callable[[Head, str], bool] | None = None
    """Whether a local file may be one of `logs`, by its first bytes and its name; `None`: ask `logs`."""
    log_ranges: Callable[[], RangeImporter] | None = None
    """The same by parts of a log, for large ones."""
    running: Callable[[], RunningLogs] | None = None
    """Runs that go on, looked at by their logs."""
    traces: Callable[[str], Iterator[Mapping[str, Any]]] | None = None
    """Rows of a dataset made of the framework's own logs at a location: one per sample, the trace in the
    column `trace`.

    Raises `UsageError` where the location names no log, `EvidenceError` where one cannot be read.
    """
    model: Callable[[str], Model] | None = None
    """A model for calls outside a run (generating datasets), by the engine's string for it.

    Raises `UsageError` where there is no such model, or it cannot be used.
    """
    native_tasks: Callable[[], NativeTasks] | None = None
    """Plans as its own objects."""
    task_export: Callable[[], TaskExporter] | None = None
    """Tasks as files that its own tool runs."""
    log_export: Callable[[], LogExporter] | None = None
    """Results as logs that its own viewer shows."""
    benchmarks: Benchmarks | None = None
    """Benchmarks that already exist for it."""
    tapes: bool = False
    """Whether all calls of models go past the tape of the run (`RunSettings.tape`); engines where they do not
    can neither be recorded nor be answered from a cassette."""
    log_files: Callable[[Path], Sequence[Path]] = _log_alone
    """The files that a native log on this machine consists of, the one that names it first."""
    run_id: Callable[[Path], str | None] = _no_run_id
    """What a native log on this machine calls its run, and every log that continues the run calls it, too;
    `None`: it does not say.
    """
    distribution: str | None = None
    """Installed package of its framework; `None`: it has none."""
    logged_runs: Callable[[Path], Iterable[LoggedRun]] = _no_runs
    """The runs of ours whose native logs stand in a folder; none for engines that do not look."""
    store_numbers: Callable[[Path, StoredNumbers], None] = _not_stored
    """Keeps in a log that `run` has written what reading it cannot compute, so that `read` finds it there.

    Raises `OSError` where the log cannot be written.
    """


class Engine(Protocol):
    """An adapter around one evaluation framework, found by its entry point; made only where the framework is
    installed.
    """

    name: str
    """Short name used on the command line, e.g. `inspect`."""
    capabilities: ClassVar[Capabilities]
    """Asked of the class, so that nobody needs the framework to know what the engine can do."""

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """What this engine would do differently, or not at all; empty when everything is exact."""
        ...

    def run(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        """Run plans together, so that they share the limits on concurrency; one result per job, in their
        order.

        A job that fails, or was not reached before the run was interrupted, is an error in its place and does
        not touch the others.

        Raises:
            UsageError: a model is missing or cannot be made from its string; all are named.
            EngineError: the framework failed before anything ran.
        """
        ...

    def read(self, log: Path) -> Evidence:
        """Read back a native log that `run` has written, with nothing but the file; nothing that stands in it
        is run.

        Raises:
            EvidenceError: the file is not such a log.
        """
        ...
