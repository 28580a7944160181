"""Which span of a sample is the main agent's.

Inspect nests the conversation in spans: `solvers`, a solver, an agent. AI GO derives a trace's items from the model
calls directly in the span that the trace represents, so that span has to be found: the outermost one whose own
model calls carry the sample's final conversation. Calls made while scoring never count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .content import Item
from .ordering import Event

_SCORING = frozenset({"scorers", "scorer"})


def main_span_id(events: Iterable[Event], messages: Iterable[Item] = ()) -> str | None:
    """Id of the main agent's span; `None` when its model calls stand outside all spans, or when there are none.

    Args:
        events: trace events of one sample, as `events.map_events` makes them.
        messages: the items of the sample's final messages, to tell the main agent from others beside it.
    """
    parents: dict[str, str | None] = {}
    scoring: set[str | None] = set()
    calls: dict[str | None, list[Event]] = {}
    events = list(events)
    for call in [event for event in events if event["type"] == "model_call_event"]:
        calls.setdefault(call.get("span_id"), []).append(call)
    for begin in [event for event in events if event["type"] == "span_begin"]:
        span_id, parent = begin["span_id"], begin.get("parent_span_id")
        parents[span_id] = parent
        if begin.get("span_type") in _SCORING or parent in scoring:
            scoring.add(span_id)
    candidates = {span: made for span, made in calls.items() if span not in scoring}
    if len(candidates) < 2:
        return next(iter(candidates), None)
    wanted = _identities(messages)
    covered = {span: _coverage(made, wanted) for span, made in candidates.items()}
    best = max(covered.values())
    # An agent it calls may have seen more of the conversation than the main agent itself (a handoff at the end),
    # so everything near the best counts, and the outermost of these is taken, the last among equals.
    near = [span for span, score in covered.items() if 2 * score >= best]
    return min(enumerate(near), key=lambda entry: (_depth(entry[1], parents), -covered[entry[1]], -entry[0]))[
        1
    ]


def _identities(items: Iterable[Item]) -> set[Any]:
    return {item.get("id") for item in items} - {None, ""}


def _coverage(calls: list[Event], wanted: set[Any]) -> int:
    last = calls[-1]
    said = _identities(last["input_context"]) | _identities(last["output_items"])
    return len(said & wanted) if wanted else len(said)


def _depth(span_id: str | None, parents: dict[str, str | None]) -> int:
    depth = 0
    seen: set[str] = set()
    while span_id is not None and span_id in parents and span_id not in seen:
        seen.add(span_id)
        depth += 1
        span_id = parents[span_id]
    return depth
