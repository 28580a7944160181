"""Conversion of the messages of one sample to conversation items. Each message is converted only once."""

from __future__ import annotations

from typing import Any

import msgspec

from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.logs.pools import Walker
from aigo_inspect.mapping.messages import Item, items_from_message
from aigo_inspect.mapping.records import MessageRecord


class Messages:
    """Messages of one sample. A repeated message gives the same item objects, not copies.

    A message is a record, or the logged value if it has an unexpected form.
    """

    def __init__(self, walker: Walker, loss: LossReport):
        self._walker = walker
        self._loss = loss
        # The pool, answers and final messages contain the same message as different objects with the same id.
        # The message is stored with its items, because `id()` is unique only during the lifetime of an
        # object.
        self._by_object: dict[int, tuple[Any, list[Item]]] = {}
        self._by_id: dict[str, tuple[Any, list[Item]]] = {}

    def put_back(self, message: Any) -> Any:
        """Return the message with restored attachments. Its id, role and names never contain references."""
        walker = self._walker
        if type(message) is not MessageRecord:
            walker.walk_messages([message])
            return message
        content, lengths = message.content, walker.lengths
        if isinstance(content, str):
            # Most texts are not references. Checking it here is faster than a function call.
            if len(content) in lengths:
                message.content = walker.text(content)
        else:
            walker.walk(content)
        for call in message.tool_calls or ():
            if len(call.id) in lengths:
                call.id = walker.text(call.id)
            if len(call.function) in lengths:
                call.function = walker.text(call.function)
            if type(call.arguments) is dict and not call.view and not call.parse_error:
                walker.walk(call.arguments)
            else:
                fields = [call.arguments, call.view, call.parse_error]
                walker.walk(fields)
                call.arguments, call.view, call.parse_error = fields
        if message.metadata:
            walker.walk(message.metadata)
        if message.error:
            walker.walk(message.error)
        return message

    def of(self, message: Any) -> list[Item]:
        """Return the items of a restored message. The list is shared and must not be changed."""
        key = message.id if type(message) is MessageRecord else _id_of(message)
        same = self._by_object.get(id(message)) if key is None else self._by_id.get(key)
        if same is not None and same[0] is message:
            return same[1]
        if same is not None and same[0] == message:
            same = message, same[1]
        elif same is not None:
            # Two messages with the same id.
            self._by_object[id(same[0])] = same
            same = self._by_object.get(id(message))
        if same is None:
            same = message, self.items(message, "completed")
        if key is None:
            self._by_object[id(message)] = same
        else:
            self._by_id[key] = same
        return same[1]

    def items(self, message: Any, status: str, logprobs: list[dict[str, Any]] | None = None) -> list[Item]:
        """Return the items of an answer that may be incomplete."""
        if type(message) is MessageRecord:
            message = msgspec.to_builtins(message)
        return items_from_message(message, self._loss, status=status, logprobs=logprobs)

    def last(self, messages: list[Any]) -> list[Item]:
        """Return the items of the sample's final messages."""
        items: list[Item] = []
        for message in messages:
            items += self.of(self.put_back(message))
        return items


def _id_of(message: Any) -> str | None:
    key = message.get("id") if type(message) is dict else None
    return key if type(key) is str else None
