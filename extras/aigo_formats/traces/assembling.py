"""Events of a trace, in the order of their spans, with what follows from them: items, times, totals.

Every event is a JSON-ready dictionary. What a source says beyond AI GO's fields stands under the source's own
name: in an event's `metadata`, and in `extra` of the trace's.
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
"""Nanoseconds of the last second of the year 9999."""


def nanoseconds(value: object) -> int | None:
    """A time as nanoseconds since 1970: of an ISO text (UTC where it says no offset); `None`: it is none."""
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
    """Nanoseconds since 1970 as ISO text in UTC, cut to microseconds."""
    return (
        (_EPOCH + timedelta(microseconds=ns // 1000))
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z")
    )


def seconds(start: int | None, end: int | None) -> float | None:
    """Seconds between two times; `None` when one is unknown, or they are in the wrong order."""
    return None if start is None or end is None or end < start else (end - start) / 1e9


def count(value: object) -> int | None:
    """A number of tokens; `None` when it is no whole number from 0."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 2**53 else None


def usage(prompt: int | None, completion: int | None) -> dict[str, int] | None:
    """Tokens of a call; `None` when neither is known."""
    counts = {"num_completion_tokens": completion, "num_prompt_tokens": prompt}
    return {name: value for name, value in counts.items() if value is not None} or None


def total_tokens(events: Iterable[Event]) -> int | None:
    """Tokens of all model calls; `None` when those of one are unknown, or there is no call."""
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
    """The begin of a span."""
    begin: Event = {"type": "span_begin", "id": f"{span_id}:begin", "span_id": span_id, "name": name}
    if parent is not None:
        begin["parent_span_id"] = parent
    if kind is not None:
        begin["span_type"] = kind
    return timed(begin, time)


def span_end(span_id: str, time: int | None) -> Event:
    """The end of a span."""
    return timed({"type": "span_end", "id": f"{span_id}:end", "span_id": span_id}, time)


_TIME = "_ns"


def timed(event: Event, time: int | None) -> Event:
    """An event with its time, which `ordered` writes."""
    if time is not None:
        event[_TIME] = time
    return event


def ordered(events: Sequence[Event], loss: LossReport) -> list[Event]:
    """The events depth first, siblings by time; all have a time then, or none has.

    One without a time takes that of the event before it. `events` are changed.
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
                loss.changed["event without a time: takes that of the event before"] += 1
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
    """Spans inside themselves would vanish with all they hold: such a span stands at the top."""
    begins = {event["span_id"]: event for event in events if event["type"] == "span_begin"}
    settled: set[str] = set()
    for span_id in begins:
        path: set[str] = set()
        current: str | None = span_id
        while current is not None and current in begins and current not in settled:
            if current in path:
                begins[current].pop("parent_span_id", None)
                loss.changed["span inside itself: at the top"] += 1
                break
            path.add(current)
            current = begins[current].get("parent_span_id")
        settled |= path


def items_of_messages(events: Iterable[Event], span_id: str | None) -> list[Item]:
    """The items of a span whose messages are events, as `Trace.from_events` derives them, with ids that
    stay.
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
    """A trace as an object."""
    from aigo_bridge.dtypes import Trace

    return Trace.model_validate(trace)
