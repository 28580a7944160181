"""Between AI GO's two forms of a conversation: chat messages, and trace items.

Items made here carry `type` and `role` explicitly: unset defaults are left out of AI GO's JSON, and a message without a
role reads back as something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
from aigo_bridge.dtypes.content import MessageContent
from aigo_bridge.dtypes.making import maker
from aigo_bridge.dtypes.messages import message_text
from aigo_bridge.models import ModelRequest

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
    """A chat message as an item of the trace; a message by the assistant becomes output text."""
    text = message.content if isinstance(message.content, str) else ""
    if message.role != "assistant":
        return text_item(message.role, text)
    if isinstance(message, ChatCompletionOutputMessage):
        return assistant_item(text, refusal=message.refusal)
    # To ask pydantic for a field that is not there costs more than all of the rest.
    return assistant_item(text, refusal=(message.model_extra or {}).get("refusal"))


def text_item(role: str, text: str, *, refusal: str | None = None) -> Message:
    """A message with one text part: input text, or for the assistant output text."""
    if role == "assistant":
        return assistant_item(text, refusal=refusal)
    return message_of(MessageRole(role), _input_text({"type": "input_text", "text": text}))


def assistant_item(text: str, *, refusal: str | None = None) -> Message:
    """An assistant's message with one text part (and a refusal part, when it refused)."""
    content: list[MessageContent] = [output_text(text)]
    if refusal:
        content.append(RefusalContent(type="refusal", refusal=refusal))
    return message_of(MessageRole.assistant, *content)


def output_text(text: str) -> OutputTextContent:
    """Text that a model wrote, which cites nothing."""
    return _output_text({"type": "output_text", "text": text, "annotations": []})


def message_of(
    role: MessageRole, *content: MessageContent, item_id: str = "", status: MessageStatus = COMPLETED
) -> Message:
    """A message of the given parts, whatever they are."""
    return _message({"type": "message", "id": item_id, "status": status, "role": role, "content": [*content]})


def output_items(output: ChatCompletionModelOutput) -> list[Message]:
    """The first choice of a chat output as items; no choice, no item."""
    if not output.choices:
        return []
    message = output.choices[0].message
    return [assistant_item(message.content, refusal=message.refusal)]


def chat_output(text: str) -> ChatCompletionModelOutput:
    """A chat output whose only choice says `text`, for answers that no model call of ours gave."""
    return _model_output({"choices": [output_choice(text)]})


def output_choice(text: str) -> ChatCompletionModelOutputChoice:
    """One answer of a chat output."""
    return _output_choice({"message": _output_message({"role": "assistant", "content": text})})


def misread_item(data: Any, items: Sequence[TraceItem]) -> str | None:
    """Which item was read as opaque content of a custom task only because it fits nothing else; `None`: none was.

    A custom item takes any content and any field, so a chat message in its place would be read without complaint, and
    the conversation would lose it.
    """
    for index, (raw, item) in enumerate(zip(data, items, strict=True)):
        custom = isinstance(item, CustomTaskInputMessage | CustomTaskOutputMessage)
        if custom and isinstance(raw, dict) and "type" not in raw:
            return f"items.{index}: has no type, and is no message with a list of content parts"
    return None


def last_text(items: Sequence[TraceItem]) -> str | None:
    """Text of the last message by the assistant, wherever it stands; `None` without one.

    `Trace.get_last_assistant_text` looks only behind the first user message.
    """
    for item in reversed(items):
        if isinstance(item, Message) and item.role is MessageRole.assistant:
            return message_text(item)
    return None


def empty_trace() -> SolverTrace:
    """A solver's output before anything was said."""
    return _solver_trace({"trace": _trace({"items": []}), "raw_outputs": [], "direct_ios": []})


def chat_request(messages: Iterable[tuple[str, str]]) -> ModelRequest:
    """A request of plain messages: the role (`user`, `system` or `assistant`) and the text of each."""
    found = [_input_message({"role": role, "content": text}) for role, text in messages]
    return ModelRequest(_chat_input({"messages": found}))


def request_of_items(items: Iterable[TraceItem], options: Mapping[str, Any] | None = None) -> ModelRequest:
    """A request whose conversation is a trace's, as it is now; a plain chat where that says the same."""
    items = tuple(items)
    messages = [message for item in items if (message := _plain_message(item)) is not None]
    if len(messages) == len(items):
        return ModelRequest(_chat_input({"messages": messages}), options or {})
    return ModelRequest(_chat_input({"messages": []}), options or {}, items)


def _plain_message(item: TraceItem) -> ChatCompletionInputMessage | None:
    """The chat message that says all that a model would be told of the item."""
    if not isinstance(item, Message) or len(item.content) != 1:
        return None
    (part,) = item.content
    text = part.text if isinstance(part, InputTextContent | OutputTextContent | TextContent) else None
    match item.role.value:
        case "system" | "user" | "assistant" as role if text is not None:
            return _input_message({"role": role, "content": text})
        case _:
            return None
