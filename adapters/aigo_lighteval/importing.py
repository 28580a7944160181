"""The engine's side of `aigo-bridge import`: results of lighteval, whoever ran it; our own runs come back as they were written.

Each task of a run becomes a result log of its own, `<task>_<date>.tasklog.json`, with its loss report. lighteval need not be installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from aigo_bridge.engine import ImportOptions
from aigo_bridge.errors import BridgeError, EvidenceError, MissingEngineError, UsageError
from aigo_bridge.evaluate import write_evidence
from aigo_bridge.importing.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.importing.damage import Damage
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.redaction import Redaction, redaction
from aigo_bridge.importing.report import ImportReport
from aigo_bridge.importing.result import PARTIAL, ImportResult, file_stem
from aigo_bridge.importing.terminal import harmless
from aigo_lighteval.evidence import read
from aigo_lighteval.foreign.finding import Run, find_runs, result_files
from aigo_lighteval.foreign.header import Header, plain_name, read_header
from aigo_lighteval.foreign.writing import write_task
from aigo_lighteval.parquet import require_parquet
from aigo_lighteval.stored import BLOCK

_LONGEST_STEM = 150
"""Bytes of a file's name without its suffix."""


class LightevalLogs:
    """Reads what lighteval leaves behind."""

    expected = "results of lighteval (results_<date>.json, details_<task>_<date>.parquet)"

    def files(self, location: str) -> list[str]:
        """The results and details of lighteval at a location."""
        return result_files(location)

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Turn lighteval's results into result logs, one per task; see `Engine.import_logs`."""
        return run_import(locations, out, options, tell)


def run_import(
    locations: Sequence[str], out: Path, options: ImportOptions, tell: Callable[[ImportReport], None]
) -> int:
    """Import results, one report per task as they are done; returns the worst exit code (see `ImportReport`).

    Raises:
        UsageError: a location has no results, or an option is wrong or not to be had here.
        MissingEngineError: details cannot be read here; what has none was imported.
    """
    bounds = DEFAULT_BOUNDS.changed(options.bounds)
    if options.output_format == "parquet":
        raise UsageError(
            f"{', '.join(locations)}: results of lighteval are not written as parquet: found --format parquet, expected json, json.gz or json.zst"
            " (lighteval's details are Parquet files already; the tables of a result log: `aigo-bridge import RESULT --format parquet`)"
        )
    _secrets(options)
    runs = find_runs(locations)
    out.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    worst = 0
    unread: list[MissingEngineError] = []
    for run in runs:
        try:
            if run.details:
                require_parquet(run.location)
        except MissingEngineError as error:
            unread.append(error)
            continue
        for report in import_run(run, out, options, bounds, taken):
            tell(report)
            worst = max(worst, report.exit_code)
    if unread:
        more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
        raise MissingEngineError(f"{unread[0]}{more}")
    return worst


def import_run(
    run: Run, out: Path, options: ImportOptions, bounds: Bounds, taken: set[str]
) -> Iterator[ImportReport]:
    """Import one run, task by task.

    Args:
        run: its files.
        out: folder of the result logs.
        options: how it is imported.
        bounds: what the files may ask of the machine.
        taken: names of files that were written; those of the run are added.
    """
    header, damage, secrets = Header(), list[Damage](), _secrets(options)
    if run.results is None:
        damage.append(Damage(run.location, None, "no results file: metrics and configuration are unknown"))
    else:
        try:
            found, header = read_header(run.results, bounds, secrets, redact=options.redact)
        except (EvidenceError, UsageError) as error:
            damage.append(Damage(run.results, None, str(error)))
        else:
            own = _import_own(run.results, found, out, options, taken)
            if own is not None:
                yield own
                return
    tasks = _tasks(run, header)
    whole, header = header, header.within(bounds, len(tasks))
    if header is not whole:
        reason = "the configuration is too large to stand in the result of every task (bound 'growth')"
        damage.append(Damage(run.location, None, reason))
    if not tasks:
        yield _nothing(run, damage or [Damage(run.location, None, "the results have no task")]).report()
    for task, details in tasks:
        # What was found in the results file was found in every task's part of it.
        own_secrets = _secrets(options)
        own_secrets.found.update(secrets.found)
        stem = file_stem(_shortened(f"{task}_{run.date}" if run.date else task), taken, "task")
        try:
            result = write_task(run, header, task, details, out / stem, options, bounds, own_secrets, damage)
        except OSError as error:
            raise UsageError(f"cannot write to {str(out)!r}: {error}") from error
        yield result.report()


def _tasks(run: Run, header: Header) -> list[tuple[str, str | None]]:
    """Every task of the run with its details, in the order of the results file; those without metrics follow."""
    left = dict(run.details)
    plain: dict[str, list[str]] = {}
    for name in left:
        plain.setdefault(plain_name(name), []).append(name)
    found: list[tuple[str, str | None]] = []
    for task in header.task_names():
        same = plain.get(plain_name(task), [])
        name = task if task in left else same[0] if len(same) == 1 else ""
        if run.only is None or name in run.only:
            found.append((task, left.pop(name, None)))
    return found + [(task, path) for task, path in left.items() if run.only is None or task in run.only]


def _import_own(
    location: str, found: dict[str, Any], out: Path, options: ImportOptions, taken: set[str]
) -> ImportReport | None:
    """Write the evidence of a run of ours; `None` for every other run, and for one that has to be salvaged."""
    if BLOCK not in found or "://" in location:
        return None
    path = Path(location)
    try:
        evidence = read(path)
        stem = file_stem(_shortened(path.name.removesuffix(".json")), taken, "run")
        target = out / f"{stem}.tasklog.{options.output_format}"
        tally, _ = write_evidence(evidence, target, engine="lighteval")
    except BridgeError:
        # Not ours, damaged, or of a release whose plans this one cannot read: then it is a run like any other.
        return None
    failed = f", {tally.num_failed} failed" if tally.num_failed else ""
    lines = (
        f"{harmless(location)}: {evidence.execution.status}",
        f"  {tally.num_samples} samples{failed} -> {harmless(str(target))}",
        "  written by aigo-bridge: the evidence is that of the run",
    )
    return ImportReport(
        location, target, lines, 0, {"samples": tally.num_samples, "failed": tally.num_failed}
    )


def _nothing(run: Run, damage: list[Damage]) -> ImportResult:
    return ImportResult(
        run.location,
        None,
        None,
        "",
        0,
        0,
        0,
        tuple(damage),
        LossReport(),
        exit_code=PARTIAL,
        reason=str(damage[0]),
    )


def _secrets(options: ImportOptions) -> Redaction:
    """The redaction to apply, with counts of its own."""
    if options.redact:
        return redaction(options.patterns)
    return redaction(options.patterns, environment={}, well_known=False)


def _shortened(name: str) -> str:
    """A name that fits into a file system with every suffix."""
    data = re.sub(r"\s+", " ", name).encode("utf-8", "replace")
    return data[:_LONGEST_STEM].decode("utf-8", "ignore")
