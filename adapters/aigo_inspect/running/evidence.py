"""Evidence from the log of an AI GO run. Reading it needs only the file, without Inspect and without the
task.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    ModelCallEvent,
    SolverOutput,
    SolverTrace,
    TaskResultError,
    TaskResultErrorStage,
    Trace,
    TraceItem,
    TraceMetadata,
)
from aigo_bridge.engine.protocol import Evidence, Execution
from aigo_bridge.errors import EvidenceError
from aigo_bridge.execution.codec import Json, exchanges, first_trace, scorers_of, solved_records
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.plan.logged_plan import logged_plan
from aigo_bridge.plan.outline import TaskOutline
from aigo_bridge.plan.plan import Sample
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import NO_REDACTION
from aigo_bridge.results.counts import CANCELLED, RUNNING
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.text.plurals import plural
from aigo_inspect.logs.parsing import running_time, utc
from aigo_inspect.logs.reader import RawSample, open_log
from aigo_inspect.logs.shapes import HEADER_KEY
from aigo_inspect.mapping.samples import UNFINISHED_TEXTS
from aigo_inspect.mapping.traces import DirectIOs, MappedSample, direct_ios, map_raw
from aigo_inspect.running.codec import load_stored, name_values, numbers_in, outcomes_of, solution_of

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
        with open_log(path, bounds=bounds, redaction=redaction) as log:
            for sample in log.samples(order="sample"):
                yield from trial_records(sample, plan.outline, header)
            if log.damage:
                parts = "; ".join(str(part) for part in log.damage[:3])
                raise EvidenceError(
                    f"{str(path)!r}: {plural(len(log.damage), 'part')} cannot be read: {parts}",
                    code=Code.DAMAGED_LOG,
                )

    return Evidence(plan, execution_of(header, summaries), _models(spec), trials, numbers)


def trial_records(raw: RawSample, outline: TaskOutline, header: Mapping[str, Any]) -> list[TrialRecord]:
    """Return the records of a sample: one, or one for each row of its post-processor."""
    # Taken before the conversion to JSON, which replaces NaN by a text.
    row = raw.data.get("metadata") or {}
    stored = load_stored(raw.data)
    name_values(raw.data.get("events") or [])
    mapped = map_raw(raw, LossReport(), header=header)
    sample, ios = mapped.fields, direct_ios(mapped)
    trace = _trace(mapped) if outline.entity == "model" else None
    errors = tuple(_sample_errors(sample, stored, outline))
    solution = solution_of(stored, Sample(raw.id, row))
    index = raw.epoch - 1
    if trace is not None and solution is None:
        trace.items = _asked(trace)
        solver = SolverTrace(trace=trace, raw_outputs=[], direct_ios=exchanges(ios.solver))
        return [TrialRecord(raw.id, index, row, solver, (), errors)]
    if trace is not None and solution is not None and not solution.absent:
        has_rows = "rows" in stored and bool(solution.rows)
        _add_run(solution.rows[0].output if has_rows else solution.output, trace, ios)

    def results(key: str, row_id: str | None) -> Iterator[tuple[Score | SampleFailure, list[Json]]]:
        scores: Mapping[str, Any] = sample.get("scores") or {}
        result = outcomes_of(scores[key]).get(row_id) if key in scores else _limited(sample)
        if result is not None:
            yield result, ios.scorers.get((key, row_id), [])

    return solved_records(
        Sample(raw.id, row),
        index,
        solution,
        outline,
        results,
        has_rows="rows" in stored,
        errors=errors,
    )


def _trace(mapped: MappedSample) -> Trace:
    """Return the complete trace, without the empty answers that Inspect adds for failed calls."""
    trace = mapped.trace().typed()
    for event in trace.events or []:
        if isinstance(event, ModelCallEvent) and event.error is not None and event.usage is None:
            event.output_items = []
    return trace


def _asked(trace: Trace) -> list[TraceItem]:
    """Return the conversation before a solver failed, from the last model call. Inspect's input may only be
    the dataset row.
    """
    calls = [event for event in trace.events or [] if isinstance(event, ModelCallEvent)]
    return [*calls[-1].input_context, *calls[-1].output_items] if calls else []


def _add_run(output: SolverOutput | None, trace: Trace, ios: DirectIOs) -> None:
    solver = first_trace(output)
    if solver is None:
        return
    if solver.trace.events:
        # Recorded before this run, by an earlier run or by the author of the dataset.
        solver.trace.events = [*solver.trace.events, *(trace.events or [])]
    else:
        trace.items = solver.trace.items
        if solver.trace.metadata is not None and solver.trace.metadata.extra:
            # Notes of the solver, for example the files that an agent wrote.
            trace.metadata = trace.metadata or TraceMetadata()
            trace.metadata.extra = {**(trace.metadata.extra or {}), **solver.trace.metadata.extra}
        solver.trace = trace
    solver.direct_ios = exchanges(ios.solver) or solver.direct_ios


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
    started = _seconds(begun) or 0.0
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


def _seconds(text: object) -> float | None:
    """Convert an ISO time to Unix seconds. Logs of killed runs contain empty texts."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _sum(usage: Mapping[str, Any], *names: str) -> int:
    return sum(value for name in names if isinstance(value := usage.get(name), int))
