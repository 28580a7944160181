"""The messages of one sample → conversation items, each of them mapped once however often it occurs."""

from __future__ import annotations

from typing import Any

import msgspec

from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.logs.pools import Walker
from aigo_inspect.mapping.messages import Item, items_from_message
from aigo_inspect.mapping.records import Message


class Messages:
    """The messages of one sample: one that occurs again gives the same items, not equal ones.

    A message is a record, or whatever stands in the log where it has another shape.
    """

    def __init__(self, walker: Walker, loss: LossReport):
        self._walker = walker
        self._loss = loss
        # Pool, answers and final messages hold the same message as different objects, always of the same id.
        # The message is kept beside its items: ids of objects are unique only while the objects live.
        self._by_object: dict[int, tuple[Any, list[Item]]] = {}
        self._by_id: dict[str, tuple[Any, list[Item]]] = {}

    def put_back(self, message: Any) -> Any:
        """The message, with the texts that were taken out of it (its id, role and names are never)."""
        walker = self._walker
        if type(message) is not Message:
            walker.walk_messages([message])
            return message
        content, lengths = message.content, walker.lengths
        if isinstance(content, str):
            # Most texts are no references: that is seen here, as calling a function takes longer than
            # looking.
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
        """The items of a message that is put back; the list is shared and must not be changed."""
        key = message.id if type(message) is Message else _id_of(message)
        same = self._by_object.get(id(message)) if key is None else self._by_id.get(key)
        if same is not None and same[0] is message:
            return same[1]
        if same is not None and same[0] == message:
            same = message, same[1]
        elif same is not None:
            # Two messages of one id.
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
        """The items of an answer that may not be complete."""
        if type(message) is Message:
            message = msgspec.to_builtins(message)
        return items_from_message(message, self._loss, status=status, logprobs=logprobs)

    def last(self, messages: list[Any]) -> list[Item]:
        """The items of the sample's messages as it left them."""
        items: list[Item] = []
        for message in messages:
            items += self.of(self.put_back(message))
        return items


def _id_of(message: Any) -> str | None:
    key = message.get("id") if type(message) is dict else None
    return key if type(key) is str else None
