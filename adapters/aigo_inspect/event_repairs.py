"""What a stream of trace events needs before `Trace.from_events` can be trusted with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from aigo_bridge.importing.loss import LossReport

from .ordering import Event


def mend_parents(begun: dict[str, Event], loss: LossReport) -> None:
    """Spans inside themselves would vanish with all they hold: such a span becomes a top-level one."""
    settled: set[str] = set()
    for span_id in begun:
        path: list[str] = []
        seen: set[str] = set()
        current: str | None = span_id
        while current is not None and current in begun and current not in settled:
            if current in seen:
                begun[current].pop("parent_span_id", None)
                loss.changed["span inside itself: moved to the top"] += 1
                break
            seen.add(current)
            path.append(current)
            current = begun[current].get("parent_span_id")
        settled.update(path)


def fill_times(events: list[Event], loss: LossReport) -> None:
    """Either all events have a time or none: one without takes the time of the event before it."""
    known = next((event["timestamp"] for event in events if "timestamp" in event), None)
    if known is None:
        return
    for event in events:
        if "timestamp" in event:
            known = event["timestamp"]
        else:
            event["timestamp"] = known
            event["metadata"]["inspect"]["timestamp"] = "taken from the event before"
            loss.changed["event without a time: takes that of the event before"] += 1


def link_agents(starts: Iterable[tuple[Event, Event]], begun: dict[str, Event]) -> None:
    """Name the agent that a tool call started.

    Nothing in the log links the two, but the begin of the tool's span stands directly in front of the tool event,
    and the agent's span is the child of the tool's, or for a handoff its sibling.

    Args:
        starts: tool calls, each behind the begin of the span in front of it (see `started_tools`).
        begun: begins of spans, by id.
    """
    agents: dict[str, Event] = {}
    for begin in begun.values():
        if begin.get("span_type") == "agent" and "parent_span_id" in begin:
            agents.setdefault(begin["parent_span_id"], begin)
    if not agents:
        return
    for begin, event in starts:
        agent = agents.get(begin["span_id"])
        parent = begun.get(begin.get("parent_span_id", ""))
        if agent is None and parent is not None and parent.get("span_type") == "handoff":
            agent = agents.get(parent["span_id"])
        if agent is not None and begin.get("span_type") in ("tool", "handoff"):
            event.setdefault("agent", agent["name"])
            event.setdefault("agent_span_id", agent["span_id"])


def started_tools(events: list[Event]) -> Iterator[tuple[Event, Event]]:
    """Tool calls that stand directly behind the begin of a span, with that begin."""
    for before, event in pairwise(events):
        if event["type"] == "function_call_event" and before["type"] == "span_begin":
            yield before, event


def odd_base(native: dict[str, Any], time: str | None) -> dict[str, Any] | None:
    """What every event has, where it is not of the usual shape."""
    get = native.get
    found = {field: get(field) for field in ("uuid", "span_id") if type(get(field)) not in _TEXT_OR_NONE}
    if type(get("event")) not in _TEXT_OR_NONE:
        found["event"] = get("event")
    if get("event") == "span_begin" and type(get("parent_id")) not in _TEXT_OR_NONE:
        found["parent_id"] = get("parent_id")
    if time is None and get("timestamp") is not None:
        found["timestamp"] = get("timestamp")
    if get("metadata") and not isinstance(get("metadata"), dict):
        found["metadata"] = get("metadata")
    return found or None


_TEXT_OR_NONE = (str, type(None))
