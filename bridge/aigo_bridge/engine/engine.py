"""Interface of an engine: three functions for a plan, and a table of optional capabilities.

An engine reports what it does not support (`gaps`), runs a plan (`run`) and reads the log (`read`).
Running and reading are separate, so that a log can be read later on another machine without a model.
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
"""Check result: `ok`; `warning`, works with a limitation; `missing`, cannot be used yet."""


@dataclass(frozen=True)
class Check:
    """Check of one part of an installation."""

    subject: str
    """Checked part, for example `lighteval` or `engine lighteval`."""
    state: State
    found: str
    """Found version or problem."""
    remedy: str | None = None
    """Command that fixes the problem; `None` if it is not needed or not known."""


class LogImporter(Protocol):
    """Importer that converts the files of an engine or a format to result logs, without the framework."""

    expected: str
    """Description of the expected files: `logs of Inspect (*.eval, *.json)`."""

    def files(self, location: str) -> Sequence[str]:
        """Return the files at a location (file, folder, pattern, URL), recognized by content."""
        ...

    def parts(self, location: str) -> Sequence[str]:
        """Return the files that the import of a local log reads, starting with the log. They may be in other
        folders.

        Raises:
            UsageError: the log does not exist.
        """
        ...

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Convert the framework's own logs, from any program, to result logs in `out`.

        Returns:
            The worst exit code of all logs.

        Raises:
            UsageError: a location does not match any log, or an option is wrong.
        """
        ...


@dataclass(frozen=True)
class LogRange:
    """Result of importing a part of the samples in a log."""

    samples: int
    loss: LossReport
    redacted: Counter[str]
    totals: Any
    """Totals of the part in the form of the importer; must be picklable."""


class RangeImporter(Protocol):
    """Importer that converts a large log in parts, in several processes. The concatenated lines of the parts
    and the frame equal the output of `LogImporter`.
    """

    def count(self, log: Path, options: ImportOptions) -> int | None:
        """Return the number of samples in a local log; `None` if it must be read as a whole.

        Raises:
            EvidenceError: the log cannot be read.
        """
        ...

    def import_range(
        self, log: Path, output: Path, options: ImportOptions, first: int, end: int
    ) -> LogRange | None:
        """Write samples `first` to `end` (exclusive) as a separate, uncompressed `.json` result log.

        Returns:
            Totals of the samples; `None` if the log must be read as a whole, because data is damaged or
            depends on other samples.

        Raises:
            EvidenceError: the log cannot be read.
        """
        ...

    def import_frame(
        self, log: Path, output: Path, options: ImportOptions, ranges: Sequence[LogRange]
    ) -> ImportReport:
        """Write a result log without samples, with the metrics of all ranges.

        Raises:
            EvidenceError: the log cannot be read.
        """
        ...


@dataclass(frozen=True)
class RunState:
    """Run that is in progress or was interrupted."""

    version: str
    """Version that changes with every update."""
    alive: bool
    """Whether the process that writes the log exists."""
    trials: int | None = None
    """Total number of trials in the run; `None` if unknown."""


class RunningLogs(Protocol):
    """Functions for inspecting runs in progress, without the framework."""

    def state(self, log: Path) -> RunState | None:
        """Return the state of a run; `None` if the file is not the log of a run in progress."""
        ...

    def snapshot(self, log: Path, copy: Path, root: Path) -> Sequence[tuple[str, int]]:
        """Write the current content of a run as a log that `LogImporter` accepts.

        Args:
            log: log of the run.
            copy: file to write.
            root: folder that must contain the log, after following links.

        Returns:
            Trials that are not in the log yet: sample id and trial index.

        Raises:
            OSError: the log no longer exists, or is outside the folder.
        """
        ...


@dataclass(frozen=True)
class ExportOptions:
    """Options of a task export."""

    native: bool = False
    """Export plain code of the engine without aigo-bridge, instead of a file that calls aigo-bridge."""
    force: bool = False
    """Replace the files of an earlier export in the folder."""


@dataclass(frozen=True)
class ExportedFiles:
    """Files of an export."""

    folder: Path
    files: tuple[str, ...]
    """Paths in the folder. The engine loads the first one."""
    commands: tuple[str, ...]
    """Commands to run the export in its folder."""
    notes: tuple[str, ...] = ()
    """Notes for the user, for example models to name."""


class NativeTasks(Protocol):
    """Conversion of plans to an engine's own objects, for users of the engine's own functions."""

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """Return additional gaps of these objects, beyond the gaps of the engine."""
        ...

    def translate(self, plan: TaskPlan, model_map: Mapping[str, str]) -> Any:
        """Return the objects for a plan; `model_map` is described in `Job`."""
        ...


class TaskExporter(Protocol):
    """Export of tasks to one engine."""

    def export(self, plan: TaskPlan, out: Path, options: ExportOptions) -> ExportedFiles:
        """Write a plan as files for the engine's own tool, atomically.

        Raises:
            InexactExportError: a part of the task cannot be expressed exactly.
            UsageError: the folder contains other files.
        """
        ...


class LogExporter(Protocol):
    """Export of results to one engine."""

    def export_log(self, result: Path, out: Path, *, force: bool) -> Path:
        """Write a result log as a log of the engine into the folder `out` and return the file.

        Raises:
            EvidenceError: the file is not a result log.
            UsageError: the log exists already (without `force`).
        """
        ...


def _no_runs(out: Path) -> Iterable[LoggedRun]:
    return ()


def _no_run_id(log: Path) -> str | None:
    return None


def _log_alone(log: Path) -> Sequence[Path]:
    return [log]


def _not_stored(log: Path, numbers: StoredNumbers) -> None:
    """Store nothing. A later import of the log then lacks these numbers."""


@dataclass(frozen=True)
class Capabilities:
    """Optional capabilities of an engine, one per field; `None` if unsupported.

    Nothing is loaded before a capability is called. If the engine has a framework, it must be installed
    for all capabilities except `checks`, `logs` and `running`.
    """

    checks: Callable[[], Sequence[Check]] | None = None
    """Returns the checks of the framework installation for `aigo-bridge doctor`, without slow imports."""
    logs: Callable[[], LogImporter] | None = None
    """Import of the framework's own logs."""
    is_log: Callable[[Head, str], bool] | None = None
    """Returns whether a local file may be one of `logs`, by first bytes and name; `None` to ask `logs`."""
    log_ranges: Callable[[], RangeImporter] | None = None
    """Import of large logs in parts."""
    running: Callable[[], RunningLogs] | None = None
    """Inspection of runs in progress through their logs."""
    traces: Callable[[str], Iterator[Mapping[str, Any]]] | None = None
    """Returns dataset rows from the framework's own logs at a location: one per sample, with the trace in the
    column `trace`.

    Raises `UsageError` if the location does not contain a log, and `EvidenceError` if a log cannot be
    read.
    """
    model: Callable[[str], Model] | None = None
    """Returns a model for calls outside a run (dataset generation), by its name for the engine.

    Raises `UsageError` if the model does not exist or cannot be used.
    """
    native_tasks: Callable[[], NativeTasks] | None = None
    """Conversion of plans to the engine's own objects."""
    task_export: Callable[[], TaskExporter] | None = None
    """Export of tasks as files for the engine's own tool."""
    log_export: Callable[[], LogExporter] | None = None
    """Export of results as logs for the engine's own viewer."""
    benchmarks: Benchmarks | None = None
    """Existing benchmarks of the engine."""
    recordings: bool = False
    """Whether all model calls use `RunSettings.recording`, so that runs can be recorded and replayed."""
    log_files: Callable[[Path], Sequence[Path]] = _log_alone
    """Returns the files of a local native log, starting with the file that names it."""
    run_id: Callable[[Path], str | None] = _no_run_id
    """Returns the run id in a local native log, which all logs of resumed runs share; `None` if unknown."""
    distribution: str | None = None
    """Installed package of the framework; `None` without a framework."""
    logged_runs: Callable[[Path], Iterable[LoggedRun]] = _no_runs
    """Returns the runs by aigo-bridge with native logs in a folder; empty if the engine has none."""
    store_numbers: Callable[[Path, StoredNumbers], None] = _not_stored
    """Stores numbers that readers cannot compute in a log that `run` wrote, so that `read` finds them.

    Raises `OSError` if the log cannot be written.
    """


class Engine(Protocol):
    """Adapter for one evaluation framework, found by its entry point. An instance requires the framework."""

    name: str
    """Short name for the command line, for example `inspect`."""
    capabilities: ClassVar[Capabilities]
    """Capabilities of the class, available without the framework."""

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """Return all differences of this engine from the plan; empty if everything is exact."""
        ...

    def run(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        """Run plans together, so that they share the concurrency limits. Return one result per job, in the
        same order.

        A job that fails, or that an interruption prevented from starting, has an error as its result and
        does not affect the others.

        Raises:
            UsageError: a model is missing or its name is invalid; lists all of them.
            EngineError: the framework failed before anything ran.
        """
        ...

    def read(self, log: Path) -> Evidence:
        """Read a native log that `run` wrote. Only the file is needed, and its content is never executed.

        Raises:
            EvidenceError: the file is not such a log.
        """
        ...
