"""A sample of an Inspect log → its trace: all events, and the main agent's conversation as items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aigo_bridge.importing.encoding import without_non_finite
from aigo_bridge.importing.loss import LossReport

from .clock import utc
from .content import Item, ItemsOf, SharedItems
from .events import EventChoice, map_events, sample_key, without_patches
from .main_span import main_span_id
from .model_calls import count_odd_usage, model_usage
from .ordering import Event, ordered_by_span
from .own_output import own_output
from .pools import resolve
from .reading import RawSample
from .shapes import listed, number
from .spoken import spoken

if TYPE_CHECKING:
    from aigo_bridge.dtypes import Trace


class MappedTrace(Struct, frozen=True):
    """A trace as JSON-ready parts: what is written, without building objects."""

    events: list[Event]
    """All events, in trace order."""
    items: list[Item]
    """The main agent's conversation."""
    span: Event | None
    """Begin event of the main agent's span; `None` when the trace stands for the root."""
    metadata: dict[str, Any]
    """`TraceMetadata`."""

    @property
    def span_id(self) -> str | None:
        """Id of the main agent's span."""
        return None if self.span is None else str(self.span["span_id"])

    def head(self) -> dict[str, Any]:
        """The trace without items and events, as it is dumped."""
        head: dict[str, Any] = {"metadata": self.metadata}
        if self.span is not None:
            head |= {"span_id": self.span["span_id"], "span_name": self.span["name"]}
            if "span_type" in self.span:
                head["span_type"] = self.span["span_type"]
        return head

    def typed(self) -> Trace:
        """The trace as an AI GO object, built by `Trace.from_events`."""
        # Late: writing files builds no objects.
        from aigo_bridge.dtypes import Trace, TraceMetadata

        from .typed import Typed

        typed = Typed()
        head = self.head()
        head["metadata"] = TraceMetadata.model_validate(head["metadata"])
        trace = Trace.from_events(typed.events(self.events), **head)
        if self.metadata["extra"]["inspect"].keys() & _ITEM_NOTES:
            trace.items = typed.items(self.items)
        return trace


_ITEM_NOTES = frozenset({"items", "items_after_last_model_call"})
"""Notes of `spoken` that say the items are not what `Trace.from_events` derives."""

_IN_EVIDENCE = frozenset(
    # Fields of a sample that are elsewhere in the evidence (data, scores, errors, events, items), or only a technique.
    {
        "id", "epoch", "input", "target", "choices", "metadata", "scores", "events", "messages", "output",
        "attachments", "events_data", "files", "setup", "sandbox", "description", "uuid", "started_at",
        "error", "store", "timelines",
    }
)  # fmt: skip


def map_trace(
    sample: dict[str, Any],
    *,
    header: Mapping[str, Any] | None = None,
    location: str | None = None,
    keep: EventChoice = "default",
    loss: LossReport | None = None,
) -> MappedTrace:
    """The trace of a resolved sample.

    Args:
        sample: an `EvalSample` as a dictionary, after `pools.resolve`.
        header: header of its log, for the model's name and the evaluation's id.
        location: where the log is, for the trace's `source_uri`.
        keep: which events to keep.
        loss: where counts go.
    """
    loss = loss if loss is not None else LossReport()
    events = sample.get("events")
    events = events if isinstance(events, list) else []
    shared = SharedItems(loss)
    mapped = map_events(events, key=key_of_sample(sample, header), keep=keep, loss=loss, items=shared)
    tools = tools_of(_offers(events))
    return assemble(
        sample, mapped, tools, last_messages(sample, shared), header=header, location=location, loss=loss
    )


class LastMessages(Struct, frozen=True):
    """What a sample's messages say: the conversation as it was left."""

    count: int
    items: list[Item]
    answer_id: str | None
    """Id of the last message, if the assistant said it."""


def last_messages(sample: Mapping[str, Any], items: ItemsOf) -> LastMessages:
    """The messages of a resolved sample."""
    messages = listed(sample.get("messages"))
    last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
    found = [item for message in messages for item in items.of(message)]
    return LastMessages(len(messages), found, answer_id(last.get("role"), last.get("id")))


def answer_id(role: object, message_id: object) -> str | None:
    """The id of a message, if the assistant said it."""
    return message_id if role == "assistant" and isinstance(message_id, str) and message_id else None


def assemble(
    sample: dict[str, Any],
    mapped: list[Event],
    tools: dict[str, Any],
    messages: LastMessages,
    *,
    header: Mapping[str, Any] | None,
    location: str | None,
    loss: LossReport,
) -> MappedTrace:
    """A trace of mapped events.

    Args:
        sample: the resolved sample; its events and messages are not looked at.
        mapped: its events, as `map_events` makes them.
        tools: definitions of the tools its models were offered, by name.
        messages: its messages.
        header: as for `map_trace`.
        location: as for `map_trace`.
        loss: as for `map_trace`.
    """
    ordered = ordered_by_span(mapped)
    span_id = main_span_id(ordered, messages.items)
    said = spoken(ordered, span_id, messages.items, messages.answer_id)
    span = next((e for e in ordered if e["type"] == "span_begin" and e["span_id"] == span_id), None)
    metadata = _metadata(sample, header, location, span, loss)
    if output := own_output(sample.get("output"), mapped, messages.items):
        metadata["extra"]["inspect"]["output"] = output
        count_odd_usage(output.get("usage"), loss)
    metadata["extra"]["inspect"].update(said.notes)
    metadata["message_count"] = messages.count
    if tools:
        metadata["extra"]["inspect"]["tools"] = tools
    return MappedTrace(ordered, said.items, span, metadata)


def key_of_sample(sample: dict[str, Any], header: Mapping[str, Any] | None) -> str:
    """The key of a sample of a log with this header; see `events.sample_key`."""
    spec = (header or {}).get("eval") or {}
    return sample_key(spec.get("eval_id") or spec.get("run_id"), sample.get("id"), sample.get("epoch"))


def _metadata(
    sample: dict[str, Any],
    header: Mapping[str, Any] | None,
    location: str | None,
    span: Event | None,
    loss: LossReport,
) -> dict[str, Any]:
    spec = (header or {}).get("eval") or {}
    inspect = _without_a_place(sample, loss)
    metadata: dict[str, Any] = {
        "trace_id": str(sample.get("uuid") or key_of_sample(sample, header)),
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
        for given in sample["model_usage"].values():
            count_odd_usage(given, loss)
    elif tokens:
        metadata["total_tokens"] = sum(sum(usage.values()) for usage in tokens if usage)
    error = sample.get("error")
    if isinstance(error, dict) and error.get("message"):
        metadata["error"] = str(error["message"])
    metadata["extra"] = {"inspect": inspect}
    return metadata


def _without_a_place(sample: dict[str, Any], loss: LossReport) -> dict[str, Any]:
    """What a sample says besides what stands elsewhere in the evidence."""
    found = {
        name: value
        for name, value in sample.items()
        if value is not None and name not in _IN_EVIDENCE and value not in ({}, [])
    }
    for retry in found.get("error_retries") or []:
        if isinstance(retry, dict) and retry.pop("traceback_ansi", None):
            loss.changed["error of an earlier attempt: coloured copy of the traceback left out"] += 1
    for name in ("store", "timelines"):
        if sample.get(name):
            loss.dropped[f"sample.{name}: derived from events"] += 1
    return found


def _offers(events: list[Any]) -> Iterator[list[Any]]:
    """The lists of tools that the models were offered, those of neighbouring calls once where they are the same object."""
    seen: Any = None
    for event in events:
        if type(event) is dict and event.get("event") == "model" and event.get("tools") is not seen:
            seen = event.get("tools")
            if isinstance(seen, list):
                yield seen


def tools_of(offers: Iterable[list[Any]]) -> dict[str, Any]:
    """The definitions of the tools the models were offered, by name; events name them only.

    A name with several definitions (another agent's tool, a changed description) has a list of them.
    """
    found: dict[str, list[Any]] = {}
    for tools in offers:
        for tool in tools:
            if not isinstance(tool, dict):
                continue
            known = found.setdefault(str(tool.get("name")), [])
            if tool not in known:
                known.append(tool)
    return {name: known[0] if len(known) == 1 else known for name, known in found.items()}


def prepare(sample: RawSample, loss: LossReport, keep: EventChoice = "default") -> dict[str, Any]:
    """A raw sample resolved and freed of what JSON cannot hold, ready for mapping; scores keep their NaN."""
    data = sample.data
    if keep != "all" and isinstance(data.get("events"), list):
        # Patches repeat whole conversations: not resolving them saves more than anything else.
        data["events"] = without_patches(data["events"], loss)
    resolved = resolve(data, size=sample.size, bounds=sample.bounds)
    if resolved.missing:
        loss.dropped["attachment: the log does not contain it"] += resolved.missing
    if resolved.unknown:
        loss.dropped["messages named by number: the log does not contain them"] += resolved.unknown
    if sample.non_finite:
        scores = data.pop("scores", None)
        data, count = without_non_finite(data)
        data["scores"] = scores
        if count:
            loss.changed["number that is not finite: written as text"] += count
    for kind, count in sample.changes.items():
        loss.changed[kind] += count
    return data


def trace_of(
    sample: RawSample | dict[str, Any],
    *,
    header: Mapping[str, Any] | None = None,
    location: str | None = None,
    keep: EventChoice = "default",
    loss: LossReport | None = None,
) -> Trace:
    """The AI GO trace of one sample of an Inspect log.

    The trace represents the main agent's span: `items` are its conversation, `spans()` the agents below it, `events`
    everything that happened. `sample` is consumed: its attachments and pools are resolved in place.
    """
    loss = loss if loss is not None else LossReport()
    data = prepare(sample, loss, keep) if isinstance(sample, RawSample) else sample
    if not isinstance(sample, RawSample):
        resolve(data)
    return map_trace(data, header=header, location=location, keep=keep, loss=loss).typed()
