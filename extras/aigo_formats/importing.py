"""What imports of other projects have in common: one run after the other, and none takes another with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.importing.log_import import UNMAPPED, Damage, ImportOptions, ImportReport, unmapped

Run = TypeVar("Run")


def refuse_parquet(what: str, locations: Sequence[str], options: ImportOptions) -> None:
    """Refuse tables where result logs are written.

    Raises:
        UsageError: they are asked for.
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
    """Import runs, each of which may be several results; the worst exit code.

    Args:
        runs: what belongs together.
        out: folder of the results, which is made.
        tell: told of each result as it is done.
        imported: imports one, with the names of files that are taken.
        lost: the report of one of which nothing can be had, and why.
        subject: what one is called where its fault is told: `the record`.

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
    """The reports of a run; whatever is wrong with it, the others have nothing to do with it."""
    try:
        yield from reports
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever is wrong with one: it takes no other with it
        yield lost(run, str(error) if isinstance(error, BridgeError) else unmapped(subject, error))


def unmapped_damage(location: str, reason: str) -> Damage:
    """Nothing of what lies there could be mapped."""
    return Damage(location, None, reason, UNMAPPED)
