"""Conversion of samples in dictionaries to records, for old logs and for samples with unexpected types or
unknown fields.

An event with invalid fields or of an unknown type becomes `Other`. Unknown fields become the `leftover` of a
record. Nothing is lost, and the mapping only handles records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import dumps, without_non_finite
from aigo_inspect.logs.parsing import utc
from aigo_inspect.logs.pools import has_references
from aigo_inspect.logs.reader import RawSample
from aigo_inspect.logs.shapes import MALFORMED, listed
from aigo_inspect.mapping import records
from aigo_inspect.mapping.records import MessageRecord, Odd, SampleRecord, Tools, settings_in, tools_in

BASE_FIELDS = frozenset({"event", "uuid", "span_id", "timestamp", "working_start", "metadata", "pending"})
_TEXT_OR_NONE = (str, type(None))
_PATCHES = frozenset({"state", "store"})
_Record = TypeVar("_Record", bound=Struct)
_Base = dict[str, Any]


def sample_from(raw: RawSample, loss: LossReport, *, patches: bool = False) -> SampleRecord:
    """Convert a logged sample to records. The raw sample is consumed.

    Args:
        raw: the sample as in the log.
        loss: collects the changes.
        patches: keep state patches, which repeat whole conversations. Otherwise they are not read.
    """
    loss.changed.update(raw.changes)
    return sample_of(raw.data, loss, non_finite=raw.non_finite, patches=patches)


def sample_of(
    data: dict[str, Any], loss: LossReport, *, non_finite: bool = False, patches: bool = True
) -> SampleRecord:
    """Convert an `EvalSample` in a dictionary to records, like `sample_from`.

    Args:
        data: the sample.
        loss: collects the changes.
        non_finite: the sample contains numbers that JSON cannot hold. In scores they are kept.
        patches: keep state patches, as in `sample_from`.
    """
    parser = _Parser(loss, non_finite=non_finite, patches=patches)
    pools = data.pop("events_data", None)
    pools = pools if isinstance(pools, dict) else {}
    if pools.get("malformed"):
        data["malformed"] = {**(data.get("malformed") or {}), "events_data": pools["malformed"]}
    attachments = data.pop("attachments", None)
    events, messages = data.pop("events", None), data.pop("messages", None)
    scores = data.pop("scores", None)
    fields: dict[str, Any] = parser.finite(data)
    fields["scores"] = scores
    return SampleRecord(
        fields,
        parser.events(events if isinstance(events, list) else []),
        [parser.message(message) for message in parser.finite(listed(messages))],
        [parser.message(message) for message in parser.finite(_list(pools.get("messages")))],
        parser.finite(_list(pools.get("calls"))),
        attachments if isinstance(attachments, dict) else {},
    )


def kind_of(native: dict[str, Any]) -> str:
    """Return the type of an event from its `event` field."""
    kind = native.get("event")
    return kind if type(kind) is str else "unknown"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    """Return `value` if it is an object, or an empty object for `None`. Raise `TypeError` for other
    values.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return value


class _Parser:
    """Creator of the records of one sample."""

    def __init__(self, loss: LossReport, *, non_finite: bool, patches: bool):
        self._loss = loss
        self._non_finite = non_finite
        self._patches = patches
        self._offer: Tools | None = None
        self._messages: dict[str, tuple[dict[str, Any], Any]] = {}
        """Messages by id. In old logs, every later model call repeats them."""

    def finite(self, value: Any) -> Any:
        """Return the value with numbers that are not finite replaced by texts."""
        if not self._non_finite:
            return value
        value, count = without_non_finite(value)
        if count:
            self._loss.changed["number that is not finite: written as text"] += count
        return value

    def message(self, message: Any) -> Any:
        """Return the record of a message, or the message itself if it has an unexpected form."""
        key = message.get("id") if type(message) is dict else None
        if type(key) is not str:
            return message
        same = self._messages.get(key)
        if same is not None and same[0] == message:
            return same[1]
        try:
            record: Any = msgspec.convert(message, MessageRecord)
        except (msgspec.ValidationError, RecursionError):
            record = message
        self._messages[key] = (message, record)
        return record

    def events(self, natives: list[Any], *, consumed: bool = True) -> list[Any]:
        """Return the records of events. The list is emptied on the way, so that a sample is never in memory
        twice.
        """
        found = []
        for index, native in enumerate(natives):
            found.append(self._event(native))
            if consumed:
                natives[index] = None
        return found

    def _event(self, native: Any) -> records.NativeEvent:
        native = native if type(native) is dict else {"event": "unknown", "value": native}
        kind = kind_of(native)
        if kind not in _PATCHES or self._patches:
            native = self.finite(native)
        base = _base(native)
        parse = _PARSERS.get(kind)
        if parse is not None:
            try:
                return parse(self, native, base)
            except MALFORMED:
                self._loss.changed[f"event {kind} of an unexpected shape: kept as custom event"] += 1
        return records.Other(**base)

    def model(self, native: dict[str, Any], base: _Base) -> records.ModelRecord:
        output = _object(native.get("output"))
        choices = [_object(choice) for choice in listed(output.get("choices"))]
        settled: dict[str, Any] = {
            "model": str(native.get("model") or output.get("model") or "unknown"),
            "input": [self.message(message) for message in listed(native.get("input") or [])],
            "tools": self._tools(listed(native.get("tools"))),
            "config": settings_in(_object(native.get("config"))),
            "call": None if native.get("call") is None else _object(native["call"]),
        }
        first = [
            _record(records.ChoiceRecord, choice, message=self.message(choice.get("message")))
            for choice in choices[:1]
        ]
        settled["output"] = _record(records.Output, output, choices=first, more_choices=choices[1:])
        return _record(records.ModelRecord, native, **base, **settled)

    def _tools(self, definitions: list[Any]) -> Raw | Tools:
        """Return the tools of the previous call if they are identical."""
        if has_references(definitions):
            tools_in(definitions)
            return Raw(dumps(definitions))
        if self._offer is None or self._offer.definitions != definitions:
            self._offer = tools_in(definitions)
        return self._offer

    def tool(self, native: dict[str, Any], base: _Base) -> records.Tool:
        settled = {
            "id": str(native.get("id") or ""),
            "function": str(native.get("function") or ""),
            "error": None if native.get("error") is None else _object(native["error"]),
            "events": self.events(listed(native.get("events")), consumed=False),
        }
        return _record(records.Tool, native, **base, **settled)

    def subtask(self, native: dict[str, Any], base: _Base) -> records.Other:
        nested = native.get("events")
        if isinstance(nested, list):
            del native["events"]
        return records.Other(**base, nested=self.events(nested) if isinstance(nested, list) else [])

    def span_begin(self, native: dict[str, Any], base: _Base) -> records.SpanBegin:
        parent = native.get("parent_id")
        return _record(records.SpanBegin, native, **base, parent_id=parent if type(parent) is str else None)

    def plain(self, native: dict[str, Any], base: _Base) -> records.NativeEvent:
        return _record(_PLAIN[kind_of(native)], native, **base)


_PLAIN: dict[str, type[records.NativeEvent]] = {
    "span_end": records.SpanEnd,
    "step": records.StepRecord,
    "compaction": records.Compaction,
    "error": records.ErrorRecord,
}
_PARSERS: dict[str, Callable[[_Parser, dict[str, Any], _Base], records.NativeEvent]] = {
    "model": _Parser.model,
    "tool": _Parser.tool,
    "subtask": _Parser.subtask,
    "span_begin": _Parser.span_begin,
    **dict.fromkeys(_PLAIN, _Parser.plain),
}


def _record(kind: type[_Record], native: dict[str, Any], /, **settled: Any) -> _Record:
    """Return a record with the known fields of `native`. Values in `settled` take precedence."""
    is_event = "odd" in settled
    base = BASE_FIELDS if is_event else frozenset[str]()
    names = frozenset(kind.__struct_encode_fields__)
    leftover = {key: value for key, value in native.items() if key not in names | base and value is not None}
    fields = {key: value for key, value in native.items() if key in names - base and key not in settled}
    if is_event:
        settled["odd"].leftover = leftover or None
    else:
        settled["leftover"] = leftover or None
    return kind(**fields, **settled)


def _base(native: dict[str, Any]) -> _Base:
    """Return the common fields of an event. Fields of an unexpected type are in `unreadable`."""
    get = native.get
    texts = {name: value for name in ("uuid", "span_id") if type(value := get(name)) is str}
    timestamp, metadata = get("timestamp"), get("metadata")
    base: _Base = {**texts, "odd": Odd(native, _unreadable(native))}
    if utc(timestamp) is not None:
        base["timestamp"] = timestamp
    if isinstance(metadata, dict):
        base["metadata"] = metadata
    if "working_start" in native:
        base["working_start"] = native["working_start"]
    return base


def _unreadable(native: dict[str, Any]) -> dict[str, Any] | None:
    get = native.get
    odd = {name: get(name) for name in ("uuid", "span_id", "event") if type(get(name)) not in _TEXT_OR_NONE}
    if get("event") == "span_begin" and type(get("parent_id")) not in _TEXT_OR_NONE:
        odd["parent_id"] = get("parent_id")
    if get("timestamp") is not None and utc(get("timestamp")) is None:
        odd["timestamp"] = get("timestamp")
    if get("metadata") and not isinstance(get("metadata"), dict):
        odd["metadata"] = get("metadata")
    return odd or None
