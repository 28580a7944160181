"""What a sample's own output says that no call of a model does.

Nearly always the output is the answer of the last call, and stands in the evidence as that. But a solver may
make an output of its own, from a program that Inspect does not see, say, or change the one it has; and a log
may have no events.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.logs.shapes import STORE_KEY
from aigo_inspect.mapping.conversation import belongs
from aigo_inspect.mapping.messages import Item, content_id, items_from_message, logprobs_of
from aigo_inspect.mapping.model_calls import CHOICE_FIELDS, OUTPUT_FIELDS, answer_text, says_nothing
from aigo_inspect.mapping.spans import Event


def own_output(output: Any, events: list[Event], messages: list[Item]) -> dict[str, Any]:
    """The part of a sample's output, in Inspect's shape, that is neither in its model calls nor in its
    messages.

    Args:
        output: the sample's `ModelOutput`.
        events: the sample's mapped events.
        messages: the items of the sample's final messages.
    """
    if not isinstance(output, dict):
        return {}
    fields = {key: value for key, value in output.items() if value not in _NOTHING}
    if isinstance(fields.get("metadata"), dict):
        # What our own solver came to is read from there, and stands in the evidence as the solver's output.
        fields["metadata"] = _without_store(fields["metadata"])
    if fields.get("completion") == answer_text(_message(_first(fields))):
        del fields["completion"]
    answer = _Answer(_first(fields), messages)
    if not fields.keys() - {"model", "metadata"} and not fields.get("metadata"):
        # What a sample has before any model was called.
        return {}
    remainder: dict[str, Any] | None = None
    for event in reversed(events):
        if event["type"] == "model_call_event" and answer.is_of(event):
            beyond = _beyond(fields, answer, event)
            if remainder is None or len(beyond) < len(remainder):
                remainder = beyond
            if not beyond:
                break
    if remainder is not None:
        return remainder
    if answer.is_last_message():
        choice = {key: value for key, value in answer.choice.items() if key != "message"}
        fields["choices"] = [choice, *fields["choices"][1:]]
    return {key: value for key, value in fields.items() if value not in _NOTHING}


_NOTHING: tuple[Any, ...] = (None, "", [], {})
_COUNTED_ELSEWHERE = LossReport()
"""What mapping changes is counted where the model calls are mapped."""


def _first(output: dict[str, Any]) -> dict[str, Any]:
    choices = output.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _message(choice: dict[str, Any]) -> dict[str, Any]:
    message = choice.get("message")
    return message if isinstance(message, dict) else {}


def _without_store(metadata: Any) -> Any:
    return {key: value for key, value in metadata.items() if key != STORE_KEY}


class _Answer:
    """The first choice of an output."""

    def __init__(self, choice: dict[str, Any], messages: list[Item]):
        self.choice = choice
        message = _message(choice)
        self._id = str(message.get("id") or (content_id(message) if message else ""))
        self._items = items_from_message(message, _COUNTED_ELSEWHERE) if message else []
        self._messages = messages

    def is_of(self, event: Event) -> bool:
        """Whether a model call was answered by the same message, whatever that says; or by none, as it
        failed.
        """
        items = event["output_items"]
        if not items:
            return bool(event.get("error")) and says_nothing(_message(self.choice))
        return bool(self._id) and belongs(items[0], self._id)

    def is_said(self, items: list[Item]) -> bool:
        """Whether the message is in these items of a call, or in the messages of the sample."""
        if self._items == items or not items:
            return True
        # An agent may have made the answer that a call submits the text of its message.
        present = [*items, *self._last_messages()]
        missing = [item for item in self._items if item not in present]
        return not missing or all(item in _plain(items) for item in missing)

    def is_last_message(self) -> bool:
        """Whether the messages of the sample have the same message, saying the same."""
        return bool(self._items) and self._items == self._last_messages()

    def _last_messages(self) -> list[Item]:
        """The items of the message as the sample's messages have it: from the end, as it is the last one
        nearly always.
        """
        items: list[Item] = []
        for item in reversed(self._messages):
            if belongs(item, self._id):
                items.append(item)
            elif items:
                break
        return items[::-1]

    def beyond(self, event: Event) -> dict[str, Any]:
        """What of the choice is not in a model call that has the same message."""
        notes, items = event["metadata"]["inspect"], event["output_items"]
        remainder: dict[str, Any] = {}
        for key, value in self.choice.items():
            if value is None:
                continue
            if key == "message":
                is_repeated = self.is_said(items)
            elif key == "logprobs":
                is_repeated = value == notes.get("logprobs") or self._has_logprobs(items)
            elif key in CHOICE_FIELDS:
                is_repeated = value == notes.get(key)
            else:
                is_repeated = value == notes.get("choice", {}).get(key)
            if not is_repeated:
                remainder[key] = value
        return remainder

    def _has_logprobs(self, items: list[Item]) -> bool:
        # They are mapped in place.
        mapped = logprobs_of(copy.deepcopy(self.choice), _COUNTED_ELSEWHERE)
        logprobs = [part["logprobs"] for part in _parts(items) if "logprobs" in part]
        return mapped is not None and logprobs == [mapped]


def _parts(items: Iterable[Item]) -> list[dict[str, Any]]:
    return [part for item in items if item["type"] == "message" for part in item["content"]]


def _plain(items: list[Item]) -> list[Item]:
    """Items of an answer as `items_from_message` makes them of the message alone."""
    return [
        {**item, "status": "completed", "content": [_without_logprobs(part) for part in item["content"]]}
        if item["type"] == "message"
        else item
        for item in items
    ]


def _without_logprobs(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "logprobs"}


def _beyond(output: dict[str, Any], answer: _Answer, event: Event) -> dict[str, Any]:
    """What of the output is not in a model call that has the same message."""
    notes = event["metadata"]["inspect"]
    remainder: dict[str, Any] = {}
    for key, value in output.items():
        if key == "choices":
            choice, further = answer.beyond(event), value[1:]
            if further and further != notes.get("choices"):
                remainder[key] = value
            elif choice:
                remainder[key] = [choice]
            continue
        if key == "model":
            is_repeated = value == notes.get("output_model", event["model"])
        elif key == "error":
            is_repeated = value in (event.get("error"), notes.get("output_error"))
        elif key == "metadata" and isinstance(value, dict):
            is_repeated = not value or value == _without_store(notes.get(OUTPUT_FIELDS[key]) or {})
        elif key in OUTPUT_FIELDS:
            is_repeated = value == notes.get(OUTPUT_FIELDS[key])
        else:
            is_repeated = value == notes.get("output", {}).get(key)
        if not is_repeated:
            remainder[key] = value
    return remainder
