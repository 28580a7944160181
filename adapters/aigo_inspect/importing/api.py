"""Python API that converts Inspect logs to AI GO evidence in memory.

The module `importing` writes files instead, without building objects.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SampleEvidence, TaskResultLog, Trace, make_explicit
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import NO_REDACTION
from aigo_bridge.text.json_text import without_non_finite
from aigo_bridge.text.plurals import plural
from aigo_inspect.exporting.log import carried_frame, carried_samples, carries_evidence
from aigo_inspect.importing.attempts import superseded
from aigo_inspect.importing.frame import LogTotals, frame_of
from aigo_inspect.logs.parsing import parse_json
from aigo_inspect.logs.reader import InspectLogReader, RawSample, open_log
from aigo_inspect.logs.sources import find_logs
from aigo_inspect.mapping.events import EventChoice
from aigo_inspect.mapping.samples import grouped, read_trials, typed_sample
from aigo_inspect.mapping.scores import REDUCED, aggregated_scores
from aigo_inspect.mapping.traces import trace_of

__all__ = ["import_log", "iter_samples", "open_log", "trace_from_sample", "trace_of"]


def import_log(
    location: str | os.PathLike[str],
    *,
    keep: EventChoice = "default",
    bounds: Bounds = DEFAULT_BOUNDS,
    redaction: Redactor = NO_REDACTION,
    loss: LossReport | None = None,
) -> TaskResultLog:
    """Read a whole Inspect log as AI GO evidence.

    The evidence is held in memory. For large logs, see `iter_samples` and `importing.import_file`.

    Args:
        location: path or fsspec URL of an `.eval` or `.json` log, of any Inspect version, finished or
            unfinished.
        keep: events to keep in the traces.
        bounds: limits on the resources that a log may use.
        redaction: secrets to remove.
        loss: collects the counts of kept, changed and dropped values.

    Raises:
        EvidenceError: the log cannot be read at all. For unreadable samples, the result has the status
            `failure`, and its errors name them.
    """
    loss = loss if loss is not None else LossReport()
    totals = LogTotals()
    with open_log(location, bounds=bounds, redaction=redaction) as log:
        if carries_evidence(log):
            try:
                carried = carried_frame(log)
                carried["evidence"] = {**(carried["evidence"] or {}), "samples": list(carried_samples(log))}
                return TaskResultLog.model_validate(carried)
            except EvidenceError as error:
                # Inspect's own members can still be read.
                log.note("_aigo/", error)
        samples = list(_samples(log, keep, loss, totals))
        frame = frame_of(log.header, totals, log.damage, loss, superseded(log))
    frame["evidence"]["samples"] = samples
    return TaskResultLog.model_validate(frame)


def iter_samples(
    location: str | os.PathLike[str],
    *,
    keep: EventChoice = "default",
    bounds: Bounds = DEFAULT_BOUNDS,
    redaction: Redactor = NO_REDACTION,
    loss: LossReport | None = None,
) -> Iterator[SampleEvidence]:
    """Yield the samples of an Inspect log one at a time, with their epochs as trials. The arguments are the
    same as for `import_log`.

    Samples that cannot be read are skipped. Use `import_log` to get their errors.
    """
    with open_log(location, bounds=bounds, redaction=redaction) as log:
        if carries_evidence(log):
            yield from map(SampleEvidence.model_validate, carried_samples(log))
            return
        yield from _samples(log, keep, loss if loss is not None else LossReport(), LogTotals())


def _samples(
    log: InspectLogReader, keep: EventChoice, loss: LossReport, totals: LogTotals
) -> Iterator[SampleEvidence]:
    aggregated = aggregated_scores(log.reductions(), loss) if log.has_epochs else {}
    for group in grouped(read_trials(log, keep=keep, loss=loss)):
        for trial in group:
            totals.count_trial(trial, first=trial is group[0])
        reduced = aggregated.get(str(group[0].sample_id))
        if reduced:
            loss.kept[REDUCED] += len(reduced)
        yield typed_sample(group, reduced)


def trace_from_sample(sample: Any, *, keep: EventChoice = "default") -> Trace:
    """Convert a sample in memory to a trace.

    Args:
        sample: a `RawSample`; an `EvalSample` (object or dictionary); or a list of Inspect events from the
            transcript of a running sample. Live objects are copied and never changed.
        keep: events to keep.
    """
    if isinstance(sample, RawSample):
        return trace_of(sample, keep=keep)
    return trace_of(_as_sample(sample), keep=keep)


def _as_sample(given: Any) -> dict[str, Any]:
    """Return a sample dictionary that may be changed, from an `EvalSample` object or dictionary or from a
    list of events.
    """
    if isinstance(given, BaseModel):
        sample = _dump(given)
        return sample if isinstance(sample, dict) else {}
    if isinstance(given, dict):
        copied: dict[str, Any] = _copy(given)
        return copied
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return {"events": [_dump(event) if isinstance(event, BaseModel) else _copy(event) for event in given]}
    raise TypeError(f"expected a sample or a list of events, found {type(given).__name__}")


def _dump(model: BaseModel) -> Any:
    # Converted through JSON like a written log, so that values without a JSON form become null.
    text = model.model_dump_json(exclude_none=True, fallback=_plain, warnings=False)
    parsed = parse_json(text.encode(), type(model).__name__)
    return _copy(parsed.value) if parsed.non_finite else parsed.value


def _copy(given: Any) -> Any:
    """Return a copy in which numbers that are not finite are spelled out as text, as in a log."""
    return without_non_finite(given)[0]


def _plain(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return None


# Rows of a dataset


def trace_rows(location: str) -> Iterator[Mapping[str, Any]]:
    """Yield one row for each sample and epoch of a log, or of all logs in a folder, in order.

    These are the rows of `source: {type: inspect_ai}`. The platform converts logs on its server, so the
    column names are aigo-bridge's own. They follow the names in the platform's transcripts if the meaning is
    the same:

    - `sample_id`: id of the sample
    - `trace`: trace of the main agent
    - `input`, `target`: texts
    - `scores`: scorer → value
    - `metadata`: metadata of the sample
    - `model`: name of the model
    - `task_set`: name of the task
    - `task_repeat`: number of the epoch
    - `error`, `limit`: error message and limit type
    - `source_uri`: location of the log

    Raises:
        UsageError: the location does not name a log.
        EvidenceError: a log or sample cannot be read. Missing rows would change the metrics.
    """
    for log in find_logs([location]):
        with open_log(log) as reader:
            spec = reader.header.get("eval") or {}
            epochs = reader.has_epochs
            for sample in reader.samples(order="sample"):
                yield _row(sample, spec, log, several_epochs=epochs)
            if reader.damage:
                parts = "; ".join(str(part) for part in reader.damage[:3])
                raise EvidenceError(
                    f"{log!r}: {plural(len(reader.damage), 'part')} cannot be read: {parts}",
                    code=Code.DAMAGED_LOG,
                )


def _row(sample: RawSample, spec: Mapping[str, Any], log: str, *, several_epochs: bool) -> dict[str, Any]:
    data = sample.data
    trace = make_explicit(trace_from_sample(sample)).model_dump(mode="json")
    return {
        "sample_id": f"{sample.id}/{sample.epoch}" if several_epochs else sample.id,
        "trace": trace,
        "input": _text(data.get("input")),
        "target": _text(data.get("target")),
        "scores": {name: (score or {}).get("value") for name, score in (data.get("scores") or {}).items()},
        "metadata": data.get("metadata") or {},
        "model": spec.get("model"),
        "task_set": spec.get("task"),
        "task_repeat": sample.epoch,
        "error": (data.get("error") or {}).get("message"),
        "limit": (data.get("limit") or {}).get("type"),
        "source_uri": log,
    }


def _text(value: Any) -> str | None:
    """Return the input or target of a sample as text. Messages become lines with role and content."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    if isinstance(value, list) and all(isinstance(part, dict) and "role" in part for part in value):
        return "\n".join(f"{part['role']}: {_content(part.get('content'))}" for part in value)
    return json.dumps(value, ensure_ascii=False)


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")
