"""Formats of other projects: aigo-bridge's own formats, and formats that plug-ins add.

A format is not an engine: it does not run tasks, and the package of its project is not required.
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
        """Parts of the result that the files lack or change, as display texts."""
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
    """Options for converting tasks to AI GO tasks."""

    root: Path | None = None
    """Folder that must contain included files; `None` for the folder of the task."""
    arguments: Sequence[str] = ()
    """`NAME=VALUE` texts for the format."""
    key: str | None = None
    """Key of the AI GO task, if the conversion creates one; `None` for the file name."""
    allow_gaps: bool = False
    """Convert tasks even if parts of them are lost."""
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
    """Key of a task → key of the dataset whose rows the user must provide."""


class TaskConverter(Protocol):
    """Converts task files of a format to AI GO tasks."""

    def __call__(self, path: Path, out: Path, options: ConversionOptions) -> Conversion:
        """Convert the tasks of a file or folder to AI GO tasks.

        Raises:
            SpecError: a file cannot be read.
            UnsupportedPlanError: AI GO cannot express a task; the message lists all reasons.
            UsageError: an option is wrong, or files exist already.
        """
        ...


class TraceFormat(Protocol):
    """Reader of the traces that a tool recorded."""

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Write the traces at each location as a result log without scores. Return the worst exit code.

        Raises:
            UsageError: a location does not contain traces, or an option does not apply to traces.
        """
        ...

    def rows(self, source: TraceSource, path: Path, base: Path, root: Path) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a dataset: one for each trace that its source requests.

        Args:
            source: source of the dataset.
            path: files of the source.
            base: folder that the paths in the rows are relative to.
            root: folder that must contain the targets of links.

        Raises:
            DatasetError: a file cannot be read.
        """
        ...


@dataclass(frozen=True)
class Format:
    """Capabilities of one format; `None` if unsupported."""

    title: str
    """Display name of the format."""
    logs: Callable[[], LogImporter] | None = None
    """Import of the format's result files."""
    is_log: Callable[[Head, str], bool] | None = None
    """Returns whether a local file may be one of `logs`, by first bytes and name; `None` to ask `logs`."""
    results: Callable[[], ResultExport] | None = None
    """Export of results to files of the format."""
    tasks: Callable[[], TaskConverter] | None = None
    """Conversion of the format's tasks to AI GO tasks."""
    task_export: Callable[[], TaskExporter] | None = None
    """Export of AI GO tasks to tasks of the format."""
    traces: Callable[[], TraceFormat] | None = None
    """Conversion of traces to rows and results."""


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
    """Return the format with a name, which a plug-in may add; `None` if it does not exist.

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
    """Return the function that writes results in a format; `None` if unsupported."""
    row = format_named(name)
    return None if row is None or row.results is None else row.results()


def result_exports() -> list[str]:
    """Return the names of the formats for writing results."""
    return [name for name, row in formats().items() if row.results is not None]


def format_files(name: str, log: Path) -> list[Path]:
    """Return the local files of a result in a format, starting with the given file."""
    load = formats()[name].logs
    try:
        return [log] if load is None else list(map(Path, load().parts(str(log))))
    except (UsageError, OSError):
        return [log]
