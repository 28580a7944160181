"""Evidence from the log of an AI GO run. Reading it needs only the file, without Inspect and without the
task.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.json import decode, encode

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    GroupedSolverTrace,
    SolverTrace,
    TaskResultError,
    TaskResultErrorStage,
    Trace,
    make_explicit,
)
from aigo_bridge.engine.protocol import Evidence, Execution
from aigo_bridge.errors import EvidenceError
from aigo_bridge.execution.codec import Json, scorers_of, solved_records
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.plan.logged_plan import logged_plan
from aigo_bridge.plan.outline import TaskOutline
from aigo_bridge.plan.plan import Sample
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import NO_REDACTION
from aigo_bridge.results.counts import CANCELLED, RUNNING
from aigo_bridge.results.records import PlainOutput, TrialRecord
from aigo_bridge.results.stop_reasons import outputs_of
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.text.plurals import plural
from aigo_inspect.logs.index import SampleRef
from aigo_inspect.logs.parsing import parse_time, running_time, utc
from aigo_inspect.logs.reader import InspectLogReader, open_log
from aigo_inspect.logs.shapes import HEADER_KEY
from aigo_inspect.mapping.lenient import sample_from
from aigo_inspect.mapping.records import Constants, SampleRecord, StatePatch, StorePatch
from aigo_inspect.mapping.samples import UNFINISHED_TEXTS, read_record
from aigo_inspect.mapping.traces import DirectIOs, MappedSample, direct_ios
from aigo_inspect.running.codec import (
    load_stored,
    numbers_in,
    outcomes_of,
    solution_of,
    with_name,
)

NO_MODEL = "none/none"
"""Inspect's model name for a run without a model."""

_SCORING_OVERRUN = re.compile(r"Time limit exceeded\. limit: ([\d.]+) second")
"""Inspect's message for a sample whose scorers exceeded the time limit. A slow solver is recorded as a limit,
not as an error."""

TRUSTED = Bounds(ratio=math.inf)
"""Bounds for the log of a run that has just ended. Repetitive model output can compress as well as a zip
bomb."""


def read(path: Path, *, bounds: Bounds = TRUSTED, redaction: Redactor = NO_REDACTION) -> Evidence:
    """Return the evidence in a log that aigo-bridge wrote, without the secrets that `redaction` finds.

    Raises:
        EvidenceError: the file is not an Inspect log, or was not written by aigo-bridge. Iterating over the
            trials raises it if a part of the log cannot be read, so that samples are never lost silently.
    """
    with open_log(path, bounds=bounds, redaction=redaction) as log:
        header = log.header
        stats = header.get("stats") or {}
        # Times in the header are whole seconds. For a short run, the times of the samples are more precise.
        is_quick = stats.get("started_at") == stats.get("completed_at")
        summaries = log.summaries() if is_quick else []
        numbers = numbers_in(log)
    spec = header.get("eval") or {}
    carried = (spec.get("metadata") or {}).get(HEADER_KEY)
    if not isinstance(carried, dict):
        raise EvidenceError(
            f"{str(path)!r} was not written by aigo-bridge: it contains no plan", code=Code.LOG_WITHOUT_PLAN
        )
    plan = logged_plan(carried)

    def trials() -> Iterator[TrialRecord]:
        constants, loss = Constants(), LossReport()
        with open_log(path, bounds=bounds, redaction=redaction) as log:
            samples = log.each(log.sample_refs("sample"), partial(_logged_sample, log, constants))
            for record, stored, size in samples:
                mapped = MappedSample(record, loss, size=size, bounds=bounds, header=header)
                yield from trial_records(mapped, stored, plan.outline)
            if log.damage:
                parts = "; ".join(str(part) for part in log.damage[:3])
                raise EvidenceError(
                    f"{str(path)!r}: {plural(len(log.damage), 'part')} cannot be read: {parts}",
                    code=Code.DAMAGED_LOG,
                )

    return Evidence(plan, execution_of(header, summaries), _models(spec), trials, numbers)


def _logged_sample(
    log: InspectLogReader, constants: Constants, ref: SampleRef
) -> tuple[SampleRecord, Json, int]:
    """Return a sample, the stored result of its solver, and the size of its JSON in bytes."""
    data = log.read_bytes(ref)
    record = None if data is None else read_record(log, ref, data, constants)
    if record is None:
        raw = log.parse_sample(ref, data)
        # The row may contain NaN, which the conversion replaces by a text.
        stored, row = load_stored(raw.data), raw.data.get("metadata")
        record = sample_from(raw, LossReport())
        record.fields["metadata"] = row
        return record, stored, raw.size
    patches = (event for event in record.events if isinstance(event, StatePatch | StorePatch))
    changes = (decode(encode(event)) for event in patches)  # read only if other fields lack the result
    fields = {**record.fields, "events": changes, "attachments": record.attachments}
    return record, load_stored(fields), log.sample_size(ref)


def trial_records(mapped: MappedSample, stored: Json, outline: TaskOutline) -> list[TrialRecord]:
    """Return the records of a sample: one, or one for each row of its post-processor."""
    for event in mapped.events:
        if event["type"] == "custom" and event["name"] == "score":
            event["data"]["score"] = with_name(event["data"].get("score"))
    sample, ios = mapped.fields, direct_ios(mapped)
    row, index = sample.get("metadata") or {}, sample["epoch"] - 1
    errors = tuple(_sample_errors(sample, stored, outline))
    planned = Sample(sample["id"], row)
    solution = solution_of(stored, planned)
    if outline.entity == "model" and solution is None:
        failed = SolverTrace(trace=Trace.from_items([]), raw_outputs=[], direct_ios=[])
        output = _with_run(failed, mapped, ios, is_failed=True)
        return [TrialRecord(planned.id, index, row, output, (), errors)]

    def results(key: str, row_id: str | None) -> Iterator[tuple[Score | SampleFailure, list[Json]]]:
        scores: Mapping[str, Any] = sample.get("scores") or {}
        result = outcomes_of(scores[key]).get(row_id) if key in scores else _limited(sample)
        if result is not None:
            yield result, ios.scorers.get((key, row_id), [])

    has_rows = "rows" in stored
    records = solved_records(planned, index, solution, outline, results, has_rows=has_rows, errors=errors)
    if records and isinstance(solved := records[0].output, SolverTrace | GroupedSolverTrace):
        records[0] = replace(records[0], output=_with_run(solved, mapped, ios))
    return records


def _with_run(
    output: SolverTrace | GroupedSolverTrace, mapped: MappedSample, ios: DirectIOs, *, is_failed: bool = False
) -> PlainOutput | SolverTrace | GroupedSolverTrace:
    """Return the output of a solver with the events of the run, which are in the first trace of a group.

    With `is_failed`, the items are the conversation before the solver failed, from the last model call.
    Inspect's input may only be the dataset row.
    """
    run = mapped.trace().plain()
    calls = [event for event in run["events"] if event["type"] == "model_call_event"]
    for call in calls:
        if "error" in call and "usage" not in call:
            call["output_items"] = []  # Inspect adds an empty answer to a failed call.
    data: Json = make_explicit(output).model_dump(mode="json")
    solver = outputs_of({"solver": {"output": data}})[0]
    trace = solver["trace"]
    if is_failed:
        trace["items"] = [
            item for call in calls[-1:] for item in call["input_context"] + call["output_items"]
        ]
    if trace.get("events"):
        # Recorded before this run, by an earlier run or by the author of the dataset.
        trace["events"] += run["events"]
    else:
        # Notes of the solver, for example the files that an agent wrote.
        run["metadata"]["extra"] |= (trace.get("metadata") or {}).get("extra") or {}
        solver["trace"] = {**run, "items": trace["items"]}
    solver["direct_ios"] = ios.solver or solver.get("direct_ios", [])
    # Unusual data, which is in the log of another release, must become valid.
    return PlainOutput(data, output) if mapped.is_usual else type(output).model_validate(data)


def _limited(sample: Mapping[str, Any]) -> SampleFailure | None:
    """Return the limit that ended a sample; `None` without a limit."""
    limit = sample.get("limit")
    if not isinstance(limit, dict):
        return None
    kind, value = limit.get("type"), limit.get("limit")
    unit = " s" if kind in ("time", "working") else ""
    amount = f" ({value:g}{unit})" if isinstance(value, int | float) else ""
    return SampleFailure("score", "LimitExceeded", f"the {kind} limit{amount} of the sample was exceeded")


def _sample_errors(
    sample: Mapping[str, Any], stored: Mapping[str, Any], outline: TaskOutline
) -> list[TaskResultError]:
    error = sample.get("error")
    if not error:
        if "output" in stored or outline.entity != "model":
            return []
        limit = _limited(sample)
        if limit is None:
            limit = SampleFailure(
                "solver", "MissingOutput", "the log does not contain the solver output of the sample"
            )
        return [replace(limit, stage="solver").to_error()]
    if "failure" in stored:
        return [SampleFailure.from_json(stored["failure"]).to_error()]
    message = str(error.get("message") or "the sample failed without a message")
    if message.startswith(f"{RUNNING}("):
        message = UNFINISHED_TEXTS[RUNNING]
        return [TaskResultError(error_type=RUNNING, message=message, stage=TaskResultErrorStage.solver)]
    if message.startswith("CancelledError("):
        # The text in the brackets is internal to Inspect.
        message = "interrupted before it was finished"
        return [TaskResultError(error_type=CANCELLED, message=message, stage=TaskResultErrorStage.solver)]
    overrun = _SCORING_OVERRUN.match(message)
    if overrun is not None and ("output" in stored or outline.entity != "model"):
        return [_overrun(sample, outline, float(overrun[1]))]
    return [TaskResultError(error_type="EngineError", message=message, stage=TaskResultErrorStage.solver)]


def _overrun(sample: Mapping[str, Any], outline: TaskOutline, seconds: float) -> TaskResultError:
    """Return the error for scoring that exceeded its time limit. Inspect allows half of the sample's time for
    scoring, and otherwise marks the whole sample as failed.
    """
    scores: Mapping[str, Any] = sample.get("scores") or {}
    key = next((key for key, _, _ in scorers_of(outline) if key not in scores), None)
    message = f"the time limit of the sample was exceeded; scoring may take half of it ({seconds:g} s)"
    failure = SampleFailure("metric" if outline.entity == "system" else "score", "LimitExceeded", message)
    return failure.to_error(None if key is None or outline.entity == "system" else f"scorer {key!r}")


def _models(spec: Mapping[str, Any]) -> dict[str, str]:
    models = {
        key: str((config or {}).get("model")) for key, config in (spec.get("model_roles") or {}).items()
    }
    # Inspect names a model even if no model was called.
    evaluated = spec.get("model") not in (None, "", NO_MODEL)
    return {"": str(spec["model"]), **models} if evaluated else models


def execution_of(header: Mapping[str, Any], summaries: Sequence[Mapping[str, Any]] = ()) -> Execution:
    """Return the times, status and usage of a run from its log header. Summaries of samples provide times
    below a second.
    """
    spec, stats = header.get("eval") or {}, header.get("stats") or {}
    begun, ended = stats.get("started_at") or spec.get("created"), stats.get("completed_at")
    started = start.timestamp() if (start := parse_time(begun)) else 0.0
    earliest = min((time for summary in summaries if (time := utc(summary.get("started_at")))), default=None)
    latest = max((time for summary in summaries if (time := utc(summary.get("completed_at")))), default=None)
    runtime = running_time(begun, ended, earliest, latest) if ended else 0.0
    error = header.get("error") or {}
    return Execution(
        status=str(header.get("status") or "started"),
        started_at=started,
        ended_at=started + runtime,
        error=error.get("message"),
        model_usage={
            name: {
                "num_prompt_tokens": _sum(
                    usage, "input_tokens", "input_tokens_cache_read", "input_tokens_cache_write"
                ),
                "num_completion_tokens": _sum(usage, "output_tokens"),
            }
            for name, usage in (stats.get("model_usage") or {}).items()
        },
    )


def _sum(usage: Mapping[str, Any], *names: str) -> int:
    return sum(value for name in names if isinstance(value := usage.get(name), int))
