"""Sample evidence as JSON text, in pieces: no sample is ever one string.

With full contexts the text of a sample grows with the square of its turns, while its distinct items do not. Each
item is encoded once, the text of a context is that of the one before plus what is new, and everything is handed out
piece by piece to whoever writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aigo_bridge.importing.encoding import dumps

from .content import Item
from .context import ContextChoice, ContextDelta
from .ordering import Event
from .samples import MappedTrial
from .traces import MappedTrace

Piece = bytes | memoryview
_Context = tuple[Piece, dict[str, Any] | None]
"""Encoded items of one call, and the note that goes into its metadata."""
_BATCH = 50
"""Most events that are encoded at once."""


def sample_pieces(
    group: list[MappedTrial], aggregated: list[dict[str, Any]] | None, context: ContextChoice = "full"
) -> Iterator[Piece]:
    """The JSON text of one sample's evidence.

    Args:
        group: the sample's trials.
        aggregated: its scores over all trials, if any.
        context: how much of the models' inputs is written.
    """
    head = {
        "sample_id": group[0].sample_id,
        "sample": None,
        "solver": None,
        "scores": aggregated,
        "errors": [],
    }
    yield dumps(head)[:-1] + b',"trials":['
    for position, trial in enumerate(group):
        if position:
            yield b","
        yield from _trial(trial, context)
    yield b"]}"


def _trial(trial: MappedTrial, context: ContextChoice) -> Iterator[Piece]:
    head = {"index": trial.index, "sample_id": trial.sample_id, "sample": {"data": trial.data}}
    yield dumps(head)[:-1]
    tail = dumps({"scores": trial.scores, "errors": trial.errors})[1:]
    if trial.trace is None:
        yield b',"solver":null,' + tail
        return
    yield b',"solver":{"output":{"trace":{'
    yield from _TraceText(trial.trace, context).pieces()
    outputs = dumps({"raw_outputs": trial.raw_outputs, "direct_ios": trial.direct_ios})[1:]
    yield b"}," + outputs + b"}," + tail


class _TraceText:
    def __init__(self, trace: MappedTrace, choice: ContextChoice):
        self._trace = trace
        self._choice = choice
        self._known: dict[int, bytes] = {}

    def pieces(self) -> Iterator[Piece]:
        """The members of the trace object, without its braces."""
        yield b'"items":['
        yield self._joined(self._trace.items)
        yield b"]," + dumps(self._trace.head())[1:-1] + b',"events":['
        contexts = {"full": self._full, "delta": self._delta, "none": self._none}[self._choice]()
        # Events are encoded together up to each model call, whose context then follows its other fields.
        batch: list[Event] = []
        comma = b""
        for event in self._trace.events:
            if event["type"] != "model_call_event":
                batch.append(event)
                if len(batch) == _BATCH:
                    yield comma
                    yield memoryview(dumps(batch))[1:-1]
                    comma = b","
                    batch = []
                continue
            context, note = next(contexts)
            call = event.copy()
            del call["input_context"]
            if note is not None:
                metadata = event["metadata"]
                call["metadata"] = {**metadata, "inspect": {**metadata["inspect"], "context": note}}
            batch.append(call)
            yield comma
            yield memoryview(dumps(batch))[1:-2]
            yield b',"input_context":['
            yield context
            yield b"]}"
            comma = b","
            batch = []
        if batch:
            yield comma
            yield memoryview(dumps(batch))[1:-1]
        yield b"]"

    def _item(self, item: Item) -> bytes:
        text = self._known.get(id(item))
        if text is None:
            text = self._known[id(item)] = dumps(item)
        return text

    def _joined(self, items: list[Item]) -> bytes:
        return b",".join([self._item(item) for item in items])

    def _calls(self) -> Iterator[Event]:
        return (event for event in self._trace.events if event["type"] == "model_call_event")

    def _full(self) -> Iterator[_Context]:
        # A context is nearly always the one before in the same span and some more: such calls share one text, of which
        # each has the beginning. Nothing is handed out before the texts have stopped growing.
        growing: dict[str | None, tuple[list[Item], bytearray]] = {}
        ends: list[tuple[bytearray, int]] = []
        for event in self._calls():
            span, context = event.get("span_id"), event["input_context"]
            before, text = growing.get(span, ([], None))
            known = len(before)
            if text is None or context[:known] != before:
                text = bytearray(self._joined(context))
            elif len(context) > known:
                text += (b"," if known else b"") + self._joined(context[known:])
            growing[span] = (context, text)
            ends.append((text, len(text)))
        for text, end in ends:
            yield memoryview(text)[:end], None

    def _delta(self) -> Iterator[_Context]:
        delta = ContextDelta()
        for event in self._calls():
            items, note = delta.shorten(event)
            yield self._joined(items), note

    def _none(self) -> Iterator[_Context]:
        for event in self._calls():
            count = len(event["input_context"])
            yield b"", {"left_out": count} if count else None
