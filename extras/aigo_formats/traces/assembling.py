"""Building of a trace from events: order by spans, and derived items, times and totals.

Every event is a JSON-serializable dictionary. Information without an AI GO field is stored under the source's
name, in an event's `metadata` or the trace's `extra`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from aigo_bridge.dtypes.events import arranged
from aigo_bridge.importing.log_import import LossReport
from aigo_formats.traces.items import Item, answer_item, call_item

if TYPE_CHECKING:
    from aigo_bridge.dtypes import Trace

Event = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = 253_402_300_799 * 1_000_000_000
"""Last second of the year 9999 in nanoseconds."""


def nanoseconds(value: object) -> int | None:
    """Convert an ISO time to nanoseconds since 1970; `None` if it is not valid. The default time zone is
    UTC.
    """
    if not isinstance(value, str) or not 8 <= len(value) <= 40:
        return None
    try:
        time = datetime.fromisoformat(value)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
        since = time - _EPOCH
    except (ValueError, OverflowError):
        return None
    ns = ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
    return ns if 0 <= ns <= _LATEST else None


def iso(ns: int) -> str:
    """Convert nanoseconds since 1970 to ISO text in UTC, truncated to microseconds."""
    return (
        (_EPOCH + timedelta(microseconds=ns // 1000))
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z")
    )


def seconds(start: int | None, end: int | None) -> float | None:
    """Return the seconds between two times; `None` if one is unknown or they are in the wrong order."""
    return None if start is None or end is None or end < start else (end - start) / 1e9


def count(value: object) -> int | None:
    """Return a token count; `None` if it is not a whole number from 0."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 2**53 else None


def usage(prompt: int | None, completion: int | None) -> dict[str, int] | None:
    """Return the tokens of a call; `None` if both counts are unknown."""
    counts = {"num_completion_tokens": completion, "num_prompt_tokens": prompt}
    return {name: value for name, value in counts.items() if value is not None} or None


def total_tokens(events: Iterable[Event]) -> int | None:
    """Return the tokens of all model calls; `None` if one is unknown or the trace lacks calls."""
    total = None
    for event in events:
        if event["type"] != "model_call_event":
            continue
        used = event.get("usage") or {}
        if len(used) < 2:
            if event.get("error"):
                continue
            return None
        total = (total or 0) + sum(used.values())
    return total


def span_begin(span_id: str, name: str, kind: str | None, *, parent: str | None, time: int | None) -> Event:
    """Return the begin event of a span."""
    begin: Event = {"type": "span_begin", "id": f"{span_id}:begin", "span_id": span_id, "name": name}
    if parent is not None:
        begin["parent_span_id"] = parent
    if kind is not None:
        begin["span_type"] = kind
    return timed(begin, time)


def span_end(span_id: str, time: int | None) -> Event:
    """Return the end event of a span."""
    return timed({"type": "span_end", "id": f"{span_id}:end", "span_id": span_id}, time)


_TIME = "_ns"


def timed(event: Event, time: int | None) -> Event:
    """Set the time of an event for `ordered`."""
    if time is not None:
        event[_TIME] = time
    return event


def ordered(events: Sequence[Event], loss: LossReport) -> list[Event]:
    """Return the events depth first, with siblings ordered by time. Either all events have a time, or none.

    An event without a time gets the time of the previous event. The objects in `events` are changed.
    """
    happenings = [event for event in events if event["type"] != "span_end"]
    time = next((event[_TIME] for event in happenings if _TIME in event), None)
    has_times = time is not None
    if has_times:
        for event in happenings:
            if _TIME in event:
                time = event[_TIME]
            else:
                event[_TIME] = time
                loss.changed["event without a time: time of the previous event"] += 1
    begins = [event["span_id"] if event["type"] == "span_begin" else None for event in happenings]
    result = arranged(
        happenings,
        begins=begins,
        homes=[
            event.get("span_id") if span is None else event.get("parent_span_id")
            for span, event in zip(begins, happenings, strict=True)
        ],
        ends={event["span_id"]: event for event in events if event["type"] == "span_end"},
        times=[event[_TIME] for event in happenings] if has_times else None,
    )
    for event in events:
        time = event.pop(_TIME, None)
        if time is not None and has_times:
            event["timestamp"] = iso(time)
    return result


def mend_parents(events: Iterable[Event], loss: LossReport) -> None:
    """Move spans that contain themselves to the top, because they would be lost with their content."""
    begins = {event["span_id"]: event for event in events if event["type"] == "span_begin"}
    settled: set[str] = set()
    for span_id in begins:
        path: set[str] = set()
        current: str | None = span_id
        while current is not None and current in begins and current not in settled:
            if current in path:
                begins[current].pop("parent_span_id", None)
                loss.changed["span inside itself: moved to the top"] += 1
                break
            path.add(current)
            current = begins[current].get("parent_span_id")
        settled |= path


def items_of_messages(events: Iterable[Event], span_id: str | None) -> list[Item]:
    """Return the items of a span whose messages are events. They equal `Trace.from_events` but have stable
    ids.
    """
    items: list[Item] = []
    for event in events:
        if event.get("span_id") != span_id:
            continue
        if event["type"] == "message_event":
            items.append(event["item"])
        elif event["type"] == "function_call_event":
            items.append(
                {
                    **call_item(event["call_id"], event["function"], event["arguments"]),
                    "status": event["status"],
                }
            )
            if event["status"] == "completed":
                items.append(answer_item(event["call_id"], event["result"]))
    return items


def typed(trace: dict[str, Any]) -> Trace:
    """Return a trace as a `Trace` object."""
    from aigo_bridge.dtypes import Trace

    return Trace.model_validate(trace)
