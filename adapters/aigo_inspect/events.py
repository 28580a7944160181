"""Inspect's events → AI GO trace events, as JSON-ready dictionaries in the order of the log.

Every event becomes exactly one event (two for the nested transcripts of old logs); kinds that AI GO has no type for,
also kinds this version has never heard of, become `CustomEvent`s with their whole content. Message events are never
made: one of them would stop `Trace.from_events` from rebuilding the conversation out of the model calls.

Inspect's own fields without a place in AI GO stand under `metadata["inspect"]` of the event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from aigo_bridge.importing.encoding import json_text
from aigo_bridge.importing.loss import LossReport

from .clock import utc
from .content import SharedItems
from .event_repairs import fill_times, link_agents, mend_parents, odd_base, started_tools
from .model_calls import KNOWN_FIELDS, ODD_COUNT, ModelCalls, keep_rest
from .ordering import Event
from .parts import tool_result
from .shapes import MALFORMED, count_of, listed, number
from .spans import Spans

EventChoice = Literal["all", "default", "minimal"]
"""Which events an import keeps: everything; everything but state patches and chatter; the conversation only."""

_BASE_FIELDS = frozenset({"event", "uuid", "span_id", "timestamp", "working_start", "metadata", "pending"})
_CONVERSATION = frozenset(
    {
        "model",
        "tool",
        "span_begin",
        "span_end",
        "step",
        "subtask",
        "compaction",
        "error",
        "sample_limit",
        "score",
    }
)
LOUD = frozenset({"warning", "error", "critical"})
QUIET = "below warning"
COMPACTIONS = frozenset({"summary", "trim"})
"""Strategies that are a boundary for AI GO; where tool results are blanked in place, the context goes on."""
BROKEN_OFF = frozenset({"cancelled", "limit", "approval"})
_TOOL_FIELDS = frozenset({"view", "truncated", "completed", "message_id", "failed"})
_KNOWN: dict[str, frozenset[str]] = {
    "model": _BASE_FIELDS | KNOWN_FIELDS,
    "tool": _BASE_FIELDS
    | _TOOL_FIELDS
    | {
        "type",
        "id",
        "function",
        "arguments",
        "result",
        "error",
        "events",
        "working_time",
        "agent",
        "agent_span_id",
    },
    "span_begin": _BASE_FIELDS | {"id", "parent_id", "type", "name"},
    "span_end": _BASE_FIELDS | {"id"},
    "step": _BASE_FIELDS | {"action", "type", "name"},
    "compaction": _BASE_FIELDS | {"type", "role", "source", "tokens_before", "tokens_after"},
    "error": _BASE_FIELDS | {"error"},
}
"""Kind of event → its fields that have a place of their own; any other is kept as `other`."""
_ERROR_FIELDS = frozenset({"message", "traceback", "traceback_ansi"})


def sample_key(eval_id: object, sample_id: object, epoch: object) -> str:
    """A short key of one sample, from which ids are derived where old logs have none."""
    # Late: events of today have ids.
    import hashlib

    text = json_text([eval_id, sample_id, epoch])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def map_events(
    events: Iterable[Any],
    *,
    key: str = "",
    keep: EventChoice = "default",
    loss: LossReport | None = None,
    items: SharedItems | None = None,
) -> list[Event]:
    """AI GO trace events of a resolved sample's events.

    Args:
        events: `sample["events"]` after `pools.resolve`. All but model calls are taken out of a list.
        key: prefix for the ids of events that have none; see `sample_key`.
        keep: which events to map; the others are counted as dropped.
        loss: where counts go.
        items: the sample's items, to share them with other uses of its messages.
    """
    loss = loss if loss is not None else LossReport()
    return _Mapping(key, keep, loss, items or SharedItems(loss)).run(events)


def without_patches(events: list[Any], loss: LossReport) -> list[Any]:
    """The events without state and store patches, and without the first state; they are counted as dropped."""
    kept = []
    for event in events:
        kind = event.get("event") if type(event) is dict else None
        if kind == "state" or kind == "store":
            loss.dropped[f"event {kind}: {PATCH_LEFT_OUT}"] += 1
            continue
        if kind == "sample_init" and event.pop("state", None) is not None:
            loss.dropped[FIRST_STATE_LEFT_OUT] += 1
        kept.append(event)
    return kept


PATCH_LEFT_OUT = "left out unless all events are asked for"
FIRST_STATE_LEFT_OUT = f"state of event sample_init: {PATCH_LEFT_OUT}"


class _Mapping:
    """The state of mapping one sample."""

    def __init__(self, key: str, keep: EventChoice, loss: LossReport, items: SharedItems):
        self._key = key
        self._keep = keep
        self._loss = loss
        self._calls = ModelCalls(items, loss)
        self._spans = Spans(loss)
        self._events: list[Event] = []
        self._counts: dict[str, int] = {}

    def run(self, events: Iterable[Any]) -> list[Event]:
        self._map_all(events, "", None)
        found = self._events
        found += self._spans.close(_last_time(found))
        mend_parents(self._spans.begun, self._loss)
        fill_times(found, self._loss)
        link_agents(started_tools(found), self._spans.begun)
        for kind, count in self._counts.items():
            self._loss.kept[f"event {kind}"] += count
        return found

    def _map_all(self, events: Iterable[Any], path: str, span_id: str | None) -> None:
        always = _CONVERSATION
        counts = self._counts
        # Not kept: an object that refers to its own methods is a cycle, and nobody collects cycles during an import.
        mappers = {
            "model": self._model,
            "tool": self._tool,
            "span_begin": self._span_begin,
            "span_end": self._span_end,
            "step": self._step,
            "subtask": self._subtask,
            "compaction": self._compaction,
            "error": self._error,
        }
        mapped = self._events
        everything = self._keep == "all"
        # Model calls are wanted again: for the tools they were offered, and for raw requests. So is what a nested transcript
        # holds, when the event around it turns out to be of no use.
        consumed = events if type(events) is list and not path else None
        for index, given in enumerate(events):
            native = given if type(given) is dict else {"event": "unknown", "value": given}
            kind = native.get("event")
            if type(kind) is not str:
                kind = "unknown"
            if not everything and kind not in always and (reason := self._left_out(kind, native)):
                self._loss.dropped[f"event {kind}: {reason}"] += 1
                continue
            event = self._base(native, path, index, span_id)
            mapper = mappers.get(kind)
            if mapper is None:
                mapped.append(self._custom(kind, native, event))
            else:
                before = len(mapped)
                try:
                    mapper(native, event)
                    self._keep_rest(kind, native, event)
                except MALFORMED:
                    # Whatever the mapper had filled in is dropped with it.
                    del mapped[before:]
                    event = self._base(native, path, index, span_id)
                    mapped.append(self._custom(kind, native, event))
                    self._loss.changed[f"event {kind} of an unexpected shape: kept as custom event"] += 1
            counts[kind] = counts.get(kind, 0) + 1
            if consumed is not None and kind != "model":
                # Freed here: a sample is never in memory twice.
                consumed[index] = None
                del given, native

    def _keep_rest(self, kind: str, native: dict[str, Any], event: Event) -> None:
        known = _KNOWN.get(kind)
        if known is not None and event["type"] != "custom":
            keep_rest(event["metadata"]["inspect"], "other", native, known)

    def _left_out(self, kind: str, native: dict[str, Any]) -> str | None:
        if kind in ("state", "store"):
            return PATCH_LEFT_OUT
        if self._keep == "minimal":
            return "not part of the conversation"
        if kind == "logger":
            message = native.get("message")
            level = message.get("level") if isinstance(message, dict) else None
            return None if level in LOUD else QUIET
        return None

    def _base(self, native: dict[str, Any], path: str, index: int, span_id: str | None) -> Event:
        get = native.get
        uuid = get("uuid")
        event: Event = {
            "type": "",
            "id": uuid if type(uuid) is str and uuid else f"{self._key}-{path}{index}",
        }
        span = get("span_id")
        if type(span) is not str or not span:
            span = span_id or self._spans.step
        if span is not None:
            event["span_id"] = span
        time = utc(get("timestamp"))
        if time is not None:
            event["timestamp"] = time
        inspect: dict[str, Any] = {}
        if "working_start" in native:
            inspect["working_start"] = native["working_start"]
        if (odd := odd_base(native, time)) is not None:
            inspect["unreadable"] = odd
            self._loss.changed["event with an id, span or time of an unexpected shape: kept beside it"] += 1
        if pending := native.get("pending"):
            inspect["pending"] = pending
        metadata = get("metadata")
        if metadata and isinstance(metadata, dict):
            event["metadata"] = {**metadata, "inspect": inspect}
            if "inspect" in metadata:
                inspect["metadata"] = metadata
        else:
            event["metadata"] = {"inspect": inspect}
        return event

    # Conversation

    def _model(self, native: dict[str, Any], event: Event) -> None:
        self._calls.fill(native, event)
        self._events.append(event)

    def _tool(self, native: dict[str, Any], event: Event) -> None:
        if nested := listed(native.get("events")):
            self._nest(native, event, nested, "tool", native.get("function"))
        error = native.get("error")
        if error is not None and not isinstance(error, dict):
            raise TypeError("an error that is no object")
        call_id = str(native.get("id") or "")
        arguments = native.get("arguments")
        result = native.get("result")
        event["type"] = "function_call_event"
        event["call_id"] = call_id
        event["function"] = str(native.get("function") or "")
        event["arguments"] = (
            arguments if isinstance(arguments, str) else json_text({} if arguments is None else arguments)
        )
        event["result"] = result if type(result) is str else tool_result(result, self._loss)
        event["status"] = _tool_status(native, error)
        extra = event["metadata"]["inspect"]
        if (seconds := number(native.get("working_time"))) is not None:
            event["working_time"] = seconds
        elif native.get("working_time") is not None:
            extra["working_time"] = native["working_time"]
        if error is not None:
            message = error.get("message", "")
            event["error"] = message if isinstance(message, str) else json_text(message)
        for field in ("agent", "agent_span_id"):
            if isinstance(native.get(field), str):
                event[field] = native[field]
        caller = self._calls.caller(event.get("span_id"), call_id)
        if caller is not None:
            event["model_call_id"] = caller
        self._add_tool_notes(native, error, extra)
        self._events.append(event)

    def _add_tool_notes(
        self, native: dict[str, Any], error: dict[str, Any] | None, extra: dict[str, Any]
    ) -> None:
        for field in ("agent", "agent_span_id"):
            if native.get(field) is not None and not isinstance(native[field], str):
                extra[field] = native[field]
        if native.get("type") not in (None, "function"):
            extra["type"] = native["type"]
        extra |= {
            field: value for field, value in native.items() if field in _TOOL_FIELDS and value is not None
        }
        if error is not None:
            extra["error"] = {key: value for key, value in error.items() if key != "message"}
        result = native.get("result")
        if result is not None and not isinstance(result, (str, list, dict)):
            extra["result"] = result

    def _compaction(self, native: dict[str, Any], event: Event) -> None:
        strategy = native.get("type") or "summary"
        if strategy not in COMPACTIONS:
            self._events.append(self._custom("compaction", native, event))
            return
        event["type"] = "compaction"
        event["strategy"] = strategy
        for field in ("tokens_before", "tokens_after"):
            if (count := count_of(native.get(field))) is not None:
                event[field] = count
            elif native.get(field) is not None:
                event["metadata"]["inspect"][field] = native[field]
                self._loss.changed[ODD_COUNT] += 1
        extra = event["metadata"]["inspect"]
        extra |= {field: native[field] for field in ("role", "source") if native.get(field)}
        self._events.append(event)

    # Spans

    def _span_begin(self, native: dict[str, Any], event: Event) -> None:
        begun = self._spans.begin(native, event)
        self._events.append(event if begun else self._custom("span_begin", native, event))

    def _span_end(self, native: dict[str, Any], event: Event) -> None:
        ended = self._spans.end(native, event)
        self._events.append(event if ended else self._custom("span_end", native, event))

    def _step(self, native: dict[str, Any], event: Event) -> None:
        self._events += self._spans.step_events(native, event) or [self._custom("step", native, event)]

    def _nest(self, native: dict[str, Any], event: Event, nested: list[Any], kind: str, name: object) -> None:
        """The transcript inside a tool or subtask event of an old log, as a span of its own in front of it."""
        spans = self._spans
        span_id = f"{event['id']}-{kind}"
        begin = spans.made_begin(span_id, str(name or ""), kind, event)
        outer = self._events
        inner: list[Event] = []
        steps, spans.steps = spans.steps, []
        self._events = inner
        try:
            self._map_all(nested, f"{event['id'].removeprefix(self._key + '-')}.", span_id)
        finally:
            self._events = outer
            inner_steps, spans.steps = spans.steps, steps
        last = _last_time(inner) or event.get("timestamp")
        open_steps = [spans.made_end(step, last) for step, _ in reversed(inner_steps)]
        self._events += [begin, *inner, *open_steps]
        self._events.append(spans.made_end(span_id, utc(native.get("completed")) or last))

    def _subtask(self, native: dict[str, Any], event: Event) -> None:
        if isinstance(nested := native.get("events"), list):
            del native["events"]
            if nested:
                self._nest(native, event, nested, "subtask", native.get("name"))
        self._events.append(self._custom("subtask", native, event))

    # The rest

    def _error(self, native: dict[str, Any], event: Event) -> None:
        error = native.get("error")
        error = error if isinstance(error, dict) else {"message": error}
        event["type"] = "error"
        message = error.get("message")
        event["message"] = message if isinstance(message, str) else json_text(message)
        if isinstance(error.get("traceback"), str):
            event["traceback"] = error["traceback"]
        elif error.get("traceback") is not None:
            event["metadata"]["inspect"]["traceback"] = error["traceback"]
        keep_rest(event["metadata"]["inspect"], "error", error, _ERROR_FIELDS)
        if error.get("traceback_ansi"):
            self._loss.changed["error event: coloured copy of the traceback left out"] += 1
        self._events.append(event)

    def _custom(self, kind: str, native: dict[str, Any], event: Event) -> Event:
        event["type"] = "custom"
        event["name"] = kind
        data = {key: value for key, value in native.items() if value is not None and key not in _BASE_FIELDS}
        if kind == "input" and data.pop("input_ansi", None):
            self._loss.changed["input event: coloured copy left out"] += 1
        if kind == "sample_init" and self._keep != "all" and data.pop("state", None) is not None:
            self._loss.dropped[FIRST_STATE_LEFT_OUT] += 1
        event["data"] = data
        return event


def _last_time(events: list[Event]) -> str | None:
    return next((event["timestamp"] for event in reversed(events) if "timestamp" in event), None)


def _tool_status(native: dict[str, Any], error: dict[str, Any] | None) -> str:
    if native.get("pending"):
        return "in_progress"
    if native.get("failed") or (error is not None and error.get("type") in BROKEN_OFF):
        return "incomplete"
    return "completed"
