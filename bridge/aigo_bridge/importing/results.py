"""Result logs of other programs' runs: the loop over the runs, and the files of each result.

A failed run does not affect the next one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, MissingEngineError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import (
    UNMAPPED,
    Damage,
    ImportOptions,
    ImportReport,
    LossReport,
    unmapped,
)
from aigo_bridge.process import no_collections
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.writing import DocumentWriter
from aigo_bridge.text.json_text import dumps

MALFORMED = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""Errors that code for well-formed rows raises for malformed ones."""
_MANY = 64
"""Number of samples that are written together."""
_LONGEST_STEM = 150
"""Maximum bytes of a file name without its suffix."""


class Run(Protocol):
    """Files that belong together."""

    @property
    def location(self) -> str:
        """Return the file that identifies the run."""


RunT = TypeVar("RunT", bound=Run)


class Totals(Protocol):
    """Numbers of samples and trials, and of samples with an error of the run."""

    samples: int
    trials: int
    failed: int


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
    runs: Sequence[RunT],
    out: Path,
    tell: Callable[[ImportReport], None],
    *,
    imported: Callable[[RunT, set[str]], Iterator[ImportReport]],
    subject: str,
) -> int:
    """Import runs, each with one or more results. Return the worst exit code.

    Args:
        runs: runs, each with the files that belong together.
        out: folder for the results. It is created.
        tell: callback for each finished result.
        imported: function that imports one run, given the file names already used.
        subject: name of a run's content in error messages, for example `the record`.

    Raises:
        UsageError: an option is wrong.
        MissingEngineError: runs cannot be read without an extra. The other runs are imported.
    """
    out.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    worst = 0
    unread: list[MissingEngineError] = []
    for run in runs:
        try:
            for report in _contained(run, imported(run, taken), subject):
                tell(report)
                worst = max(worst, report.exit_code)
        except MissingEngineError as error:
            unread.append(error)
    if unread:
        more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
        raise MissingEngineError(f"{unread[0]}{more}")
    return worst


def _contained(run: Run, reports: Iterator[ImportReport], subject: str) -> Iterator[ImportReport]:
    """Yield the reports of a run. Its errors do not affect other runs."""
    try:
        yield from reports
    except (UsageError, MissingEngineError):
        raise
    except Exception as error:  # noqa: BLE001  # a damaged run must not stop the import of other runs
        reason = str(error) if isinstance(error, BridgeError) else unmapped(subject, error)
        yield nothing_imported(run.location, [Damage(run.location, None, reason, UNMAPPED)])


def nothing_imported(location: str, damage: Sequence[Damage]) -> ImportReport:
    """Return the report of a location without a readable result, for at least one reason."""
    return ImportReport(location, damage=tuple(damage), exit_code=ExitCode.PARTIAL, reason=str(damage[0]))


def shortened(name: str, *, keep_end: bool = False) -> str:
    """Shorten a name so that the file system accepts it with every suffix.

    Args:
        name: name of a result.
        keep_end: keep the end of the name instead of its beginning.
    """
    data = re.sub(r"\s+", " ", name).encode("utf-8", "replace")
    kept = data[-_LONGEST_STEM:] if keep_end else data[:_LONGEST_STEM]
    return kept.decode("utf-8", "ignore")


def write_result_log(
    log: str,
    target: Path,
    samples: Iterable[bytes],
    header: Callable[[], dict[str, Any]],
    *,
    totals: Totals,
    damage: list[Damage],
    loss: LossReport,
    options: ImportOptions,
    redaction: Redactor,
    clean: bool = False,
) -> ImportReport:
    """Write `<target>.tasklog.<format>`, and return the report without its exit code.

    Args:
        log: location of the log, for the report.
        target: path of the written files without suffixes.
        samples: JSON of each sample. `totals`, `damage` and `loss` are complete after the last one.
        header: returns the `TaskResultLog` without its samples (see `result_header`). It is called after the
            last sample. Without samples, `samples` of its `evidence` is written, by default null.
        totals: counts of the samples.
        damage: unreadable parts.
        loss: counts of changed and dropped items.
        options: import options.
        redaction: secrets to remove.
        clean: whether to remove secrets known to this process, even if other redaction is off.

    Raises:
        OSError: the file cannot be written.
    """
    output = target.with_name(f"{target.name}.tasklog.{options.output_format}")
    with open_for_replacing(output, clean=clean) as file, no_collections():
        writer = DocumentWriter(file)
        unwritten = iter(samples)
        while batch := list(itertools.islice(unwritten, _MANY)):
            writer.sample(redaction.joined(batch))
        frame = header()
        evidence = frame.pop("evidence")
        if not writer.num_samples:
            evidence = {"samples": None, **evidence}
        writer.finish(*(redaction.joined([dumps(part)]) for part in (evidence, frame)))
    return ImportReport(
        log=log,
        output=output,
        loss_file=target.with_name(f"{target.name}.loss.json"),
        status=frame["status"],
        samples=totals.samples,
        trials=totals.trials,
        failed=totals.failed,
        damage=tuple(damage),
        loss=loss,
        redacted=redaction.found,
    )
