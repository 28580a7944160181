"""The table of formats; nothing of a format is loaded before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from aigo_bridge import plugins
from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport


class ForeignFiles(Protocol):
    """Turns files of a format into result logs, as the importers of engines do with their logs."""

    expected: str
    """The files, for people."""

    def files(self, location: str) -> Sequence[str]:
        """Such files at a location (file, folder, pattern, URL). The content decides, not the name."""
        ...

    def parts(self, location: str) -> Sequence[str]:
        """The files that the import of a local file reads, itself first.

        Raises:
            UsageError: it is none of the format.
        """
        ...

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Write a result log for each evaluation; the worst exit code.

        Raises:
            UsageError: a location names nothing, or an option is wrong.
        """
        ...


class Export(Protocol):
    """What an export of a result wrote."""

    @property
    def path(self) -> Path:
        """The file that stands for all."""
        ...

    @property
    def lines(self) -> Sequence[str]:
        """What is not in the files as it was, for people."""
        ...


class ResultExport(Protocol):
    """Writes a result log as files of a format."""

    def __call__(self, result: Path, out: Path, *, force: bool) -> Export:
        """Write a result log into a folder.

        Raises:
            EvidenceError: the file is no result log, or none that the format has a place for.
            UsageError: the files are there already (without `force`).
        """
        ...


@dataclass(frozen=True)
class Format:
    """One format: one row for each ability, `None` for what it cannot."""

    title: str
    """Its name, for people."""
    logs: Callable[[], ForeignFiles] | None = None
    """Import of its files."""
    results: Callable[[], ResultExport] | None = None
    """Results as its files."""


def _lm_eval() -> ForeignFiles:
    from aigo_formats.lm_eval.importing import LmEvalResults

    return LmEvalResults()


def _every_eval_ever() -> ResultExport:
    from aigo_formats.every_eval_ever.exporting import export_result

    return export_result


def _every_eval_ever_files() -> ForeignFiles:
    from aigo_formats.every_eval_ever.importing import EveryEvalEver

    return EveryEvalEver()


FORMATS: Mapping[str, Format] = {
    "lm-eval": Format("lm-evaluation-harness", logs=_lm_eval),
    "every-eval-ever": Format("Every Eval Ever", logs=_every_eval_ever_files, results=_every_eval_ever),
}
"""Name on the command line → aigo-bridge's own format."""


def format_named(name: str) -> Format | None:
    """Return the format of a name, which a plug-in may add; `None` if there is no such format.

    Raises:
        PluginError: the plug-in cannot be loaded.
    """
    return FORMATS.get(name) or plugins.load("formats", name, Format)


@cache
def formats() -> Mapping[str, Format]:
    """Return all formats by name, without plug-ins that cannot be loaded (`doctor` lists them)."""
    known = dict(FORMATS)
    for plugin in plugins.plugins("formats"):
        with suppress(plugins.PluginError):
            known.setdefault(plugin.name, plugin.load(Format))
    return known


def foreign_files() -> dict[str, ForeignFiles]:
    """Return an importer for each format whose files can be imported."""
    return {name: exchanged.logs() for name, exchanged in formats().items() if exchanged.logs is not None}


def result_exports() -> list[str]:
    """Return the names of the formats that results can be written in."""
    return [name for name, exchanged in formats().items() if exchanged.results is not None]


def result_export(name: str) -> ResultExport | None:
    """Return the function that writes results in a format; `None` if nothing does."""
    exchanged = format_named(name)
    return None if exchanged is None or exchanged.results is None else exchanged.results()


def format_files(name: str, log: Path) -> list[Path]:
    """Return the files on this machine that a file of a format belongs to, itself first."""
    load = formats()[name].logs
    try:
        return [log] if load is None else list(map(Path, load().parts(str(log))))
    except (UsageError, OSError):
        return [log]
