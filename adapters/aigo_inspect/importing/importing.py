"""Conversion of Inspect logs to result files, sample by sample. Logs of aigo-bridge's own runs are restored
exactly.

Each log is converted to `<name>.tasklog.json` (or `.json.gz`, `.json.zst`, or a folder of parquet tables).
The file `<name>.loss.json` lists kept, changed and dropped values. Several logs can be read in parallel, each
by one process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, EvidenceError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import (
    ContextChoice,
    Damage,
    EventChoice,
    ImportOptions,
    ImportReport,
    LossReport,
    OutputFormat,
    UnmappedError,
    not_recomputed,
    unmapped,
)
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.results.superseded_results import superseded_by
from aigo_inspect.importing.attempts import superseded
from aigo_inspect.importing.ranges import UnsuitableForRangesError, plan_ranges, write_ranges
from aigo_inspect.importing.writing import write_json, write_tables
from aigo_inspect.logs.reader import InspectLogReader, open_log
from aigo_inspect.logs.shapes import HEADER_KEY
from aigo_inspect.logs.sources import UnreachableError, find_logs, is_log_file, local_path

if TYPE_CHECKING:
    from aigo_bridge.engine.protocol import Evidence
    from aigo_bridge.plan.logged_plan import LoggedPlan

__all__ = ["ImportOptions", "ImportReport", "InspectLogs", "import_file", "import_logs", "import_own"]

_WORTH_PROCESSES = 4 << 20
"""Total size of logs from which several processes are faster, in bytes."""


class InspectLogs:
    """Importer for Inspect logs; see `LogImporter`."""

    expected = "logs of Inspect (*.eval, *.json)"

    def files(self, location: str) -> list[str]:
        """Return the Inspect logs at a location."""
        path = local_path(location)
        if path is not None and Path(path).is_file():
            return [location] if is_log_file(Path(path)) else []
        try:
            return find_logs([location])
        except UnreachableError:
            # The import itself reports the reason.
            return [location]
        except (BridgeError, OSError, ValueError, ImportError):
            return []

    def parts(self, location: str) -> list[str]:
        """Return the location itself, because an Inspect log is a single file."""
        return [location]

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Convert Inspect logs to result logs; see `LogImporter.import_logs`."""
        worst = 0
        foreign: list[str] = []
        damage: dict[str, str] = {}
        taken: set[str] = set()
        for log in find_logs(locations):
            report = None
            try:
                if options.output_format != "parquet":
                    report = import_own(log, out, options, taken)
            except EvidenceError as error:
                # A damaged log of aigo-bridge is imported like any other log. The report includes this error.
                damage[log] = str(error)
            if report is None and options.recompute is not None:
                report = not_recomputed(log, damage.get(log))
            if report is None:
                foreign.append(log)
                continue
            tell(report)
            worst = max(worst, report.exit_code)
        for report in _import_foreign(foreign, out, options, taken, damage):
            tell(report)
            worst = max(worst, report.exit_code)
        return worst


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
    on_result: Callable[[ImportReport], None] | None = None,
) -> list[ImportReport]:
    """Import all logs at the locations: files, folders, patterns or fsspec URLs.

    Args:
        locations: locations to import; see `sources.find_logs`.
        out: folder for the results. It is created if necessary.
        context: amount of model input to write. AI GO expects `full`.
        output_format: `json`, `json.gz`, `json.zst` or `parquet`.
        keep: `all` events, `default` (without state patches and log messages below warning) or `minimal`.
        jobs: number of processes. Each reads one log at a time. `None` uses all CPU cores.
        redact: remove secrets.
        patterns: additional regular expressions for secrets.
        bounds: limits on the resources that a log may use.
        max_loss: maximum number of dropped values in a log. If it is exceeded, the exit code is 1.
        on_result: called after each log, in order.

    Returns:
        One report for each log, in order. If a log cannot be read or its evidence cannot be written, the
        report has exit code 3 and `output` is `None`. Other logs are not affected.

    Raises:
        UsageError: a location matches no log, a pattern is not a regular expression, or `jobs` is below 1.
        OSError: the folder cannot be created.
    """
    if jobs is not None and jobs < 1:
        raise UsageError(f"found {jobs} jobs, expected at least 1", code=Code.WRONG_OPTION)
    options = ImportOptions(context, output_format, keep, jobs, redact, tuple(patterns), bounds, max_loss)
    options.redaction()
    reports = []
    for report in _import_foreign(find_logs(locations), Path(out), options, set(), {}):
        reports.append(report)
        if on_result is not None:
            on_result(report)
    return reports


def _import_foreign(
    logs: Sequence[str], out: Path, options: ImportOptions, taken: set[str], damage: Mapping[str, str]
) -> Iterator[ImportReport]:
    """Import logs without using a plan in them.

    The names of the results are added to the names that are `taken`. `damage` maps a log to known damage.
    """
    secrets = options.redaction()
    out.mkdir(parents=True, exist_ok=True)
    processes = options.jobs or os.cpu_count() or 1
    jobs = min(processes, len(logs))
    if sum(map(_size, logs)) < _WORTH_PROCESSES:
        jobs = 1
    options = replace(options, jobs=jobs)
    work = [(log, out / _stem(secrets.text(log), taken, options), options, damage.get(log)) for log in logs]
    if jobs < 2:
        yield from (import_file(*each, processes=processes) for each in work)
        return
    # Imported late, because most imports need only one process, and the module takes long to load.
    from aigo_bridge.process.pool import each_in_processes

    for log, report in zip(logs, each_in_processes(import_file, work, jobs), strict=True):
        yield _unread(log, _out_of_memory(jobs), secrets) if isinstance(report, MemoryError) else report


def _out_of_memory(jobs: int | None) -> str:
    return "memory ran out" + (
        f" with {jobs} processes (fewer processes use less: --jobs)" if jobs and jobs > 1 else ""
    )


def _size(log: str) -> int:
    """Return the size of a log in bytes. A remote log always counts as large."""
    path = local_path(log)
    try:
        return _WORTH_PROCESSES if path is None else Path(path).stat().st_size
    except OSError:
        return 0


def _stem(log: str, taken: set[str], options: ImportOptions) -> str:
    """Return a file name for the result of a log, without its extension. Logs with the same name get a
    number.
    """
    name = re.split(r"[/\\]", log.rstrip("/\\"))[-1]
    return options.stem(name.removesuffix(".eval").removesuffix(".json"), taken)


def import_file(
    log: str | os.PathLike[str],
    target: Path,
    options: ImportOptions | None = None,
    known_damage: str | None = None,
    *,
    processes: int = 1,
) -> ImportReport:
    """Import one log to `<target>.tasklog.<format>` and `<target>.loss.json`.

    Damage, unreadable logs and write errors are not raised but listed in the report, with `known_damage`.
    """
    options = options or ImportOptions()
    secrets = options.redaction()
    location = os.fspath(log)
    try:
        with open_log(location, bounds=options.bounds, redaction=secrets) as reader:
            if known_damage is not None:
                reader.note_damage(Damage("", None, known_damage))
            return _import_open(reader, location, target, options, processes)
    except UnsuitableForRangesError:
        return import_file(log, target, options, known_damage)
    except EvidenceError as error:
        reason = str(error)
    except MemoryError:
        reason = _out_of_memory(options.jobs)
    except UsageError:  # a missing package for the output format, which affects all logs
        raise
    except Exception as error:  # noqa: BLE001  # an error in one log must not stop the others
        reason = unmapped("the log", error)
    return _unread(location, reason, secrets)


def _unread(location: str, reason: str, secrets: Redactor) -> ImportReport:
    """Return the report of a log whose import wrote no files."""
    reason = secrets.text(reason)
    damage = (Damage("", None, reason),)
    log = secrets.text(location)
    return ImportReport(log, damage=damage, redacted=secrets.found, exit_code=ExitCode.PARTIAL, reason=reason)


def _import_open(
    reader: InspectLogReader, location: str, target: Path, options: ImportOptions, processes: int
) -> ImportReport:
    from aigo_bridge.engine.provenance import write_import_provenance

    loss = LossReport()
    suffix = "tasklog" if options.output_format == "parquet" else f"tasklog.{options.output_format}"
    output = target.with_name(f"{target.name}.{suffix}")
    later = superseded_by(superseded(reader))
    report = ImportReport(
        reader.location,
        status=str(reader.header.get("status") or ""),
        redacted=reader.redaction.found,
        notes=() if later is None else (f"superseded by {later}, a later attempt of the same run",),
    )
    try:
        if options.output_format == "parquet":
            totals = write_tables(reader, output, options.events, loss)
        else:
            plan = plan_ranges(reader, processes)
            ranges = None if plan is None else partial(write_ranges, plan, output, options, loss)
            totals = write_json(reader, output, options, loss, ranges)
    except OSError as error:
        # Read errors are raised as EvidenceError. The message names the output, because a draft has another
        # name.
        reason = f"the evidence cannot be written: {output}: {error.strerror or error}"
        return replace(report, damage=tuple(reader.damage), exit_code=ExitCode.PARTIAL, reason=reason)
    report = replace(
        report,
        output=output,
        loss_file=target.with_name(f"{target.name}.loss.json"),
        samples=totals.samples,
        trials=totals.trials,
        failed=totals.failed,
        damage=tuple(reader.damage),
        loss=loss,
    ).with_exit_code(options.max_loss)
    try:
        report.write_loss()
    except OSError as error:
        missing = f"the loss report cannot be written: {report.loss_file}: {error.strerror or error}"
        reason = f"{missing}; {report.reason}" if report.reason else missing
        return replace(report, loss_file=None, exit_code=ExitCode.PARTIAL, reason=reason)
    return write_import_provenance(report, "inspect", [location], options)


def run_id(log: Path) -> str | None:
    """Return Inspect's task id in a log. Retries and resumed runs of the task keep it."""
    try:
        with open_log(log) as reader:
            task_id = reader.header["eval"].get("task_id")
    except EvidenceError:
        return None
    return task_id if isinstance(task_id, str) and task_id else None


# Logs of aigo-bridge


def import_own(
    log: str, out: Path, options: ImportOptions | None = None, taken: set[str] | None = None
) -> ImportReport | None:
    """Write the evidence of a log that aigo-bridge wrote. Return `None` for other logs and for damaged logs.

    Such a log contains the complete evidence, so the choices of contexts and events do not apply. Secrets are
    removed as in any log. The name of the result is added to the names that are `taken`.

    Raises:
        EvidenceError: aigo-bridge wrote the log, but its evidence cannot be read.
    """
    names = set() if taken is None else taken
    names_before = set(names)
    try:
        return _import_own(log, out, options or ImportOptions(), names)
    except Exception as error:
        # An error in one log must not affect the others.
        names.intersection_update(names_before)
        if isinstance(error, UnreachableError):
            return None
        if isinstance(error, BridgeError):
            raise EvidenceError(str(error), code=Code.UNREADABLE_LOG) from error
        raise UnmappedError(unmapped("the log as its own log", error)) from error


def _import_own(log: str, out: Path, options: ImportOptions, names: set[str]) -> ImportReport | None:
    secrets = options.redaction()
    own = _own_evidence(log, secrets)
    if own is None:
        return None
    evidence, carried = own
    secrets.found.clear()
    from aigo_bridge.engine.provenance import write_import_provenance
    from aigo_bridge.evaluation.bridge_logs import own_report
    from aigo_bridge.evaluation.writing import write_result

    plan = None
    if options.recompute is not None:
        try:
            plan = options.recompute(carried)
        except EvidenceError as error:
            return not_recomputed(log, str(error), error.code)
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{_stem(secrets.text(log), names, options)}.tasklog.{options.output_format}"
    try:
        written = write_result(evidence, target, engine="inspect", own=plan)
    except OSError as error:
        reason = f"the evidence cannot be written: {target}: {error.strerror or error}"
        status = evidence.execution.status
        return ImportReport(
            log, status=status, exit_code=ExitCode.PARTIAL, reason=reason, facts={"reason": reason}
        )
    choices = (("--context", options.context, "full"), ("--events", options.events, "default"))
    unused = [name for name, value, default in choices if value != default]
    notes = [
        *(f"redacted: {count} x {kind}" for kind, count in sorted(secrets.found.items())),
        *(f"{name} is not used: the run's evidence is complete" for name in unused),
    ]
    facts = {"redacted": dict(secrets.found), "unused_options": unused}
    report = own_report(log, target, evidence, written, notes, facts)
    return write_import_provenance(report, "inspect", [local_path(log) or log], options)


def _own_evidence(log: str, redaction: Redactor) -> tuple[Evidence, LoggedPlan] | None:
    """Return the evidence and the unredacted plan of a log that aigo-bridge wrote.

    Return `None` for other logs, and for damaged logs, which are imported like other logs.
    """
    path = local_path(log)
    if path is None:
        return None
    with open_log(path, header_only=True) as reader:
        metadata = reader.header["eval"].get("metadata")
    if not isinstance(metadata, dict) or HEADER_KEY not in metadata:
        return None
    with open_log(path) as reader:
        if reader.damage:
            return None
        carried = metadata[HEADER_KEY]
    # Imported late, because other logs do not need the plan modules, which take longer to load than most
    # imports.
    from aigo_bridge.plan.logged_plan import logged_plan
    from aigo_inspect.running.evidence import read

    # Redactor changes the digest, so edits of the plan are detected before it.
    plan = logged_plan(carried)
    evidence = read(Path(path), bounds=DEFAULT_BOUNDS, redaction=redaction)
    return replace(evidence, plan=replace(evidence.plan, damage=plan.damage)), plan
