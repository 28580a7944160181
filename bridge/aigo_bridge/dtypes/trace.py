"""Traces: conversations with a user, their turns, and the spans that contain them."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Annotated, Any, Self, TypeGuard

from pydantic import SerializeAsAny

from aigo_bridge.dtypes.base import LFBaseModel
from aigo_bridge.dtypes.chat import TraceFormat
from aigo_bridge.dtypes.enums import MessageRole
from aigo_bridge.dtypes.events import (
    BaseTraceEvent,
    SpanBeginEvent,
    SpanEndEvent,
    TraceEvent,
    TraceEventField,
    derived_items,
    sort_events_by_span,
)
from aigo_bridge.dtypes.items import (
    CallPair,
    FunctionCall,
    FunctionCallOutput,
    Message,
    TraceItem,
    TraceItemField,
    UserMessage,
    message_text,
    paired,
    tool_result_text,
)


class TraceMetadata(LFBaseModel):
    """Origin and totals of a trace. `None` means unknown."""

    trace_id: str | None = None
    """Identifier of the trace at its source."""
    source_type: str | None = None
    """Type of the source, such as the framework that recorded the trace."""
    source_uri: str | None = None
    """URI of the source."""
    agent: str | None = None
    """Name of the agent."""
    model: str | None = None
    """Name of the model."""
    tags: list[str] | None = None
    """Labels for searching."""
    created_at: datetime | None = None
    """Time at which the trace was recorded."""
    total_time: float | None = None
    """Duration in seconds."""
    total_tokens: int | None = None
    """Number of tokens in all model calls."""
    message_count: int | None = None
    """Number of messages at the source."""
    error: str | None = None
    """Error that ended the trace early."""
    extra: dict[str, Any] | None = None
    """Additional information."""


class Turn(LFBaseModel):
    """User message with all items before the next user message."""

    # Properties return the message object of the trace, which is a plain `Message` if it was read from data.
    user_message: Annotated[UserMessage, SerializeAsAny()]
    """Message that starts the turn."""
    assistant_items: list[TraceItemField]
    """Items after the message: answers, tool calls and their results, system and custom items."""

    @property
    def assistant_messages(self) -> list[Message]:
        """Assistant messages in this turn."""
        return _with_role(self.assistant_items, MessageRole.assistant)

    @property
    def function_calls(self) -> list[FunctionCall]:
        """Tool calls in this turn."""
        return _calls(self.assistant_items)

    @property
    def function_outputs(self) -> list[FunctionCallOutput]:
        """Tool results in this turn."""
        return _outputs(self.assistant_items)

    @property
    def function_call_pairs(self) -> list[CallPair]:
        """Tool calls of this turn, each with its last result in this turn; `None` for a missing result."""
        return paired(self.function_calls, self.function_outputs)


class Trace(LFBaseModel):
    """Conversation between a user and an agent, optionally with the execution record it was derived from.

    `preamble` contains the items before the first user message; `turns` contain the rest.
    """

    FORMAT: TraceFormat = "open_responses"
    """Format of the items."""
    items: list[TraceItemField]
    """Conversation items in order."""
    metadata: TraceMetadata | None = None
    """Origin of the trace."""
    events: list[TraceEventField] | None = None
    """Execution record; `None` if it was not recorded. Reading a trace does not derive items from it."""
    span_id: str | None = None
    """Span that this trace represents; `None` for the root."""
    span_name: str | None = None
    """Name of the span."""
    span_type: str | None = None
    """Type of the span, such as `agent`."""

    @classmethod
    def from_items(cls, items: Sequence[TraceItem], **fields: Any) -> Self:
        """Create a trace from items only. `fields` contains further fields of the trace.

        Raises:
            pydantic.ValidationError: an item or a field is invalid.
            TypeError: `fields` contains `events`.
        """
        if "events" in fields:
            raise TypeError("`events` cannot be given together with items; use `Trace.from_events`")
        return cls(items=items, **fields)

    @classmethod
    def from_events(
        cls, events: Sequence[BaseTraceEvent], *, span_id: str | None = None, **fields: Any
    ) -> Self:
        """Create a trace of the span `span_id` (`None` for the root), with items derived from the events.

        If the stream contains at least one message event, the items are the messages and tool calls of the
        span. Otherwise, they are assembled from the contexts of the span's model calls.

        Raises:
            TypeError: a value is not an event object, siblings mix times with and without a UTC offset, or
                `fields` contains `items` or `events`.
            ValueError: only some events have a timestamp.
            pydantic.ValidationError: a field is invalid.
        """
        ordered = sort_events_by_span(_events(events))
        if span_id is not None:
            fields["span_id"] = span_id
        return cls(items=derived_items(ordered, span_id), events=ordered, **fields)

    def spans(self) -> list["Trace"]:
        """Return the direct child spans as traces, in the order of their starts. Call it on a child for the
        next level.

        A span without an end is left out.
        """
        events = self.events or []
        last_end = {event.span_id: at for at, event in enumerate(events) if isinstance(event, SpanEndEvent)}
        next_end = dict(last_end)
        spans: list[tuple[int, int, SpanBeginEvent]] = []
        for at in range(len(events) - 1, -1, -1):
            event = events[at]
            if isinstance(event, SpanEndEvent):
                next_end[event.span_id] = at
            elif isinstance(event, SpanBeginEvent) and event.parent_span_id == self.span_id:
                end = next_end.get(event.span_id)
                if end is not None:
                    spans.append((at, end, event))
        return [_child(begin, events[at + 1 : end]) for at, end, begin in reversed(spans)]

    @property
    def preamble(self) -> list[TraceItem]:
        """Items before the first user message; all items without a user message."""
        return list(takewhile(lambda item: not _is_user(item), self.items))

    @property
    def conversation_items(self) -> list[TraceItem]:
        """Items from the first user message on; empty without a user message."""
        return self.items[len(self.preamble) :]

    @property
    def turns(self) -> list[Turn]:
        """Turns, one per user message. Together they contain exactly `conversation_items`."""
        turns: list[Turn] = []
        for item in self.conversation_items:
            if _is_user(item):
                turns.append(Turn.model_construct(user_message=item, assistant_items=[]))
            else:
                turns[-1].assistant_items.append(item)
        return turns

    @property
    def user_messages(self) -> list[Message]:
        """All user messages."""
        return _with_role(self.items, MessageRole.user)

    @property
    def assistant_messages(self) -> list[Message]:
        """Assistant messages after the preamble."""
        return _with_role(self.conversation_items, MessageRole.assistant)

    @property
    def system_messages(self) -> list[Message]:
        """Messages with the role `system` in the preamble. `developer` is another role."""
        return _with_role(self.preamble, MessageRole.system)

    @property
    def function_calls(self) -> list[FunctionCall]:
        """Tool calls after the preamble."""
        return _calls(self.conversation_items)

    @property
    def function_outputs(self) -> list[FunctionCallOutput]:
        """Tool results after the preamble."""
        return _outputs(self.conversation_items)

    def get_first_system_prompt(self) -> str | None:
        """Return the text of the first system message in the preamble; `None` without such a message."""
        return next((message_text(message) for message in self.system_messages), None)

    def get_last_assistant_text(self) -> str | None:
        """Return the text of the last assistant message after the preamble; `None` without such a message,
        empty if it lacks a text.
        """
        return next((message_text(message) for message in reversed(self.assistant_messages)), None)

    def get_last_user_text(self) -> str | None:
        """Return the text of the last user message; `None` without such a message."""
        return next((message_text(message) for message in reversed(self.user_messages)), None)

    def get_function_calls_by_name(self, name: str) -> list[FunctionCall]:
        """Return the calls of the tool `name` after the preamble."""
        return [call for call in self.function_calls if call.name == name]

    def get_function_output_for_call(self, call_id: str) -> FunctionCallOutput | None:
        """Return the first result of a call after the preamble; `None` without a result."""
        return next((output for output in self.function_outputs if output.call_id == call_id), None)

    def get_function_call_pairs(self) -> list[CallPair]:
        """Return every tool call after the preamble with its last result; `None` for a missing result.

        Results in the preamble are left out, as in `function_outputs`.
        """
        return paired(self.function_calls, self.function_outputs)

    def get_function_call_arguments(self, call: FunctionCall) -> Any:
        """Return the arguments of a call as a value: a dictionary, unless the model wrote other JSON.

        Raises:
            json.JSONDecodeError: the arguments are not JSON.
        """
        return json.loads(call.arguments)

    def get_function_output_text(self, output: FunctionCallOutput) -> str:
        """Return the text of a tool result, one part per line, without images and files."""
        return tool_result_text(output)


def _child(begin: SpanBeginEvent, events: list[TraceEvent]) -> Trace:
    fields = {"span_name": begin.name}
    if begin.span_type is not None:
        fields["span_type"] = begin.span_type
    return Trace.from_events(events, span_id=begin.span_id, **fields)


def _events(events: object) -> Sequence[TraceEvent]:
    if not isinstance(events, Sequence) or isinstance(events, str | bytes):
        raise TypeError(f"found {type(events).__name__}, expected a sequence of events")
    for index, event in enumerate(events):
        if not isinstance(event, BaseTraceEvent):
            raise TypeError(f"element {index}: found {type(event).__name__}, expected an event object")
    return events


def _is_user(item: object) -> TypeGuard[UserMessage]:
    # Check the role, because a message that was read from data is a plain `Message` object.
    return isinstance(item, Message) and item.role is MessageRole.user


def _with_role(items: Iterable[object], role: MessageRole) -> list[Message]:
    return [item for item in items if isinstance(item, Message) and item.role is role]


def _calls(items: Iterable[object]) -> list[FunctionCall]:
    return [item for item in items if isinstance(item, FunctionCall)]


def _outputs(items: Iterable[object]) -> list[FunctionCallOutput]:
    return [item for item in items if isinstance(item, FunctionCallOutput)]
