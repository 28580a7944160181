"""Conversion of Inspect's events to AI GO trace events, as JSON-ready dictionaries in log order.

Every event becomes exactly one event (two for the nested transcripts of old logs). Event types without an AI
GO type, including unknown ones, become a `CustomEvent` with their whole content. Message events are never
created, because they would stop `Trace.from_events` from deriving the conversation from the model calls.

Inspect's fields without a field in AI GO are in `metadata["inspect"]` of the event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, get_args

import msgspec
from msgspec import Raw

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import dumps, json_text
from aigo_inspect.logs.parsing import utc
from aigo_inspect.logs.pools import Walker
from aigo_inspect.logs.shapes import MALFORMED, count_of, number
from aigo_inspect.mapping import records
from aigo_inspect.mapping.lenient import BASE_FIELDS, kind_of
from aigo_inspect.mapping.model_calls import ODD_COUNT, ModelCallConverter, keep_rest
from aigo_inspect.mapping.parts import tool_result
from aigo_inspect.mapping.records import NativeEvent, SampleRecord
from aigo_inspect.mapping.sample_messages import Messages
from aigo_inspect.mapping.spans import Event, Spans, fill_times, last_time

EventChoice = Literal["all", "default", "minimal"]
"""Events to keep in an import: `all`, `default` (without state patches and low-level log messages), or
`minimal` (only the conversation)."""

_NAMES: dict[Any, str] = {
    kind: str(kind.__struct_config__.tag) for kind in get_args(NativeEvent) if kind is not records.Other
}
"""Event type → name in the log."""
_KEPT = {kind: f"event {name}" for kind, name in _NAMES.items()}
_BASE_FIELDS = frozenset(records.SpanEnd.__struct_fields__) - {"id"}
_CONTENTS: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in kind.__struct_fields__ if field not in _BASE_FIELDS)
    for kind in _NAMES
    if issubclass(kind, records.Custom)
}
"""Event type without an AI GO type → content fields."""
_CONVERSATION = frozenset(
    {
        *("model", "tool", "span_begin", "span_end", "step", "subtask"),
        *("compaction", "error", "sample_limit", "score"),
    }
)
_PATCHES = (records.StatePatch, records.StorePatch)
_CHOSEN = frozenset({*_PATCHES, records.Logger, records.Other})
"""Types of events that may be left out."""
_LOUD = frozenset({"warning", "error", "critical"})
_PATCH_LEFT_OUT = "left out without --events all"
_FIRST_STATE_LEFT_OUT = f"state of event sample_init: {_PATCH_LEFT_OUT}"
_COMPACTIONS = frozenset({"summary", "trim"})
"""Strategies that end a segment in AI GO. Other strategies blank tool results in place, and the context
continues."""
_BROKEN_OFF = frozenset({"cancelled", "limit", "approval"})
_ERROR_FIELDS = frozenset({"message", "traceback", "traceback_ansi"})


class EventMapper:
    """Converter for the events of one sample."""

    def __init__(
        self,
        sample: SampleRecord,
        walker: Walker,
        messages: Messages,
        loss: LossReport,
        *,
        key: Callable[[], str],
        keep: EventChoice,
    ):
        """Create the converter. `key` returns the id prefix for events without an id."""
        self.calls = ModelCallConverter(sample, walker, messages, loss)
        self._natives = sample.events
        self._walker = walker
        self._loss = loss
        self._key = key
        self._keep = keep
        self._spans = Spans(loss)
        self._events: list[Event] = []
        self._contents: list[Any] = []
        """Contents with unresolved references. They are resolved together, because starting a walk costs more
        than walking most of them."""
        self._kinds: list[str] = []
        """Kind of every event in the loss report."""
        self.is_usual = True
        """Whether all events have the form of current releases."""
        self._untimed = False
        self._path = ""
        self._index = 0
        """Index of the current event. In a nested transcript, the path leads to it."""
        self._outer_span: str | None = None
        """Span that represents a nested transcript."""

    def run(self) -> list[Event]:
        """Return the events in log order."""
        self.calls.check_contexts(list(_named(self._natives)))
        self._map(self._natives)
        self._walker.walk(self._contents)
        self._spans.close(self._events)
        if self._untimed:
            fill_times(self._events, self._loss)
        self._loss.kept.update(self._kinds)
        return self._events

    def _map(self, natives: list[Any]) -> None:
        events, kinds = self._events, self._kinds
        left_out = 0
        for index, native in enumerate(natives):
            # Each event is freed after its conversion, so that a sample is never in memory twice.
            natives[index] = None
            kind, odd = type(native), native.odd
            self.is_usual = self.is_usual and odd is None
            if kind in _CHOSEN and (reason := self._left_out(native)):
                self._loss.dropped[f"event {_name_of(native)}: {reason}"] += 1
                left_out += reason is _PATCH_LEFT_OUT and not self._path
                continue
            self._index = index - left_out
            count = len(events)
            try:
                event = _MAPPERS[kind](self, native)
            except MALFORMED:
                # Events that the failed converter has added are removed with it.
                del events[count:]
                event = self.custom(native)
                reason = f"event {_name_of(native)} of an unexpected shape: kept as custom event"
                self._loss.changed[reason] += 1
            events.append(event)
            if odd is None:
                kinds.append(_KEPT[kind])
                continue
            kinds.append(f"event {kind_of(odd.native)}")
            if odd.leftover is not None and event["type"] != "custom":
                event["metadata"]["inspect"]["other"] = odd.leftover
                self._contents.append(odd.leftover)

    def _left_out(self, native: Any) -> str | None:
        """Return the reason for leaving out an event; `None` to keep it."""
        kind = _name_of(native)
        if self._keep == "all" or kind in _CONVERSATION:
            return None
        if kind in ("state", "store"):
            return _PATCH_LEFT_OUT
        if self._keep == "minimal":
            if kind == "sample_init" and native.odd.native.get("state") is not None:
                self._loss.dropped[_FIRST_STATE_LEFT_OUT] += 1
            return "not part of the conversation"
        if kind == "logger":
            message = native.message if native.odd is None else native.odd.native.get("message")
            level = message.get("level") if isinstance(message, dict) else None
            return None if level in _LOUD else "below warning"
        return None

    def _base(self, native: Any, kind: str) -> Event:
        """Return the common fields of an event. `native` is any of `NativeEvent`."""
        notes: dict[str, Any] = {}
        if native.working_start is not msgspec.UNSET:
            notes["working_start"] = native.working_start
        time = utc(native.timestamp)
        if time is None or native.odd is not None:
            self._add_odd_base(native, notes, time)
        metadata: dict[str, Any] = {"inspect": notes}
        if native.metadata:
            self._walker.walk(native.metadata)
            if "inspect" in native.metadata:
                notes["metadata"] = native.metadata
            metadata = {**native.metadata, "inspect": notes}
        event: Event = {"type": kind, "id": native.uuid or f"{self._key()}-{self._path}{self._index}"}
        if span := native.span_id or self._outer_span or self._spans.step:
            event["span_id"] = span
        if time is not None:
            event["timestamp"] = time
        event["metadata"] = metadata
        return event

    def _add_odd_base(self, native: Any, notes: dict[str, Any], time: str | None) -> None:
        unreadable = None if native.odd is None else native.odd.unreadable
        if time is None:
            self._untimed = True
            if native.timestamp is not None:
                unreadable = {"timestamp": native.timestamp}
        if unreadable is not None:
            notes["unreadable"] = unreadable
            self._loss.changed[
                "event with an id, span or time of an unexpected shape: original value kept"
            ] += 1
        if native.odd is not None and (pending := native.odd.native.get("pending")):
            notes["pending"] = pending

    # Conversation

    def model(self, native: records.ModelRecord) -> Event:
        """Convert a model call."""
        event = self._base(native, "model_call_event")
        self.calls.fill(native, event, nested=bool(self._path))
        return event

    def tool(self, native: records.Tool) -> Event:
        """Convert a tool call."""
        event = self._base(native, "function_call_event")
        if native.events:
            self._nest(native.events, native.completed, event, "tool", native.function)
        error, result = native.error, self._put_back(native)
        event["call_id"] = native.id
        event["function"] = native.function
        arguments = {} if native.arguments is None else native.arguments
        event["arguments"] = arguments if isinstance(arguments, str) else json_text(arguments)
        event["result"] = result if type(result) is str else tool_result(result, self._loss)
        broken = native.failed or (error is not None and error.get("type") in _BROKEN_OFF)
        notes = event["metadata"]["inspect"]
        event["status"] = "in_progress" if notes.get("pending") else "incomplete" if broken else "completed"
        if (seconds := number(native.working_time)) is not None:
            event["working_time"] = seconds
        elif native.working_time is not None:
            notes["working_time"] = native.working_time
        if error is not None:
            message = error.get("message", "")
            event["error"] = message if isinstance(message, str) else json_text(message)
        for field, value in (("agent", native.agent), ("agent_span_id", native.agent_span_id)):
            if value is not None:
                (event if isinstance(value, str) else notes)[field] = value
        if (caller := self.calls.caller(event.get("span_id"), native.id)) is not None:
            event["model_call_id"] = caller
        _add_tool_notes(native, result, notes)
        if self._events and self._events[-1]["type"] == "span_begin":
            self._spans.starts.append((self._events[-1], event))
        return event

    def _put_back(self, native: records.Tool) -> Any:
        """Restore the attachments of a tool call, and return its result."""
        walker, result = self._walker, native.result
        if isinstance(native.arguments, str):
            native.arguments = walker.text(native.arguments)
        elif native.arguments:
            walker.walk(native.arguments)
        if native.view:
            walker.walk(native.view)
        if native.error:
            walker.walk(native.error)
        if isinstance(result, str):
            return walker.text(result)
        if isinstance(result, (dict, list)):
            walker.walk(result)
        return result

    def compaction(self, native: records.Compaction) -> Event:
        """Convert a compaction of the context."""
        strategy = native.type or "summary"
        if strategy not in _COMPACTIONS:
            return self.custom(native)
        event = self._base(native, "compaction")
        event["strategy"] = strategy
        notes = event["metadata"]["inspect"]
        for field, value in (("tokens_before", native.tokens_before), ("tokens_after", native.tokens_after)):
            if (count := count_of(value)) is not None:
                event[field] = count
            elif value is not None:
                notes[field] = value
                self._loss.changed[ODD_COUNT] += 1
        notes |= {field: text for field in ("role", "source") if (text := getattr(native, field))}
        return event

    # Spans

    def span_begin(self, native: records.SpanBegin) -> Event:
        """Convert the start of a span."""
        event = self._base(native, "span_begin")
        if not self._spans.begin(native, event):
            return self.custom(native, event)
        return event

    def span_end(self, native: records.SpanEnd) -> Event:
        """Convert the end of a span."""
        event = self._base(native, "span_end")
        if not self._spans.end(native, event):
            return self.custom(native, event)
        return event

    def step(self, native: records.StepRecord) -> Event:
        """Convert the start or end of a step, which is a span in old logs."""
        event = self._base(native, "custom")
        events = self._spans.step_events(native, event)
        if not events:
            return self.custom(native, event)
        self._events += events[:-1]
        return events[-1]

    def _nest(self, natives: list[Any], completed: Any, event: Event, kind: str, name: str) -> None:
        """Add the transcript in a tool or subtask event of an old log as a span before the event."""
        spans = self._spans
        span_id = f"{event['id']}-{kind}"
        self._events.append(spans.added_begin(span_id, name, kind, event))
        outer = self._path, self._index, self._outer_span, spans.steps
        self._path = f"{event['id'].removeprefix(self._key() + '-')}."
        self._outer_span, spans.steps = span_id, []
        begin = len(self._events)
        try:
            self._map(natives)
        finally:
            steps = spans.steps
            self._path, self._index, self._outer_span, spans.steps = outer
        time = last_time(self._events[begin:]) or event.get("timestamp")
        self._events += [spans.added_end(step, time) for step, _ in reversed(steps)]
        self._events.append(spans.added_end(span_id, utc(completed) or time))

    # Other events

    def error(self, native: records.ErrorRecord) -> Event:
        """Convert an error of the sample."""
        event = self._base(native, "error")
        error = native.error if isinstance(native.error, dict) else {"message": native.error}
        self._walker.walk(error)
        message, traceback, notes = error.get("message"), error.get("traceback"), event["metadata"]["inspect"]
        event["message"] = message if isinstance(message, str) else json_text(message)
        if isinstance(traceback, str):
            event["traceback"] = traceback
        elif traceback is not None:
            notes["traceback"] = traceback
        keep_rest(notes, "error", error, _ERROR_FIELDS)
        if error.get("traceback_ansi"):
            self._loss.changed["error event: colored copy of the traceback left out"] += 1
        return event

    def sandbox(self, native: records.Sandbox) -> Event:
        """Convert a command or file access in the sandbox, the most frequent event without an AI GO type."""
        text, lengths = self._walker.text, self._walker.lengths
        # Checking the length here avoids a function call for almost every text.
        action = native.action
        data: dict[str, Any] = {"action": text(action) if len(action) in lengths else action}
        if (cmd := native.cmd) is not None:
            data["cmd"] = text(cmd) if len(cmd) in lengths else cmd
        if (options := native.options) is not None:
            if type(options) is Raw:
                options = [msgspec.json.decode(options)]
                self._contents.append(options)
            data["options"] = options[0]
        if (file := native.file) is not None:
            data["file"] = text(file) if len(file) in lengths else file
        if (stdin := native.input) is not None:
            data["input"] = text(stdin) if len(stdin) in lengths else stdin
        if native.result is not None:
            data["result"] = native.result
        if (output := native.output) is not None:
            data["output"] = text(output) if len(output) in lengths else output
        if (completed := native.completed) is not None:
            data["completed"] = text(completed) if len(completed) in lengths else completed
        event = self._base(native, "custom")
        event["name"] = "sandbox"
        event["data"] = data
        return event

    def other(self, native: records.Other) -> Event:
        """Convert an event of any type, as created by `lenient`."""
        event = self._base(native, "custom")
        if native.nested:
            source = _source(native)
            self._nest(
                native.nested, source.get("completed"), event, "subtask", str(source.get("name") or "")
            )
        return self.custom(native, event)

    def custom(self, native: Any, event: Event | None = None) -> Event:
        """Convert an event without an AI GO type."""
        event = self._base(native, "custom") if event is None else event
        event["type"] = "custom"
        event["name"] = name = _name_of(native)
        if (fields := _CONTENTS.get(type(native))) is not None and native.odd is None:
            data = {field: value for field in fields if (value := getattr(native, field)) is not None}
        else:
            source = native.odd.native if native.odd is not None else _as_dictionary(native)
            if name == "model":
                self.calls.keep(source, native.span_id, event, nested=bool(self._path))
            data = {
                key: value for key, value in source.items() if value is not None and key not in BASE_FIELDS
            }
        if name == "sample_init" and self._keep != "all" and data.pop("state", None) is not None:
            self._loss.dropped[_FIRST_STATE_LEFT_OUT] += 1
        if name == "input" and data.pop("input_ansi", None):
            self._loss.changed["input event: colored copy left out"] += 1
        self._contents.append(data)
        event["data"] = data
        return event


_MAPPERS: dict[type, Callable[[EventMapper, Any], Event]] = {
    **dict.fromkeys(_CONTENTS, EventMapper.custom),
    records.ModelRecord: EventMapper.model,
    records.Tool: EventMapper.tool,
    records.SpanBegin: EventMapper.span_begin,
    records.SpanEnd: EventMapper.span_end,
    records.StepRecord: EventMapper.step,
    records.ErrorRecord: EventMapper.error,
    records.Sandbox: EventMapper.sandbox,
    records.Compaction: EventMapper.compaction,
    records.Other: EventMapper.other,
}
"""Event type → converter. In this table, patches are handled as `Other`."""


def _name_of(native: Any) -> str:
    return kind_of(native.odd.native) if native.odd is not None else _NAMES[type(native)]


def _source(native: records.Other) -> dict[str, Any]:
    return native.odd.native if native.odd is not None else {}


def _as_dictionary(native: Any) -> dict[str, Any]:
    """Return a directly parsed event as a dictionary in its logged form."""
    if type(native) is records.ModelRecord:
        tools, settings = native.tools, native.config
        native.tools = tools if type(tools) is Raw else Raw(dumps(tools.definitions))
        native.config = Raw(dumps(settings))
    event: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(native))
    return event


def _named(natives: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the message ranges of the input and the raw request of every model call."""
    for native in natives:
        if type(native) is records.ModelRecord:
            yield native.input_refs, native.call
        elif type(native) is records.Other:
            source = _source(native)
            yield source.get("input_refs"), source.get("call")
            yield from _named(native.nested)
        elif type(native) is records.Tool and native.events:
            yield from _named(native.events)


def _add_tool_notes(native: records.Tool, result: Any, notes: dict[str, Any]) -> None:
    # Written out field by field for speed, as in `model_calls`.
    if native.type not in (None, "function"):
        notes["type"] = native.type
    if native.view is not None:
        notes["view"] = native.view
    if native.truncated is not None:
        notes["truncated"] = native.truncated
    if native.completed is not None:
        notes["completed"] = native.completed
    if native.failed is not None:
        notes["failed"] = native.failed
    if native.message_id is not None:
        notes["message_id"] = native.message_id
    if native.error is not None:
        notes["error"] = {key: value for key, value in native.error.items() if key != "message"}
    if result is not None and not isinstance(result, (str, list, dict)):
        notes["result"] = result
