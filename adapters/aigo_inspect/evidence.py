"""A log of our own run, read back as evidence: from the file alone, without Inspect, without the task file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import (
    DirectModelIO,
    GroupedSolverTrace,
    ModelCallEvent,
    ScoresData,
    SolverOutput,
    SolverTrace,
    TaskResultError,
    TaskResultErrorStage,
    Trace,
    TraceItem,
)
from aigo_bridge.engine import Evidence, Execution
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import Bounds
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.redaction import NO_REDACTION, Redaction
from aigo_bridge.plan import Sample, TaskPlan, plan_from_header
from aigo_bridge.program import Failure
from aigo_bridge.results.assembling import scores_data
from aigo_bridge.results.trials import TrialRecord
from aigo_bridge.scoring import scorer_keys
from aigo_bridge.system_tasks import SCORER_KEY
from aigo_inspect.clock import running_time, utc
from aigo_inspect.direct_ios import DirectIOs, direct_ios
from aigo_inspect.keys import HEADER_KEY
from aigo_inspect.reading import RawSample, open_log
from aigo_inspect.stored import load_stored, name_values, outcomes_of, solution_of
from aigo_inspect.traces import map_trace, prepare

NO_MODEL = "none/none"
"""Inspect's name of the model that stands for none."""

_SCORING_OVERRUN = re.compile(r"Time limit exceeded\. limit: ([\d.]+) second")
"""What Inspect says of a sample whose scorers took too long; a solver that takes too long has a limit, not an error."""

TRUSTED = Bounds(ratio=math.inf)
"""Bounds for the log of a run that has just ended: a model that repeats itself compresses like a zip bomb."""


def read(path: Path, *, bounds: Bounds = TRUSTED, redaction: Redaction = NO_REDACTION) -> Evidence:
    """What a log of ours says, without what `redaction` finds.

    Raises:
        EvidenceError: the file is no Inspect log, or not one that aigo-bridge has written; while trials are read
            also when a part of it cannot be read, so that no sample goes missing silently.
    """
    with open_log(path, bounds=bounds, redaction=redaction) as log:
        header = log.header
        stats = header.get("stats") or {}
        # Times of a run are whole seconds; a quick one has the same twice, and its samples tell more.
        is_quick = stats.get("started_at") == stats.get("completed_at")
        summaries = log.summaries() if is_quick else []
    spec = header.get("eval") or {}
    carried = (spec.get("metadata") or {}).get(HEADER_KEY)
    if not isinstance(carried, dict):
        raise EvidenceError(f"{str(path)!r} was not written by aigo-bridge: it carries no plan")
    plan = plan_from_header(carried)

    def trials() -> Iterator[TrialRecord]:
        with open_log(path, bounds=bounds, redaction=redaction) as log:
            for sample in log.samples(order="sample"):
                yield from trial_records(sample, plan, header)
            if log.damage:
                parts = "; ".join(str(part) for part in log.damage[:3])
                raise EvidenceError(f"{str(path)!r}: {len(log.damage)} part(s) cannot be read: {parts}")

    return Evidence(plan, execution_of(header, summaries), _models(spec), trials)


def trial_records(raw: RawSample, plan: TaskPlan, header: Mapping[str, Any]) -> list[TrialRecord]:
    """One sample of a log of ours: one record, or one for each row that its post-processor made; none of a trial that never was."""
    # Taken before the sample is made fit for JSON: a missing value of the row is a NaN, not a text.
    row = raw.data.get("metadata") or {}
    stored = load_stored(raw.data)
    sample = prepare(raw, LossReport())
    name_values(sample.get("events") or [])
    ios = direct_ios(sample.get("events") or [])
    trace = _trace(sample, header) if plan.entity == "model" else None
    errors = tuple(_sample_errors(sample, stored, plan))
    solution = solution_of(stored, Sample(raw.id, row))
    if solution is not None and solution.absent:
        return []
    unsolved = plan.entity == "model" and solution is None

    def record(row_id: str | None, data: Mapping[str, Any], solver: SolverOutput | None) -> TrialRecord:
        scores, failures = ((), []) if unsolved else _scores(sample, plan, row_id, ios)
        return TrialRecord(
            sample_id=raw.id if row_id is None else row_id,
            index=raw.epoch - 1,
            data=data,
            solver=solver,
            scores=scores,
            errors=(*errors, *failures),
            source_id=None if row_id is None else raw.id,
        )

    if trace is None:
        return [record(None, row, None)]
    if solution is None:
        trace.items = _asked(trace)
        return [record(None, row, SolverTrace(trace=trace, raw_outputs=[], direct_ios=_typed(ios.solver)))]
    if "rows" not in stored or not solution.rows:
        return [record(None, row, _with_run(solution.output, trace, ios))]
    first, *others = solution.rows
    assert first.output is not None
    return [
        record(str(first.sample.id), first.sample.data, _with_run(first.output, trace, ios)),
        *(record(str(other.sample.id), other.sample.data, other.output) for other in others),
    ]


def _trace(sample: dict[str, Any], header: Mapping[str, Any]) -> Trace:
    """Everything that happened. Where a call has failed, Inspect puts an empty answer, which nobody has given."""
    trace = map_trace(sample, header=header).typed()
    for event in trace.events or []:
        if isinstance(event, ModelCallEvent) and event.error is not None and event.usage is None:
            event.output_items = []
    return trace


def _asked(trace: Trace) -> list[TraceItem]:
    """What was said before a solver failed: the last call's conversation. Inspect's own input is what was to be said, or the row."""
    calls = [event for event in trace.events or [] if isinstance(event, ModelCallEvent)]
    return [*calls[-1].input_context, *calls[-1].output_items] if calls else []


def _with_run(output: SolverOutput, trace: Trace, ios: DirectIOs) -> SolverOutput:
    """A solver's output with everything that happened in the run as events of its trace; of a group, the first one's.

    Events stand once: a run that gave several outputs would otherwise be told several times.
    """
    if isinstance(output, GroupedSolverTrace):
        group = output.solver_outputs
        first = group[0] if isinstance(group, list) else next(iter(group.values()))
        _with_run(first, trace, ios)
    elif isinstance(output, SolverTrace):
        if output.trace.events:
            # Recorded before this run, by another one or by whoever made the data set.
            output.trace.events = [*output.trace.events, *(trace.events or [])]
        else:
            trace.items = output.trace.items
            output.trace = trace
        output.direct_ios = _typed(ios.solver) or output.direct_ios
    return output


def _typed(ios: list[dict[str, Any]]) -> list[DirectModelIO]:
    return [DirectModelIO.model_validate(io) for io in ios]


def _scores(
    sample: dict[str, Any], plan: TaskPlan, row_id: str | None, ios: DirectIOs
) -> tuple[tuple[ScoresData, ...], list[TaskResultError]]:
    given: Mapping[str, Any] = sample.get("scores") or {}
    found: list[ScoresData] = []
    errors: list[TaskResultError] = []
    for key, purpose, display_name in _scorers(plan):
        result = outcomes_of(given[key]).get(row_id) if key in given else _limited(sample)
        if isinstance(result, Failure):
            errors.append(result.to_error(f"scorer {key!r}" if plan.entity != "system" else None))
        elif result is not None:
            calls = _typed(ios.scorers.get((key, row_id), []))
            found.append(scores_data(key, purpose, display_name, result.values, result.metadata, calls))
    return tuple(found), errors


def _limited(sample: Mapping[str, Any]) -> Failure | None:
    """The limit that ended a sample, if one did."""
    limit = sample.get("limit")
    if not isinstance(limit, dict):
        return None
    kind, value = limit.get("type"), limit.get("limit")
    unit = " s" if kind in ("time", "working") else ""
    amount = f" ({value:g}{unit})" if isinstance(value, int | float) else ""
    return Failure("score", "LimitExceeded", f"the {kind} limit{amount} of the sample was exceeded")


def _scorers(plan: TaskPlan) -> Iterator[tuple[str, str, str | None]]:
    """Key, purpose and shown name of every scorer."""
    if plan.entity == "system":
        yield SCORER_KEY, "score", None
        return
    scorers = plan.benchmark.scorers
    for scorer, key in zip(scorers, scorer_keys(scorers), strict=True):
        yield key, scorer.purpose, scorer.display_name


def _sample_errors(
    sample: Mapping[str, Any], stored: Mapping[str, Any], plan: TaskPlan
) -> list[TaskResultError]:
    error = sample.get("error")
    if not error:
        if "output" in stored or plan.entity != "model":
            return []
        limit = _limited(sample)
        if limit is None:
            limit = Failure(
                "solver", "MissingOutput", "the log does not hold what the solver made of the sample"
            )
        return [replace(limit, stage="solver").to_error()]
    if "failure" in stored:
        return [Failure.from_json(stored["failure"]).to_error()]
    message = str(error.get("message") or "the sample failed without a message")
    if message.startswith("CancelledError("):
        # What stands inside the brackets is Inspect's task bookkeeping.
        message = "interrupted before it was finished"
        return [TaskResultError(error_type="Cancelled", message=message, stage=TaskResultErrorStage.solver)]
    overrun = _SCORING_OVERRUN.match(message)
    if overrun is not None and ("output" in stored or plan.entity != "model"):
        return [_overrun(sample, plan, float(overrun[1]))]
    return [TaskResultError(error_type="EngineError", message=message, stage=TaskResultErrorStage.solver)]


def _overrun(sample: Mapping[str, Any], plan: TaskPlan, seconds: float) -> TaskResultError:
    """Inspect gives scoring half of a sample's time, and calls a sample that needs more failed as a whole."""
    given: Mapping[str, Any] = sample.get("scores") or {}
    key = next((key for key, _, _ in _scorers(plan) if key not in given), None)
    message = f"the time limit of the sample was exceeded; scoring may take half of it ({seconds:g} s)"
    failure = Failure("metric" if plan.entity == "system" else "score", "LimitExceeded", message)
    return failure.to_error(None if key is None or plan.entity == "system" else f"scorer {key!r}")


def _models(spec: Mapping[str, Any]) -> dict[str, str]:
    models = {
        key: str((config or {}).get("model")) for key, config in (spec.get("model_roles") or {}).items()
    }
    # Inspect names a model even where none is asked.
    evaluated = spec.get("model") not in (None, "", NO_MODEL)
    return {"": str(spec["model"]), **models} if evaluated else models


def execution_of(header: Mapping[str, Any], summaries: Sequence[Mapping[str, Any]] = ()) -> Execution:
    """When and how a run took place, from the header of its log; the summaries of its samples tell parts of a second."""
    spec, stats = header.get("eval") or {}, header.get("stats") or {}
    begun, ended = stats.get("started_at") or spec.get("created"), stats.get("completed_at")
    started = _seconds(begun) or 0.0
    first = min((time for each in summaries if (time := utc(each.get("started_at")))), default=None)
    last = max((time for each in summaries if (time := utc(each.get("completed_at")))), default=None)
    runtime = running_time(begun, ended, first, last) if ended else 0.0
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
    """An ISO time as Unix seconds; logs of killed runs have empty texts."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _sum(usage: Mapping[str, Any], *names: str) -> int:
    return sum(value for name in names if isinstance(value := usage.get(name), int))
