"""The items of a trace: messages with their parts, tool calls with their answers, opaque items of custom
tasks.
"""

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
    """A web page that a stretch of the text is based on."""

    type: Literal["url_citation"] = "url_citation"
    """Always `url_citation`."""
    url: str
    """Address of the page."""
    start_index: int
    """Index of the first character of the text that the citation covers."""
    end_index: int
    """Index of the last character of the text that the citation covers."""
    title: str
    """Title of the page."""


class TextCitationBody(OpenResponsesModel):
    """A piece of text that the answer is based on, such as a passage found in a knowledge base."""

    type: Literal["text_citation"] = "text_citation"
    """Always `text_citation`."""
    content: str
    """The passage itself."""


class TopLogProb(OpenResponsesModel):
    """One of the likeliest tokens at a position."""

    token: str
    """The token as text."""
    logprob: float
    """Natural logarithm of its probability."""
    bytes: list[int]
    """Its UTF-8 bytes, 0 to 255 each; a token may be part of a character."""


class LogProb(OpenResponsesModel):
    """The token that was chosen at a position, with the candidates for it."""

    token: str
    """The token as text."""
    logprob: float
    """Natural logarithm of its probability."""
    bytes: list[int]
    """Its UTF-8 bytes, 0 to 255 each; a token may be part of a character."""
    top_logprobs: list[TopLogProb]
    """The likeliest tokens at this position, as many as were asked for."""


Annotation = Annotated[UrlCitationBody | TextCitationBody, ByType()]


class InputTextContent(OpenResponsesModel):
    """Text that was given to the model."""

    type: Literal["input_text"] = "input_text"
    """Always `input_text`."""
    text: str
    """The text."""


class OutputTextContent(OpenResponsesModel):
    """Text that the model wrote."""

    type: Literal["output_text"] = "output_text"
    """Always `output_text`."""
    text: str
    """The text."""
    annotations: list[Annotation]
    """Citations in the text."""
    logprobs: list[LogProb] | None = None
    """Token probabilities; `None` when they were not asked for."""


class TextContent(OpenResponsesModel):
    """Text of neither side in particular."""

    type: Literal["text"] = "text"
    """Always `text`."""
    text: str
    """The text."""


class SummaryTextContent(OpenResponsesModel):
    """The model's own summary of its reasoning."""

    type: Literal["summary_text"] = "summary_text"
    """Always `summary_text`."""
    text: str
    """The summary."""


class ReasoningTextContent(OpenResponsesModel):
    """The model's reasoning, word for word."""

    type: Literal["reasoning_text"] = "reasoning_text"
    """Always `reasoning_text`."""
    text: str
    """The reasoning."""


class RefusalContent(OpenResponsesModel):
    """The model's refusal to answer."""

    type: Literal["refusal"] = "refusal"
    """Always `refusal`."""
    refusal: str
    """Refusal text."""


class InputImageContent(OpenResponsesModel):
    """An image that was given to the model."""

    type: Literal["input_image"] = "input_image"
    """Always `input_image`."""
    image_url: str | None = None
    """Address of the image, or a `data:` URL that holds it."""
    detail: ImageDetail
    """Resolution for the model."""


class InputFileContent(OpenResponsesModel):
    """A file that was given to the model."""

    type: Literal["input_file"] = "input_file"
    """Always `input_file`."""
    filename: str | None = None
    """Name of the file as the model sees it."""
    file_url: str | None = None
    """Address of the file, or a `data:` URL that holds it."""


class InputVideoContent(OpenResponsesModel):
    """A video that was given to the model."""

    type: Literal["input_video"] = "input_video"
    """Always `input_video`."""
    video_url: str
    """Address of the video, or a `data:` URL that holds it."""


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
"""Every part that a message may have."""

MessageContentField = Annotated[MessageContent, ByType()]

ToolResultContent = InputTextContent | InputImageContent | InputFileContent
"""Every part that the answer of a tool may have."""

ToolResultContentField = Annotated[ToolResultContent, ByType()]

TEXT_CONTENT = (
    InputTextContent,
    OutputTextContent,
    TextContent,
    SummaryTextContent,
    ReasoningTextContent,
)
"""The parts whose `text` counts as text of the message."""


class ContentList(list[Any]):
    """Content parts; as text, the text of the parts, one per line."""

    def __str__(self) -> str:
        return "\n".join(map(str, filter(_has_text, self)))


def _has_text(part: object) -> bool:
    return isinstance(part, (*TEXT_CONTENT, RefusalContent))


class Message(OpenResponsesModel):
    """A message to or from the model. Messages read from data are of this class, whatever their role."""

    type: Literal["message"] = "message"
    """Always `message`."""
    id: str
    """Identifier within the trace; may be empty, and then is not unique."""
    status: MessageStatus
    """Whether the message is complete."""
    role: MessageRole
    """Author of the message."""
    content: Annotated[list[MessageContentField], AfterValidator(ContentList)]
    """Its parts in order; may be empty."""


class UserMessage(Message):
    """A message of the user."""

    role: Literal[MessageRole.user] = MessageRole.user
    """Always the member `MessageRole.user`; its text is refused. To read a message from data, use
    `Message`."""


class AssistantMessage(Message):
    """A message of the model."""

    role: Literal[MessageRole.assistant] = MessageRole.assistant
    """Always the member `MessageRole.assistant`; its text is refused."""


class SystemMessage(Message):
    """An instruction that stands above the conversation."""

    role: Literal[MessageRole.system] = MessageRole.system
    """Always the member `MessageRole.system`; its text is refused."""


def message_text(message: Message) -> str:
    """Text parts, reasoning and summaries included, and refusals, one per line; other parts are skipped."""
    return str(ContentList(message.content))


class FunctionCall(OpenResponsesModel):
    """A call of a tool, as the model asked for it."""

    type: Literal["function_call"] = "function_call"
    """Always `function_call`."""
    id: str
    """Identifier of this item."""
    call_id: str
    """Identifier of the call; its answer has the same one."""
    name: str
    """Name of the tool."""
    arguments: str
    """Arguments as JSON text, exactly as the model wrote them; they can be invalid."""
    status: FunctionCallStatus
    """Whether the call is complete."""


class FunctionCallOutput(OpenResponsesModel):
    """The answer of a tool."""

    type: Literal["function_call_output"] = "function_call_output"
    """Always `function_call_output`."""
    id: str
    """Identifier of this item."""
    call_id: str
    """Identifier of the call that is answered."""
    output: str | Annotated[list[ToolResultContentField], AfterValidator(ContentList)]
    """Answer: text, or a list of texts, images and files."""
    status: FunctionCallOutputStatusEnum
    """Whether the answer is complete."""


class CustomTaskInputMessage(OpenFieldsModel):
    """Input of a custom model, in a form that only the task knows."""

    type: Literal["custom_task_input_message"] = "custom_task_input_message"
    """Always `custom_task_input_message`."""
    content: Any
    """Input; any JSON value, including null."""


class CustomTaskOutputMessage(OpenFieldsModel):
    """Output of a custom model, in a form that only the task knows."""

    type: Literal["custom_task_output_message"] = "custom_task_output_message"
    """Always `custom_task_output_message`."""
    content: Any
    """Output; any JSON value, including null."""


TraceItem = Message | FunctionCall | FunctionCallOutput | CustomTaskInputMessage | CustomTaskOutputMessage
"""One element of a trace."""

ConversationItem = Message | CustomTaskInputMessage | CustomTaskOutputMessage
"""One element of a conversation, without tools."""

TraceItemField = Annotated[TraceItem, ByType()]
ConversationItemField = Annotated[ConversationItem, ByType()]


SYNTHETIC_MESSAGE_ID = ""
"""Id of messages that were made, not received."""

SYNTHETIC_MESSAGE_STATUS = MessageStatus.completed
"""Status of messages that were made, not received."""


def is_trace_item(value: Any) -> bool:
    """Whether a value is an item of a trace."""
    return isinstance(value, TraceItem)


def last_assistant_message(items: Sequence[TraceItem]) -> Message | None:
    """The last assistant message, `None` without one."""
    for item in reversed(items):
        if isinstance(item, Message) and item.role is MessageRole.assistant:
            return item
    return None


def tool_result_text(output: FunctionCallOutput) -> str:
    """Text of a tool's answer: itself, or its text parts one per line."""
    return output.output if isinstance(output.output, str) else str(ContentList(output.output))


CallPair = tuple[FunctionCall, FunctionCallOutput | None]


def paired(calls: Iterable[FunctionCall], outputs: Iterable[FunctionCallOutput]) -> list[CallPair]:
    """Every call in order with the last output that has its `call_id`, `None` without one."""
    answers = {output.call_id: output for output in outputs}
    return [(call, answers.get(call.call_id)) for call in calls]
