"""`import`: Inspect logs → result files, sample by sample, without ever holding a log in memory.

One log becomes `<name>.tasklog.json` (or `.json.gz`, `.json.zst`, or a folder of parquet tables) and
`<name>.loss.json`, which says what was kept, changed and dropped. Several processes may read one log; the result does not
depend on how many there are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.importing.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.importing.damage import Damage
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.output import OutputFormat
from aigo_bridge.importing.result import PARTIAL, ImportResult, file_stem

from .context import ContextChoice
from .events import EventChoice
from .import_settings import ImportSettings
from .reading import LogReader, open_log
from .result_writing import write_json
from .sources import find_logs

__all__ = ["ImportResult", "ImportSettings", "import_file", "import_logs"]


def import_logs(
    locations: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] = ".",
    *,
    context: ContextChoice = "full",
    output_format: OutputFormat = "json",
    keep: EventChoice = "default",
    jobs: int | None = None,
    redact: bool = True,
    patterns: Iterable[str] = (),
    bounds: Bounds = DEFAULT_BOUNDS,
    max_loss: int | None = None,
    on_result: Callable[[ImportResult], None] | None = None,
    taken: Iterable[str] = (),
) -> list[ImportResult]:
    """Import every log that the locations name: files, folders, patterns, fsspec URLs.

    Args:
        locations: what to import; see `sources.find_logs`.
        out: folder for the results; it is made if need be.
        context: how much of the models' inputs is written; `full` is what AI GO expects.
        output_format: `json`, `json.gz`, `json.zst` or `parquet`.
        keep: `all` events, `default` (no state patches, no log messages below warning) or `minimal`.
        jobs: processes; `None` for as many as there are cores.
        redact: take out secrets.
        patterns: further regular expressions of secrets.
        bounds: what a log may ask of the machine.
        max_loss: more dropped things than this in a log give exit code 1.
        on_result: called as each log is done.
        taken: names, without endings, that no result may have.

    Returns:
        One result per log, in order. A log that cannot be read at all, or whose evidence cannot be written, has no
        `output` and exit code 3; the others go on.

    Raises:
        UsageError: a location matches nothing, a pattern is no regular expression, `jobs` is below 1.
        OSError: the folder cannot be made.
    """
    if jobs is not None and jobs < 1:
        raise UsageError(f"found {jobs} jobs, expected at least 1")
    settings = ImportSettings(
        context, output_format, keep, jobs or os.cpu_count() or 1, redact, tuple(patterns), bounds, max_loss
    )
    secrets = settings.redaction()
    logs = find_logs(locations)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    names = set(taken)
    for log in logs:
        result = import_file(log, folder / result_stem(secrets.text(log), names), settings)
        results.append(result)
        if on_result is not None:
            on_result(result)
    return results


def result_stem(log: str, taken: set[str]) -> str:
    """A file name for a log: its own without the suffix; logs of the same name get a number."""
    name = re.split(r"[/\\]", log.rstrip("/\\"))[-1]
    return file_stem(name.removesuffix(".eval").removesuffix(".json"), taken)


def import_file(
    log: str | os.PathLike[str], target: Path, settings: ImportSettings | None = None
) -> ImportResult:
    """Import one log to `<target>.tasklog.<format>` and `<target>.loss.json`.

    Damage is not raised but listed in the result; so is a log of which nothing can be read, and a file that cannot be
    written.
    """
    settings = settings or ImportSettings()
    secrets = settings.redaction()
    location = os.fspath(log)
    try:
        with open_log(location, bounds=settings.bounds, redaction=secrets) as reader:
            return _import_open(reader, target, settings)
    except EvidenceError as error:
        reason = secrets.text(str(error))
    except MemoryError:
        hint = "" if settings.jobs == 1 else f" with {settings.jobs} processes (fewer need less: --jobs)"
        reason = f"memory ran out{hint}"
    damage = (Damage("", None, reason),)
    return ImportResult(
        secrets.text(location), None, None, "", 0, 0, 0, damage, LossReport(), secrets.found, PARTIAL, reason
    )


def _import_open(reader: LogReader, target: Path, settings: ImportSettings) -> ImportResult:
    loss = LossReport()
    suffix = "tasklog" if settings.output_format == "parquet" else f"tasklog.{settings.output_format}"
    output = target.with_name(f"{target.name}.{suffix}")
    status, found = str(reader.header.get("status") or ""), reader.redaction.found
    try:
        if settings.output_format == "parquet":
            from .tables import write_tables

            totals = write_tables(reader, output, settings.keep, loss)
        else:
            totals = write_json(reader, output, settings, loss)
    except OSError as error:
        # What cannot be read is an EvidenceError. A draft has a name of its own, which would say nothing.
        reason = f"the evidence cannot be written: {output}: {error.strerror or error}"
        damage = tuple(reader.damage)
        return ImportResult(
            reader.location, None, None, status, 0, 0, 0, damage, LossReport(), found, PARTIAL, reason
        )
    result = ImportResult(
        log=reader.location,
        output=output,
        loss_file=target.with_name(f"{target.name}.loss.json"),
        status=status,
        samples=totals.samples,
        trials=totals.trials,
        failed=totals.failed,
        damage=tuple(reader.damage),
        loss=loss,
        redacted=found,
    )
    result = result.judged(settings.max_loss)
    try:
        result.write_loss()
    except OSError as error:
        missing = f"the loss report cannot be written: {result.loss_file}: {error.strerror or error}"
        reason = f"{missing}; {result.reason}" if result.reason else missing
        return replace(result, loss_file=None, exit_code=PARTIAL, reason=reason)
    return result
