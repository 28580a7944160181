"""Detection of data in a sample's output that is not in any model call.

Usually the output is the answer of the last model call, which is already in the evidence. But a solver may
change the output or create another one, for example with an external program. A log may also lack events.
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
    """Return the part of a sample's output, in Inspect's form, that is neither in its model calls nor in its
    messages.

    Args:
        output: `ModelOutput` of the sample.
        events: mapped events of the sample.
        messages: items of the sample's final messages.
    """
    if not isinstance(output, dict):
        return {}
    fields = {key: value for key, value in output.items() if value or value == 0}
    if isinstance(fields.get("metadata"), dict):
        # The result of aigo-bridge's own solver is stored there. It is in the evidence as the solver output.
        fields["metadata"] = _without_store(fields["metadata"])
    if fields.get("completion") == answer_text(_message(_first(fields))):
        del fields["completion"]
    answer = _Answer(_first(fields), messages)
    if not fields.keys() - {"model", "metadata"} and not fields.get("metadata"):
        # Output of a sample before the first model call.
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
    return {key: value for key, value in fields.items() if value or value == 0}


_COUNTED_ELSEWHERE = LossReport()
"""Changes are already counted during the mapping of the model calls."""


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
    """First choice of an output."""

    def __init__(self, choice: dict[str, Any], messages: list[Item]):
        self.choice = choice
        message = _message(choice)
        self._id = str(message.get("id") or (content_id(message) if message else ""))
        self._items = items_from_message(message, _COUNTED_ELSEWHERE) if message else []
        self._messages = messages

    def is_of(self, event: Event) -> bool:
        """Return whether a model call was answered by the same message, regardless of its content, or failed
        without an answer.
        """
        items = event["output_items"]
        if not items:
            return bool(event.get("error")) and says_nothing(_message(self.choice))
        return bool(self._id) and belongs(items[0], self._id)

    def is_said(self, items: list[Item]) -> bool:
        """Return whether the message is in the items of a call or in the messages of the sample."""
        if self._items == items or not items:
            return True
        # An agent may have copied the submitted answer of a call to the text of its message.
        present = [*items, *self._last_messages()]
        missing = [item for item in self._items if item not in present]
        return not missing or all(item in _plain(items) for item in missing)

    def is_last_message(self) -> bool:
        """Return whether the messages of the sample contain the same message with the same content."""
        return bool(self._items) and self._items == self._last_messages()

    def _last_messages(self) -> list[Item]:
        """Return the items of the message in the sample's messages. The search starts at the end, because it
        is usually the last one.
        """
        items: list[Item] = []
        for item in reversed(self._messages):
            if belongs(item, self._id):
                items.append(item)
            elif items:
                break
        return items[::-1]

    def beyond(self, event: Event) -> dict[str, Any]:
        """Return the part of the choice that is not in a model call with the same message."""
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
        # A copy, because log probabilities are converted in place.
        mapped = logprobs_of(copy.deepcopy(self.choice), _COUNTED_ELSEWHERE)
        logprobs = [part["logprobs"] for part in _parts(items) if "logprobs" in part]
        return mapped is not None and logprobs == [mapped]


def _parts(items: Iterable[Item]) -> list[dict[str, Any]]:
    return [part for item in items if item["type"] == "message" for part in item["content"]]


def _plain(items: list[Item]) -> list[Item]:
    """Return the items of an answer as `items_from_message` creates them from the message alone."""
    return [
        {**item, "status": "completed", "content": [_without_logprobs(part) for part in item["content"]]}
        if item["type"] == "message"
        else item
        for item in items
    ]


def _without_logprobs(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "logprobs"}


def _beyond(output: dict[str, Any], answer: _Answer, event: Event) -> dict[str, Any]:
    """Return the part of the output that is not in a model call with the same message."""
    notes = event["metadata"]["inspect"]
    remainder: dict[str, Any] = {}
    for key, value in output.items():
        if key == "choices" and isinstance(value, list) and isinstance(value[0], dict):
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
