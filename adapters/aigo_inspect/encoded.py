"""Sample evidence as JSON text, in pieces: no large sample is ever one string.

With full contexts the text of a sample grows with the square of its turns, while its distinct items do not. Each
item is encoded once, the text of a context is that of the one before plus what is new, and everything is handed out
piece by piece to whoever writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from aigo_bridge.importing.encoding import dumps

from .content import Item
from .context import ContextChoice, ContextDelta
from .ordering import Event
from .samples import MappedTrial

Piece = bytes | memoryview
_BATCH = 500
"""Most events, and most items of their contexts, that are encoded at once."""
_SHORT = 4 << 20
"""Bytes of a sample in the log up to which its evidence may be one text."""


_ROOM = 4096
"""Bytes that the encoder makes room for at first."""
SAMPLE_END = b"]}"


def sample_start(sample_id: str | int, aggregated: list[dict[str, Any]] | None) -> bytes:
    """The beginning of the JSON text of one sample's evidence; the texts of its trials follow, and `SAMPLE_END`.

    Args:
        sample_id: the sample's id.
        aggregated: its scores over all trials, if any.
    """
    head = {"sample_id": sample_id, "sample": None, "solver": None, "scores": aggregated, "errors": []}
    return dumps(head)[:-1] + b',"trials":['


def trial_pieces(trial: MappedTrial, context: ContextChoice = "full") -> Iterator[Piece]:
    """The JSON text of one trial, with as much of the models' inputs as is wanted."""
    whole = _short_trial(trial, context)
    if whole is None:
        yield from _trial(trial, context)
    else:
        yield whole


def _short_trial(trial: MappedTrial, context: ContextChoice) -> bytes | None:
    """The text of a trial with few events; `None` where it has to be written in pieces."""
    trace = trial.trace
    if trace is None or len(trace.events) > _BATCH or trial.size > _SHORT:
        return None
    if context == "full" and sum(len(event.get("input_context", ())) for event in trace.events) > _BATCH:
        return None
    output = {
        "trace": {"items": trace.items, **trace.head(), "events": _with_contexts(trace.events, context)},
        "raw_outputs": trial.raw_outputs,
        "direct_ios": trial.direct_ios,
    }
    whole = {
        "index": trial.index,
        "sample_id": trial.sample_id,
        "sample": {"data": trial.data},
        "solver": {"output": output},
        "scores": trial.scores,
        "errors": trial.errors,
    }
    try:
        return orjson.dumps(whole)
    except TypeError:
        # Only the part that orjson cannot write (see `encoding`) is to be changed.
        return None


def _with_contexts(events: list[Event], context: ContextChoice) -> list[Event]:
    """Events with as much of the contexts of their model calls as is wanted, the context last."""
    delta = ContextDelta()
    found = []
    for event in events:
        if event["type"] != "model_call_event":
            found.append(event)
            continue
        items: list[Item] = event["input_context"]
        note: dict[str, Any] | None = None
        if context == "delta":
            items, note = delta.shorten(event)
        elif context == "none" and items:
            items, note = [], {"left_out": len(items)}
        call = _without_context(event)
        if note is not None:
            metadata = event["metadata"]
            call["metadata"] = {**metadata, "inspect": {**metadata["inspect"], "context": note}}
        call["input_context"] = items
        found.append(call)
    return found


def _without_context(event: Event) -> Event:
    call = event.copy()
    del call["input_context"]
    return call


def _trial(trial: MappedTrial, context: ContextChoice) -> Iterator[Piece]:
    head = {"index": trial.index, "sample_id": trial.sample_id, "sample": {"data": trial.data}}
    yield memoryview(dumps(head))[:-1]
    tail = dumps({"scores": trial.scores, "errors": trial.errors})[1:]
    if trial.trace is None:
        yield b',"solver":null,' + tail
        return
    yield b',"solver":{"output":{"trace":{"items":['
    texts = _ItemTexts()
    items = trial.trace.items
    for start in range(0, len(items), _BATCH):
        yield (b"," if start else b"") + b",".join(texts.of(items[start : start + _BATCH]))
    yield b"],"
    yield memoryview(dumps(trial.trace.head()))[1:-1]
    yield b',"events":['
    if context == "full":
        yield from _events_in_full(trial.trace.events, texts)
    else:
        yield from _events(_with_contexts(trial.trace.events, context))
    yield b"]},"
    yield memoryview(dumps({"raw_outputs": trial.raw_outputs, "direct_ios": trial.direct_ios}))[1:]
    yield b"}," + tail


def _events(events: list[Event]) -> Iterator[Piece]:
    for start in range(0, len(events), _BATCH):
        if start:
            yield b","
        yield memoryview(dumps(events[start : start + _BATCH]))[1:-1]


def _events_in_full(events: list[Event], texts: _ItemTexts) -> Iterator[Piece]:
    """Events are encoded together up to each model call, whose context then follows its other fields."""
    contexts = _contexts(events, texts)
    batch: list[Event] = []
    comma = b""
    for event in events:
        if event["type"] != "model_call_event":
            batch.append(event)
            if len(batch) == _BATCH:
                yield comma
                yield memoryview(dumps(batch))[1:-1]
                comma = b","
                batch = []
            continue
        batch.append(_without_context(event))
        yield comma
        yield memoryview(dumps(batch))[1:-2]
        yield b',"input_context":['
        yield next(contexts)
        yield b"]}"
        comma = b","
        batch = []
    if batch:
        yield comma
        yield memoryview(dumps(batch))[1:-1]


def _contexts(events: list[Event], texts: _ItemTexts) -> Iterator[memoryview]:
    """The items of each model call's context.

    A context is nearly always the one before in the same span and some more: such calls share one text, of which each has the
    beginning. Nothing is handed out before the texts have stopped growing.
    """
    growing: dict[str | None, tuple[list[Item], _Growing]] = {}
    ends: list[tuple[_Growing, int]] = []
    for event in events:
        if event["type"] != "model_call_event":
            continue
        span, context = event.get("span_id"), event["input_context"]
        before, text = growing.get(span, ([], None))
        known = len(before)
        if text is None or context[:known] != before:
            text, known = _Growing(), 0
        text.add(texts.of(context[known:]))
        growing[span] = (context, text)
        ends.append((text, text.length))
    # A text lives until its last beginning is written: contexts that share nothing are never all in memory.
    growing.clear()
    ends.reverse()
    while ends:
        text, end = ends.pop()
        yield text.start(end)


class _Growing:
    """A text of items with commas between them, of which many beginnings are wanted."""

    def __init__(self) -> None:
        self.length = 0
        """Bytes so far."""
        self._parts: list[bytes] = []
        self._joined: memoryview | None = None

    def add(self, parts: list[bytes]) -> None:
        """Add the texts of more items."""
        if parts:
            commas = len(parts) if self._parts else len(parts) - 1
            self._parts += parts
            self.length += sum(map(len, parts)) + commas

    def start(self, end: int) -> memoryview:
        """The first `end` bytes; nothing can be added any more."""
        if self._joined is None:
            # Joined once: a text that grows in place is copied again and again.
            self._joined = memoryview(b",".join(self._parts))
            self._parts.clear()
        return self._joined[:end]


class _ItemTexts:
    """The texts of the items of one trial, each of which stands in many places."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def of(self, items: list[Item]) -> list[bytes]:
        """The texts of these items."""
        known = self._known
        found = []
        for item in items:
            text = known.get(id(item))
            if text is None:
                text = dumps(item)
                if len(text) < _ROOM:
                    # A copy of just its size: what the encoder leaves of its block is of no use among thousands of others.
                    text = bytes(memoryview(text))
                known[id(item)] = text
            found.append(text)
        return found
