"""The conversation of the main agent, where `Trace.from_events` cannot give it.

From model calls alone the format misses what was said after the last call (results of its tools, messages that a
solver added), and after a trim it finds the place of the cut by the first item's id, which in an Inspect log is
nearly always the system prompt, so that everything trimmed is lost. Inspect's agents keep the whole conversation in the
sample's messages while they shorten what they send; then those are the items. Otherwise they are derived here. And where
an agent has made the answer that was submitted by a tool call the text of its last message, the items end with that
text, as in Inspect's view of the sample.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .content import Item
from .ordering import Event, conversation, derived_items


class Spoken(Struct, frozen=True):
    """The items of a trace and how they were found."""

    items: list[Item]
    notes: dict[str, Any]
    """For `TraceMetadata.extra`: empty when the items are exactly what `Trace.from_events` derives."""


def spoken(
    ordered: list[Event], span_id: str | None, messages: list[Item], answer_id: str | None = None
) -> Spoken:
    """Items of the main agent's conversation.

    Args:
        ordered: the sample's events in trace order.
        span_id: the main agent's span.
        messages: the items of the sample's final messages.
        answer_id: id of the last of these messages, if the assistant said it.
    """
    direct = [event for event in ordered if event.get("span_id") == span_id]
    calls = [event for event in direct if event["type"] == "model_call_event"]
    compacted = [e for e in direct if e["type"] == "compaction" or e.get("name") == "compaction"]
    notes: dict[str, Any] = {}
    if not calls:
        if messages:
            notes["items"] = "from the sample's messages: the log has no model calls of the main agent"
        return Spoken(messages, notes)
    derived = derived_items(direct, span_id) if compacted else conversation(calls[-1])
    if compacted and _is_whole(messages, direct):
        if _equal(messages, derived):
            return Spoken(derived, notes)
        notes["items"] = "the sample's messages: the context of the model calls was shortened on the way"
        return Spoken(messages, notes)
    items = derived
    if any(event.get("strategy") == "trim" for event in compacted):
        items = _merged(direct)
        if not _equal(items, derived):
            notes["items"] = "joined by content: the first item kept by a trim does not tell where it cut"
    said = calls[-1]["output_items"]
    answer = _answer_without_calls(said, messages, answer_id) if answer_id else None
    if answer is not None:
        last = len(said)
        items = items[: len(items) - last] + answer
        notes["items"] = "the last answer as the agent left it: the call that submitted it is taken out"
    common = _common(items, messages)
    if common == len(items):
        rest = messages[common:]
        if rest:
            notes["items_after_last_model_call"] = len(rest)
        return Spoken(items + rest, notes)
    # Solvers rewrite the final messages (an agent's submit call becomes text, filters shorten): the events are the
    # record, and what the sample ended up with is kept beside it.
    notes["final_messages"] = {"differ_from_item": common, "items": messages[common:]}
    rest = _late_results(direct, items)
    if rest:
        notes["items_after_last_model_call"] = len(rest)
    return Spoken(items + rest, notes)


def _is_whole(messages: list[Item], direct: list[Event]) -> bool:
    """Whether the sample's messages hold every answer of an agent whose context was compacted.

    Then they are the conversation: the calls show only what was left of it. Answers that became a summary are no part.
    """
    known = {_message_of(item) for item in messages}
    call: Event | None = None
    for event in direct:
        if event["type"] == "model_call_event":
            if call is not None and not _was_said(call, known):
                return False
            call = event
        elif event.get("strategy") == "summary" and call is not None and not _was_said(call, known):
            call = None
    return call is not None and _was_said(call, known)


def _was_said(call: Event, known: set[str]) -> bool:
    return all(_message_of(item) in known for item in call["output_items"])


def _message_of(item: Item) -> str:
    """Id of the message an item was made from: other items of it have a colon and more behind that."""
    return str(item.get("id", "")).partition(":")[0]


def _answer_without_calls(said: list[Item], messages: list[Item], answer_id: str) -> list[Item] | None:
    """The last answer where the sample's messages have it without (some of) its tool calls; else `None`.

    Inspect's `react` agent lets the model submit its answer by a tool, and then makes that answer the text of the
    message: what it shows ends with the answer, not with a call. The call stays among the events.
    """
    if not any(belongs(item, answer_id) for item in said):
        return None
    start = len(messages)
    while start and belongs(messages[start - 1], answer_id):
        start -= 1
    answer = messages[start:]
    kept = {item["call_id"] for item in answer if item["type"] == "function_call"}
    asked = {item["call_id"] for item in said if item["type"] == "function_call"}
    return answer if asked - kept else None


def belongs(item: Item, message_id: str) -> bool:
    """Whether an item was made from the message of this id."""
    found = item.get("id")
    return isinstance(found, str) and (found == message_id or found.startswith(f"{message_id}:"))


def _same(one: Item, other: Item) -> bool:
    """Whether two items say the same, whatever their ids."""
    if one is other:
        return True
    if one["type"] != other["type"]:
        return False
    return all(one.get(key) == other.get(key) for key in _SAID[one["type"]])


_SAID = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_task_input_message": ("content",),
    "custom_task_output_message": ("content",),
}


def _common(one: list[Item], other: list[Item]) -> int:
    """How many items two conversations have in common from the start."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left is not right and not _same(left, right):
            break
        count += 1
    return count


def _equal(one: list[Item], other: list[Item]) -> bool:
    return len(one) == len(other) == _common(one, other)


def _merged(direct: list[Event]) -> list[Item]:
    """The conversation across trims: what each cut off, then what went on."""
    items: list[Item] = []
    last: Event | None = None
    trimmed = False
    # A trimmed context repeats the head of the one before (the system prompt), which is in `items` already.
    repeated = 0
    for event in direct:
        if event["type"] == "model_call_event":
            if trimmed and last is not None:
                before, context = conversation(last), event["input_context"]
                head = _common(before, context)
                items += before[repeated : _cut(before, context, head)]
                repeated, trimmed = head, False
            last = event
        elif event["type"] == "compaction" and last is not None:
            if event["strategy"] == "trim":
                trimmed = True
            else:
                items += conversation(last)[repeated:]
                last, trimmed, repeated = None, False, 0
    return items + conversation(last)[repeated:] if last is not None else items


def _cut(before: list[Item], context: list[Item], head: int) -> int:
    """Where `context`, behind the head that both share, goes on in `before`: everything in front was cut off."""
    rest = context[head:]
    for start in range(head, len(before)):
        tail = before[start:]
        if _common(tail, rest) == min(len(tail), len(rest)):
            return start
    return len(before)


def _late_results(direct: list[Event], items: list[Item]) -> list[Item]:
    """Results of tools that the last model call asked for: no later context shows them."""
    answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
    asked: set[str] = set()
    for item in reversed(items):
        if item["type"] == "message" and item["role"] == "user":
            break
        if item["type"] == "function_call":
            asked.add(item["call_id"])
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
        and event["call_id"] in asked - answered
        and event["status"] == "completed"
    ]


def _message_id(event: Event) -> str | None:
    found = event["metadata"]["inspect"].get("message_id")
    return found if isinstance(found, str) else None
