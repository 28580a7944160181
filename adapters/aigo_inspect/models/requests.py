"""Conversion of requests and answers between the core and Inspect.

A request of the core becomes Inspect's messages and config. In the other direction, Inspect's call becomes
the input of an AI GO model, whose answer becomes Inspect's output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
    StopReason,
    TopLogprob,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolFunction, ToolInfo
from inspect_ai.util import JSONSchema
from pydantic import TypeAdapter, ValidationError

from aigo_bridge.dtypes import (
    ChatCompletionInputMessage,
    ChatCompletionOutputMessage,
    ChatCompletionResponseFormatJSONSchema,
    CustomTaskInputMessage,
)
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models.connections import CallError, CallInput, Choice, MLTask, Reply, ToolCallReply
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.text.plurals import plural
from aigo_inspect.models.messages import messages_of

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
"""Chat completion option → field of Inspect's `GenerateConfig`."""


def native_messages(request: ModelRequest, stage: Stage) -> list[ChatMessage]:
    """Convert the conversation of a request to Inspect's messages.

    Raises:
        SampleError: Inspect cannot represent a part of the conversation.
    """
    if request.items is None:
        return [_native_message(message, stage) for message in request.input.messages]
    items = [item.model_dump(mode="json", exclude_unset=False) for item in request.items]
    for item in items:
        _check_item(item, stage)
    try:
        return _MESSAGES.validate_python(_with_reasoning(messages_of(items)))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise _unsupported(
            f"the conversation cannot be expressed in Inspect: {where}: {problem['msg']}", stage
        ) from error


def _check_item(item: Mapping[str, Any], stage: Stage) -> None:
    kind = item["type"]
    if kind.startswith("custom_task"):
        raise _unsupported(
            "the conversation has an item of a custom task, which chat models do not accept", stage
        )
    content = item.get("content") or item.get("output") or []
    for part in content if isinstance(content, list) else []:
        source = {
            "input_image": part.get("image_url"),
            "input_file": part.get("file_url"),
            "input_video": part.get("video_url"),
        }.get(part["type"], "data:")
        # Inspect would treat any other value as a local file and send its content to the provider.
        if not str(source or "").lower().startswith(("http://", "https://", "data:")):
            address = "no address" if not source else f"the address {str(source)[:80]!r}"
            raise _unsupported(
                f"a part of type {part['type']} has {address}, expected an http or data URL", stage
            )


def _with_reasoning(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge reasoning messages into the assistant message that follows them. AI GO stores reasoning as
    separate items.
    """
    joined: list[dict[str, Any]] = []
    for message in messages:
        previous = joined[-1] if joined else None
        if previous is not None and message["role"] == "assistant" and _is_reasoning(previous):
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            joined[-1] = {**message, "content": [*previous["content"], *parts]}
            if previous.get("tool_calls"):
                joined[-1]["tool_calls"] = [*previous["tool_calls"], *message.get("tool_calls", [])]
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
    """Convert the options of a request to Inspect's config. A value of the wrong type fails the sample."""
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
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise SampleError(
            f"the model's options are not valid: {where}: {problem['msg']}",
            stage=stage,
            kind="InvalidModelInput",
        ) from error


def opaque_input(request: ModelRequest, task: MLTask, key: str, stage: Stage) -> Any:
    """Return the input of a model that is not for chat: the only custom input of the request, or its chat as
    JSON.

    Args:
        request: the request to convert.
        task: ML task of the model.
        key: name of the model in error messages.
        stage: stage of a raised error.

    Raises:
        SampleError: the request is a conversation, and the model creates embeddings or the conversation has
            several parts.
    """
    items = request.items or ()
    if len(items) == 1 and isinstance(items[0], CustomTaskInputMessage):
        return items[0].content
    if task == "embeddings":
        raise SampleError(
            f"model {key!r} creates embeddings and cannot hold a conversation",
            stage=stage,
            hint="evaluate a model whose task is chat_completion, or give it a list of texts",
            kind="UnsupportedModel",
        )
    if items:
        raise _unsupported(
            f"model {key!r} has a custom task and takes one input,"
            f" found a conversation of {plural(len(items), 'item')}",
            stage,
        )
    # The input of the task, which has the form of a chat.
    return {**request.input.model_dump(mode="json", by_alias=True, exclude_unset=True), **request.options}


def _unsupported(message: str, stage: Stage, hint: str | None = None) -> SampleError:
    return SampleError(message, stage=stage, hint=hint, kind="UnsupportedContent")


# Calls of AI GO models: messages, response format, options under their usual names


MODEL_INPUT = "aigo_input"
"""Metadata key of a message whose text is the whole model input, as JSON."""

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
"""Field of Inspect's `GenerateConfig` → option name in a chat completion request."""


def input_message(value: Any) -> ChatMessageUser:
    """Wrap a model input that is not a chat (custom tasks, embeddings) in a single message."""
    return ChatMessageUser(content=json.dumps(value, ensure_ascii=False), metadata={MODEL_INPUT: True})


def call_input(
    task: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolInfo],
    tool_choice: ToolChoice,
    config: GenerateConfig,
    sample: Mapping[str, Any] | None,
) -> CallInput:
    """Convert the arguments of Inspect's call to a model input.

    Raises:
        CallError: a message has a part that endpoints do not support.
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
    """Return the generation options that are set."""
    options = {
        name: value for field, name in _OPTIONS.items() if (value := getattr(config, field)) is not None
    }
    return {**options, **(config.extra_body or {})}


def _tool(tool: ToolInfo) -> dict[str, Any]:
    parameters = tool.parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def chat_message(message: ChatMessage) -> dict[str, Any]:
    """Convert a message to the chat form, with parts if it contains more than text. Earlier reasoning is left
    out.
    """
    chat: dict[str, Any] = {"role": message.role, "content": _content(message.content)}
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        chat["tool_calls"] = [_call(call) for call in message.tool_calls]
    if isinstance(message, ChatMessageTool):
        chat["tool_call_id"] = message.tool_call_id or ""
        if not chat["content"] and message.error is not None:
            chat["content"] = message.error.message
    return chat


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
                f"a message has a part of type {part.type!r}, which endpoints do not support", "invalid"
            )


# Answers


RAW_OUTPUT = "aigo_output"
"""Key in `ModelOutput.metadata` for an answer that Inspect's types cannot hold. The value has the ML `task`
of the model and the `output` in AI GO's form."""

_STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "model_length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""Stop reason of an endpoint → Inspect's stop reason."""


def model_output(name: str, task: str, reply: Reply) -> ModelOutput:
    """Convert an answer to Inspect's output."""
    usage = reply.usage
    choices = [_choice(name, choice) for choice in reply.choices] or [_opaque(name, reply)]
    metadata = (
        None if reply.choices and reply.raw is None else {RAW_OUTPUT: {"task": task, "output": reply.raw}}
    )
    return ModelOutput(
        model=reply.model or name,
        choices=choices,
        usage=None
        if usage is None
        else ModelUsage(
            input_tokens=max(0, (usage.prompt or 0) - (usage.cached or 0)),
            output_tokens=usage.completion or 0,
            total_tokens=(usage.prompt or 0) + (usage.completion or 0),
            input_tokens_cache_read=usage.cached,
            reasoning_tokens=usage.reasoning,
        ),
        metadata=metadata,
    )


def _choice(name: str, choice: Choice) -> ChatCompletionChoice:
    content: str | list[Content] = choice.text
    if choice.reasoning is not None or choice.refusal is not None:
        parts: list[Content] = (
            [] if choice.reasoning is None else [ContentReasoning(reasoning=choice.reasoning)]
        )
        if choice.text or choice.refusal is None:
            parts.append(ContentText(text=choice.text))
        if choice.refusal is not None:
            parts.append(ContentText(text=choice.refusal, refusal=True))
        content = parts
    calls = [_tool_call(call) for call in choice.tool_calls]
    logprobs = [_logprob(token) for token in choice.logprobs]
    stop: StopReason = "tool_calls" if calls else "stop"
    if choice.finish_reason is not None:
        stop = _STOP_REASONS.get(choice.finish_reason.lower(), "unknown")
    return ChatCompletionChoice(
        message=ChatMessageAssistant(
            content=content, tool_calls=calls or None, model=name, source="generate"
        ),
        stop_reason=stop,
        logprobs=Logprobs(content=logprobs) if logprobs else None,
    )


def _tool_call(call: ToolCallReply) -> ToolCall:
    try:
        arguments = json.loads(call.arguments or "{}")
        problem = None if isinstance(arguments, dict) else "expected an object"
    except ValueError as error:
        arguments, problem = None, str(error)
    return ToolCall(
        id=call.call_id,
        function=call.name,
        arguments=arguments if isinstance(arguments, dict) else {},
        parse_error=None if problem is None else f"arguments {call.arguments!r}: {problem}",
    )


def _logprob(token: Mapping[str, Any]) -> Logprob:
    tops = [
        TopLogprob(token=top["token"], logprob=top["logprob"], bytes=top.get("bytes"))
        for top in token.get("top_logprobs") or []
    ]
    return Logprob(
        token=token["token"], logprob=token["logprob"], bytes=token.get("bytes"), top_logprobs=tops or None
    )


def _opaque(name: str, reply: Reply) -> ChatCompletionChoice:
    """Return a text form of an answer that is not a chat message, for Inspect's log viewer."""
    value = reply.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return ChatCompletionChoice(
        message=ChatMessageAssistant(content=text, model=name, source="generate"), stop_reason="stop"
    )
