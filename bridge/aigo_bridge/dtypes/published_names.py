"""Names that snippets import beyond those of the page "Core Types": for annotations, constants, and conversions between the two message formats."""

import re
from collections.abc import Sequence
from typing import Any, Protocol

from pydantic import ConfigDict, TypeAdapter

from aigo_bridge.dtypes import _conversion as conversion
from aigo_bridge.dtypes._event_order import ordered_by_span
from aigo_bridge.dtypes.chat import ChatCompletionInputMessage, ChatCompletionOutputMessage
from aigo_bridge.dtypes.enums import MessageStatus
from aigo_bridge.dtypes.events import TraceEvent
from aigo_bridge.dtypes.evidence import TaskResultError
from aigo_bridge.dtypes.items import (
    CustomTaskInputMessage,
    CustomTaskOutputMessage,
    FunctionCall,
    FunctionCallOutput,
    TraceItem,
)
from aigo_bridge.dtypes.messages import Message
from aigo_bridge.dtypes.model_io import LFMessage, LFModelInput, LFModelOutput
from aigo_bridge.dtypes.values import JSONType

RawSample = dict[str, Any]
"""A row of a data set: column → value."""

RawSampleMapping = dict[str, RawSample]
"""One row of each of several data sets: key of the data set → row."""

RawSamplesMapping = dict[str, list[RawSample]]
"""The rows of several data sets: key of the data set → rows."""

LFSample = RawSample | RawSampleMapping
"""What a task is run on: a row, or one of each data set."""

ScoreMetadata = dict[str, Any]
"""What a scorer keeps beside its scores."""

SampleErrors = list[TaskResultError]
"""What went wrong with a sample."""

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

SYNTHETIC_MESSAGE_ID = ""
"""Id of messages that were made, not received."""

SYNTHETIC_MESSAGE_STATUS = MessageStatus.completed
"""Status of messages that were made, not received."""

_LATE = ConfigDict(defer_build=True)
"""They cost a tenth of a second to build, and hardly any snippet uses them."""

LF_MODEL_INPUT_TYPE_ADAPTER: TypeAdapter[LFModelInput] = TypeAdapter(LFModelInput, config=_LATE)
LF_MODEL_OUTPUT_TYPE_ADAPTER: TypeAdapter[LFModelOutput] = TypeAdapter(LFModelOutput, config=_LATE)
TRACE_EVENT_TYPE_ADAPTER: TypeAdapter[TraceEvent] = TypeAdapter(TraceEvent, config=_LATE)


class ModelProtocol(Protocol):
    """A model that snippets may call; for annotations, also with types of its input and output in brackets."""

    async def predict(self, inputs: Any, *, sample: Any = None, **kwargs: Any) -> Any:
        """What the model says."""

    def __class_getitem__(cls, types: Any) -> Any:
        return cls


ChatCompletionModelProtocol = ModelProtocol
"""A model for chats."""

RAGCompletionModelProtocol = ModelProtocol
"""A model for chats with references."""


# Conversions


def model_input_to_messages(model_input: LFModelInput) -> list[LFMessage]:
    """The messages of a chat; any other input is one message."""
    return conversion.input_messages(model_input)


def model_output_to_message(model_output: LFModelOutput) -> LFMessage:
    """The message of the first choice, the embeddings, or the output itself where it is neither chat nor embeddings.

    Raises:
        ValueError: A chat without choices, or items without an assistant message.
    """
    return conversion.output_message(model_output)


def model_input_to_trace_items(model_input: LFModelInput) -> list[TraceItem]:
    """The messages of a chat as items; any other input is one custom item."""
    return conversion.input_items(model_input)


def model_output_to_trace_items(model_output: LFModelOutput) -> list[TraceItem]:
    """The items of an output, the first choice of a chat as an item, anything else as one custom item."""
    return conversion.output_items(model_output)


def trace_items_to_lf_messages(items: Sequence[TraceItem]) -> list[LFMessage]:
    """The conversation in the chat form; tool calls, their answers and developer messages are left out."""
    return conversion.chat_messages(items)


def lf_messages_to_trace_items(messages: Sequence[LFMessage]) -> list[TraceItem]:
    """Messages of the chat form as items; what is no chat message is a custom item."""
    items: list[TraceItem] = []
    for message in messages:
        if isinstance(message, ChatCompletionInputMessage | ChatCompletionOutputMessage):
            items.append(conversion.chat_item(message))
        else:
            items.append(CustomTaskInputMessage(content=message))
    return items


_ITEMS = (Message, FunctionCall, FunctionCallOutput, CustomTaskInputMessage, CustomTaskOutputMessage)


def is_trace_item(value: Any) -> bool:
    """Whether a value is an item of a trace."""
    return isinstance(value, _ITEMS)


def sort_events_by_span(events: Sequence[TraceEvent]) -> list[TraceEvent]:
    """Events depth first, every span as one block, siblings by time.

    Raises:
        ValueError: Some events have a timestamp and some do not.
    """
    return ordered_by_span(events)


# Keys

_KEY = re.compile(r"[a-zA-Z0-9_\-]{1,250}")
_FOREIGN = re.compile(r"[^a-z0-9_]+")


def is_valid_key(key: str) -> bool:
    """Whether a text can be the key of a task, data set or evaluation."""
    return _KEY.fullmatch(key) is not None


def sanitize_key(text: str) -> str:
    """A text as a key: in lower case, every run of other characters as one `-`, none at the ends.

    Raises:
        ValueError: Nothing is left.
    """
    key = _FOREIGN.sub("-", text.lower()).strip("-")
    if not key:
        raise ValueError(f"nothing of {text!r} can stand in a key")
    return key
