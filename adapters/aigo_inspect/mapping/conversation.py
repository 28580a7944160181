"""Conversation of the main agent: detection of its span, and the items of its trace.

Inspect nests the conversation in spans: `solvers`, a solver, an agent. AI GO derives the items of a trace
from the model calls directly in the trace's span. This span is the outermost one whose own model calls
contain the sample's final conversation. Calls during scoring are ignored.

The items are the same as in `Trace.from_events`, with three exceptions:

- Messages after the last model call (tool results, messages that a solver added) are appended.
- After a trim, `Trace.from_events` finds the cut by the id of the first item. In an Inspect log, this is
  usually the system prompt, so all trimmed items would be lost. Inspect's agents keep the whole conversation
  in the sample's messages, which are then used as the items. Otherwise the items are joined by content.
- An agent may submit its answer by a tool call and copy it to the last message. The items then end with this
  text, as in Inspect's viewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from aigo_inspect.mapping.messages import Item
from aigo_inspect.mapping.spans import Event


class Transcript(Struct, frozen=True):
    """Items of a trace, and notes about their source."""

    items: list[Item]
    notes: dict[str, Any]
    """Notes for `TraceMetadata.extra`; empty if `Trace.from_events` gives the same items."""


def spoken(
    ordered: list[Event], span_id: str | None, messages: list[Item], answer_id: str | None = None
) -> Transcript:
    """Return the items of the main agent's conversation.

    Args:
        ordered: events of the sample in trace order.
        span_id: span of the main agent.
        messages: items of the sample's final messages.
        answer_id: id of the last message, if it is from the assistant.
    """
    direct = [event for event in ordered if event.get("span_id") == span_id]
    calls = [event for event in direct if event["type"] == "model_call_event"]
    compacted = [e for e in direct if e["type"] == "compaction" or e.get("name") == "compaction"]
    notes: dict[str, Any] = {}
    if not calls:
        if messages:
            notes["items"] = "from the sample's messages: the log lacks model calls of the main agent"
        return Transcript(messages, notes)
    derived = derived_items(direct, span_id) if compacted else conversation(calls[-1])
    if compacted and _is_whole(messages, direct):
        if _equal(messages, derived):
            return Transcript(derived, notes)
        notes["items"] = "the sample's messages: the context of the model calls was shortened during the run"
        return Transcript(messages, notes)
    items = derived
    if any(event.get("strategy") == "trim" for event in compacted):
        items = _merged(direct)
        if not _equal(items, derived):
            notes["items"] = "joined by content: the first item that a trim kept is ambiguous"
    answer_items = calls[-1]["output_items"]
    answer = _answer_without_calls(answer_items, messages, answer_id) if answer_id else None
    if answer is not None:
        size = len(answer_items)
        items = items[: len(items) - size] + answer
        notes["items"] = "the last answer of the agent, without the call that submitted it"
    common = _common(items, messages)
    if common == len(items):
        tail = messages[common:]
        if tail:
            notes["items_after_last_model_call"] = len(tail)
        return Transcript(items + tail, notes)
    # Solvers rewrite the final messages: an agent's submit call becomes text, or filters shorten them. The
    # events are the record, and the final messages are kept as a note.
    notes["final_messages"] = {"differ_from_item": common, "items": messages[common:]}
    tail = _late_results(direct, items)
    if tail:
        notes["items_after_last_model_call"] = len(tail)
    return Transcript(items + tail, notes)


def _is_whole(messages: list[Item], direct: list[Event]) -> bool:
    """Return whether the sample's messages contain every answer of an agent with a compacted context.

    If so, they are the conversation, because the calls only show the remaining part. Answers that were
    replaced by a summary are not required.
    """
    message_ids = {_message_of(item) for item in messages}
    call: Event | None = None
    for event in direct:
        if event["type"] == "model_call_event":
            if call is not None and not _was_said(call, message_ids):
                return False
            call = event
        elif event.get("strategy") == "summary" and call is not None and not _was_said(call, message_ids):
            call = None
    return call is not None and _was_said(call, message_ids)


def _was_said(call: Event, message_ids: set[str]) -> bool:
    return all(_message_of(item) in message_ids for item in call["output_items"])


def _message_of(item: Item) -> str:
    """Return the id of the message from which an item was created. Other items of the message add a colon and
    a suffix.
    """
    return str(item.get("id", "")).partition(":")[0]


def _answer_without_calls(
    answer_items: list[Item], messages: list[Item], answer_id: str
) -> list[Item] | None:
    """Return the last answer if some of its tool calls are missing in the sample's messages, otherwise
    `None`.

    Inspect's `react` agent lets the model submit its answer by a tool call, and then sets the text of the
    message to this answer. Inspect therefore shows the answer at the end, not a call. The call is still in
    the events.
    """
    submitted_ids = {item["call_id"] for item in answer_items if item["type"] == "function_call"}
    if not submitted_ids or not any(belongs(item, answer_id) for item in answer_items):
        return None
    start = len(messages)
    while start and belongs(messages[start - 1], answer_id):
        start -= 1
    answer = messages[start:]
    call_ids = {item["call_id"] for item in answer if item["type"] == "function_call"}
    return answer if submitted_ids - call_ids else None


def belongs(item: Item, message_id: str) -> bool:
    """Return whether an item was created from the message with this id."""
    item_id = item.get("id")
    return isinstance(item_id, str) and (item_id == message_id or item_id.startswith(f"{message_id}:"))


def _same(item: Item, counterpart: Item) -> bool:
    """Return whether two items have the same content, regardless of their ids."""
    if item is counterpart:
        return True
    if item["type"] != counterpart["type"]:
        return False
    return all(item.get(key) == counterpart.get(key) for key in _SAID[item["type"]])


_SAID = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_task_input_message": ("content",),
    "custom_task_output_message": ("content",),
}


def _common(items: list[Item], counterparts: list[Item]) -> int:
    """Return the number of items that two conversations have in common from the start."""
    count = 0
    for item, counterpart in zip(items, counterparts, strict=False):
        if item is not counterpart and not _same(item, counterpart):
            break
        count += 1
    return count


def _equal(items: list[Item], counterparts: list[Item]) -> bool:
    return len(items) == len(counterparts) == _common(items, counterparts)


def _merged(direct: list[Event]) -> list[Item]:
    """Return the conversation across trims: the items that each trim removed, followed by the rest."""
    items: list[Item] = []
    call: Event | None = None
    trimmed = False
    # A trimmed context repeats the head of the previous one (the system prompt), which is already in `items`.
    repeated = 0
    for event in direct:
        if event["type"] == "model_call_event":
            if trimmed and call is not None:
                messages, context = conversation(call), event["input_context"]
                head = _common(messages, context)
                items += messages[repeated : _cut(messages, context, head)]
                repeated, trimmed = head, False
            call = event
        elif event["type"] == "compaction" and call is not None:
            if event["strategy"] == "trim":
                trimmed = True
            else:
                items += conversation(call)[repeated:]
                call, trimmed, repeated = None, False, 0
    return items + conversation(call)[repeated:] if call is not None else items


def _cut(messages: list[Item], context: list[Item], head: int) -> int:
    """Return the index in `messages` where `context` continues after the shared head. Items between were
    removed.
    """
    continuation = context[head:]
    for start in range(head, len(messages)):
        tail = messages[start:]
        if _common(tail, continuation) == min(len(tail), len(continuation)):
            return start
    return len(messages)


def _late_results(direct: list[Event], items: list[Item]) -> list[Item]:
    """Return results of the last model call's tools, because no later context contains them."""
    answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
    call_ids: set[str] = set()
    for item in reversed(items):
        if item["type"] == "message" and item["role"] == "user":
            break
        if item["type"] == "function_call":
            call_ids.add(item["call_id"])
    return [
        {
            "type": "function_call_output",
            "id": _message_id(event) or f"{event['id']}:output",
            "call_id": event["call_id"],
            "output": event["result"] or event.get("error") or "",
            "status": "completed",
        }
        for event in direct
        if event["type"] == "function_call_event"
        and event["call_id"] in call_ids - answered
        and event["status"] == "completed"
    ]


def _message_id(event: Event) -> str | None:
    message_id = event["metadata"]["inspect"].get("message_id")
    return message_id if isinstance(message_id, str) else None


# Items of a span, as derived by `Trace.from_events`


def derived_items(ordered: list[Event], span_id: str | None) -> list[Item]:
    """Return the items of a span from the last direct model call of every segment. A compaction ends a
    segment.
    """
    items: list[Item] = []
    call: Event | None = None
    trimmed: Event | None = None
    for event in ordered:
        if event.get("span_id") != span_id:
            continue
        if event["type"] == "model_call_event":
            if trimmed is not None:
                items += _cut_off(conversation(trimmed), event["input_context"])
                trimmed = None
            call = event
        elif event["type"] == "compaction" and call is not None:
            if event["strategy"] == "trim":
                trimmed = call
            else:
                items += conversation(call)
            call = None
    return items + conversation(call) if call is not None else items


def conversation(call: Event) -> list[Item]:
    """Return the conversation up to and including a model call."""
    items: list[Item] = [*call["input_context"], *call["output_items"]]
    return items


def _cut_off(messages: list[Item], context: list[Item]) -> list[Item]:
    if context:
        head = context[0]
        for index, item in enumerate(messages):
            # Custom items are without an id and are compared by value.
            if item["id"] == head["id"] if "id" in item and "id" in head else item == head:
                return messages[:index]
    return []


# Span of the main agent


_SCORING = frozenset({"scorers", "scorer"})


def main_span_id(events: Iterable[Event], messages: Iterable[Item] = ()) -> str | None:
    """Return the id of the main agent's span; `None` if its model calls are outside all spans, or do not
    exist.

    Args:
        events: trace events of one sample, as created by `events.map_events`.
        messages: items of the sample's final messages, to distinguish the main agent from parallel agents.
    """
    parents: dict[str, str | None] = {}
    scoring: set[str | None] = set()
    calls: dict[str | None, list[Event]] = {}
    for event in events:
        kind = event["type"]
        if kind == "model_call_event":
            calls.setdefault(event.get("span_id"), []).append(event)
        elif kind == "span_begin":
            span_id, parent = event["span_id"], event.get("parent_span_id")
            parents[span_id] = parent
            if event.get("span_type") in _SCORING or parent in scoring:
                scoring.add(span_id)
    candidates = {span: own_calls for span, own_calls in calls.items() if span not in scoring}
    if len(candidates) < 2:
        return next(iter(candidates), None)
    wanted = _identities(messages)
    covered = {span: _coverage(own_calls, wanted) for span, own_calls in candidates.items()}
    best = max(covered.values())
    # After a handoff at the end, a sub-agent may have seen more of the conversation than the main agent. All
    # spans near the maximum are therefore candidates. The outermost one is used, and the last one among
    # equals.
    near = [span for span, score in covered.items() if 2 * score >= best]
    return min(enumerate(near), key=lambda entry: (_depth(entry[1], parents), -covered[entry[1]], -entry[0]))[
        1
    ]


def _identities(items: Iterable[Item]) -> set[Any]:
    return {item.get("id") for item in items} - {None, ""}


def _coverage(calls: list[Event], wanted: set[Any]) -> int:
    final_call = calls[-1]
    identities = _identities(final_call["input_context"]) | _identities(final_call["output_items"])
    return len(identities & wanted) if wanted else len(identities)


def _depth(span_id: str | None, parents: dict[str, str | None]) -> int:
    depth = 0
    seen: set[str] = set()
    while span_id is not None and span_id in parents and span_id not in seen:
        seen.add(span_id)
        depth += 1
        span_id = parents[span_id]
    return depth
