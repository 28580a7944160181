"""A call as Inspect makes it → what an AI GO model is asked: messages, response format, options under their usual names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolFunction, ToolInfo

from aigo_bridge.connections import CallError, CallInput

MODEL_INPUT = "aigo_input"
"""Key of a message's metadata: its text is the whole input of the model, as JSON."""

_OPTIONS: Mapping[str, str] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "max_tokens",
    "stop_seqs": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logit_bias": "logit_bias",
    "logprobs": "logprobs",
    "top_logprobs": "top_logprobs",
    "num_choices": "n",
    "reasoning_effort": "reasoning_effort",
    "parallel_tool_calls": "parallel_tool_calls",
}
"""Field of Inspect's `GenerateConfig` → its name in a chat completion request."""


def input_message(value: Any) -> ChatMessageUser:
    """A model input that is no chat (custom tasks, embeddings), as the one message of a call."""
    return ChatMessageUser(content=json.dumps(value, ensure_ascii=False), metadata={MODEL_INPUT: True})


def call_input(
    task: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolInfo],
    tool_choice: ToolChoice,
    config: GenerateConfig,
    sample: Mapping[str, Any] | None,
) -> CallInput:
    """What the model is asked.

    Raises:
        CallError: a message has a part that endpoints are not told of.
    """
    options = options_of(config)
    if tools:
        options["tools"] = [_tool(tool) for tool in tools]
        options["tool_choice"] = (
            {"type": "function", "function": {"name": tool_choice.name}}
            if isinstance(tool_choice, ToolFunction)
            else {"any": "required"}.get(tool_choice, tool_choice)
        )
    if len(messages) == 1 and (messages[0].metadata or {}).get(MODEL_INPUT):
        return CallInput(json.loads(messages[0].text), options, sample)
    if task == "embeddings":
        return CallInput([message.text for message in messages], options, sample)
    chat: dict[str, Any] = {"messages": [chat_message(message) for message in messages]}
    if (schema := config.response_schema) is not None:
        described = {"description": schema.description} if schema.description is not None else {}
        chat["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": schema.name,
                **described,
                "schema": schema.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True),
                "strict": schema.strict is not False,
            },
        }
    return CallInput(chat, options, sample)


def options_of(config: GenerateConfig) -> dict[str, Any]:
    """Generation options that are set."""
    found = {name: value for field, name in _OPTIONS.items() if (value := getattr(config, field)) is not None}
    return {**found, **(config.extra_body or {})}


def _tool(tool: ToolInfo) -> dict[str, Any]:
    parameters = tool.parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def chat_message(message: ChatMessage) -> dict[str, Any]:
    """A message in the chat form; with parts where it is more than text. Earlier reasoning is not told."""
    found: dict[str, Any] = {"role": message.role, "content": _content(message.content)}
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        found["tool_calls"] = [_call(call) for call in message.tool_calls]
    if isinstance(message, ChatMessageTool):
        found["tool_call_id"] = message.tool_call_id or ""
        if not found["content"] and message.error is not None:
            found["content"] = message.error.message
    return found


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.function, "arguments": arguments}}


def _content(content: str | list[Content]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts = [part for part in content if not isinstance(part, ContentReasoning)]
    texts = [part.text for part in parts if isinstance(part, ContentText)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    return [_part(part) for part in parts]


def _part(part: Content) -> dict[str, Any]:
    match part:
        case ContentText():
            return {"type": "text", "text": part.text}
        case ContentImage():
            return {"type": "image_url", "image_url": {"url": part.image, "detail": part.detail}}
        case ContentAudio():
            data = part.audio.partition("base64,")[2] or part.audio
            return {"type": "input_audio", "input_audio": {"data": data, "format": part.format}}
        case ContentDocument():
            return {"type": "file", "file": {"filename": part.filename, "file_data": part.document}}
        case _:
            raise CallError(
                f"a message has a part of type {part.type!r}, which endpoints are not told of", "invalid"
            )
