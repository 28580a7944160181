"""Conversations in AI GO's two formats, chat messages and trace items, and model requests built from them.

Items created here set `type` and `role` explicitly: AI GO's JSON omits unset defaults, and a message without
a role would be parsed as another type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    CustomTaskInputMessage,
    CustomTaskOutputMessage,
    InputTextContent,
    Message,
    MessageRole,
    MessageStatus,
    OutputTextContent,
    RefusalContent,
    SolverTrace,
    TextContent,
    Trace,
    TraceItem,
)
from aigo_bridge.dtypes.base import maker
from aigo_bridge.dtypes.items import MessageContent, message_text
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.models.protocol import GENERATION_OPTIONS, ModelRequest
from aigo_bridge.spec.solvers import ChatInputBuilder, GenericInputBuilder
from aigo_bridge.templates import SampleTemplate

BuildInput = Callable[[Mapping[str, Any]], ModelRequest]
"""Sample data → request; raises `SampleError` with stage `solver`."""

COMPLETED = MessageStatus.completed

_message = maker(Message)
_input_text = maker(InputTextContent)
_output_text = maker(OutputTextContent)
_trace = maker(Trace)
_solver_trace = maker(SolverTrace)
_input_message = maker(ChatCompletionInputMessage)
_chat_input = maker(ChatCompletionInput)
_output_message = maker(ChatCompletionOutputMessage)
_output_choice = maker(ChatCompletionModelOutputChoice)
_model_output = maker(ChatCompletionModelOutput)


def input_item(message: ChatCompletionInputMessage | ChatCompletionOutputMessage) -> Message:
    """Convert a chat message to a trace item; an assistant message becomes output text."""
    text = message.content if isinstance(message.content, str) else ""
    if message.role != "assistant":
        return text_item(message.role, text)
    if isinstance(message, ChatCompletionOutputMessage):
        return assistant_item(text, refusal=message.refusal)
    # Asking pydantic for a missing field costs more than the rest of this function.
    return assistant_item(text, refusal=(message.model_extra or {}).get("refusal"))


def text_item(role: str, text: str, *, refusal: str | None = None) -> Message:
    """Return a message with one text part: output text for the assistant, otherwise input text."""
    if role == "assistant":
        return assistant_item(text, refusal=refusal)
    return message_of(MessageRole(role), _input_text({"type": "input_text", "text": text}))


def assistant_item(text: str, *, refusal: str | None = None) -> Message:
    """Return an assistant message with one text part, and a refusal part if the model refused."""
    content: list[MessageContent] = [output_text(text)]
    if refusal:
        content.append(RefusalContent(type="refusal", refusal=refusal))
    return message_of(MessageRole.assistant, *content)


def output_text(text: str) -> OutputTextContent:
    """Return text that a model wrote, without citations."""
    return _output_text({"type": "output_text", "text": text, "annotations": []})


def message_of(
    role: MessageRole, *content: MessageContent, item_id: str = "", status: MessageStatus = COMPLETED
) -> Message:
    """Return a message with the given parts."""
    return _message({"type": "message", "id": item_id, "status": status, "role": role, "content": [*content]})


def output_items(output: ChatCompletionModelOutput) -> list[Message]:
    """Return the first choice of a chat output as items; an empty list without choices."""
    if not output.choices:
        return []
    message = output.choices[0].message
    return [assistant_item(message.content, refusal=message.refusal)]


def chat_output(text: str) -> ChatCompletionModelOutput:
    """Return a chat output with the single choice `text`, for answers without a model call of this
    program.
    """
    return _model_output({"choices": [output_choice(text)]})


def output_choice(text: str) -> ChatCompletionModelOutputChoice:
    """Return one choice of a chat output."""
    return _output_choice({"message": _output_message({"role": "assistant", "content": text})})


def misread_item(data: Any, items: Sequence[TraceItem]) -> str | None:
    """Return a problem if an item was parsed as opaque custom content only because it matches no other type;
    otherwise `None`.

    A custom item accepts any content and field. A malformed chat message would therefore be accepted and lost
    from the conversation.
    """
    for index, (raw, item) in enumerate(zip(data, items, strict=True)):
        custom = isinstance(item, CustomTaskInputMessage | CustomTaskOutputMessage)
        if custom and isinstance(raw, dict) and "type" not in raw:
            return f"items.{index}: 'type' is missing, and this is not a message with a list of content parts"
    return None


def last_text(items: Sequence[TraceItem]) -> str | None:
    """Return the text of the last assistant message at any position; `None` without one.

    `Trace.get_last_assistant_text` only searches after the first user message.
    """
    for item in reversed(items):
        if isinstance(item, Message) and item.role is MessageRole.assistant:
            return message_text(item)
    return None


def empty_trace() -> SolverTrace:
    """Return a solver output with an empty trace."""
    return _solver_trace({"trace": _trace({"items": []}), "raw_outputs": [], "direct_ios": []})


def chat_request(messages: Iterable[tuple[str, str]]) -> ModelRequest:
    """Return a request with plain messages from pairs of role (`user`, `system` or `assistant`) and text."""
    chat = [_input_message({"role": role, "content": text}) for role, text in messages]
    return ModelRequest(_chat_input({"messages": chat}))


def request_of_items(items: Iterable[TraceItem], options: Mapping[str, Any] | None = None) -> ModelRequest:
    """Return a request with the items of a trace; a plain chat if it can express them."""
    items = tuple(items)
    messages = [message for item in items if (message := _plain_message(item)) is not None]
    if len(messages) == len(items):
        return ModelRequest(_chat_input({"messages": messages}), options or {})
    return ModelRequest(_chat_input({"messages": []}), options or {}, items)


def _plain_message(item: TraceItem) -> ChatCompletionInputMessage | None:
    """Return the equivalent chat message of an item; `None` if there is no exact equivalent."""
    if not isinstance(item, Message) or len(item.content) != 1:
        return None
    (part,) = item.content
    text = part.text if isinstance(part, InputTextContent | OutputTextContent | TextContent) else None
    match item.role.value:
        case "system" | "user" | "assistant" as role if text is not None:
            return _input_message({"role": role, "content": text})
        case _:
            return None


def compile_input(builder: ChatInputBuilder | GenericInputBuilder) -> BuildInput:
    """Compile the input builder of a solver once."""
    if isinstance(builder, ChatInputBuilder):
        return _chat(builder)
    return _generic(builder)


def _chat(builder: ChatInputBuilder) -> BuildInput:
    messages = [(message.role, SampleTemplate(message.content)) for message in builder.input_messages]

    def build(sample: Mapping[str, Any]) -> ModelRequest:
        return chat_request((role, render(template, sample)) for role, template in messages)

    return build


def _generic(builder: GenericInputBuilder) -> BuildInput:
    template = SampleTemplate(builder.template)

    def build(sample: Mapping[str, Any]) -> ModelRequest:
        return request_from_body(body_from_template(template, sample))

    return build


def body_from_template(template: SampleTemplate, sample: Mapping[str, Any]) -> Any:
    """Render a JSON template for a sample and parse its output.

    Raises:
        SampleError: the template cannot be rendered, or its output is not JSON.
    """
    text = render(template, sample)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        shown = text.split("\n")[error.lineno - 1].strip()[:120]
        raise SampleError(
            f"the input template did not return JSON: {error.msg} at line {error.lineno}, column"
            f" {error.colno} ({shown!r})",
            stage="solver",
            hint=(
                "write {{ sample.x | tojson }} without quotes around it, so that quotes and newlines are"
                " escaped"
            ),
            kind="InvalidModelInput",
        ) from error
    except (ValueError, RecursionError) as error:  # Numbers with too many digits, and deeply nested lists.
        raise SampleError(
            f"the input template returned JSON that cannot be read: {error}",
            stage="solver",
            kind="InvalidModelInput",
        ) from error


def request_from_body(body: Any, *, source: str = "the input template") -> ModelRequest:
    """Convert a chat completion body (`messages`, `response_format`, generation options) to a request.

    Args:
        body: the body as JSON.
        source: origin of the body, for errors.

    Raises:
        SampleError: the body is invalid, or contains an option that would be lost.
    """
    if not isinstance(body, dict) or "messages" not in body:
        kind = f"an object with {sorted(body)}" if isinstance(body, dict) else f"a {type(body).__name__}"
        raise SampleError(
            f'{source} gave {kind}, expected an object with "messages"',
            stage="solver",
            kind="InvalidModelInput",
        )
    options = {name: value for name, value in body.items() if name not in ("messages", "response_format")}
    unknown = sorted(set(options) - GENERATION_OPTIONS)
    if unknown:
        raise SampleError(
            f"{source} asks for {', '.join(unknown)}, which would be lost",
            stage="solver",
            hint=f"known options: {', '.join(sorted(GENERATION_OPTIONS))}",
            kind="InvalidModelInput",
        )
    try:
        chat = ChatCompletionInput.model_validate(
            {name: body[name] for name in ("messages", "response_format") if name in body}
        )
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise SampleError(
            f"{source} did not return chat messages: {where}: {problem['msg']}",
            stage="solver",
            kind="InvalidModelInput",
        ) from error
    return ModelRequest(chat, options)


def request_of_value(value: Any) -> ModelRequest:
    """Return the request of a model that is not a chat model: one input, passed on unchanged."""
    item = CustomTaskInputMessage(type="custom_task_input_message", content=value)
    return ModelRequest(ChatCompletionInput(messages=[]), items=(item,))


def render(template: SampleTemplate, sample: Mapping[str, Any]) -> str:
    """Render a template for a sample; raise `SampleError` if that fails."""
    try:
        return template.render(sample=sample)
    except TemplateError as error:
        raise SampleError(str(error), stage="solver", kind="TemplateError") from error
