"""A request of the core → Inspect's messages and config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ResponseSchema,
)
from inspect_ai.util import JSONSchema
from pydantic import TypeAdapter, ValidationError

from aigo_bridge.connections import Connection
from aigo_bridge.dtypes import (
    ChatCompletionInputMessage,
    ChatCompletionOutputMessage,
    ChatCompletionResponseFormatJSONSchema,
    CustomTaskInputMessage,
)
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models import ModelRequest
from aigo_inspect.native_messages import messages_of

_MESSAGES: TypeAdapter[list[ChatMessage]] = TypeAdapter(list[ChatMessage])

_OPTION_NAMES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "stop": "stop_seqs",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logprobs": "logprobs",
    "top_logprobs": "top_logprobs",
}
"""Chat completion option → the field of Inspect's `GenerateConfig`."""


def native_messages(request: ModelRequest, stage: Stage) -> list[ChatMessage]:
    """The conversation of a request as Inspect's messages.

    Raises:
        SampleError: a part of it has no place there.
    """
    if request.items is None:
        return [_native_message(message, stage) for message in request.input.messages]
    items = [item.model_dump(mode="json", exclude_unset=False) for item in request.items]
    for item in items:
        _check_item(item, stage)
    try:
        return _MESSAGES.validate_python(_with_reasoning(messages_of(items)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _unsupported(
            f"the conversation has no form in Inspect: {where}: {first['msg']}", stage
        ) from error


def _check_item(item: Mapping[str, Any], stage: Stage) -> None:
    kind = item["type"]
    if kind.startswith("custom_task"):
        raise _unsupported(
            "the conversation has an item of a custom task, which chat models do not take", stage
        )
    content = item.get("content") or item.get("output") or []
    for part in content if isinstance(content, list) else []:
        source = {
            "input_image": part.get("image_url"),
            "input_file": part.get("file_url"),
            "input_video": part.get("video_url"),
        }.get(part["type"], "data:")
        # Inspect would take anything else for a file of this machine, and send its content to the provider.
        if not str(source or "").lower().startswith(("http://", "https://", "data:")):
            found = "no address" if not source else f"the address {str(source)[:80]!r}"
            raise _unsupported(
                f"a part of type {part['type']} has {found}, expected an http or data URL", stage
            )


def _with_reasoning(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with reasoning back in the answer that it led to; in AI GO's items it stands in front of it."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is not None and message["role"] == "assistant" and _is_reasoning(before):
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            joined[-1] = {**message, "content": [*before["content"], *parts]}
            if before.get("tool_calls"):
                joined[-1]["tool_calls"] = [*before["tool_calls"], *message.get("tool_calls", [])]
        else:
            joined.append(message)
    return joined


def _is_reasoning(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return (
        message["role"] == "assistant"
        and isinstance(content, list)
        and bool(content)
        and all(part["type"] == "reasoning" for part in content)
    )


def _native_message(
    message: ChatCompletionInputMessage | ChatCompletionOutputMessage, stage: Stage
) -> ChatMessage:
    if not isinstance(message.content, str):
        raise _unsupported(
            "a message refers to a file by id, which Inspect cannot resolve",
            stage,
            "put the text into the message",
        )
    match message.role:
        case "system":
            return ChatMessageSystem(content=message.content)
        case "assistant":
            return ChatMessageAssistant(content=message.content)
        case _:
            return ChatMessageUser(content=message.content)


def generate_config(request: ModelRequest, stage: Stage) -> GenerateConfig:
    """Inspect's typed config of a request; a value of the wrong type is an error of the sample."""
    values: dict[str, Any] = {_OPTION_NAMES[name]: value for name, value in request.options.items()}
    if isinstance(values.get("stop_seqs"), str):
        values["stop_seqs"] = [values["stop_seqs"]]
    response_format = request.input.response_format
    try:
        if isinstance(response_format, ChatCompletionResponseFormatJSONSchema):
            wanted = response_format.json_schema
            values["response_schema"] = ResponseSchema(
                name=wanted.name,
                description=wanted.description,
                json_schema=JSONSchema.model_validate(wanted.schema_dict or {}),
                strict=wanted.strict,
            )
        return GenerateConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SampleError(
            f"the model's options are not valid: {where}: {first['msg']}",
            stage=stage,
            kind="InvalidModelInput",
        ) from error


def opaque_input(request: ModelRequest, connection: Connection, stage: Stage) -> Any:
    """What a model that is not for chat is asked: the one custom input of the request, or its chat as JSON.

    Raises:
        SampleError: the request is a conversation, and the model makes embeddings or the conversation has several parts.
    """
    given = request.items or ()
    if len(given) == 1 and isinstance(given[0], CustomTaskInputMessage):
        return given[0].content
    if connection.task == "embeddings":
        raise SampleError(
            f"model {connection.key!r} makes embeddings and cannot answer a conversation",
            stage=stage,
            hint="evaluate a model whose task is chat_completion, or give it a list of texts",
            kind="UnsupportedModel",
        )
    if given:
        raise _unsupported(
            f"model {connection.key!r} is of a custom task and takes one input, found a conversation of {len(given)} items",
            stage,
        )
    # The task's own input, which looks like a chat.
    return {**request.input.model_dump(mode="json", by_alias=True, exclude_unset=True), **request.options}


def _unsupported(message: str, stage: Stage, hint: str | None = None) -> SampleError:
    return SampleError(message, stage=stage, hint=hint, kind="UnsupportedContent")
