"""`import`: Inspect logs → result files, sample by sample, without ever holding a log in memory.

One log becomes `<name>.tasklog.json` (or `.json.gz`, `.json.zst`, or a folder of parquet tables) and
`<name>.loss.json`, which says what was kept, changed and dropped. Several processes read one log, each a run of its
samples; what they write is joined in the order of the log, so the result does not depend on how many there are.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aigo_bridge.errors import EvidenceError, UsageError

from .archive import Damage
from .bounds import DEFAULT_BOUNDS, Bounds
from .context import ContextChoice
from .encoding import dumps
from .events import EventChoice
from .import_settings import ImportSettings
from .loss import LossReport
from .output import OutputFormat, open_draft
from .reading import LogReader, open_log
from .result_writing import write_json
from .sources import find_logs

__all__ = ["ImportResult", "ImportSettings", "import_file", "import_logs"]

DONE, FAILED, PARTIAL = 0, 1, 3


@dataclass(frozen=True)
class ImportResult:
    """What became of one log."""

    log: str
    """Its location as the user named it."""
    output: Path | None
    """The file (or folder of tables) that was written; `None` when nothing could be read."""
    loss_file: Path | None
    """The written loss report."""
    status: str
    """Inspect's status of the log: `success`, `error`, `cancelled`, `started`; `""` when it could not be read."""
    samples: int
    trials: int
    failed: int
    """Samples with an error of their own (not of reading)."""
    damage: tuple[Damage, ...]
    """What could not be read."""
    loss: LossReport
    redacted: Counter[str] = field(default_factory=Counter)
    """Secrets taken out, by kind."""
    exit_code: int = DONE
    """0 done, 1 more was dropped than allowed, 3 only a part (or nothing) could be read."""
    reason: str = ""
    """Why the exit code is not 0."""


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

    Returns:
        One result per log, in order. A log that cannot be read at all has no `output` and exit code 3.

    Raises:
        UsageError: a location matches nothing, a pattern is no regular expression, `jobs` is below 1.
    """
    if jobs is not None and jobs < 1:
        raise UsageError(f"found {jobs} jobs, expected at least 1")
    settings = ImportSettings(
        context, output_format, keep, jobs or os.cpu_count() or 1, redact, tuple(patterns), bounds, max_loss
    )
    settings.redaction()
    logs = find_logs(locations)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    taken: set[str] = set()
    for log in logs:
        result = import_file(log, folder / _stem(log, taken), settings)
        results.append(result)
        if on_result is not None:
            on_result(result)
    return results


def _stem(log: str, taken: set[str]) -> str:
    """A file name for a log: its own without the suffix; logs of the same name get a number."""
    name = re.split(r"[/\\]", log.rstrip("/\\"))[-1]
    stem = re.sub(r"[\x00-\x1f\x7f<>:\"|?*]", "_", name.removesuffix(".eval").removesuffix(".json")) or "log"
    found, number = stem, 2
    while found in taken:
        found, number = f"{stem}-{number}", number + 1
    taken.add(found)
    return found


def import_file(
    log: str | os.PathLike[str], target: Path, settings: ImportSettings | None = None
) -> ImportResult:
    """Import one log to `<target>.tasklog.<format>` and `<target>.loss.json`.

    Damage is not raised but listed in the result; so is a log of which nothing can be read.
    """
    settings = settings or ImportSettings()
    secrets = settings.redaction()
    location = os.fspath(log)
    try:
        with open_log(location, bounds=settings.bounds, redaction=secrets) as reader:
            return _import_open(reader, target, settings)
    except EvidenceError as error:
        damage = (Damage("", None, str(error)),)
        return ImportResult(
            location, None, None, "", 0, 0, 0, damage, LossReport(), secrets.found, PARTIAL, str(error)
        )


def _import_open(reader: LogReader, target: Path, settings: ImportSettings) -> ImportResult:
    loss = LossReport()
    suffix = "tasklog" if settings.output_format == "parquet" else f"tasklog.{settings.output_format}"
    output = target.with_name(f"{target.name}.{suffix}")
    if settings.output_format == "parquet":
        from .tables import write_tables

        totals = write_tables(reader, output, settings.keep, loss)
    else:
        totals = write_json(reader, output, settings, loss)
    found = reader.redaction.found
    result = ImportResult(
        log=reader.location,
        output=output,
        loss_file=target.with_name(f"{target.name}.loss.json"),
        status=str(reader.header.get("status") or ""),
        samples=totals.samples,
        trials=totals.trials,
        failed=totals.failed,
        damage=tuple(reader.damage),
        loss=loss,
        redacted=found,
    )
    result = _judged(result, settings.max_loss)
    _write_loss(result)
    return result


def _judged(result: ImportResult, max_loss: int | None) -> ImportResult:
    if result.damage:
        count = len(result.damage)
        reason = f"{count} part{'s' if count > 1 else ''} of the log could not be read: {result.damage[0]}"
        return replace(result, exit_code=PARTIAL, reason=reason)
    if max_loss is not None and result.loss.lost > max_loss:
        reason = f"{result.loss.lost} things were dropped, {max_loss} are allowed"
        return replace(result, exit_code=FAILED, reason=reason)
    return result


def _write_loss(result: ImportResult) -> None:
    assert result.loss_file is not None
    report = {
        "log": result.log,
        **result.loss.as_dict(),
        "redacted": dict(sorted(result.redacted.items())),
        "damage": [{"member": d.member, "offset": d.offset, "reason": d.reason} for d in result.damage],
    }
    with open_draft(result.loss_file) as file:
        file.write(dumps(report) + b"\n")
