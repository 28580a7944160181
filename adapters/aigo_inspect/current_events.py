"""Events of a current sample (see `current`) → AI GO trace events.

The same events that `events` makes of the same sample, field by field; a test holds the two together. Here every field is known to be of
the right kind, so what is left is what nearly every event needs. What would need more raises `UnusualError`, and the sample is
mapped the general way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, get_args

import msgspec
from msgspec import Raw

from aigo_bridge.importing.encoding import json_text
from aigo_bridge.importing.loss import LossReport

from . import current
from .clock import utc_all
from .current import UnusualError
from .current_calls import CallConstants, CurrentCalls, base
from .current_messages import Messages
from .event_repairs import link_agents, mend_parents
from .events import BROKEN_OFF, COMPACTIONS, FIRST_STATE_LEFT_OUT, LOUD, PATCH_LEFT_OUT, QUIET
from .ordering import Event
from .parts import tool_result
from .pools import Walker, has_references
from .repeated import Repeated

_NAMES: dict[type, str] = {kind: str(kind.__struct_config__.tag) for kind in get_args(current.NativeEvent)}
"""Kind of event → its name in the log."""
_KEPT = {kind: f"event {name}" for kind, name in _NAMES.items()}
_BASE = frozenset(current.SpanEnd.__struct_fields__) - {"id"}
_CUSTOM: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in kind.__struct_fields__ if field not in _BASE)
    for kind in get_args(current.NativeEvent)
    if issubclass(kind, current.Custom)
}
"""Kind of event that AI GO has no type for → the fields that are its content."""
_timestamp = attrgetter("timestamp")
_PATCHES = (current.StatePatch, current.StorePatch)


class Constants(CallConstants):
    """What is the same in the events of a whole log."""

    def __init__(self) -> None:
        super().__init__()
        self.options = Repeated(_options)
        """Options of a command in the sandbox; `None` where they have references to texts, which differ by sample."""


def _options(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        raise UnusualError
    return None if has_references(value) else value


def _check_utf8(left_out: Iterable[Raw]) -> None:
    """Refuse what is not UTF-8: whether there are secrets in a document is only known of one that is UTF-8 throughout."""
    try:
        b"".join(map(bytes, left_out)).decode()
    except UnicodeDecodeError as error:
        raise UnusualError from error


def _is_quiet(native: current.NativeEvent) -> bool:
    return type(native) is current.Logger and native.message.get("level") not in LOUD


def _add_tool_notes(native: current.Tool, result: Any, notes: dict[str, Any]) -> None:
    if native.type not in (None, "function"):
        notes["type"] = native.type
    # One by one, as in `current_calls`.
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


class CurrentEvents:
    """Maps the events of one sample."""

    def __init__(
        self,
        sample: current.CurrentSample,
        walker: Walker,
        messages: Messages,
        constants: Constants,
        loss: LossReport,
    ):
        self.calls = CurrentCalls(sample.events_data, walker, messages, constants, loss)
        self._sample = sample
        self._walker = walker
        self._constants = constants
        self._loss = loss
        self._events: list[Event] = []
        self._starts: list[tuple[Event, Event]] = []
        self._begun: dict[str, Event] = {}
        self._ended: set[str] = set()
        self._parents_first = True
        self._contents: list[Any] = []

    def run(self) -> list[Event]:
        """The events in the order of the log."""
        natives = self._sample.events
        times = utc_all(list(map(_timestamp, natives)))
        if times is None:
            raise UnusualError
        self.calls.check_contexts([native for native in natives if type(native) is current.Model])
        loss = self._loss
        counts = Counter(map(type, natives))
        for patch in _PATCHES:
            if patch in counts:
                loss.dropped[f"event {_NAMES[patch]}: {PATCH_LEFT_OUT}"] += counts.pop(patch)
        quiet = sum(map(_is_quiet, natives)) if current.Logger in counts else 0
        if quiet:
            loss.dropped[f"event logger: {QUIET}"] += quiet
            counts[current.Logger] -= quiet
        append, mappers = self._events.append, _MAPPERS
        left_out: list[Raw] = []
        # Each is freed when it is mapped: a sample is never in memory twice.
        natives.reverse()
        for time in times:
            native = natives.pop()
            mapper = mappers.get(type(native))
            if mapper is None:
                left_out.append(native.changes)  # type: ignore[union-attr]  # only patches are not mapped
            elif not (quiet and _is_quiet(native)):
                append(mapper(self, native, time))
        _check_utf8(left_out)
        if len(self._ended) < len(self._begun):
            raise UnusualError
        # Together: starting a walk costs more than walking most events does.
        self._walker.walk(self._contents)
        if not self._parents_first:
            mend_parents(self._begun, loss)
        link_agents(self._starts, self._begun)
        for kind, count in counts.items():
            if count:
                loss.kept[_KEPT[kind]] += count
        return self._events

    # Kinds of events

    def model(self, native: current.Model, time: str) -> Event:
        """A call of a model."""
        return self.calls.event(native, time)

    def tool(self, native: current.Tool, time: str) -> Event:
        """A call of a tool."""
        if native.events:
            raise UnusualError
        error, result = native.error, self._put_back(native)
        event = base(native, "function_call_event", time, self._walker)
        event["call_id"] = native.id
        event["function"] = native.function
        event["arguments"] = json_text(native.arguments)
        event["result"] = result if type(result) is str else tool_result(result, self._loss)
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
        caller = self.calls.caller(native.span_id, native.id)
        if caller is not None:
            event["model_call_id"] = caller
        _add_tool_notes(native, result, event["metadata"]["inspect"])
        if self._events and self._events[-1]["type"] == "span_begin":
            self._starts.append((self._events[-1], event))
        return event

    def _put_back(self, native: current.Tool) -> Any:
        """Put back the texts that were taken out of a call of a tool; returns its result."""
        walk, result = self._walker.walk, native.result
        walk(native.arguments)
        if native.view:
            walk(native.view)
        if native.error:
            walk(native.error)
        if isinstance(result, str):
            return self._walker.text(result)
        if isinstance(result, (dict, list)):
            walk(result)
        return result

    def span_begin(self, native: current.SpanBegin, time: str) -> Event:
        """A span begins."""
        begun, parent = self._begun, native.parent_id
        if native.id in begun:
            raise UnusualError
        event = self._of_span(native, "span_begin", time)
        if parent:
            event["parent_span_id"] = parent
            # Only a span that began before the one around it can be inside itself.
            if parent not in begun:
                self._parents_first = False
        event["name"] = native.name
        if native.type is not None:
            event["span_type"] = native.type
        begun[native.id] = event
        return event

    def span_end(self, native: current.SpanEnd, time: str) -> Event:
        """A span ends."""
        if native.id not in self._begun or native.id in self._ended:
            raise UnusualError
        self._ended.add(native.id)
        return self._of_span(native, "span_end", time)

    def _of_span(self, native: current.SpanBegin | current.SpanEnd, kind: str, time: str) -> Event:
        if native.span_id == native.id and not native.metadata:
            # As `base`, for a third of all events.
            metadata = {"inspect": {"working_start": native.working_start}}
            return {
                "type": kind,
                "id": native.uuid,
                "span_id": native.id,
                "timestamp": time,
                "metadata": metadata,
            }
        event = base(native, kind, time, self._walker)
        if native.span_id and native.span_id != native.id:
            event["metadata"]["inspect"]["span_id"] = native.span_id
        event["span_id"] = native.id
        return event

    def compaction(self, native: current.Compaction, time: str) -> Event:
        """The context was made shorter."""
        strategy = native.type or "summary"
        if strategy not in COMPACTIONS:
            return self.custom(native, time)
        event = base(native, "compaction", time, self._walker)
        event["strategy"] = strategy
        if (native.tokens_before or 0) < 0 or (native.tokens_after or 0) < 0:
            raise UnusualError
        if native.tokens_before is not None:
            event["tokens_before"] = native.tokens_before
        if native.tokens_after is not None:
            event["tokens_after"] = native.tokens_after
        notes = event["metadata"]["inspect"]
        notes |= {field: value for field in ("role", "source") if (value := getattr(native, field))}
        return event

    def sandbox(self, native: current.Sandbox, time: str) -> Event:
        """A command in the sandbox, or a file: the most frequent of the events that AI GO has no type for."""
        text, lengths = self._walker.text, self._walker.lengths
        # Looking at the length here saves a call for nearly every text.
        action = native.action
        data: dict[str, Any] = {"action": text(action) if len(action) in lengths else action}
        if (cmd := native.cmd) is not None:
            data["cmd"] = text(cmd) if len(cmd) in lengths else cmd
        if native.options != current.NULL:
            options = self._constants.options.of(native.options)
            if options is None:
                options = msgspec.json.decode(native.options)
                self._contents.append(options)
            data["options"] = options
        if (file := native.file) is not None:
            data["file"] = text(file) if len(file) in lengths else file
        if (given := native.input) is not None:
            data["input"] = text(given) if len(given) in lengths else given
        if native.result is not None:
            data["result"] = native.result
        if (output := native.output) is not None:
            data["output"] = text(output) if len(output) in lengths else output
        if (completed := native.completed) is not None:
            data["completed"] = text(completed) if len(completed) in lengths else completed
        event = base(native, "custom", time, self._walker)
        event["name"] = "sandbox"
        event["data"] = data
        return event

    def custom(self, native: current.Custom, time: str) -> Event:
        """An event that AI GO has no type for."""
        event = base(native, "custom", time, self._walker)
        event["name"] = _NAMES[type(native)]
        data = {
            field: value for field in _CUSTOM[type(native)] if (value := getattr(native, field)) is not None
        }
        if type(native) is current.SampleInit and data.pop("state", None) is not None:
            self._loss.dropped[FIRST_STATE_LEFT_OUT] += 1
        self._contents.append(data)
        event["data"] = data
        return event


_MAPPERS: dict[type, Callable[[CurrentEvents, Any, str], Event]] = {
    **dict.fromkeys(_CUSTOM, CurrentEvents.custom),
    current.Model: CurrentEvents.model,
    current.Tool: CurrentEvents.tool,
    current.SpanBegin: CurrentEvents.span_begin,
    current.SpanEnd: CurrentEvents.span_end,
    current.Sandbox: CurrentEvents.sandbox,
    current.Compaction: CurrentEvents.compaction,
}
"""Kind of event → how it is mapped; patches are not."""
