"""Conversion between the two message formats: chat messages and items of a trace."""

from collections.abc import Iterable, Sequence

from aigo_bridge.dtypes.chat import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    EmbeddingsModelOutput,
    LFMessage,
    LFModelInput,
    LFModelOutput,
    OpenResponsesModelOutput,
    RAGCompletionModelOutputChoice,
    RAGCompletionOutput,
)
from aigo_bridge.dtypes.enums import MessageRole, MessageStatus
from aigo_bridge.dtypes.items import (
    AssistantMessage,
    CustomTaskInputMessage,
    CustomTaskOutputMessage,
    InputTextContent,
    Message,
    OutputTextContent,
    SystemMessage,
    TextCitationBody,
    TraceItem,
    UserMessage,
    last_assistant_message,
    message_text,
)

Choice = ChatCompletionModelOutputChoice | RAGCompletionModelOutputChoice


def user_message(text: str) -> UserMessage:
    """Return a user message with one text part, in the form that solvers add it."""
    return UserMessage(
        id="",
        status=MessageStatus.completed,
        role=MessageRole.user,
        content=[InputTextContent(text=text)],
    )


def system_message(text: str) -> SystemMessage:
    """Return a system message with one text part, in the form that solvers add it."""
    return SystemMessage(
        id="",
        status=MessageStatus.completed,
        role=MessageRole.system,
        content=[InputTextContent(text=text)],
    )


def assistant_message(text: str, citations: Iterable[str] = ()) -> AssistantMessage:
    """Return an assistant message with one text part that cites `citations`."""
    annotations = [TextCitationBody(content=citation) for citation in citations]
    return AssistantMessage(
        id="",
        status=MessageStatus.completed,
        role=MessageRole.assistant,
        content=[OutputTextContent(text=text, annotations=[*annotations])],
    )


def trace_items_to_lf_messages(items: Sequence[TraceItem]) -> list[LFMessage]:
    """Convert items to the chat format. Tool calls, their results and developer messages are left out."""
    messages: list[LFMessage] = []
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
    """Convert items of an answer to a chat answer with the text of the last assistant message. Without such a
    message, it contains an empty list of choices.
    """
    message = last_assistant_message(output.items)
    choices = []
    if message is not None:
        choices.append(
            ChatCompletionModelOutputChoice(
                message=ChatCompletionOutputMessage(role="assistant", content=message_text(message))
            )
        )
    return ChatCompletionModelOutput(choices=choices, usage=output.usage)


def model_input_to_messages(model_input: LFModelInput) -> list[LFMessage]:
    """Return the messages of a chat. Any other input becomes one message."""
    return [*model_input.messages] if isinstance(model_input, ChatCompletionInput) else [model_input]


def model_output_to_message(model_output: LFModelOutput) -> LFMessage:
    """Return the message of the first choice, the embeddings, or any other output unchanged.

    Raises:
        ValueError: a chat output does not contain a choice, or items do not contain an assistant message.
    """
    if isinstance(model_output, ChatCompletionModelOutput | RAGCompletionOutput):
        if not model_output.choices:
            raise ValueError("the model output does not contain choices")
        return model_output.choices[0].message
    if isinstance(model_output, EmbeddingsModelOutput):
        return model_output.embeddings
    if isinstance(model_output, OpenResponsesModelOutput):
        message = last_assistant_message(model_output.items)
        if message is None:
            raise ValueError("the model output does not contain an assistant message")
        fields = {"role": "assistant", "content": message_text(message)}
        return ChatCompletionOutputMessage.model_validate({**(message.model_extra or {}), **fields})
    return model_output


def model_input_to_trace_items(model_input: LFModelInput) -> list[TraceItem]:
    """Convert the messages of a chat to items. Any other input becomes one custom item."""
    if not isinstance(model_input, ChatCompletionInput):
        return [CustomTaskInputMessage(content=model_input)]
    return [chat_item(message) for message in model_input.messages]


def lf_messages_to_trace_items(messages: Sequence[LFMessage]) -> list[TraceItem]:
    """Convert messages in the chat format to items. Any other message becomes a custom item."""
    items: list[TraceItem] = []
    for message in messages:
        if isinstance(message, ChatCompletionInputMessage | ChatCompletionOutputMessage):
            items.append(chat_item(message))
        else:
            items.append(CustomTaskInputMessage(content=message))
    return items


def chat_item(message: ChatCompletionInputMessage | ChatCompletionOutputMessage) -> TraceItem:
    """Convert a chat message to an item."""
    text = message.content if isinstance(message.content, str) else ""
    if message.role == "user":
        return user_message(text)
    return system_message(text) if message.role == "system" else assistant_message(text)


def model_output_to_trace_items(model_output: LFModelOutput) -> list[TraceItem]:
    """Return the items of an output: the first choice of a chat, otherwise one custom item."""
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
