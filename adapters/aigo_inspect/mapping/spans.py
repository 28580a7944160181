"""State of the spans during the mapping of one sample: started, ended, and left open by a crash.

Inspect's `span_begin` and `span_end` become AI GO's. `step` events, the spans of logs before 0.3.93, are
nested by their order.
"""

from __future__ import annotations

from typing import Any

from aigo_bridge.dtypes.events import arranged
from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.mapping.records import SpanBegin, SpanEnd, StepRecord

Event = dict[str, Any]


class Spans:
    """Creator of the start and end events of spans."""

    def __init__(self, loss: LossReport):
        self._loss = loss
        self.steps: list[tuple[str, str]] = []
        """Open steps of an old log, outermost first: (span id, name)."""
        self.starts: list[tuple[Event, Event]] = []
        """Tool calls directly after the start of a span, each with that start event."""
        self._begun: dict[str, Event] = {}
        self._ended: set[str] = set()
        self._parents_first = True

    @property
    def step(self) -> str | None:
        """Span id of the innermost open step."""
        return self.steps[-1][0] if self.steps else None

    def begin(self, native: SpanBegin, event: Event) -> bool:
        """Make `event` the start of a span. Return `False` without a change if this is not possible."""
        span_id = native.id or native.span_id
        if type(span_id) is not str or span_id in self._begun:
            self._loss.changed["span that begins twice or without an id: kept as custom event"] += 1
            return False
        event["type"] = "span_begin"
        if native.span_id and native.span_id != span_id:
            event["metadata"]["inspect"]["span_id"] = native.span_id
        event["span_id"] = span_id
        parent = native.parent_id or self.step
        if parent:
            event["parent_span_id"] = parent
            # A span can only be inside itself if it started before its parent.
            self._parents_first = self._parents_first and parent in self._begun
        event["name"] = str(native.name or "")
        if type(native.type) is str:
            event["span_type"] = native.type
        elif native.type is not None:
            event["metadata"]["inspect"]["type"] = native.type
        self._begun[span_id] = event
        return True

    def end(self, native: SpanEnd, event: Event) -> bool:
        """Make `event` the end of a span. Return `False` without a change if this is not possible."""
        span_id = native.id or native.span_id
        if type(span_id) is not str or span_id not in self._begun or span_id in self._ended:
            self._loss.changed["span end without a begin: kept as custom event"] += 1
            return False
        event["type"] = "span_end"
        if native.span_id and native.span_id != span_id:
            event["metadata"]["inspect"]["span_id"] = native.span_id
        event["span_id"] = span_id
        self._ended.add(span_id)
        return True

    def added_begin(self, span_id: str, name: str, kind: str | None, like: Event) -> Event:
        """Return a start event that is missing in the log, with the time and position of another event."""
        begin: Event = {"type": "span_begin", "id": f"{span_id}-begin", "span_id": span_id}
        if "timestamp" in like:
            begin["timestamp"] = like["timestamp"]
        begin["metadata"] = {"inspect": {"synthetic": True}}
        if "span_id" in like:
            begin["parent_span_id"] = like["span_id"]
        begin["name"] = name
        if kind:
            begin["span_type"] = kind
        self._begun[span_id] = begin
        self._parents_first = False
        return begin

    def added_end(self, span_id: str, time: str | None) -> Event:
        """Return an end event that is missing in the log."""
        end: Event = {"type": "span_end", "id": f"{span_id}-end", "span_id": span_id}
        if time is not None:
            end["timestamp"] = time
        end["metadata"] = {"inspect": {"synthetic": True}}
        self._ended.add(span_id)
        return end

    def step_events(self, native: StepRecord, event: Event) -> list[Event]:
        """Return the start event or the end events for a step. An end without a start gives an empty list."""
        name = str(native.name or "")
        if native.action == "begin":
            span_id = f"{event['id']}-step"
            kind = native.type if isinstance(native.type, str) else None
            begin = self.added_begin(span_id, name, kind, event)
            begin["metadata"] = event["metadata"]
            begin["id"] = event["id"]
            self.steps.append((span_id, name))
            return [begin]
        position = next((i for i in reversed(range(len(self.steps))) if self.steps[i][1] == name), None)
        if position is None:
            self._loss.changed["step end without a begin: kept as custom event"] += 1
            return []
        time = event.get("timestamp")
        ends = [self.added_end(span_id, time) for span_id, _ in reversed(self.steps[position:])]
        del self.steps[position:]
        ends[-1]["id"] = event["id"]
        ends[-1]["metadata"] = event["metadata"]
        return ends

    def close(self, events: list[Event]) -> None:
        """Repair the spans of a sample, and link tool calls to the agents that they started.

        AI GO cannot find a span without an end, or a span inside itself.
        """
        still_open = [span_id for span_id in self._begun if span_id not in self._ended]
        if still_open:
            self._loss.changed["span without an end: closed at the last event"] += len(still_open)
            time = last_time(events)
            events += [self.added_end(span_id, time) for span_id in reversed(still_open)]
        if not self._parents_first:
            _mend_parents(self._begun, self._loss)
        self._link_agents()

    def _link_agents(self) -> None:
        """Set the agent that a tool call started.

        The log does not link the two. But the start of the tool's span is directly before the tool event. The
        agent's span is a child of the tool's span, or a sibling after a handoff.
        """
        agents: dict[str, Event] = {}
        for begin in self._begun.values():
            if begin.get("span_type") == "agent" and "parent_span_id" in begin:
                agents.setdefault(begin["parent_span_id"], begin)
        for begin, event in self.starts if agents else ():
            agent = agents.get(begin["span_id"])
            parent = self._begun.get(begin.get("parent_span_id", ""))
            if agent is None and parent is not None and parent.get("span_type") == "handoff":
                agent = agents.get(parent["span_id"])
            if agent is not None and begin.get("span_type") in ("tool", "handoff"):
                event.setdefault("agent", agent["name"])
                event.setdefault("agent_span_id", agent["span_id"])


def ordered_by_span(events: list[Event]) -> list[Event]:
    """Return events depth first: the start of a span, its events and child spans by time, and its end.

    Either all events except span ends have a `timestamp` (in UTC, with `Z`), or no event has one.
    """
    if _is_ordered(events):
        return events[:]
    happenings = [event for event in events if event["type"] != "span_end"]
    begins = [event["span_id"] if event["type"] == "span_begin" else None for event in happenings]
    return arranged(
        happenings,
        begins=begins,
        homes=[
            event.get("span_id") if span is None else event.get("parent_span_id")
            for span, event in zip(begins, happenings, strict=True)
        ],
        ends={event["span_id"]: event for event in events if event["type"] == "span_end"},
        times=[event["timestamp"] for event in happenings] if _are_timed(happenings) else None,
    )


def _is_ordered(events: list[Event]) -> bool:
    """Return whether each event is in the innermost open span and not before the previous one."""
    open_spans: list[str | None] = [None]
    time = ""
    for event in events:
        span, kind = event.get("span_id"), event["type"]
        if kind == "span_end":
            if open_spans.pop() != span:
                return False
            continue
        home = event.get("parent_span_id") if kind == "span_begin" else span
        earlier, time = time, event.get("timestamp", time)
        if home != open_spans[-1] or time < earlier:
            return False
        if kind == "span_begin":
            open_spans.append(span)
    return True


def _are_timed(events: list[Event]) -> bool:
    return bool(events) and "timestamp" in events[0]


def last_time(events: list[Event]) -> str | None:
    """Return the time of the last event with a time."""
    return next((event["timestamp"] for event in reversed(events) if "timestamp" in event), None)


def fill_times(events: list[Event], loss: LossReport) -> None:
    """Give each event without a time the time of the previous event. If all times are missing, the events are
    unchanged.
    """
    time = next((event["timestamp"] for event in events if "timestamp" in event), None)
    if time is None:
        return
    for event in events:
        if "timestamp" in event:
            time = event["timestamp"]
        else:
            event["timestamp"] = time
            if "input_context" in event:
                event["input_context"] = event.pop("input_context")  # the last field, as it is written
            event["metadata"]["inspect"]["timestamp"] = "taken from the previous event"
            loss.changed["event without a time: time of the previous event"] += 1


def _mend_parents(begun: dict[str, Event], loss: LossReport) -> None:
    """Make spans inside themselves top-level spans, because they would otherwise disappear with their
    content.
    """
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
