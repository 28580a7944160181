"""Conversion of LangChain messages to trace items.

LangChain has several forms. They are constructors (`{"lc": 1, "id": […, "AIMessage"], "kwargs": {…}}`),
objects with nested `data`, and objects with `type: ai`. Pairs such as `["user", "text"]` and the provider's
own chat messages also occur.
"""

from __future__ import annotations

from typing import Any

from aigo_formats.traces.genai import chat_calls
from aigo_formats.traces.items import Item, ItemMaker, role_of

_CLASSES = {
    "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
    "FunctionMessage": "tool", "ChatMessage": None,
}  # fmt: skip


def plain_message(value: Any) -> dict[str, Any] | None:
    """Return a message as an object with `role` and its fields; `None` if the value is not a message."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):
        return {"role": value[0], "content": value[1]} if role_of(value[0]) else None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("kwargs"), dict) and isinstance(value.get("id"), list) and value["id"]:
        name = str(value["id"][-1]).removesuffix("Chunk")
        role = _CLASSES.get(name, value["kwargs"].get("type"))
        fields = value["kwargs"]
        return {**fields, "role": role or fields.get("role")} if role or role_of(fields.get("role")) else None
    if isinstance(value.get("data"), dict) and isinstance(value.get("type"), str):
        fields = value["data"]
        return {**fields, "role": fields.get("role") or value["type"]}
    role = value.get("role")
    if role is None and isinstance(value.get("type"), str) and ("content" in value or "tool_calls" in value):
        role = value["type"].removesuffix("MessageChunk").removesuffix("Message").lower()
    return {**value, "role": role} if role_of(role) else None


def message_list(value: Any) -> list[Any] | None:
    """Return the messages in a value; `None` without messages.

    A batch with a single conversation (a list in a list) is that conversation.
    """
    if isinstance(value, dict):
        value = next((value[name] for name in ("messages", "chat_history_messages") if name in value), None)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) and value[0]:
        inner = value[0]
        if plain_message(inner) is None:
            value = inner
    if not isinstance(value, list) or not value:
        return None
    return value if any(plain_message(message) is not None for message in value) else None


def first_message(outputs: Any) -> dict[str, Any] | None:
    """Return the answer of a model from any recorded form; `None` if missing."""
    if not isinstance(outputs, dict):
        return plain_message(outputs)
    generations = outputs.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, dict):
        message = plain_message(generations.get("message"))
        if message is not None:
            return message
        if isinstance(generations.get("text"), str):
            return {"role": "assistant", "content": generations["text"]}
    choices = outputs.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return plain_message(choices[0].get("message"))
    for name in ("message", "output"):
        if (message := plain_message(outputs.get(name))) is not None:
            return message
    if (message := plain_message(outputs)) is not None:
        return message
    messages = message_list(outputs)
    if messages is not None:
        return plain_message(messages[-1])
    text = next(
        (outputs[n] for n in ("content", "output", "text") if isinstance(outputs.get(n), str | list)), None
    )
    return None if text is None else {"role": "assistant", "content": text}


def items_of(message: Any, maker: ItemMaker, role: str) -> list[Item]:
    """Return the items of a message. A value that is not a message becomes content of the given role."""
    plain = plain_message(message)
    if plain is None:
        return maker.of_message(role, [message])
    calls = list(chat_calls(plain.get("tool_calls")))
    extra = plain.get("additional_kwargs")
    if not calls and isinstance(extra, dict):
        calls = list(chat_calls(extra.get("tool_calls")))
        if isinstance(function := extra.get("function_call"), dict):
            calls.append((None, function.get("name"), function.get("arguments")))
    if not calls and isinstance(function := plain.get("function_call"), dict):
        calls.append((None, function.get("name"), function.get("arguments")))
    content = plain.get("content")
    if content == "" and calls:
        content = None
    key = plain.get("id")
    return maker.of_message(
        plain["role"], content, id=key, calls=calls, call_id=plain.get("tool_call_id"), name=plain.get("name")
    )
