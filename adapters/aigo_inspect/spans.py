"""Spans of one sample while its events are mapped: which have begun, which have ended, which a crash left open.

Inspect's `span_begin` and `span_end` become AI GO's; `step` events, the spans of logs before 0.3.93, nest by their order.
"""

from __future__ import annotations

from typing import Any

from aigo_bridge.importing.loss import LossReport

from .ordering import Event


class Spans:
    """Makes the begin and end events of spans."""

    def __init__(self, loss: LossReport):
        self._loss = loss
        self.begun: dict[str, Event] = {}
        """Begin events by span id."""
        self.steps: list[tuple[str, str]] = []
        """Open steps of an old log, outermost first: (span id, name)."""
        self._ended: set[str] = set()

    @property
    def step(self) -> str | None:
        """Span id of the innermost open step."""
        return self.steps[-1][0] if self.steps else None

    def begin(self, native: dict[str, Any], event: Event) -> bool:
        """Make `event` the begin that `native` tells of; false, with nothing done, when it can be none."""
        span_id = native.get("id") or native.get("span_id")
        if type(span_id) is not str or not span_id or span_id in self.begun:
            self._loss.changed["span that begins twice or has no id: kept as custom event"] += 1
            return False
        event["type"] = "span_begin"
        _keep_place(native, event, span_id)
        parent = native.get("parent_id") or self.step
        if parent and type(parent) is str:
            event["parent_span_id"] = parent
        event["name"] = str(native.get("name") or "")
        kind = native.get("type")
        if type(kind) is str:
            event["span_type"] = kind
        elif kind is not None:
            event["metadata"]["inspect"]["type"] = kind
        self.begun[span_id] = event
        return True

    def end(self, native: dict[str, Any], event: Event) -> bool:
        """Make `event` the end that `native` tells of; false, with nothing done, when it can be none."""
        span_id = native.get("id") or native.get("span_id")
        if type(span_id) is not str or span_id not in self.begun or span_id in self._ended:
            self._loss.changed["span end without a begin: kept as custom event"] += 1
            return False
        event["type"] = "span_end"
        _keep_place(native, event, span_id)
        self._ended.add(span_id)
        return True

    def made_begin(self, span_id: str, name: str, kind: str | None, like: Event) -> Event:
        """A begin that the log does not have, at the time and place of another event."""
        begin: Event = {"type": "span_begin", "id": f"{span_id}-begin", "span_id": span_id}
        if "timestamp" in like:
            begin["timestamp"] = like["timestamp"]
        begin["metadata"] = {"inspect": {"synthetic": True}}
        if "span_id" in like:
            begin["parent_span_id"] = like["span_id"]
        begin["name"] = name
        if kind:
            begin["span_type"] = kind
        self.begun[span_id] = begin
        return begin

    def made_end(self, span_id: str, time: str | None) -> Event:
        """An end that the log does not have."""
        end: Event = {"type": "span_end", "id": f"{span_id}-end", "span_id": span_id}
        if time is not None:
            end["timestamp"] = time
        end["metadata"] = {"inspect": {"synthetic": True}}
        self._ended.add(span_id)
        return end

    def step_events(self, native: dict[str, Any], event: Event) -> list[Event]:
        """The begin, or the ends, that a step stands for; nothing for an end without a begin."""
        name = str(native.get("name") or "")
        kind = native.get("type")
        if native.get("action") == "begin":
            span_id = f"{event['id']}-step"
            begin = self.made_begin(span_id, name, kind if isinstance(kind, str) else None, event)
            begin["metadata"] = event["metadata"]
            begin["id"] = event["id"]
            self.steps.append((span_id, name))
            return [begin]
        position = next((i for i in reversed(range(len(self.steps))) if self.steps[i][1] == name), None)
        if position is None:
            self._loss.changed["step end without a begin: kept as custom event"] += 1
            return []
        ends = [
            self.made_end(span_id, event.get("timestamp")) for span_id, _ in reversed(self.steps[position:])
        ]
        del self.steps[position:]
        ends[-1]["id"] = event["id"]
        ends[-1]["metadata"] = event["metadata"]
        return ends

    def close(self, time: str | None) -> list[Event]:
        """Ends for the spans that a crash left open: a span without one would not be found again."""
        still_open = [span_id for span_id in self.begun if span_id not in self._ended]
        if still_open:
            self._loss.changed["span without an end: closed at the last event"] += len(still_open)
        self.steps.clear()
        return [self.made_end(span_id, time) for span_id in reversed(still_open)]


def _keep_place(native: dict[str, Any], event: Event, span_id: str) -> None:
    """An event that begins or ends a span stands in that span; where the log has another one, that is noted."""
    place = native.get("span_id")
    if place and type(place) is str and place != span_id:
        event["metadata"]["inspect"]["span_id"] = place
    event["span_id"] = span_id
