"""Reader of raw spans in OTLP/JSON, in the output of SDKs and in exports of Phoenix.

OTLP/JSON has ids in hexadecimal, times in nanoseconds as text, and typed values
(<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>). Some writers use protobuf's own JSON
with ids in base64. Both forms are supported.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_formats.traces.assembling import nanoseconds
from aigo_formats.traces.attributes import mapping
from aigo_formats.traces.documents import ReadContext

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")
_LATEST = 253_402_300_799 * 1_000_000_000


@dataclass
class RawSpan:
    """Span as in its file."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: int | None
    """Start in nanoseconds since 1970. The end has the same unit."""
    end: int | None
    attributes: dict[str, Any]
    is_error: bool
    status: str
    """Error message."""
    events: list[RawEvent] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    resource: dict[str, Any] = field(default_factory=dict)
    kind: str | None = None
    """OpenInference kind, if the file stores it outside the attributes."""


@dataclass
class RawEvent:
    """Event in a span."""

    name: str
    time: int | None
    attributes: dict[str, Any]


def raw_spans(values: Iterable[Any], file: Path, reading: ReadContext) -> list[RawSpan]:
    """Return the spans of a file's values. Other values are damage."""
    spans: list[RawSpan] = []
    logs: list[tuple[str | None, RawEvent]] = []
    for value in values:
        for span in _spans_of(value, logs, 0):
            raw = _raw(*span)
            if isinstance(raw, str):
                reading.damaged(file, raw)
            else:
                spans.append(raw)
    by_id = {span.span_id: span for span in spans}
    for key, event in logs:
        if key in by_id:
            by_id[key].events.append(event)
        else:
            reading.loss.dropped["log record without a span in the file"] += 1
    reading.bounds.check_count("spans", len(spans), 0, "the file")
    return spans


_Found = tuple[Any, dict[str, Any], dict[str, Any]]


def _spans_of(value: Any, logs: list[tuple[str | None, RawEvent]], depth: int) -> Iterator[_Found]:
    """Yield all spans in a document, each with its resource and scope."""
    if isinstance(value, list):
        for part in value:
            yield from _spans_of(part, logs, depth)
        return
    if not isinstance(value, dict) or depth > 4:
        yield value, {}, {}
        return
    batches = next(
        (value[n] for n in ("resourceSpans", "resource_spans", "batches") if isinstance(value.get(n), list)),
        None,
    )
    records = next(
        (value[n] for n in ("resourceLogs", "resource_logs") if isinstance(value.get(n), list)), None
    )
    if records is not None:
        logs += _log_records(records)
    if batches is not None:
        for batch in batches:
            yield from _of_batch(batch)
    elif records is None:
        inner = next(
            (value[n] for n in ("data", "spans", "traces") if isinstance(value.get(n), list | dict)), None
        )
        if isinstance(value.get("context.trace_id"), dict):
            yield from ((row, {}, {}) for row in _rows(value))
        elif inner is not None and "name" not in value:
            yield from _spans_of(inner, logs, depth + 1)
        else:
            yield value, {}, {}


def _rows(columns: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table that is stored by column, as in pandas."""
    for key in columns["context.trace_id"]:
        yield {name: column.get(key) for name, column in columns.items() if isinstance(column, dict)}


def _of_batch(batch: Any) -> Iterator[_Found]:
    if not isinstance(batch, dict):
        yield batch, {}, {}
        return
    resource = batch.get("resource")
    identity = attributes_of(resource.get("attributes")) if isinstance(resource, dict) else {}
    names = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
    for scoped in next((batch[n] for n in names if isinstance(batch.get(n), list)), []):
        if not isinstance(scoped, dict):
            yield scoped, {}, {}
            continue
        scope = scoped.get("scope") or scoped.get("instrumentationLibrary") or {}
        spans = scoped.get("spans")
        for span in spans if isinstance(spans, list) else []:
            yield span, identity, scope if isinstance(scope, dict) else {}


def _log_records(batches: list[Any]) -> Iterator[tuple[str | None, RawEvent]]:
    """Yield events that were sent as log records, with the ids of their spans."""
    for batch in batches:
        for scoped in _list(batch, "scopeLogs", "scope_logs"):
            for record in _list(scoped, "logRecords", "log_records"):
                if not isinstance(record, dict):
                    continue
                attributes = attributes_of(record.get("attributes"))
                name = (
                    record.get("eventName") or record.get("event_name") or attributes.pop("event.name", None)
                )
                body = any_value(record.get("body"))
                if isinstance(body, dict):
                    attributes = {**attributes, **body}
                elif body is not None:
                    attributes["body"] = body
                time = record.get("timeUnixNano") or record.get("observedTimeUnixNano")
                event = RawEvent(name if isinstance(name, str) else "log", time_of(time), attributes)
                yield span_id_of(record.get("spanId") or record.get("span_id")), event


def _list(value: Any, *names: str) -> list[Any]:
    if not isinstance(value, dict):
        return []
    return next((value[name] for name in names if isinstance(value.get(name), list)), [])


_TIMES = (
    ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"),
    ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"),
)
_USED = frozenset(
    {"traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id", "parent_id", "parentId",
     "name", "context", "attributes", "events", "status", "status_code", "status_message", "span_kind",
     "resource",
     "context.trace_id", "context.span_id", "statusCode", "statusMessage", "spanKind",
     *_TIMES[0], *_TIMES[1]}
)  # fmt: skip


def _raw(span: Any, resource: dict[str, Any], scope: dict[str, Any]) -> RawSpan | str:
    """Return a span, or the reason why it is not valid."""
    if not isinstance(span, dict):
        return f"found a {type(span).__name__}, expected a span"
    context = mapping(span.get("context"))
    trace_id = _first(span, "traceId", "trace_id", "context.trace_id") or _first(
        context, "trace_id", "traceId"
    )
    identity = _first(span, "spanId", "span_id", "context.span_id") or _first(context, "span_id", "spanId")
    trace_key, span_key = span_id_of(trace_id), span_id_of(identity)
    if trace_key is None or span_key is None:
        missing = "trace" if trace_key is None else "span"
        return f"a span named {str(span.get('name'))[:60]!r} has no {missing} id"
    attributes = attributes_of(span.get("attributes"))
    attributes |= {
        name.removeprefix("attributes."): value
        for name, value in span.items()
        if name.startswith("attributes.") and value is not None and not _is_nan(value)
    }
    is_error, status = _status(span)
    start, end = (
        time_of(next((span[n] for n in names if span.get(n) is not None), None)) for names in _TIMES
    )
    notes = {
        name: value
        for name, value in span.items()
        if name not in _USED and not name.startswith("attributes.") and value not in (None, [], {}, "", 0)
    }
    if scope.get("name"):
        notes["scope"] = {name: value for name, value in scope.items() if isinstance(value, str)}
    kind = next((v for n in ("span_kind", "spanKind") if isinstance(v := span.get(n), str)), None)
    own_resource = span.get("resource")
    if isinstance(own_resource, dict):
        resource = attributes_of(own_resource.get("attributes"))
    parent = _first(span, "parentSpanId", "parent_span_id", "parent_id", "parentId")
    return RawSpan(
        trace_key, span_key, span_id_of(parent), str(span.get("name") or ""), start, end, attributes,
        is_error, status, _events(span.get("events")), notes, resource, kind,
    )  # fmt: skip


def _first(value: dict[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if value.get(name) not in (None, "")), None)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _status(span: dict[str, Any]) -> tuple[bool, str]:
    status = span.get("status")
    if isinstance(status, dict):
        code, text = (
            status.get("code", status.get("status_code")),
            status.get("message", status.get("description")),
        )
    else:
        code = span.get("status_code", span.get("statusCode", status))
        text = span.get("status_message", span.get("statusMessage"))
    is_error = code == 2 or (isinstance(code, str) and code.upper().endswith("ERROR"))
    return is_error, text if isinstance(text, str) else ""


def _events(listed: Any) -> list[RawEvent]:
    events = []
    for event in listed if isinstance(listed, list) else []:
        if isinstance(event, dict):
            time = next(
                (event[n] for n in ("timeUnixNano", "time_unix_nano", "timestamp", "time") if n in event),
                None,
            )
            events.append(
                RawEvent(
                    str(event.get("name") or "event"), time_of(time), attributes_of(event.get("attributes"))
                )
            )
    return events


def span_id_of(value: Any) -> str | None:
    """Return an id in hexadecimal from any encoding; `None` if missing."""
    if not isinstance(value, str) or not value or len(value) > 200:
        return None
    if (match := _HEX.fullmatch(value)) is not None:
        key = match[1].lower()
        return key if key.strip("0") else None
    if len(value) in (12, 24) and value.endswith("="):
        try:
            raw = base64.b64decode(value, validate=True)
        except binascii.Error:
            return value
        return raw.hex() if any(raw) else None
    return value


def time_of(value: Any) -> int | None:
    """Convert a time to nanoseconds since 1970.

    The time is ISO text, or a number or numeric text in any unit from nanoseconds to seconds. pandas writes
    milliseconds.
    """
    if isinstance(value, str):
        if not value.isdecimal() or len(value) > 20:
            return nanoseconds(value)
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    if value < 10**8:
        return None
    # The magnitude of a time in this century shows its unit.
    for limit, factor in ((10**11, 10**9), (10**14, 10**6), (10**17, 1000)):
        if value < limit:
            value *= factor
            break
    return value if value <= _LATEST else None


def attributes_of(listed: Any) -> dict[str, Any]:
    """Return attributes as a mapping, from a list of keys and values or from a mapping."""
    if isinstance(listed, dict):
        return {str(name): value for name, value in listed.items() if value is not None}
    attributes: dict[str, Any] = {}
    for pair in listed if isinstance(listed, list) else []:
        if isinstance(pair, dict) and isinstance(pair.get("key"), str):
            value = any_value(pair.get("value"))
            if value is not None:
                attributes[pair["key"]] = value
    return attributes


def any_value(value: Any) -> Any:
    """Return the plain value of a typed value."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, content),) = value.items()
    match kind:
        case "stringValue" | "string_value" | "boolValue" | "bool_value" | "doubleValue" | "double_value":
            return content
        case "intValue" | "int_value":
            is_text = isinstance(content, str) and re.fullmatch(r"-?\d{1,19}", content)
            return int(content) if is_text else content
        case "bytesValue" | "bytes_value":
            return content
        case "arrayValue" | "array_value":
            return [any_value(part) for part in _list(content, "values")]
        case "kvlistValue" | "kvlist_value":
            return attributes_of(_list(content, "values"))
    return value
