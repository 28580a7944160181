"""`Trace.from_events` on plain dictionaries: the order of events and the items of a span.

The typed `Trace.from_events` is the rule; this is the same rule without building objects, because an import of
300 MB makes a hundred thousand events. A property test holds the two together.
"""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import Any

from .content import Item

Event = dict[str, Any]
_time = itemgetter("timestamp")


def ordered_by_span(events: list[Event]) -> list[Event]:
    """Events depth first: a span's begin, its events and child spans by time, its end.

    All events except span ends have a `timestamp` (in UTC, with `Z`), or none has.
    """
    begun: set[str | None] = {None}
    ends: dict[str, Event] = {}
    children: defaultdict[str | None, list[Event]] = defaultdict(list)
    with_spans: set[str | None] = set()
    for event in events:
        kind = event["type"]
        if kind == "span_begin":
            begun.add(event["span_id"])
            home = event.get("parent_span_id")
            with_spans.add(home)
            children[home].append(event)
        elif kind == "span_end":
            ends[event["span_id"]] = event
        else:
            children[event.get("span_id")].append(event)
    if not begun.issuperset(children):
        children = _homed(events, begun)
        with_spans |= {None}
    if events and "timestamp" in events[0]:
        for siblings in children.values():
            if len(siblings) > 1:
                siblings.sort(key=_time)
    ordered: list[Event] = []
    blocks = [iter(children.get(None, ()))]
    spans: list[str] = []
    while blocks:
        for event in blocks[-1]:
            ordered.append(event)
            if event["type"] == "span_begin":
                span = event["span_id"]
                inside = children.get(span, ())
                if span in with_spans:
                    spans.append(span)
                    blocks.append(iter(inside))
                    break
                ordered += inside
                if (end := ends.get(span)) is not None:
                    ordered.append(end)
        else:
            blocks.pop()
            if spans and (end := ends.get(spans.pop())) is not None:
                ordered.append(end)
    return ordered


def _homed(events: list[Event], begun: set[str | None]) -> defaultdict[str | None, list[Event]]:
    """Events by the span they stand in, those of a span that never began at the top."""
    children: defaultdict[str | None, list[Event]] = defaultdict(list)
    for event in events:
        if event["type"] != "span_end":
            home = event.get("parent_span_id" if event["type"] == "span_begin" else "span_id")
            children[home if home in begun else None].append(event)
    return children


def derived_items(ordered: list[Event], span_id: str | None) -> list[Item]:
    """Items of a span from its direct model calls: the last one of every segment, compactions end a segment."""
    items: list[Item] = []
    last: Event | None = None
    trimmed: Event | None = None
    for event in ordered:
        if event.get("span_id") != span_id:
            continue
        if event["type"] == "model_call_event":
            if trimmed is not None:
                items += _cut_off(conversation(trimmed), event["input_context"])
                trimmed = None
            last = event
        elif event["type"] == "compaction" and last is not None:
            if event["strategy"] == "trim":
                trimmed = last
            else:
                items += conversation(last)
            last = None
    return items + conversation(last) if last is not None else items


def conversation(call: Event) -> list[Item]:
    """What was said up to and including a model call."""
    found: list[Item] = [*call["input_context"], *call["output_items"]]
    return found


def _cut_off(before: list[Item], context: list[Item]) -> list[Item]:
    if context:
        first = context[0]
        for index, item in enumerate(before):
            # Custom items have no id and are compared by value.
            if item["id"] == first["id"] if "id" in item and "id" in first else item == first:
                return before[:index]
    return []
