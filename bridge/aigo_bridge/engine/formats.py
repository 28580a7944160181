"""Formats of other projects: a table of aigo-bridge's own rows, and rows that plug-ins add.

A format is not an engine: nothing runs on it, and the package of its project need not be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aigo_bridge import plugins
from aigo_bridge.errors import Issue, UsageError

if TYPE_CHECKING:
    from aigo_bridge.access.file_kinds import Head
    from aigo_bridge.engine.engine import LogImporter, TaskExporter
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport
    from aigo_bridge.spec.datasets import TraceSource


class Export(Protocol):
    """Files of an exported result."""

    @property
    def path(self) -> Path:
        """File that names the export."""
        ...

    @property
    def lines(self) -> Sequence[str]:
        """Parts of the result that the files lack or change, for people."""
        ...


class ResultExport(Protocol):
    """Writes a result log as files of a format."""

    def __call__(self, result: Path, out: Path, *, force: bool) -> Export:
        """Write a result log into a folder.

        Raises:
            EvidenceError: the file is not a result log, or the format cannot express it.
            UsageError: the files exist already (without `force`).
        """
        ...


@dataclass(frozen=True)
class ConversionOptions:
    """Options of a conversion to AI GO tasks."""

    root: Path | None = None
    """Folder that included files may not leave; `None`: the folder of the task."""
    arguments: Sequence[str] = ()
    """`NAME=VALUE` for the format."""
    key: str | None = None
    """Key of the AI GO task, if it is one; `None`: the file name."""
    allow_gaps: bool = False
    """Convert tasks that would lose parts."""
    force: bool = False
    """Replace existing files."""


@dataclass(frozen=True)
class Conversion:
    """AI GO tasks that a conversion wrote."""

    path: Path
    """File to run."""
    tasks: Sequence[str]
    """Keys of the tasks."""
    issues: Sequence[Issue] = ()
    """Differences from the converted tasks."""
    missing_rows: Mapping[str, str] | None = None
    """Key of a task → key of the dataset whose rows the user has to give."""


class TaskConverter(Protocol):
    """Converts task files of a format to AI GO tasks."""

    def __call__(self, path: Path, out: Path, options: ConversionOptions) -> Conversion:
        """Write the tasks of a file or folder as AI GO tasks.

        Raises:
            SpecError: a file cannot be read.
            UnsupportedPlanError: AI GO cannot express a task; the message lists all reasons.
            UsageError: an option is wrong, or files exist already.
        """
        ...


class TraceFormat(Protocol):
    """Reads the traces that a tool recorded."""

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Write the traces at each location as a result log without scores; returns the worst exit code.

        Raises:
            UsageError: a location lacks traces, or an option is not for traces.
        """
        ...

    def rows(self, source: TraceSource, path: Path, base: Path, root: Path) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a dataset: one for each trace that its source asks for.

        Args:
            source: the dataset's source.
            path: its files.
            base: folder that the paths in the rows are relative to.
            root: folder that links may not leave.

        Raises:
            DatasetError: a file cannot be read.
        """
        ...


@dataclass(frozen=True)
class Format:
    """One format: a row for each ability, `None` if it lacks the ability."""

    title: str
    """Name of the format, for people."""
    logs: Callable[[], LogImporter] | None = None
    """Import of its result files."""
    is_log: Callable[[Head, str], bool] | None = None
    """Whether a local file may be one of `logs`, by its first bytes and its name; `None`: ask `logs`."""
    results: Callable[[], ResultExport] | None = None
    """Export of results as its files."""
    tasks: Callable[[], TaskConverter] | None = None
    """Its tasks as AI GO tasks."""
    task_export: Callable[[], TaskExporter] | None = None
    """AI GO tasks as its tasks."""
    traces: Callable[[], TraceFormat] | None = None
    """Traces as rows and as results."""


FORMATS: Mapping[str, str] = {
    "lm-eval": "aigo_formats:LM_EVAL",
    "every-eval-ever": "aigo_formats:EVERY_EVAL_EVER",
    "inspect-hub": "aigo_formats:INSPECT_HUB",
    "claude_code": "aigo_formats:CLAUDE_CODE",
    "opentelemetry": "aigo_formats:OPENTELEMETRY",
    "langsmith": "aigo_formats:LANGSMITH",
    "phoenix": "aigo_formats:PHOENIX",
}
"""Name on the command line → aigo-bridge's own format."""


def format_named(name: str) -> Format | None:
    """Return the format of a name, which a plug-in may add; `None` if there is no such format.

    Raises:
        PluginError: the plug-in cannot be loaded.
    """
    own: Format | None = _own(name) if name in FORMATS else plugins.load("formats", name, Format)
    return own


@cache
def formats() -> Mapping[str, Format]:
    """Return all formats by name, without plug-ins that cannot be loaded (`doctor` lists them)."""
    known = {name: _own(name) for name in FORMATS}
    for plugin in plugins.plugins("formats"):
        with suppress(plugins.PluginError):
            known.setdefault(plugin.name, plugin.load(Format))
    return known


def _own(name: str) -> Format:
    row: Format = plugins.Plugin("formats", name, plugins.DISTRIBUTION, FORMATS[name]).load(Format)
    return row


def result_export(name: str) -> ResultExport | None:
    """Return the function that writes results in a format; `None` if nothing does."""
    row = format_named(name)
    return None if row is None or row.results is None else row.results()


def result_exports() -> list[str]:
    """Return the names of the formats that results can be written in."""
    return [name for name, row in formats().items() if row.results is not None]


def format_files(name: str, log: Path) -> list[Path]:
    """Return the files on this machine that a file of a format belongs to, itself first."""
    load = formats()[name].logs
    try:
        return [log] if load is None else list(map(Path, load().parts(str(log))))
    except (UsageError, OSError):
        return [log]
