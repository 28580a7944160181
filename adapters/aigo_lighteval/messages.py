"""A request of the core → messages as chat completion endpoints take them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from aigo_bridge.dtypes import (
    CustomTaskInputMessage,
    CustomTaskOutputMessage,
    FunctionCall,
    FunctionCallOutput,
    InputFileContent,
    InputImageContent,
    Message,
    ReasoningTextContent,
    RefusalContent,
    SummaryTextContent,
    TraceItem,
)
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models import ModelRequest

ChatMessage = dict[str, Any]


def chat_messages(request: ModelRequest, stage: Stage) -> list[ChatMessage]:
    """The messages of a request; earlier reasoning is not told again.

    Raises:
        SampleError: something in them has no form in a chat.
    """
    if request.items is not None:
        return _of_items(request.items, stage)
    found: list[ChatMessage] = []
    for message in request.input.messages:
        if not isinstance(message.content, str):
            raise _unsupported(
                "a message refers to a file by id, which endpoints cannot resolve",
                stage,
                "put the text into the message",
            )
        found.append({"role": message.role, "content": message.content})
    return found


def text_of(message: ChatMessage) -> str:
    """The text of a chat message, parts joined by line breaks."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _of_items(items: Iterable[TraceItem], stage: Stage) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    for item in items:
        match item:
            case FunctionCall():
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": ""})
                function = {"name": item.name, "arguments": item.arguments}
                call = {"id": item.call_id, "type": "function", "function": function}
                messages[-1].setdefault("tool_calls", []).append(call)
            case FunctionCallOutput():
                content = item.output if isinstance(item.output, str) else _content(item.output, stage)
                messages.append({"role": "tool", "content": content, "tool_call_id": item.call_id})
            case Message():
                if item.content and all(_is_reasoning(part) for part in item.content):
                    continue
                role = "system" if item.role.value == "developer" else item.role.value
                messages.append({"role": role, "content": _content(item.content, stage)})
            case CustomTaskInputMessage() | CustomTaskOutputMessage():
                role = "user" if isinstance(item, CustomTaskInputMessage) else "assistant"
                opaque = item.content
                text = opaque if isinstance(opaque, str) else orjson.dumps(opaque, default=str).decode()
                messages.append({"role": role, "content": text})
    return messages


def _content(parts: Sequence[Any], stage: Stage) -> str | list[dict[str, Any]]:
    found = [_part(part, stage) for part in parts if not _is_reasoning(part)]
    if all(part["type"] == "text" for part in found):
        return "\n".join(part["text"] for part in found)
    return found


def _is_reasoning(part: object) -> bool:
    return isinstance(part, ReasoningTextContent | SummaryTextContent)


def _part(part: Any, stage: Stage) -> dict[str, Any]:
    match part:
        case RefusalContent():
            return {"type": "text", "text": part.refusal}
        case InputImageContent(image_url=str(url)):
            return {"type": "image_url", "image_url": {"url": url, "detail": str(part.detail.value)}}
        case InputFileContent(file_url=str(url)):
            return {"type": "file", "file": {"filename": part.filename or "file", "file_data": url}}
    text = getattr(part, "text", None)
    if not isinstance(text, str):
        raise _unsupported(
            f"a message has a part of type {part.type!r}, which endpoints are not told of", stage
        )
    return {"type": "text", "text": text}


def _unsupported(message: str, stage: Stage, hint: str | None = None) -> SampleError:
    return SampleError(message, stage=stage, hint=hint, kind="UnsupportedContent")
