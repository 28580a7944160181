"""Chat format of model inputs and outputs, all input and output types, raw requests, and their texts."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from pydantic import ConfigDict, Field, TypeAdapter

from aigo_bridge.dtypes.base import JSONType, LFBaseModel, OpenFieldsModel, ReadableModel
from aigo_bridge.dtypes.items import (
    TEXT_CONTENT,
    FunctionCallOutput,
    InputFileContent,
    InputImageContent,
    InputVideoContent,
    Message,
    RefusalContent,
    TraceItemField,
    last_assistant_message,
    message_text,
    tool_result_text,
)

Role = Literal["user", "system", "assistant"]
"""Author of a chat message."""


class FileRef(LFBaseModel):
    """Reference to a stored file."""

    file_id: str
    """Identifier of the stored file."""


class FileContentItem(LFBaseModel):
    """File in a chat message."""

    type: Literal["file"]
    """Always `file`."""
    file: FileRef
    """Reference to the file."""


InputMessageContent = str | list[FileContentItem]
"""Content of a chat message to a model."""


class ChatCompletionInputMessage(OpenFieldsModel):
    """Chat message to a model."""

    role: Role
    """Author of the message."""
    content: InputMessageContent
    """Text or files."""


class ChatCompletionOutputMessage(OpenFieldsModel):
    """Chat message from a model."""

    role: Role
    """Author of the message; `assistant` in practice."""
    content: str
    """Text of the message."""
    refusal: str | None = None
    """Refusal text; `None` if the model did not refuse."""


class ChatCompletionJSONSchema(OpenFieldsModel):
    """Structure that a model's answer must have."""

    name: str
    """Name of the structure."""
    description: str | None = None
    """Purpose of the structure, which the model can read."""
    schema_dict: dict[str, Any] | None = Field(default=None, alias="schema")
    """JSON Schema of the answer. The key in data is `schema`."""
    strict: bool
    """Whether the model must follow the schema exactly."""


class ChatCompletionResponseFormatJSONSchema(OpenFieldsModel):
    """Response format for JSON with a schema."""

    type: Literal["json_schema"]
    """Always `json_schema`."""
    json_schema: ChatCompletionJSONSchema
    """Structure of the answer."""


class ChatCompletionResponseFormatText(OpenFieldsModel):
    """Response format for plain text."""

    type: Literal["text"]
    """Always `text`."""


ChatCompletionResponseFormat = ChatCompletionResponseFormatJSONSchema | ChatCompletionResponseFormatText
"""Response format of an answer."""


class ChatCompletionInput(OpenFieldsModel):
    """Input of a chat model."""

    messages: list[ChatCompletionInputMessage | ChatCompletionOutputMessage]
    """Conversation so far, oldest message first."""
    response_format: ChatCompletionResponseFormat | None = None
    """Response format; `None` if the model may choose."""


class ModelUsage(OpenFieldsModel):
    """Number of tokens that one or several model calls used."""

    num_completion_tokens: int | None = None
    """Output tokens; `None` if unknown."""
    num_prompt_tokens: int | None = None
    """Input tokens; `None` if unknown."""


class ChatCompletionModelOutputChoice(OpenFieldsModel):
    """One answer of a chat model."""

    message: ChatCompletionOutputMessage
    """Answer as a message."""


class ChatCompletionModelOutput(OpenFieldsModel):
    """Output of a chat model."""

    choices: list[ChatCompletionModelOutputChoice]
    """Answers. Only the first one is used."""
    usage: ModelUsage | None = None
    """Tokens used; `None` if unknown."""


class RAGReference(OpenFieldsModel):
    """Retrieved passage for an answer."""

    content: str
    """Text of the passage."""


class RAGCompletionModelOutputChoice(OpenFieldsModel):
    """One answer with the retrieved passages that it is based on."""

    message: ChatCompletionOutputMessage
    """Answer as a message."""
    references: list[RAGReference]
    """Retrieved passages, in the order of retrieval."""


class RAGCompletionOutput(OpenFieldsModel):
    """Output of a model with retrieval-augmented generation."""

    choices: list[RAGCompletionModelOutputChoice]
    """Answers. Only the first one is used."""
    usage: ModelUsage | None = None
    """Tokens used; `None` if unknown."""


class EmbeddingsModelOutput(OpenFieldsModel):
    """Output of an embeddings model."""

    embeddings: list[list[float]]
    """One vector per input text, in order."""
    usage: ModelUsage | None = None
    """Tokens used; `None` if unknown."""


TraceFormat = Literal["latticeflow", "open_responses"]
"""Format of recorded conversations: chat messages, or Open Responses items."""


class OpenResponsesModelOutput(LFBaseModel):
    """Output of one model call as items: messages, tool calls, tool results."""

    items: list[TraceItemField]
    """Returned items, in order."""
    usage: ModelUsage | None = None
    """Tokens used; `None` if unknown."""


class ModelEndpointInput(LFBaseModel):
    """HTTP request to a model endpoint."""

    body: str
    """Request body as JSON text."""


class ModelEndpointOutput(LFBaseModel):
    """HTTP response of a model endpoint."""

    body: str
    """Response body as JSON text."""
    status_code: int
    """HTTP status code."""
    headers: dict[str, str] | None = None
    """HTTP headers; `None` if they were not recorded."""


class DirectModelIO(LFBaseModel):
    """Exchange with a model endpoint: the request after and the response before conversion by an adapter."""

    direct_input: ModelEndpointInput
    """Request that was sent."""
    direct_output: ModelEndpointOutput
    """Response that was received."""


# Unions with `Any` keep every branch. pydantic tries each type and keeps other values unchanged. If several
# types match, the first one is used.
LFInputMessage = ChatCompletionInputMessage | Any | list[str]
"""Element of a model input: a chat message, a custom value, or the texts to embed."""

LFOutputMessage = ChatCompletionOutputMessage | Any | list[list[float]]
"""Element of a model output: a chat message, a custom value, or embeddings."""

LFMessage = ChatCompletionInputMessage | Any | list[str] | ChatCompletionOutputMessage | list[list[float]]
"""Element of a conversation in the chat format."""

LFModelInput = ChatCompletionInput | list[str] | Any
"""Input of a model: a chat, texts to embed, or a custom value."""

LFModelOutput = (
    OpenResponsesModelOutput | RAGCompletionOutput | ChatCompletionModelOutput | EmbeddingsModelOutput | Any
)
"""Output of a model in any format."""


CustomTaskModelInput = JSONType
"""Input of a model for custom tasks."""

CustomTaskModelOutput = JSONType
"""Output of a model for custom tasks."""

CustomTaskModelInputMessage = JSONType
"""Input message of a custom task."""

CustomTaskModelOutputMessage = JSONType
"""Output message of a custom task."""

EmbeddingsModelInput = list[str]
"""Texts to embed."""

EmbeddingsModelInputMessage = list[str]
"""Texts to embed, as one message of a conversation."""

EmbeddingsModelOutputMessage = list[list[float]]
"""Embeddings as a message of a conversation."""

LATE = ConfigDict(defer_build=True)
"""Adapter types are built late, because building takes 0.1 seconds and few snippets use them."""

LF_MODEL_INPUT_TYPE_ADAPTER: TypeAdapter[LFModelInput] = TypeAdapter(LFModelInput, config=LATE)
LF_MODEL_OUTPUT_TYPE_ADAPTER: TypeAdapter[LFModelOutput] = TypeAdapter(LFModelOutput, config=LATE)


class ModelProtocol(Protocol):
    """Model that snippets may call. In annotations, its input and output types can follow in brackets."""

    async def predict(self, inputs: Any, *, sample: Any = None, **kwargs: Any) -> Any:
        """Return the output of the model for an input."""

    def __class_getitem__(cls, types: Any) -> Any:
        return cls


ChatCompletionModelProtocol = ModelProtocol
"""Chat model."""

RAGCompletionModelProtocol = ModelProtocol
"""Chat model with retrieved passages."""


class ModelResponse(LFBaseModel):
    """Model output in two forms: unmodified, and as items of a trace."""

    raw_output: LFModelOutput
    """Unmodified output."""
    items: list[TraceItemField]
    """Output as items."""

    @property
    def text(self) -> str:
        """Text of the last assistant message.

        Raises:
            ValueError: the items do not contain an assistant message.
        """
        message = last_assistant_message(self.items)
        if message is None:
            raise ValueError("the model response does not contain an assistant message")
        return message_text(message)


_PART_TYPES = frozenset(
    {"input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"}
    | {"input_image", "input_file", "input_video"}
)
_PARTS = (*TEXT_CONTENT, RefusalContent, InputImageContent, InputFileContent, InputVideoContent)


def text_of(value: object) -> str | None:
    """Return the text that `{{ value }}` prints; `None` for values that print unchanged.

    These values have a text, as an object or as plain data: a message, a content list (`message.content`),
    a content part, and a model output (its first choice, or its last assistant message). A choice, a tool
    result and a solver output (its model output) have a text only as an object. `str(value)` of such an
    object returns the same text.
    """
    if isinstance(value, Message):
        return message_text(value)
    if isinstance(value, ChatCompletionInputMessage | ChatCompletionOutputMessage):
        return value.content if isinstance(value.content, str) else None
    if isinstance(value, ChatCompletionModelOutputChoice | RAGCompletionModelOutputChoice):
        return value.message.content
    if isinstance(value, ChatCompletionModelOutput | RAGCompletionOutput):
        return value.choices[0].message.content if value.choices else ""
    if isinstance(value, OpenResponsesModelOutput | ModelResponse):
        return _last_assistant_text(value.items) or ""
    if isinstance(value, FunctionCallOutput):
        return tool_result_text(value)
    if isinstance(value, dict):
        return _text_of_data(value)
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return "\n".join(text for text in map(_part_text, value) if text is not None)
    return _part_text(value)


def _text_of_data(value: dict[Any, Any]) -> str | None:
    choices, items = value.get("choices"), value.get("items")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message = choices[0].get("message")
        text = message.get("content") if isinstance(message, dict) else None
        return text if isinstance(text, str) else None
    if isinstance(items, list):
        return _last_assistant_text(items)
    if value.get("type") == "message":
        return text_of(value.get("content")) or ""
    return _part_text(value)


def _last_assistant_text(items: Sequence[Any]) -> str | None:
    for item in reversed(items):
        if isinstance(item, dict):
            is_assistant = item.get("type") == "message" and item.get("role") == "assistant"
        else:
            is_assistant = isinstance(item, Message) and item.role.value == "assistant"
        if is_assistant:
            return text_of(item)
    return None


def _is_part(value: object) -> bool:
    if isinstance(value, dict):
        return value.get("type") in _PART_TYPES
    return isinstance(value, _PARTS)


def _part_text(value: object) -> str | None:
    """Return the text of a content part; `None` for an image, a file, a video, or another value."""
    if isinstance(value, RefusalContent):
        return value.refusal
    if isinstance(value, TEXT_CONTENT):
        return value.text
    if isinstance(value, dict) and value.get("type") in _PART_TYPES:
        text = value.get("refusal" if value["type"] == "refusal" else "text")
        return text if isinstance(text, str) else None
    return None


# Templates use the text of every type, and the base module cannot import the types that depend on it.
ReadableModel.__template_text__ = staticmethod(text_of)
