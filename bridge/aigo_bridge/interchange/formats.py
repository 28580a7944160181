"""The table of formats; nothing of a format is loaded before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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


@dataclass(frozen=True)
class Format:
    """One format."""

    title: str
    """Its name, for people."""
    logs: Callable[[], ForeignFiles]
    """Import of its files."""


def _lm_eval() -> ForeignFiles:
    from aigo_bridge.interchange.lm_eval.importing import LmEvalResults

    return LmEvalResults()


FORMATS: dict[str, Format] = {
    "lm-eval": Format("lm-evaluation-harness", _lm_eval),
}
"""Name on the command line → the format."""


def format_files(name: str, log: Path) -> list[Path]:
    """The files on this machine that a file of a format belongs to, itself first."""
    try:
        return list(map(Path, FORMATS[name].logs().parts(str(log))))
    except (UsageError, OSError):
        return [log]
