"""Events of a current sample (see `current`) → AI GO trace events.

The same events that `events` makes of the same sample, field by field; a test holds the two together. Here every field is known to be of
the right kind, so what is left is what nearly every event needs. What would need more raises `UnusualError`, and the sample is
mapped the general way.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from aigo_bridge.importing.encoding import json_text
from aigo_bridge.importing.loss import LossReport

from . import current
from .clock import seconds_between, utc
from .content import Item, SharedItems, items_from_message
from .event_repairs import link_agents, mend_parents
from .events import BROKEN_OFF, COMPACTIONS, FIRST_STATE_LEFT_OUT, LOUD, PATCH_LEFT_OUT, QUIET
from .model_calls import STATUS_OF_STOP, ModelCalls, model_usage
from .ordering import Event
from .parts import tool_result
from .pools import Walker, expand_request


class UnusualError(Exception):
    """A sample that has to be mapped the general way."""


_NAMES: dict[type, str] = {kind: str(kind.__struct_config__.tag) for kind in get_args(current.NativeEvent)}
"""Kind of event → its name in the log."""
_BASE = frozenset(current.SpanEnd.__struct_fields__) - {"id"}
_CUSTOM: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in kind.__struct_fields__ if field not in _BASE)
    for kind in get_args(current.NativeEvent)
    if issubclass(kind, current.Custom)
}
"""Kind of event that AI GO has no type for → the fields that are its content."""
_CALL_FIELDS = (
    *("role", "requested_model", "tool_choice", "retries", "request_ids", "traceback", "cache"),
    *("completed", "working_time"),
)
_OUTPUT_FIELDS = {
    **{name: name for name in ("usage", "input_context_tokens", "fallback")},
    "time": "output_time",
    "metadata": "output_metadata",
    "response_id": "response_id",
}
_TOOL_FIELDS = ("view", "truncated", "completed", "failed", "message_id")
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class ToolLists:
    """Lists of tools by their JSON text: of the few that a log has, each stands in thousands of calls."""

    _MOST = 256

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[list[Any], list[str]]] = {}

    def of(self, raw: msgspec.Raw) -> tuple[list[Any], list[str]]:
        """Definitions and names; raises `UnusualError` where references would have to be replaced."""
        text = bytes(raw)
        found = self._known.get(text)
        if found is None:
            tools = _ANYTHING.decode(text)
            if not isinstance(tools, list) or b"attachment://" in text or b"tc://" in text:
                raise UnusualError
            names = [str(tool.get("name")) for tool in tools if isinstance(tool, dict) and tool.get("name")]
            if len(self._known) >= self._MOST:
                self._known.clear()
            found = self._known[text] = (tools, names)
        return found


class CurrentEvents:
    """Maps the events of one sample."""

    def __init__(
        self,
        sample: current.CurrentSample,
        walker: Walker,
        items: SharedItems,
        tools: ToolLists,
        loss: LossReport,
    ):
        self.answers: list[tuple[str | None, list[dict[str, Any]], dict[str, Any] | None]] = []
        """Span, messages and usage of every model call."""
        self.raw_calls: list[current.Model] = []
        """The model calls that hold their raw request and response."""
        self.offers: dict[int, list[Any]] = {}
        """The lists of tools that the models were offered."""
        self._sample = sample
        self._walker = walker
        self._items = items
        self._tools = tools
        self._loss = loss
        self._calls = ModelCalls(items, loss)
        self._events: list[Event] = []
        self._begun: dict[str, Event] = {}
        self._ended: set[str] = set()
        self._known: dict[bytes, dict[str, Any]] = {}
        self._pool: list[dict[str, Any]] = []
        self._raw_pool: list[Any] = []
        self._contents: list[dict[str, Any]] = []

    def run(self) -> list[Event]:
        """The events in the order of the log."""
        self._resolve()
        # Not kept: an object that refers to its own methods is a cycle, and nobody collects cycles during an import.
        mappers: dict[type, Any] = {
            current.Model: self._model,
            current.Tool: self._tool,
            current.SpanBegin: self._span_begin,
            current.SpanEnd: self._span_end,
            **dict.fromkeys(_CUSTOM, self._custom),
            current.Compaction: self._compaction,
        }
        counts: dict[str, int] = {}
        append = self._events.append
        for native in self._sample.events:
            mapper = mappers.get(type(native))
            if mapper is None or (type(native) is current.Logger and self._is_quiet(native)):
                continue
            event = _base(native)
            mapper(native, event)
            append(event)
            kind = _NAMES[type(native)]
            counts[kind] = counts.get(kind, 0) + 1
        for kind, count in counts.items():
            self._loss.kept[f"event {kind}"] += count
        if len(self._ended) < len(self._begun):
            raise UnusualError
        # Together: starting a walk costs more than walking most events does.
        self._walker.walk(self._contents)
        mend_parents(self._begun, self._loss)
        link_agents(self._events, self._begun)
        return self._events

    def _resolve(self) -> None:
        """Put texts that were taken out back; what is dropped anyway is not looked at."""
        walker = self._walker
        pools = self._sample.events_data
        if pools is not None:
            self._pool = [self._message(raw) for raw in pools.messages]
            walker.walk_messages(self._pool)
            self._raw_pool = pools.calls
            walker.walk(self._raw_pool)
        texts: list[Any] = []
        for native in self._sample.events:
            if native.metadata:
                texts.append(native.metadata)
            if type(native) is current.Tool:
                texts += native.arguments, native.view, native.error
                if type(native.result) is not str:
                    texts.append(native.result)
            elif type(native) is current.Model:
                output = native.output
                texts += native.call, native.request_ids, native.tool_choice, output.metadata, output.fallback
            elif type(native) is current.StatePatch or type(native) is current.StorePatch:
                self._loss.dropped[f"event {_NAMES[type(native)]}: {PATCH_LEFT_OUT}"] += 1
        walker.walk(texts)

    def _is_quiet(self, native: current.Logger) -> bool:
        if native.message.get("level") in LOUD:
            return False
        self._loss.dropped[f"event logger: {QUIET}"] += 1
        return True

    def _message(self, raw: msgspec.Raw) -> dict[str, Any]:
        """A message by its JSON text: an answer is nearly always in the pool as well."""
        text = bytes(raw)
        found = self._known.get(text)
        if found is None:
            found = _ANYTHING.decode(text)
            if type(found) is not dict:
                raise UnusualError
            self._known[text] = found
        return found

    # Kinds of events

    def _model(self, native: current.Model, event: Event) -> None:
        output = native.output
        choices = output.choices
        if native.input or not native.input_refs or not native.model or len(choices) > 1:
            raise UnusualError
        span = native.span_id
        definitions, names = self._tools.of(native.tools)
        self.offers[id(definitions)] = definitions
        event["type"] = "model_call_event"
        event["model"] = native.model
        event["input_context"] = self._calls.context(span, self._walker.expand(native.input_refs, self._pool))
        messages = [self._answer(choice) for choice in choices]
        items: list[Item] = []
        for message, choice in zip(messages, choices, strict=True):
            status = STATUS_OF_STOP.get(choice.stop_reason, "completed")
            if status == "completed":
                items = self._items.of(message)
            else:
                items = items_from_message(message, self._loss, status=status)
        event["output_items"] = items
        usage = model_usage(output.usage)
        if usage is not None:
            event["usage"] = usage
        event["tools"] = names
        seconds = seconds_between(native.timestamp, native.completed)
        if seconds is not None:
            event["total_time"] = seconds
        if error := native.error or output.error:
            event["error"] = self._walker.text(error)
        self._add_notes(native, event["metadata"]["inspect"])
        self._calls.asked(span, items, native.uuid)
        self.answers.append((span, messages, output.usage))
        if native.call is not None:
            expand_request(native.call, self._raw_pool, self._walker)
            self.raw_calls.append(native)

    def _add_notes(self, native: current.Model, notes: dict[str, Any]) -> None:
        text = self._walker.text
        for field in _CALL_FIELDS:
            if (value := getattr(native, field)) is not None:
                notes[field] = text(value) if type(value) is str else value
        given = {key: value for key, value in native.config.items() if value is not None}
        if given:
            notes["config"] = given
        output = native.output
        for field, name in _OUTPUT_FIELDS.items():
            if (value := getattr(output, field)) is not None:
                notes[name] = value
        if output.model and output.model != native.model:
            notes["output_model"] = output.model
        if output.choices:
            notes["stop_reason"] = output.choices[0].stop_reason

    def _answer(self, choice: current.Choice) -> dict[str, Any]:
        known = len(self._known)
        message = self._message(choice.message)
        if len(self._known) > known:
            self._walker.walk_messages([message])
        return message

    def _tool(self, native: current.Tool, event: Event) -> None:
        if native.events:
            raise UnusualError
        error, result = native.error, native.result
        event["type"] = "function_call_event"
        event["call_id"] = native.id
        event["function"] = native.function
        event["arguments"] = json_text(native.arguments)
        event["result"] = (
            self._walker.text(result) if type(result) is str else tool_result(result, self._loss)
        )
        broken = native.failed or (error is not None and error.get("type") in BROKEN_OFF)
        event["status"] = "incomplete" if broken else "completed"
        if native.working_time is not None:
            event["working_time"] = native.working_time
        if error is not None:
            message = error.get("message", "")
            event["error"] = message if isinstance(message, str) else json_text(message)
        if native.agent is not None:
            event["agent"] = native.agent
        if native.agent_span_id is not None:
            event["agent_span_id"] = native.agent_span_id
        caller = self._calls.caller(native.span_id, native.id)
        if caller is not None:
            event["model_call_id"] = caller
        extra = event["metadata"]["inspect"]
        for field in _TOOL_FIELDS:
            if (value := getattr(native, field)) is not None:
                extra[field] = value
        if error is not None:
            extra["error"] = {key: value for key, value in error.items() if key != "message"}
        if result is not None and not isinstance(result, (str, list, dict)):
            extra["result"] = result

    def _span_begin(self, native: current.SpanBegin, event: Event) -> None:
        if not native.id or native.id in self._begun:
            raise UnusualError
        event["type"] = "span_begin"
        event["span_id"] = native.id
        if native.parent_id:
            event["parent_span_id"] = native.parent_id
        event["name"] = native.name
        if native.type is not None:
            event["span_type"] = native.type
        self._begun[native.id] = event

    def _span_end(self, native: current.SpanEnd, event: Event) -> None:
        if native.id not in self._begun or native.id in self._ended:
            raise UnusualError
        event["type"] = "span_end"
        event["span_id"] = native.id
        self._ended.add(native.id)

    def _compaction(self, native: current.Compaction, event: Event) -> None:
        strategy = native.type or "summary"
        if strategy not in COMPACTIONS:
            self._custom(native, event)
            return
        event["type"] = "compaction"
        event["strategy"] = strategy
        if native.tokens_before is not None:
            event["tokens_before"] = native.tokens_before
        if native.tokens_after is not None:
            event["tokens_after"] = native.tokens_after
        notes = event["metadata"]["inspect"]
        notes |= {field: value for field in ("role", "source") if (value := getattr(native, field))}

    def _custom(self, native: current.Custom, event: Event) -> None:
        event["type"] = "custom"
        event["name"] = _NAMES[type(native)]
        data = {
            field: value for field in _CUSTOM[type(native)] if (value := getattr(native, field)) is not None
        }
        if type(native) is current.SampleInit and data.pop("state", None) is not None:
            self._loss.dropped[FIRST_STATE_LEFT_OUT] += 1
        self._contents.append(data)
        event["data"] = data


def _base(native: Any) -> Event:
    time = utc(native.timestamp)
    if time is None or not native.uuid:
        raise UnusualError
    notes: dict[str, Any] = {"working_start": native.working_start}
    metadata: dict[str, Any] = {"inspect": notes}
    if native.metadata:
        metadata = {**native.metadata, "inspect": notes}
        if "inspect" in native.metadata:
            notes["metadata"] = native.metadata
    span = native.span_id
    if span:
        return {"type": "", "id": native.uuid, "span_id": span, "timestamp": time, "metadata": metadata}
    return {"type": "", "id": native.uuid, "timestamp": time, "metadata": metadata}
