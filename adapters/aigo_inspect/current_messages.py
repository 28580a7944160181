"""Messages of a current sample (see `current`) → conversation items.

Nearly all messages are one text, perhaps with calls of tools: their items are made here, in a fraction of the time that `content`
takes, which has to expect anything. All others are mapped there.
"""

from __future__ import annotations

import msgspec

from aigo_bridge.importing.encoding import json_text
from aigo_bridge.importing.loss import LossReport

from .content import SOURCE_LEFT_OUT, USUAL_SOURCES, Item, items_from_message
from .current import Message
from .model_calls import answer_text
from .pools import Walker


class Messages:
    """The messages of one sample: one that occurs again gives the same items, not equal ones."""

    def __init__(self, walker: Walker, loss: LossReport):
        self._walker = walker
        self._loss = loss
        # Pool, answers and final messages hold the same message as different objects, always of the same id. The message is
        # kept beside its items: ids of objects are unique only while the objects live.
        self._by_object: dict[int, tuple[Message, list[Item]]] = {}
        self._by_id: dict[str, tuple[Message, list[Item]]] = {}

    def put_back(self, message: Message) -> Message:
        """The message, with the texts that were taken out of it (its id, role and names are never)."""
        walker = self._walker
        content, lengths = message.content, walker.lengths
        if isinstance(content, str):
            # Most texts are no references: that is seen here, as calling a function takes longer than looking.
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
                rest = [call.arguments, call.view, call.parse_error]
                walker.walk(rest)
                call.arguments, call.view, call.parse_error = rest
        if message.metadata:
            walker.walk(message.metadata)
        if message.error:
            walker.walk(message.error)
        return message

    def of(self, message: Message) -> list[Item]:
        """The items of a message that is put back; the list is shared and must not be changed."""
        known = self._by_id.get(message.id)
        if known is not None:
            if known[0] is message:
                return known[1]
            if known[0] == message:
                self._by_id[message.id] = (message, known[1])
                return known[1]
            # Two messages of one id.
            self._by_object[id(known[0])] = known
            known = self._by_object.get(id(message))
        if known is None:
            known = (message, self.broken_off(message, "completed"))
        self._by_id[message.id] = known
        return known[1]

    def broken_off(self, message: Message, status: str) -> list[Item]:
        """The items of an answer that may not be complete."""
        if _is_plain(message):
            if message.source is not None or message.model:
                self._loss.changed[SOURCE_LEFT_OUT] += 1
            return _plain_items(message, status)
        return items_from_message(msgspec.to_builtins(message), self._loss, status=status)

    def last(self, messages: list[Message]) -> list[Item]:
        """The items of the sample's messages as it left them."""
        items: list[Item] = []
        for message in messages:
            items += self.of(self.put_back(message))
        return items


def text_of_answer(message: Message) -> str:
    """As `samples.answer_text`."""
    return message.content if isinstance(message.content, str) else answer_text({"content": message.content})


def _is_plain(message: Message) -> bool:
    if type(message.content) is not str or message.metadata or message.error:
        return False
    if message.source is not None and message.source not in USUAL_SOURCES:
        return False
    if message.role != "tool" and (message.tool_call_id or message.function):
        return False
    if not message.tool_calls:
        return True
    return message.role == "assistant" and all(
        type(call.arguments) is dict and call.type in _FUNCTION and not call.view and not call.parse_error
        for call in message.tool_calls
    )


_FUNCTION = (None, "function")


def _plain_items(message: Message, status: str) -> list[Item]:
    """As `content.items_from_message`."""
    role, content = message.role, message.content
    if role == "tool":
        output: Item = {
            "type": "function_call_output",
            "id": message.id,
            "call_id": message.tool_call_id or "",
            "output": content,
            "status": "completed",
        }
        if message.function:
            output["inspect"] = {"function": message.function}
        return [output]
    if role != "assistant":
        parts = [{"type": "input_text", "text": content}]
        return [{"type": "message", "id": message.id, "status": status, "role": role, "content": parts}]
    items: list[Item] = []
    calls = message.tool_calls or ()
    if content or not calls:
        answer = [{"type": "output_text", "text": content, "annotations": []}]
        items.append({"type": "message", "id": message.id, "status": status, "role": role, "content": answer})
    for position, call in enumerate(calls):
        items.append(
            {
                "type": "function_call",
                "id": f"{message.id}:{call.id or position}",
                "call_id": call.id,
                "name": call.function,
                "arguments": json_text(call.arguments),
                "status": "completed",
            }
        )
    return items
