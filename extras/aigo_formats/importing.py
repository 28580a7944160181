"""Import loop for other projects' results. A failed run does not affect the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.importing.log_import import UNMAPPED, Damage, ImportOptions, ImportReport, unmapped

Run = TypeVar("Run")


def refuse_parquet(what: str, locations: Sequence[str], options: ImportOptions) -> None:
    """Refuse the table format for imports that write result logs.

    Raises:
        UsageError: the option asks for tables.
    """
    if options.output_format == "parquet":
        raise UsageError(
            f"{', '.join(locations)}: found --format parquet, expected json, json.gz or "
            f"json.zst for {what} (to write tables of a result log: `aigo-bridge import "
            "RESULT --format parquet`)",
            code=Code.WRONG_OPTION,
        )


def import_each(
    runs: Sequence[Run],
    out: Path,
    tell: Callable[[ImportReport], None],
    *,
    imported: Callable[[Run, set[str]], Iterator[ImportReport]],
    lost: Callable[[Run, str], ImportReport],
    subject: str,
) -> int:
    """Import runs, each with one or more results. Return the worst exit code.

    Args:
        runs: runs, each with the files that belong together.
        out: folder for the results. It is created.
        tell: callback for each finished result.
        imported: function that imports one run, given the file names already used.
        lost: function that creates the report of a failed run from a reason.
        subject: name of a run's content in error messages, for example `the record`.

    Raises:
        UsageError: an option is wrong.
    """
    out.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    worst = 0
    for run in runs:
        for report in _contained(run, imported(run, taken), lost, subject):
            tell(report)
            worst = max(worst, report.exit_code)
    return worst


def _contained(
    run: Run, reports: Iterator[ImportReport], lost: Callable[[Run, str], ImportReport], subject: str
) -> Iterator[ImportReport]:
    """Yield the reports of a run. Its errors do not affect other runs."""
    try:
        yield from reports
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  # a damaged run must not stop the import of other runs
        yield lost(run, str(error) if isinstance(error, BridgeError) else unmapped(subject, error))


def unmapped_damage(location: str, reason: str) -> Damage:
    """Return the damage for a location whose content could not be imported at all."""
    return Damage(location, None, reason, UNMAPPED)
