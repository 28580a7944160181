"""Between the two message formats: chat messages and items of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aigo_bridge.dtypes.chat import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    EmbeddingsModelOutput,
    RAGCompletionModelOutputChoice,
    RAGCompletionOutput,
)
from aigo_bridge.dtypes.content import InputTextContent, OutputTextContent, TextCitationBody
from aigo_bridge.dtypes.enums import MessageRole, MessageStatus
from aigo_bridge.dtypes.items import CustomTaskInputMessage, CustomTaskOutputMessage, TraceItem
from aigo_bridge.dtypes.messages import AssistantMessage, Message, SystemMessage, UserMessage, message_text
from aigo_bridge.dtypes.model_io import OpenResponsesModelOutput

Choice = ChatCompletionModelOutputChoice | RAGCompletionModelOutputChoice


def user_message(text: str) -> UserMessage:
    """A user message with one text part, as solvers add it."""
    return UserMessage(
        id="",
        status=MessageStatus.completed,
        role=MessageRole.user,
        content=[InputTextContent(text=text)],
    )


def system_message(text: str) -> SystemMessage:
    """A system message with one text part, as solvers add it."""
    return SystemMessage(
        id="",
        status=MessageStatus.completed,
        role=MessageRole.system,
        content=[InputTextContent(text=text)],
    )


def assistant_message(text: str, citations: Iterable[str] = ()) -> AssistantMessage:
    """An assistant message with one text part that cites `citations`."""
    annotations = [TextCitationBody(content=citation) for citation in citations]
    return AssistantMessage(
        id="",
        status=MessageStatus.completed,
        role=MessageRole.assistant,
        content=[OutputTextContent(text=text, annotations=[*annotations])],
    )


def chat_messages(items: Iterable[TraceItem]) -> list[Any]:
    """The conversation in the chat form: user, system and assistant messages, contents of custom items.

    Tool calls, their answers and developer messages have no place in it.
    """
    messages: list[Any] = []
    for item in items:
        if isinstance(item, CustomTaskInputMessage | CustomTaskOutputMessage):
            messages.append(item.content)
        elif isinstance(item, Message):
            if item.role is MessageRole.assistant:
                messages.append(ChatCompletionOutputMessage(role="assistant", content=message_text(item)))
            elif item.role is MessageRole.user:
                messages.append(ChatCompletionInputMessage(role="user", content=message_text(item)))
            elif item.role is MessageRole.system:
                messages.append(ChatCompletionInputMessage(role="system", content=message_text(item)))
    return messages


def chat_output(output: OpenResponsesModelOutput) -> ChatCompletionModelOutput:
    """An answer in items as a chat answer: the text of its last assistant message, no choice without one."""
    message = last_assistant_message(output.items)
    choices = []
    if message is not None:
        choices.append(
            ChatCompletionModelOutputChoice(
                message=ChatCompletionOutputMessage(role="assistant", content=message_text(message))
            )
        )
    return ChatCompletionModelOutput(choices=choices, usage=output.usage)


def last_assistant_message(items: Iterable[TraceItem]) -> Message | None:
    """The last assistant message, `None` without one."""
    found = None
    for item in items:
        if isinstance(item, Message) and item.role is MessageRole.assistant:
            found = item
    return found


def input_messages(model_input: Any) -> list[Any]:
    """A model's input as messages of the chat form; anything but a chat is one message."""
    return [*model_input.messages] if isinstance(model_input, ChatCompletionInput) else [model_input]


def output_message(model_output: Any) -> Any:
    """A model's output as one message of the chat form.

    Raises:
        ValueError: A chat output without choices, or items without an assistant message.
    """
    if isinstance(model_output, ChatCompletionModelOutput | RAGCompletionOutput):
        if not model_output.choices:
            raise ValueError("the model output has no choices")
        return model_output.choices[0].message
    if isinstance(model_output, EmbeddingsModelOutput):
        return model_output.embeddings
    if isinstance(model_output, OpenResponsesModelOutput):
        message = last_assistant_message(model_output.items)
        if message is None:
            raise ValueError("the model output has no assistant message")
        known = {"role": "assistant", "content": message_text(message)}
        return ChatCompletionOutputMessage.model_validate({**(message.model_extra or {}), **known})
    return model_output


def input_items(model_input: Any) -> list[TraceItem]:
    """A model's input as items; anything but a chat is one custom item."""
    if not isinstance(model_input, ChatCompletionInput):
        return [CustomTaskInputMessage(content=model_input)]
    return [chat_item(message) for message in model_input.messages]


def chat_item(message: ChatCompletionInputMessage | ChatCompletionOutputMessage) -> TraceItem:
    """A chat message as an item."""
    text = message.content if isinstance(message.content, str) else ""
    if message.role == "user":
        return user_message(text)
    return system_message(text) if message.role == "system" else assistant_message(text)


def output_items(model_output: Any) -> list[TraceItem]:
    """A model's output as items; what is neither items nor a chat is one custom item."""
    if isinstance(model_output, OpenResponsesModelOutput):
        return [*model_output.items]
    if isinstance(model_output, ChatCompletionModelOutput | RAGCompletionOutput):
        choices: list[Choice] = [*model_output.choices[:1]]
        return [assistant_message(choice.message.content, _citations(choice)) for choice in choices]
    return [CustomTaskOutputMessage(content=model_output)]


def _citations(choice: Choice) -> list[str]:
    if isinstance(choice, RAGCompletionModelOutputChoice):
        return [reference.content for reference in choice.references]
    return []
