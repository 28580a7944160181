"""The chat form of model inputs and outputs, all forms of both with the raw requests, and the text of
each.
"""

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
"""Who wrote a chat message."""


class FileRef(LFBaseModel):
    """Points to a file that is stored elsewhere."""

    file_id: str
    """Identifier of the stored file."""


class FileContentItem(LFBaseModel):
    """A file as part of a chat message."""

    type: Literal["file"]
    """Always `file`."""
    file: FileRef
    """The file."""


InputMessageContent = str | list[FileContentItem]
"""Content of a chat message that is given to a model."""


class ChatCompletionInputMessage(OpenFieldsModel):
    """A chat message that is given to a model."""

    role: Role
    """Author of the message."""
    content: InputMessageContent
    """Text, or files."""


class ChatCompletionOutputMessage(OpenFieldsModel):
    """A chat message that a model wrote."""

    role: Role
    """Author; `assistant` in practice."""
    content: str
    """The text."""
    refusal: str | None = None
    """Refusal text; `None` if the model did not refuse."""


class ChatCompletionJSONSchema(OpenFieldsModel):
    """The form that a model's answer has to have."""

    name: str
    """Name of the form."""
    description: str | None = None
    """What the form is for; the model sees it."""
    schema_dict: dict[str, Any] | None = Field(default=None, alias="schema")
    """The JSON Schema; the key is `schema` in data."""
    strict: bool
    """Whether the model has to follow the schema to the letter."""


class ChatCompletionResponseFormatJSONSchema(OpenFieldsModel):
    """Asks for an answer in JSON of a given form."""

    type: Literal["json_schema"]
    """Always `json_schema`."""
    json_schema: ChatCompletionJSONSchema
    """The form."""


class ChatCompletionResponseFormatText(OpenFieldsModel):
    """Asks for an answer in plain text."""

    type: Literal["text"]
    """Always `text`."""


ChatCompletionResponseFormat = ChatCompletionResponseFormatJSONSchema | ChatCompletionResponseFormatText
"""The form that is asked of an answer."""


class ChatCompletionInput(OpenFieldsModel):
    """Everything that a chat model is asked with."""

    messages: list[ChatCompletionInputMessage | ChatCompletionOutputMessage]
    """The conversation so far, oldest first."""
    response_format: ChatCompletionResponseFormat | None = None
    """Form of the answer; `None` leaves it to the model."""


class ModelUsage(OpenFieldsModel):
    """Tokens that one or several calls used."""

    num_completion_tokens: int | None = None
    """Output tokens; `None` when unknown."""
    num_prompt_tokens: int | None = None
    """Input tokens; `None` when unknown."""


class ChatCompletionModelOutputChoice(OpenFieldsModel):
    """One answer."""

    message: ChatCompletionOutputMessage
    """The answer as a message."""


class ChatCompletionModelOutput(OpenFieldsModel):
    """What a chat model answered."""

    choices: list[ChatCompletionModelOutputChoice]
    """The answers; the first one counts."""
    usage: ModelUsage | None = None
    """Tokens used; `None` when unknown."""


class RAGReference(OpenFieldsModel):
    """A passage that was found for an answer."""

    content: str
    """The passage."""


class RAGCompletionModelOutputChoice(OpenFieldsModel):
    """One answer with the passages it is based on."""

    message: ChatCompletionOutputMessage
    """The answer as a message."""
    references: list[RAGReference]
    """The passages, in the order in which they were found."""


class RAGCompletionOutput(OpenFieldsModel):
    """What a model with a knowledge base answered."""

    choices: list[RAGCompletionModelOutputChoice]
    """The answers; the first one counts."""
    usage: ModelUsage | None = None
    """Tokens used; `None` when unknown."""


class EmbeddingsModelOutput(OpenFieldsModel):
    """What an embeddings model gave."""

    embeddings: list[list[float]]
    """One vector per input text, in order."""
    usage: ModelUsage | None = None
    """Tokens used; `None` when unknown."""


TraceFormat = Literal["latticeflow", "open_responses"]
"""The two forms in which conversations are recorded: chat messages, or Open Responses items."""


class OpenResponsesModelOutput(LFBaseModel):
    """What a model answered in one call, as items: messages, tool calls, tool answers."""

    items: list[TraceItemField]
    """Returned items, in order."""
    usage: ModelUsage | None = None
    """Tokens used; `None` when unknown."""


class ModelEndpointInput(LFBaseModel):
    """The request as it went over the wire."""

    body: str
    """Request body as JSON text."""


class ModelEndpointOutput(LFBaseModel):
    """The response as it came over the wire."""

    body: str
    """Response body as JSON text."""
    status_code: int
    """HTTP status."""
    headers: dict[str, str] | None = None
    """HTTP headers; `None` when they were not recorded."""


class DirectModelIO(LFBaseModel):
    """One exchange with a model endpoint, before and after an adapter rewrote it."""

    direct_input: ModelEndpointInput
    """Request that was sent."""
    direct_output: ModelEndpointOutput
    """Response that was received."""


# Unions with `Any` keep every branch: the types are tried, and what fits none stays as it is.
# Ties go to the branch that stands first.
LFInputMessage = ChatCompletionInputMessage | Any | list[str]
"""One element of a model's input: a chat message, a custom value, or the texts to embed."""

LFOutputMessage = ChatCompletionOutputMessage | Any | list[list[float]]
"""One element of a model's output: a chat message, a custom value, or embeddings."""

LFMessage = ChatCompletionInputMessage | Any | list[str] | ChatCompletionOutputMessage | list[list[float]]
"""One element of a conversation in the chat form."""

LFModelInput = ChatCompletionInput | list[str] | Any
"""Input of a model: a chat, texts to embed, or a custom value."""

LFModelOutput = (
    OpenResponsesModelOutput | RAGCompletionOutput | ChatCompletionModelOutput | EmbeddingsModelOutput | Any
)
"""Output of a model, in any form."""


CustomTaskModelInput = JSONType
"""Input of a model for custom tasks."""

CustomTaskModelOutput = JSONType
"""Output of a model for custom tasks."""

CustomTaskModelInputMessage = JSONType
"""The same as a message of a conversation."""

CustomTaskModelOutputMessage = JSONType
"""The same as a message of a conversation."""

EmbeddingsModelInput = list[str]
"""The texts to embed."""

EmbeddingsModelInputMessage = list[str]
"""The same as a message of a conversation: all texts are one."""

EmbeddingsModelOutputMessage = list[list[float]]
"""Embeddings as a message of a conversation."""

LATE = ConfigDict(defer_build=True)
"""Of adapters: they cost a tenth of a second to build, and hardly any snippet uses them."""

LF_MODEL_INPUT_TYPE_ADAPTER: TypeAdapter[LFModelInput] = TypeAdapter(LFModelInput, config=LATE)
LF_MODEL_OUTPUT_TYPE_ADAPTER: TypeAdapter[LFModelOutput] = TypeAdapter(LFModelOutput, config=LATE)


class ModelProtocol(Protocol):
    """A model that snippets may call; for annotations, also with types of its input and output in
    brackets.
    """

    async def predict(self, inputs: Any, *, sample: Any = None, **kwargs: Any) -> Any:
        """What the model says."""

    def __class_getitem__(cls, types: Any) -> Any:
        return cls


ChatCompletionModelProtocol = ModelProtocol
"""A model for chats."""

RAGCompletionModelProtocol = ModelProtocol
"""A model for chats with references."""


class ModelResponse(LFBaseModel):
    """A model's answer in two forms: as it came, and as items of a trace."""

    raw_output: LFModelOutput
    """The answer as it came."""
    items: list[TraceItemField]
    """The same answer as items."""

    @property
    def text(self) -> str:
        """Text of the last assistant message.

        Raises:
            ValueError: There is no assistant message among the items.
        """
        message = last_assistant_message(self.items)
        if message is None:
            raise ValueError("the model response has no assistant message")
        return message_text(message)


_PART_TYPES = frozenset(
    {"input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"}
    | {"input_image", "input_file", "input_video"}
)
_PARTS = (*TEXT_CONTENT, RefusalContent, InputImageContent, InputFileContent, InputVideoContent)


def text_of(value: object) -> str | None:
    """Text that `{{ value }}` should print; `None` for values that print as they are.

    Has text: a message, a content list (`message.content`), a content part, a model output (its first
    choice, or its last assistant message), each as object and as plain data; as object also a choice, a
    tool result and a solver output (its model output). `str(value)` of such an object is the same text.
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
    """Text of a content part; `None` for an image, a file, a video, and for anything else."""
    if isinstance(value, RefusalContent):
        return value.refusal
    if isinstance(value, TEXT_CONTENT):
        return value.text
    if isinstance(value, dict) and value.get("type") in _PART_TYPES:
        text = value.get("refusal" if value["type"] == "refusal" else "text")
        return text if isinstance(text, str) else None
    return None


# Templates ask every type for its text, and the base cannot know the types above it.
ReadableModel.__template_text__ = staticmethod(text_of)
