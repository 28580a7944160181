"""Execution record of a trace: events with spans and times, their order, and the items derived from them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar
from uuid import uuid4

from pydantic import Field, TypeAdapter

from aigo_bridge.dtypes.base import ByType, LFBaseModel
from aigo_bridge.dtypes.chat import LATE, ModelUsage
from aigo_bridge.dtypes.enums import FunctionCallOutputStatusEnum, FunctionCallStatus
from aigo_bridge.dtypes.items import (
    ConversationItemField,
    FunctionCall,
    FunctionCallOutput,
    ToolResultContentField,
    TraceItem,
    TraceItemField,
)


def fresh_id() -> str:
    """Return a random identifier (UUID version 4)."""
    return str(uuid4())


class BaseTraceEvent(LFBaseModel):
    """Common fields of all events."""

    id: str | None = Field(default_factory=fresh_id)
    """Identifier of the event; by default a random UUID, which dumps leave out."""
    span_id: str | None = None
    """Span in which the event occurred; `None` for the root."""
    timestamp: datetime | None = None
    """Time of the event. In one trace, either all events have a timestamp or none."""
    metadata: dict[str, Any] | None = None
    """Additional information."""


class MessageEvent(BaseTraceEvent):
    """Message that was added to the conversation."""

    type: Literal["message_event"] = "message_event"
    """Always `message_event`."""
    item: ConversationItemField
    """Message."""
    model_call_id: str | None = None
    """`id` of the model call that wrote the message."""


class FunctionCallEvent(BaseTraceEvent):
    """Tool call with its result."""

    type: Literal["function_call_event"] = "function_call_event"
    """Always `function_call_event`."""
    call_id: str
    """Identifier of the call."""
    function: str
    """Name of the tool."""
    arguments: str
    """Arguments as JSON text."""
    result: str | list[ToolResultContentField]
    """Result of the tool; may be an empty text."""
    status: FunctionCallStatus
    """Status of the call. Only a `completed` call has a result."""
    working_time: float | None = None
    """Duration of the tool's work in seconds."""
    error: str | None = None
    """Error of the tool; `None` if it succeeded."""
    agent: str | None = None
    """Agent that the tool hands over to."""
    agent_span_id: str | None = None
    """Span of that agent."""
    model_call_id: str | None = None
    """`id` of the model call that requested the tool call."""


class ModelCallEvent(BaseTraceEvent):
    """Model call."""

    type: Literal["model_call_event"] = "model_call_event"
    """Always `model_call_event`."""
    model: str
    """Name of the model."""
    input_context: list[TraceItemField]
    """Complete input of the call."""
    output_items: list[TraceItemField]
    """Answer; empty if the call failed."""
    usage: ModelUsage | None = None
    """Tokens used; `None` if unknown."""
    tools: list[str] | None = None
    """Names of the tools that were available to the model."""
    total_time: float | None = None
    """Seconds from request to answer."""
    error: str | None = None
    """Error of the call; `None` if it succeeded."""


class SpanBeginEvent(BaseTraceEvent):
    """Start of a span: an agent, a tool or another named phase."""

    # The span is optional in the base class but required here.
    span_id: str
    """Identifier of the span that begins."""
    type: Literal["span_begin"] = "span_begin"
    """Always `span_begin`."""
    parent_span_id: str | None = None
    """Span that contains this one; `None` for the root."""
    name: str
    """Name of the span."""
    span_type: str | None = None
    """Kind of span, such as `agent`."""


class SpanEndEvent(BaseTraceEvent):
    """End of a span."""

    # As in `SpanBeginEvent`.
    span_id: str
    """Identifier of the span that ends."""
    type: Literal["span_end"] = "span_end"
    """Always `span_end`."""


class CompactionEvent(BaseTraceEvent):
    """Compaction of the context: the next model call receives less than the conversation so far."""

    type: Literal["compaction"] = "compaction"
    """Always `compaction`."""
    strategy: Literal["summary", "trim"]
    """`summary`: a summary replaced the context. `trim`: its oldest part was removed."""
    tokens_before: int | None = None
    """Number of tokens in the context before the compaction."""
    tokens_after: int | None = None
    """Number of tokens in the context after the compaction."""


class ErrorEvent(BaseTraceEvent):
    """Error."""

    type: Literal["error"] = "error"
    """Always `error`."""
    message: str
    """Error message."""
    traceback: str | None = None
    """Stack trace as text."""


class CustomEvent(BaseTraceEvent):
    """Event of any other type."""

    type: Literal["custom"] = "custom"
    """Always `custom`."""
    name: str
    """Name of the event."""
    data: dict[str, Any]
    """Data of the event."""


TraceEvent = (
    MessageEvent
    | FunctionCallEvent
    | ModelCallEvent
    | SpanBeginEvent
    | SpanEndEvent
    | CompactionEvent
    | ErrorEvent
    | CustomEvent
)
"""Element of the execution record."""

TraceEventField = Annotated[TraceEvent, ByType()]

TRACE_EVENT_TYPE_ADAPTER: TypeAdapter[TraceEvent] = TypeAdapter(TraceEvent, config=LATE)


def derived_items(events: Sequence[TraceEvent], span_id: str | None) -> list[TraceItem]:
    """Return the items of the span `span_id` (`None` for the root) from ordered events, without the events of
    other spans.

    If the stream contains at least one message event, even in another span, all messages are assumed to be
    recorded.
    """
    direct = [event for event in events if event.span_id == span_id]
    if any(isinstance(event, MessageEvent) for event in events):
        return _from_messages(direct)
    return _from_model_calls(direct)


def _from_messages(direct: Sequence[TraceEvent]) -> list[TraceItem]:
    items: list[TraceItem] = []
    for event in direct:
        if isinstance(event, MessageEvent):
            items.append(event.item)
        elif isinstance(event, FunctionCallEvent):
            items.append(
                FunctionCall(
                    id=fresh_id(),
                    call_id=event.call_id,
                    name=event.function,
                    arguments=event.arguments,
                    status=event.status,
                )
            )
            if event.status is FunctionCallStatus.completed:
                items.append(
                    FunctionCallOutput(
                        id=fresh_id(),
                        call_id=event.call_id,
                        output=event.result,
                        status=FunctionCallOutputStatusEnum.completed,
                    )
                )
    return items


def _from_model_calls(direct: Sequence[TraceEvent]) -> list[TraceItem]:
    """Return the items of the last call of each segment, unmerged. A compaction ends a segment."""
    items: list[TraceItem] = []
    call: ModelCallEvent | None = None
    trimmed: ModelCallEvent | None = None
    """Call before a trim, until the next call is found."""
    for event in direct:
        if isinstance(event, ModelCallEvent):
            if trimmed is not None:
                items += _cut_off(_conversation(trimmed), event.input_context)
                trimmed = None
            call = event
        elif isinstance(event, CompactionEvent) and call is not None:
            if event.strategy == "trim":
                trimmed = call
            else:
                items += _conversation(call)
            call = None
    if call is not None:
        items += _conversation(call)
    return items


def _conversation(call: ModelCallEvent) -> list[TraceItem]:
    return [*call.input_context, *call.output_items]


def _cut_off(items: Sequence[TraceItem], context: Sequence[TraceItem]) -> Sequence[TraceItem]:
    if context:
        for index, item in enumerate(items):
            if _same(item, context[0]):
                return items[:index]
    return ()


def _same(one: TraceItem, other: TraceItem) -> bool:
    """Compare items by identifier if both have one (even an empty one), otherwise by value."""
    id_of_one, id_of_other = getattr(one, "id", None), getattr(other, "id", None)
    if id_of_one is None or id_of_other is None:
        return one == other
    return bool(id_of_one == id_of_other)


_Event = TypeVar("_Event")


def sort_events_by_span(events: Sequence[TraceEvent]) -> list[TraceEvent]:
    """Return the events in depth-first order: start of a span, its events and child spans, its end.

    Siblings keep the order of the stream. With timestamps, they are sorted by time; a span counts with its
    start time. An event whose span does not start anywhere belongs to the root. Ends without a start are
    dropped.

    Raises:
        ValueError: only some events have a timestamp (ends of spans are ignored).
        TypeError: siblings mix times with and without a UTC offset.
    """
    ends: dict[str, TraceEvent] = {
        event.span_id: event for event in events if isinstance(event, SpanEndEvent)
    }
    happenings: list[TraceEvent] = [event for event in events if not isinstance(event, SpanEndEvent)]
    timed = sum(event.timestamp is not None for event in happenings)
    if timed not in (0, len(happenings)):
        raise ValueError(
            f"{timed} of {len(happenings)} events have a timestamp; either all events of a trace have "
            "one or none"
        )

    return arranged(
        happenings,
        begins=[event.span_id if isinstance(event, SpanBeginEvent) else None for event in happenings],
        homes=[
            event.parent_span_id if isinstance(event, SpanBeginEvent) else event.span_id
            for event in happenings
        ],
        ends=ends,
        times=[event.timestamp for event in happenings] if timed else None,
    )


def arranged(
    events: Sequence[_Event],
    *,
    begins: Sequence[str | None],
    homes: Sequence[str | None],
    ends: Mapping[str, _Event],
    times: Sequence[Any] | None,
) -> list[_Event]:
    """Return events of any type in the order of `sort_events_by_span`.

    Args:
        events: all events except the ends of spans.
        begins: for each event, the span that it starts, if any.
        homes: for each event, the span that contains it.
        ends: ends of spans, by span.
        times: for each event, its time; `None` without times.
    """
    begun = set(begins)
    children: dict[str | None, list[int]] = {}
    for place, home in enumerate(homes):
        children.setdefault(home if home in begun else None, []).append(place)
    if times is not None:
        for siblings in children.values():
            siblings.sort(key=times.__getitem__)
    ordered: list[_Event] = []
    # Use an explicit stack, because agents may be nested deeper than Python's recursion limit.
    open_blocks = [iter(children.get(None, ()))]
    open_spans: list[str] = []
    while open_blocks:
        for place in open_blocks[-1]:
            ordered.append(events[place])
            if (span := begins[place]) is not None:
                open_spans.append(span)
                open_blocks.append(iter(children.get(span, ())))
                break
        else:
            open_blocks.pop()
            if open_spans and open_spans[-1] in ends:
                ordered.append(ends[open_spans[-1]])
            if open_spans:
                open_spans.pop()
    return ordered
