"""Import of trace files as a result log without scores, one sample per trace, with its loss report."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from aigo_bridge.access.file_kinds import expanded
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.importing.log_import import Damage, ImportOptions, ImportReport, LossReport
from aigo_bridge.importing.result_header import ImportedTask, result_header
from aigo_bridge.importing.results import nothing_imported, write_result_log
from aigo_bridge.results.specification import dataset_entity
from aigo_bridge.text.json_text import dumps, key_of
from aigo_formats.traces.documents import ReadContext
from aigo_formats.traces.sources import SOURCES, read_traces, row_of, source_of

FAILED_TRACE = "FailedTrace"
"""Error type of a trace that ended with an error."""


def import_traces(
    locations: Sequence[str],
    source: str,
    out: Path,
    options: ImportOptions,
    report_to: Callable[[ImportReport], None],
) -> int:
    """Import traces, one result log per location. Return the worst exit code (see `ImportReport`).

    Raises:
        UsageError: the source is unknown, a location is empty, or an option does not apply to traces.
    """
    _check(source, options)
    out.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    worst = 0
    for location in dict.fromkeys(itertools.chain.from_iterable(map(expanded, locations))):
        path = Path(location)
        name = path.name.split(".")[0] if path.is_file() else path.resolve().name
        target = out / options.stem(name[:100], taken, "traces")
        report = _import(path, source, target, options).with_exit_code(options.max_loss)
        if report.output is not None:
            report.write_loss()
        report_to(report)
        worst = max(worst, report.exit_code)
    return worst


def _check(source: str, options: ImportOptions) -> None:
    if source not in SOURCES:
        raise UsageError(
            f"--from: found {source!r}, expected one of {', '.join(SOURCES)}", code=Code.WRONG_OPTION
        )
    if options.output_format == "parquet":
        raise UsageError(
            "traces cannot be written as parquet: found --format parquet, expected json, json.gz or json.zst"
            " (the tables of a result log: `aigo-bridge import RESULT --format parquet`)",
            code=Code.WRONG_OPTION,
        )
    if options.context == "delta":
        raise UsageError("--context: found 'delta', expected full or none for traces", code=Code.WRONG_OPTION)
    if options.recompute is not None or options.provenance:
        raise UsageError("--recompute, --provenance: not supported for traces", code=Code.OPTIONS_APART)


def _import(location: Path, source: str, target: Path, options: ImportOptions) -> ImportReport:
    reading = ReadContext(
        bounds=options.bounds, redaction=options.redaction(), all_events=options.events == "all"
    )
    totals = _Totals()
    try:
        traces = read_traces(location, source, reading)
        # Read the first trace before writing, so that a wrong source does not create a file.
        beginning = list(itertools.islice(traces, 1))
    except EvidenceError as error:
        return nothing_imported(str(location), [Damage("", None, str(error))])
    if not beginning:
        other = source_of(location) if location.is_file() else None
        if other is not None and other.name != source:
            reason = f"expected {SOURCES[source].expected}, found {other.expected}: --from {other.name}"
            return nothing_imported(str(location), [Damage("", None, reason)])
        damage = reading.damage or [Damage("", None, f"no traces: expected {SOURCES[source].expected}")]
        return nothing_imported(str(location), damage)

    def samples() -> Iterator[bytes]:
        try:
            for trace in itertools.chain(beginning, traces):
                yield dumps(totals.sample(_kept(trace, options, reading.loss), location))
        except EvidenceError as error:
            reading.damage.append(Damage("", None, str(error)))

    return write_result_log(
        str(location),
        target,
        samples(),
        lambda: _frame(target.name, source, location, totals, reading.damage),
        totals=totals,
        damage=reading.damage,
        loss=reading.loss,
        options=options,
        redaction=reading.redaction,
    )


def _kept(trace: dict[str, Any], options: ImportOptions, loss: LossReport) -> dict[str, Any]:
    """Return a trace without the parts that the options omit. They are counted."""
    if options.events == "minimal":
        loss.dropped["event: left out by --events minimal"] += len(trace["events"])
        return {name: value for name, value in trace.items() if name != "events"}
    if options.context == "none":
        for event in trace["events"]:
            if event["type"] == "model_call_event" and event["input_context"]:
                event["input_context"] = []
                loss.dropped["input of a model call: left out by --context none"] += 1
    return trace


class _Totals:
    """Samples with their totals."""

    def __init__(self) -> None:
        self.samples = 0
        self.trials = 0
        self.failed = 0
        self.times: list[str] = []
        self._ids: set[str] = set()

    def sample(self, trace: dict[str, Any], location: Path) -> dict[str, Any]:
        """Convert a trace to a sample with one trial."""
        row = row_of(trace, location if location.is_dir() else location.parent)
        data = {name: value for name, value in row.items() if name not in ("sample_id", "trace")}
        sample_id = self._unique(str(row["sample_id"]))
        errors = []
        if row["error"] is not None:
            self.failed += 1
            errors.append({"error_type": FAILED_TRACE, "message": str(row["error"]), "stage": "solver"})
        self.samples += 1
        self.trials += 1
        if row["date"] is not None:
            self.times.append(row["date"])
        answer = row["output"]
        choice = {"message": {"role": "assistant", "content": answer}}
        raw_outputs = [] if answer is None else [{"choices": [choice]}]
        trial = {
            "index": 0,
            "sample_id": sample_id,
            "sample": {"data": data},
            "solver": {"output": {"trace": row["trace"], "raw_outputs": raw_outputs, "direct_ios": []}},
            "scores": [],
            "errors": errors,
        }
        return {
            "sample_id": sample_id,
            "sample": None,
            "solver": None,
            "scores": None,
            "errors": [],
            "trials": [trial],
        }

    def _unique(self, sample_id: str) -> str:
        candidates: Iterator[str] = (f"{sample_id}#{number}" for number in itertools.count(2))
        unique = (
            sample_id if sample_id not in self._ids else next(c for c in candidates if c not in self._ids)
        )
        self._ids.add(unique)
        return unique


def _frame(
    name: str, source: str, location: Path, totals: _Totals, damage: Sequence[Damage]
) -> dict[str, Any]:
    """Return a `TaskResultLog` whose `evidence` does not contain `samples` yet: a task that passes traces
    through without scores.
    """
    key = key_of(name)
    task = ImportedTask(
        name=name,
        display_name=name,
        dataset=name,
        solver={"type": "pass_through_solver", "trace_column": "trace"},
        scorers=[],
        entity="dataset",
    )
    seconds = [int(datetime.fromisoformat(time).timestamp()) for time in totals.times] or [0]
    return result_header(
        metrics=[],
        failed=totals.failed,
        samples=totals.samples,
        specification={
            "display_name": name,
            "task": task.to_json(),
            "config": {source: {"location": location.name}},
            "run_config": {},
            "evaluated_entity": dataset_entity(key, name),
        },
        execution={
            "runtime": float(max(seconds) - min(seconds)),
            "started_at": min(seconds),
            "ended_at": max(seconds),
        },
        damage=damage,
    )
