"""Traces: conversations with a user, the turns they consist of, and the spans they are nested in."""

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
    """Where a trace comes from, with its totals. `None` always means unknown."""

    trace_id: str | None = None
    """Identifier of the trace at its source."""
    source_type: str | None = None
    """Kind of source, such as the framework that recorded it."""
    source_uri: str | None = None
    """Address of the source."""
    agent: str | None = None
    """Name of the agent."""
    model: str | None = None
    """Name of the model."""
    tags: list[str] | None = None
    """Labels for searching."""
    created_at: datetime | None = None
    """When the trace was recorded."""
    total_time: float | None = None
    """Duration in seconds."""
    total_tokens: int | None = None
    """Tokens of all model calls."""
    message_count: int | None = None
    """Messages at the source."""
    error: str | None = None
    """Error that ended the trace early."""
    extra: dict[str, Any] | None = None
    """Other information."""


class Turn(LFBaseModel):
    """A user message with everything up to the next one."""

    # Views hand back the very message of the trace, which is a plain `Message` when it was read from data.
    user_message: Annotated[UserMessage, SerializeAsAny()]
    """The message that opens the turn."""
    assistant_items: list[TraceItemField]
    """What follows it: answers, tool calls and their outputs, also system and custom items."""

    @property
    def assistant_messages(self) -> list[Message]:
        """Messages of the assistant in this turn."""
        return _with_role(self.assistant_items, MessageRole.assistant)

    @property
    def function_calls(self) -> list[FunctionCall]:
        """Tool calls in this turn."""
        return _calls(self.assistant_items)

    @property
    def function_outputs(self) -> list[FunctionCallOutput]:
        """Answers of tools in this turn."""
        return _outputs(self.assistant_items)

    @property
    def function_call_pairs(self) -> list[CallPair]:
        """Every call of this turn with the last answer to it in this turn, `None` without one."""
        return paired(self.function_calls, self.function_outputs)


class Trace(LFBaseModel):
    """A conversation between user and agent, and optionally the execution record it comes from.

    `preamble` is what stands before the first user message; `turns` hold the rest.
    """

    FORMAT: TraceFormat = "open_responses"
    """Form of the items."""
    items: list[TraceItemField]
    """The conversation in order."""
    metadata: TraceMetadata | None = None
    """Origin of the trace."""
    events: list[TraceEventField] | None = None
    """The execution record; `None` if it was not recorded. Reading a trace derives no items from it."""
    span_id: str | None = None
    """The span this trace represents; `None` for the root."""
    span_name: str | None = None
    """Name of that span."""
    span_type: str | None = None
    """Kind of that span, such as `agent`."""

    @classmethod
    def from_items(cls, items: Sequence[TraceItem], **fields: Any) -> Self:
        """A trace of items alone; `fields` are further fields of the trace.

        Raises:
            pydantic.ValidationError: An item or a field does not fit.
            TypeError: `events` is among the fields.
        """
        if "events" in fields:
            raise TypeError("`events` cannot be given together with items; use `Trace.from_events`")
        return cls(items=items, **fields)

    @classmethod
    def from_events(
        cls, events: Sequence[BaseTraceEvent], *, span_id: str | None = None, **fields: Any
    ) -> Self:
        """A trace of the span `span_id` (`None`: the root), its items derived from the events.

        With at least one message event in the stream, the items are the span's messages and tool calls.
        Without, they are put together from the contexts of the span's model calls.

        Raises:
            TypeError: Something is not an event object, times with and without UTC offset are mixed among
                siblings, or `items` or `events` is among the fields.
            ValueError: Some events have a timestamp and some do not.
            pydantic.ValidationError: A field does not fit.
        """
        ordered = sort_events_by_span(_events(events))
        if span_id is not None:
            fields["span_id"] = span_id
        return cls(items=derived_items(ordered, span_id), events=ordered, **fields)

    def spans(self) -> list["Trace"]:
        """The direct child spans as traces, in the order of their begins; call it on them for the next level.

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
        """Items before the first user message; all items when there is none."""
        return list(takewhile(lambda item: not _is_user(item), self.items))

    @property
    def conversation_items(self) -> list[TraceItem]:
        """Items from the first user message on; empty when there is none."""
        return self.items[len(self.preamble) :]

    @property
    def turns(self) -> list[Turn]:
        """One turn per user message; together they hold exactly `conversation_items`."""
        turns: list[Turn] = []
        for item in self.conversation_items:
            if _is_user(item):
                turns.append(Turn.model_construct(user_message=item, assistant_items=[]))
            else:
                turns[-1].assistant_items.append(item)
        return turns

    @property
    def user_messages(self) -> list[Message]:
        """All messages of the user."""
        return _with_role(self.items, MessageRole.user)

    @property
    def assistant_messages(self) -> list[Message]:
        """Messages of the assistant after the preamble."""
        return _with_role(self.conversation_items, MessageRole.assistant)

    @property
    def system_messages(self) -> list[Message]:
        """Messages with role `system` in the preamble; `developer` is another role."""
        return _with_role(self.preamble, MessageRole.system)

    @property
    def function_calls(self) -> list[FunctionCall]:
        """Tool calls after the preamble."""
        return _calls(self.conversation_items)

    @property
    def function_outputs(self) -> list[FunctionCallOutput]:
        """Answers of tools after the preamble."""
        return _outputs(self.conversation_items)

    def get_first_system_prompt(self) -> str | None:
        """Text of the first system message of the preamble; `None` without one."""
        return next((message_text(message) for message in self.system_messages), None)

    def get_last_assistant_text(self) -> str | None:
        """Text of the last assistant message after the preamble; `None` without one, empty when it has no
        text.
        """
        return next((message_text(message) for message in reversed(self.assistant_messages)), None)

    def get_last_user_text(self) -> str | None:
        """Text of the last user message; `None` without one."""
        return next((message_text(message) for message in reversed(self.user_messages)), None)

    def get_function_calls_by_name(self, name: str) -> list[FunctionCall]:
        """Calls of the tool `name` after the preamble."""
        return [call for call in self.function_calls if call.name == name]

    def get_function_output_for_call(self, call_id: str) -> FunctionCallOutput | None:
        """The first answer to a call after the preamble; `None` without one."""
        return next((output for output in self.function_outputs if output.call_id == call_id), None)

    def get_function_call_pairs(self) -> list[CallPair]:
        """Return every call after the preamble with the last answer to it; `None` without an answer.

        Answers in the preamble are left out, as in `function_outputs`.
        """
        return paired(self.function_calls, self.function_outputs)

    def get_function_call_arguments(self, call: FunctionCall) -> Any:
        """The arguments of a call as a value: a dictionary, unless the model wrote other JSON.

        Raises:
            json.JSONDecodeError: The arguments are not JSON.
        """
        return json.loads(call.arguments)

    def get_function_output_text(self, output: FunctionCallOutput) -> str:
        """Text of a tool's answer; parts one per line, images and files skipped."""
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
    # Judged by role: a message that was read from data is a plain `Message`, and stays the object it is.
    return isinstance(item, Message) and item.role is MessageRole.user


def _with_role(items: Iterable[object], role: MessageRole) -> list[Message]:
    return [item for item in items if isinstance(item, Message) and item.role is role]


def _calls(items: Iterable[object]) -> list[FunctionCall]:
    return [item for item in items if isinstance(item, FunctionCall)]


def _outputs(items: Iterable[object]) -> list[FunctionCallOutput]:
    return [item for item in items if isinstance(item, FunctionCallOutput)]
