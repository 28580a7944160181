"""Conversion of a sample in an Inspect log to its trace: all events, and the main agent's conversation as
items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec import Struct

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text
from aigo_inspect.logs.parsing import utc
from aigo_inspect.logs.pools import Walker, resolve_fields
from aigo_inspect.logs.reader import RawSample
from aigo_inspect.logs.shapes import number
from aigo_inspect.mapping.conversation import main_span_id, spoken
from aigo_inspect.mapping.events import EventChoice, EventMapper
from aigo_inspect.mapping.lenient import sample_from, sample_of
from aigo_inspect.mapping.messages import Item
from aigo_inspect.mapping.model_calls import chat_output, count_odd_usage, model_usage
from aigo_inspect.mapping.output_origin import own_output
from aigo_inspect.mapping.records import MessageRecord, SampleRecord
from aigo_inspect.mapping.sample_messages import Messages
from aigo_inspect.mapping.spans import Event, ordered_by_span

if TYPE_CHECKING:
    from aigo_bridge.dtypes import Trace


class MappedTrace(Struct, frozen=True):
    """A trace as JSON-ready parts, for writing without creating objects."""

    events: list[Event]
    """All events, in trace order."""
    items: list[Item]
    """Conversation of the main agent."""
    span: Event | None
    """Start event of the main agent's span; `None` if the trace represents the root."""
    metadata: dict[str, Any]
    """`TraceMetadata` as a dictionary."""

    @property
    def span_id(self) -> str | None:
        """Id of the main agent's span."""
        return None if self.span is None else str(self.span["span_id"])

    def head(self) -> dict[str, Any]:
        """Return the serialized trace without items and events."""
        head: dict[str, Any] = {"metadata": self.metadata}
        if self.span is not None:
            head |= {"span_id": self.span["span_id"], "span_name": self.span["name"]}
            if "span_type" in self.span:
                head["span_type"] = self.span["span_type"]
        return head

    def plain(self) -> dict[str, Any]:
        """Return the JSON of the object that `typed` returns, if the events have the form of this release."""
        events = [_in_order(_fields_of(event["type"]), event) for event in self.events]
        metadata = _in_order(_fields_of("metadata"), self.metadata)
        return {"items": self.items, "metadata": {}, "events": events} | self.head() | {"metadata": metadata}

    def typed(self) -> Trace:
        """Return the trace as an AI GO object.

        Contexts of model calls repeat the conversation, and validating them is the main cost. Each distinct
        item is therefore validated only once, and becomes one shared object.
        """
        # Imported late, because writing files does not create objects.
        from aigo_bridge.dtypes import Trace

        fields = ("input_context", "output_items")
        repeated = (item for event in self.events for name in fields for item in event.get(name, ()))
        distinct = {id(item): item for item in (*self.items, *repeated)}
        objects = dict(
            zip(distinct, Trace.model_validate({"items": [*distinct.values()]}).items, strict=True)
        )
        events = [
            event | {name: [objects[id(item)] for item in event[name]] for name in fields if name in event}
            for event in self.events
        ]
        items = [objects[id(item)] for item in self.items]
        return Trace.model_validate({"items": items, "events": events, **self.head()})


def _in_order(names: tuple[str, ...], data: dict[str, Any]) -> dict[str, Any]:
    """Return data with the fields and times of its type."""
    ordered = {name: data[name] for name in names if name in data}
    if len(ordered) < len(data):
        raise ValueError(f"found unknown fields: {data.keys() - ordered.keys()}")
    for name in ("timestamp", "created_at"):
        if name in ordered:
            ordered[name] = ordered[name].replace(".000000Z", "Z")
    return ordered


@cache
def _fields_of(kind: str) -> tuple[str, ...]:
    """Return the field names of an event type or of the metadata."""
    from aigo_bridge.dtypes import TraceEvent, TraceMetadata

    events = {model.model_fields["type"].default: model for model in get_args(TraceEvent)}
    return tuple({**events, "metadata": TraceMetadata}[kind].model_fields)


_IN_EVIDENCE = frozenset(
    # Sample fields that are in other parts of the evidence (data, scores, errors, events, items), or are only
    # technical.
    {
        "id", "epoch", "input", "target", "choices", "metadata", "scores", "events", "messages", "output",
        "attachments", "events_data", "files", "setup", "sandbox", "description", "uuid", "started_at",
        "error", "store", "timelines",
    }
)  # fmt: skip


class MappedSample:
    """A sample with mapped events and messages. Its trace is created on request.

    Raises:
        TooLargeError: the sample would exceed the bounds.
    """

    def __init__(
        self,
        sample: SampleRecord,
        loss: LossReport,
        *,
        size: int = 0,
        bounds: Bounds = DEFAULT_BOUNDS,
        header: Mapping[str, Any] | None = None,
        keep: EventChoice = "default",
    ):
        """Map `sample`, which is consumed. `size` is the size of its JSON in bytes, and `header` is the
        header of its log.
        """
        self.fields = sample.fields
        """Fields of the sample except events and messages, with resolved references."""
        self._loss = loss
        self._header = header or {}
        walker = Walker(sample.attachments, size, bounds)
        messages = Messages(walker, loss)
        mapper = EventMapper(sample, walker, messages, loss, key=self._key, keep=keep)
        retried = bool(self.fields.get("error_retries"))
        pool = msgspec.to_builtins(sample.pool) if retried else []
        resolve_fields(self.fields, pool, sample.calls, walker)
        self._empty = not sample.events and not sample.messages
        self.events = mapper.run()
        """Events in log order."""
        self.is_usual = mapper.is_usual
        self.exchanges = mapper.calls.exchanges
        """Model calls of the sample."""
        self._tools = _tools_of(mapper.calls.offers.values())
        self._num_messages, self._answer_id = len(sample.messages), _answer_id(sample.messages)
        self._items = messages.last(sample.messages)
        if walker.missing:
            loss.dropped["attachment: missing from the log"] += walker.missing
        if walker.unknown:
            loss.dropped["messages referenced by number: missing from the log"] += walker.unknown

    def _key(self) -> str:
        """Return a short key of the sample. It is used to derive ids that are missing in old logs."""
        spec = self._header.get("eval") or {}
        run = spec.get("eval_id") or spec.get("run_id")
        return sample_key(run, self.fields.get("id"), self.fields.get("epoch"))

    @property
    def is_empty(self) -> bool:
        """Whether the log contains neither events nor messages nor an answer of the sample."""
        return self._empty and chat_output(self.fields.get("output")) is None

    def trace(self, location: str | None = None) -> MappedTrace:
        """Return the trace of the sample. `location` is the location of its log, for `source_uri` of the
        trace.
        """
        ordered = ordered_by_span(self.events)
        span_id = main_span_id(ordered, self._items)
        conversation = spoken(ordered, span_id, self._items, self._answer_id)
        span = next((e for e in ordered if e["type"] == "span_begin" and e["span_id"] == span_id), None)
        metadata = self._metadata(location, span)
        notes = metadata["extra"]["inspect"]
        if output := own_output(self.fields.get("output"), self.events, self._items):
            notes["output"] = output
            count_odd_usage(output.get("usage"), self._loss)
        notes.update(conversation.notes)
        metadata["message_count"] = self._num_messages
        if self._tools:
            notes["tools"] = self._tools
        return MappedTrace(ordered, conversation.items, span, metadata)

    def _metadata(self, location: str | None, span: Event | None) -> dict[str, Any]:
        sample, loss = self.fields, self._loss
        spec = self._header.get("eval") or {}
        inspect = _without_a_place(sample, loss)
        metadata: dict[str, Any] = {
            "trace_id": str(sample.get("uuid") or self._key()),
            "source_type": "inspect_ai",
        }
        if location is not None:
            metadata["source_uri"] = location
        agent = (span or {}).get("name") or spec.get("solver")
        if agent:
            metadata["agent"] = agent
        if spec.get("model"):
            metadata["model"] = spec["model"]
        if isinstance(spec.get("tags"), list) and spec["tags"]:
            metadata["tags"] = [str(tag) for tag in spec["tags"]]
        started = utc(sample.get("started_at"))
        if started is not None:
            metadata["created_at"] = started
        elif sample.get("started_at"):
            inspect["started_at"] = sample["started_at"]
        if (seconds := number(sample.get("total_time"))) is not None:
            metadata["total_time"] = seconds
        tokens = [model_usage(usage) for usage in (sample.get("model_usage") or {}).values()]
        if any(usage is None or len(usage) < 2 for usage in tokens):
            for usage_given in sample["model_usage"].values():
                count_odd_usage(usage_given, loss)
        elif tokens:
            metadata["total_tokens"] = sum(sum(usage.values()) for usage in tokens if usage)
        error = sample.get("error")
        if isinstance(error, dict) and error.get("message"):
            metadata["error"] = str(error["message"])
        metadata["extra"] = {"inspect": inspect}
        return metadata


def sample_key(eval_id: object, sample_id: object, epoch: object) -> str:
    """Return a short key of one sample of a run."""
    # Imported late, because events of current releases have ids.
    import hashlib

    text = json_text([eval_id, sample_id, epoch])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _answer_id(natives: list[Any]) -> str | None:
    """Return the id of the last message, if it is from the assistant."""
    message: Any = natives[-1] if natives else None
    role, key = (message.role, message.id) if isinstance(message, MessageRecord) else (None, None)
    if isinstance(message, dict):
        role, key = message.get("role"), message.get("id")
    return key if role == "assistant" and isinstance(key, str) and key else None


def _without_a_place(sample: dict[str, Any], loss: LossReport) -> dict[str, Any]:
    """Return the data of a sample that is not in other parts of the evidence."""
    fields = {
        name: value
        for name, value in sample.items()
        if value is not None and name not in _IN_EVIDENCE and value not in ({}, [])
    }
    for retry in fields.get("error_retries") or []:
        if isinstance(retry, dict) and retry.pop("traceback_ansi", None):
            loss.changed["error of an earlier attempt: colored copy of the traceback left out"] += 1
    for name in ("store", "timelines"):
        if sample.get(name):
            loss.dropped[f"sample.{name}: derived from events"] += 1
    return fields


def _tools_of(offers: Iterable[list[Any]]) -> dict[str, Any]:
    """Return the definitions of all offered tools by name. Events contain only the names.

    If a name has several definitions (tool of another agent, changed description), its value is a list.
    """
    definitions: dict[str, list[Any]] = {}
    for tools in offers:
        for tool in tools:
            if not isinstance(tool, dict):
                continue
            same_name = definitions.setdefault(str(tool.get("name")), [])
            if tool not in same_name:
                same_name.append(tool)
    return {
        name: same_name[0] if len(same_name) == 1 else same_name for name, same_name in definitions.items()
    }


def trace_of(
    sample: RawSample | dict[str, Any],
    *,
    header: Mapping[str, Any] | None = None,
    location: str | None = None,
    keep: EventChoice = "default",
    loss: LossReport | None = None,
) -> Trace:
    """Return the AI GO trace of one sample of an Inspect log.

    The trace represents the main agent's span. Its `items` are the conversation, `spans()` returns the agents
    below it, and `events` contains all events. `sample` is consumed.
    """
    loss = loss if loss is not None else LossReport()
    if isinstance(sample, RawSample):
        mapped = map_raw(sample, loss, header=header, keep=keep)
    else:
        native = sample_of(sample, loss, patches=keep == "all")
        mapped = MappedSample(native, loss, header=header, keep=keep)
    return mapped.trace(location).typed()


def map_raw(
    raw: RawSample,
    loss: LossReport,
    *,
    header: Mapping[str, Any] | None = None,
    keep: EventChoice = "default",
) -> MappedSample:
    """Map a raw sample, which is consumed."""
    sample = sample_from(raw, loss, patches=keep == "all")
    return MappedSample(sample, loss, size=raw.size, bounds=raw.bounds, header=header, keep=keep)


# Requests to model endpoints


ROW_SPAN = "aigo_row"
"""Type of the span for one scorer's work on one row of a post-processor. The name of the span is the id of
the row."""


@dataclass
class DirectIOs:
    """Raw requests and responses of a sample's model calls by caller, in log order."""

    solver: list[dict[str, Any]] = field(default_factory=list)
    scorers: dict[tuple[str, str | None], list[dict[str, Any]]] = field(default_factory=dict)
    """Requests by scorer and row id. The row id is `None` for the sample itself."""


def direct_ios(sample: MappedSample) -> DirectIOs:
    """Return the raw requests and responses of a sample that the log contains (`log_model_api`)."""
    owners: dict[str, tuple[str, str | None] | None] = {}
    calls = {id(call.event): call for call in sample.exchanges if call.direct_io is not None}
    ios = DirectIOs()
    for event in sample.events:
        if event["type"] == "span_begin":
            owner = owners.get(event.get("parent_span_id", ""))
            if event.get("span_type") == "scorer":
                owner = (event["name"], None)
            elif event.get("span_type") == ROW_SPAN and owner is not None:
                owner = (owner[0], event["name"])
            owners[event["span_id"]] = owner
        elif (call := calls.get(id(event))) is not None and call.direct_io is not None:
            owner = owners.get(call.span_id or "")
            (ios.solver if owner is None else ios.scorers.setdefault(owner, [])).append(call.direct_io)
    return ios
