"""Items of a trace: messages with parts, tool calls with results, and opaque items of custom tasks."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from aigo_bridge.dtypes.base import ByType, OpenFieldsModel, OpenResponsesModel
from aigo_bridge.dtypes.enums import (
    FunctionCallOutputStatusEnum,
    FunctionCallStatus,
    ImageDetail,
    MessageRole,
    MessageStatus,
)


class UrlCitationBody(OpenResponsesModel):
    """Web page on which a part of the text is based."""

    type: Literal["url_citation"] = "url_citation"
    """Always `url_citation`."""
    url: str
    """URL of the page."""
    start_index: int
    """Index of the first character of the text that the citation covers."""
    end_index: int
    """Index of the last character of the text that the citation covers."""
    title: str
    """Title of the page."""


class TextCitationBody(OpenResponsesModel):
    """Text on which the answer is based, such as a retrieved passage."""

    type: Literal["text_citation"] = "text_citation"
    """Always `text_citation`."""
    content: str
    """Text of the passage."""


class TopLogProb(OpenResponsesModel):
    """One of the most likely tokens at a position."""

    token: str
    """Text of the token."""
    logprob: float
    """Natural logarithm of the token's probability."""
    bytes: list[int]
    """UTF-8 bytes of the token, 0 to 255 each. A token may be part of a character."""


class LogProb(OpenResponsesModel):
    """Token that was chosen at a position, with its alternatives."""

    token: str
    """Text of the token."""
    logprob: float
    """Natural logarithm of the token's probability."""
    bytes: list[int]
    """UTF-8 bytes of the token, 0 to 255 each. A token may be part of a character."""
    top_logprobs: list[TopLogProb]
    """Most likely tokens at this position. The request sets their number."""


Annotation = Annotated[UrlCitationBody | TextCitationBody, ByType()]


class InputTextContent(OpenResponsesModel):
    """Text that was sent to the model."""

    type: Literal["input_text"] = "input_text"
    """Always `input_text`."""
    text: str
    """The text."""


class OutputTextContent(OpenResponsesModel):
    """Text that the model generated."""

    type: Literal["output_text"] = "output_text"
    """Always `output_text`."""
    text: str
    """The text."""
    annotations: list[Annotation]
    """Citations in the text."""
    logprobs: list[LogProb] | None = None
    """Token probabilities; `None` if they were not requested."""


class TextContent(OpenResponsesModel):
    """Text of unspecified origin."""

    type: Literal["text"] = "text"
    """Always `text`."""
    text: str
    """The text."""


class SummaryTextContent(OpenResponsesModel):
    """Summary of the model's reasoning."""

    type: Literal["summary_text"] = "summary_text"
    """Always `summary_text`."""
    text: str
    """The summary."""


class ReasoningTextContent(OpenResponsesModel):
    """Full text of the model's reasoning."""

    type: Literal["reasoning_text"] = "reasoning_text"
    """Always `reasoning_text`."""
    text: str
    """The reasoning."""


class RefusalContent(OpenResponsesModel):
    """Refusal of the model to answer."""

    type: Literal["refusal"] = "refusal"
    """Always `refusal`."""
    refusal: str
    """Refusal text."""


class InputImageContent(OpenResponsesModel):
    """Image that was sent to the model."""

    type: Literal["input_image"] = "input_image"
    """Always `input_image`."""
    image_url: str | None = None
    """URL of the image, or a `data:` URL that contains it."""
    detail: ImageDetail
    """Resolution at which the model processes the image."""


class InputFileContent(OpenResponsesModel):
    """File that was sent to the model."""

    type: Literal["input_file"] = "input_file"
    """Always `input_file`."""
    filename: str | None = None
    """Name of the file, visible to the model."""
    file_url: str | None = None
    """URL of the file, or a `data:` URL that contains it."""


class InputVideoContent(OpenResponsesModel):
    """Video that was sent to the model."""

    type: Literal["input_video"] = "input_video"
    """Always `input_video`."""
    video_url: str
    """URL of the video, or a `data:` URL that contains it."""


MessageContent = (
    InputTextContent
    | OutputTextContent
    | TextContent
    | SummaryTextContent
    | ReasoningTextContent
    | RefusalContent
    | InputImageContent
    | InputFileContent
    | InputVideoContent
)
"""Part of a message."""

MessageContentField = Annotated[MessageContent, ByType()]

ToolResultContent = InputTextContent | InputImageContent | InputFileContent
"""Part of a tool result."""

ToolResultContentField = Annotated[ToolResultContent, ByType()]

TEXT_CONTENT = (
    InputTextContent,
    OutputTextContent,
    TextContent,
    SummaryTextContent,
    ReasoningTextContent,
)
"""Parts whose `text` is part of the message text."""


class ContentList(list[Any]):
    """List of content parts. Its text is the text of the parts, one per line."""

    def __str__(self) -> str:
        return "\n".join(map(str, filter(_has_text, self)))


def _has_text(part: object) -> bool:
    return isinstance(part, (*TEXT_CONTENT, RefusalContent))


class Message(OpenResponsesModel):
    """Message to or from the model. Messages read from data have this class, independent of their role."""

    type: Literal["message"] = "message"
    """Always `message`."""
    id: str
    """Identifier within the trace. It may be empty and is then not unique."""
    status: MessageStatus
    """Whether the message is complete."""
    role: MessageRole
    """Author of the message."""
    content: Annotated[list[MessageContentField], AfterValidator(ContentList)]
    """Parts of the message in order; may be empty."""


class UserMessage(Message):
    """Message from the user."""

    role: Literal[MessageRole.user] = MessageRole.user
    """Member `MessageRole.user`; its text is rejected. To read a message from data, use `Message`."""


class AssistantMessage(Message):
    """Message from the model."""

    role: Literal[MessageRole.assistant] = MessageRole.assistant
    """Member `MessageRole.assistant`; its text is rejected."""


class SystemMessage(Message):
    """System instruction for the conversation."""

    role: Literal[MessageRole.system] = MessageRole.system
    """Member `MessageRole.system`; its text is rejected."""


def message_text(message: Message) -> str:
    """Return the text of a message: text parts, reasoning, summaries and refusals, one per line."""
    return str(ContentList(message.content))


class FunctionCall(OpenResponsesModel):
    """Tool call that the model requested."""

    type: Literal["function_call"] = "function_call"
    """Always `function_call`."""
    id: str
    """Identifier of this item."""
    call_id: str
    """Identifier of the call, which its result repeats."""
    name: str
    """Name of the tool."""
    arguments: str
    """Arguments as JSON text, exactly as the model wrote them; may be invalid."""
    status: FunctionCallStatus
    """Whether the call is complete."""


class FunctionCallOutput(OpenResponsesModel):
    """Result of a tool call."""

    type: Literal["function_call_output"] = "function_call_output"
    """Always `function_call_output`."""
    id: str
    """Identifier of this item."""
    call_id: str
    """Identifier of the call that the result belongs to."""
    output: str | Annotated[list[ToolResultContentField], AfterValidator(ContentList)]
    """Result: text, or a list of texts, images and files."""
    status: FunctionCallOutputStatusEnum
    """Whether the result is complete."""


class CustomTaskInputMessage(OpenFieldsModel):
    """Input of a custom model, in a task-specific form."""

    type: Literal["custom_task_input_message"] = "custom_task_input_message"
    """Always `custom_task_input_message`."""
    content: Any
    """Input; any JSON value, including null."""


class CustomTaskOutputMessage(OpenFieldsModel):
    """Output of a custom model, in a task-specific form."""

    type: Literal["custom_task_output_message"] = "custom_task_output_message"
    """Always `custom_task_output_message`."""
    content: Any
    """Output; any JSON value, including null."""


TraceItem = Message | FunctionCall | FunctionCallOutput | CustomTaskInputMessage | CustomTaskOutputMessage
"""Element of a trace."""

ConversationItem = Message | CustomTaskInputMessage | CustomTaskOutputMessage
"""Element of a conversation, without tools."""

TraceItemField = Annotated[TraceItem, ByType()]
ConversationItemField = Annotated[ConversationItem, ByType()]


SYNTHETIC_MESSAGE_ID = ""
"""Identifier of messages that were created locally instead of received."""

SYNTHETIC_MESSAGE_STATUS = MessageStatus.completed
"""Status of messages that were created locally instead of received."""


def is_trace_item(value: Any) -> bool:
    """Return whether a value is an item of a trace."""
    return isinstance(value, TraceItem)


def last_assistant_message(items: Sequence[TraceItem]) -> Message | None:
    """Return the last assistant message; `None` if there is none."""
    for item in reversed(items):
        if isinstance(item, Message) and item.role is MessageRole.assistant:
            return item
    return None


def tool_result_text(output: FunctionCallOutput) -> str:
    """Return the text of a tool result: the text itself, or its text parts, one per line."""
    return output.output if isinstance(output.output, str) else str(ContentList(output.output))


CallPair = tuple[FunctionCall, FunctionCallOutput | None]


def paired(calls: Iterable[FunctionCall], outputs: Iterable[FunctionCallOutput]) -> list[CallPair]:
    """Return every call in order with the last result of its `call_id`; `None` for a missing result."""
    answers = {output.call_id: output for output in outputs}
    return [(call, answers.get(call.call_id)) for call in calls]
