"""An open log → its result file or tables, sample by sample, and in pieces: no large sample is ever one
string.

With full contexts the text of a sample grows with the square of its turns, while its distinct items do not.
Each item is encoded once, the text of a context is that of the one before plus what is new, and everything is
handed out piece by piece to the file.

How much of the models' input is written: everything (`full`, what AI GO expects), only what is new in each
call, or nothing. With `delta` a call keeps what its context has beyond an earlier call of the same span, and
says so in its metadata (`aigo_bridge.results.contexts` has the format, and makes the contexts whole again).
With `none` the context is empty and the metadata has `{"context": {"left_out": 13}}`, the number of items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import ContextChoice, ImportOptions, LossReport
from aigo_bridge.importing.tables import TrialParts, total_of, written_tables
from aigo_bridge.process import no_collections
from aigo_bridge.results.counts import CountsTally, sample_facts, scorers_in
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.writing import DocumentWriter
from aigo_bridge.text.json_text import dumps
from aigo_inspect.importing.attempts import superseded
from aigo_inspect.importing.frame import Totals, frame_of
from aigo_inspect.logs.index import SampleRef
from aigo_inspect.logs.reader import LogReader
from aigo_inspect.logs.shapes import FRAME
from aigo_inspect.mapping.events import EventChoice
from aigo_inspect.mapping.messages import Item
from aigo_inspect.mapping.model_calls import model_usage
from aigo_inspect.mapping.samples import MappedTrial, marked, read_trials
from aigo_inspect.mapping.scores import REDUCED, aggregated_scores
from aigo_inspect.mapping.spans import Event

Piece = bytes | memoryview
_BATCH = 500
"""Most events, and most items of their contexts, that are encoded at once."""
_SHORT = 4 << 20
"""Bytes of a sample in the log up to which its evidence may be one text."""


_ROOM = 4096
"""Bytes that the encoder makes room for at first."""
SAMPLE_END = b"]}"


def sample_start(sample_id: str | int, aggregated: list[dict[str, Any]] | None) -> bytes:
    """The beginning of the JSON text of one sample's evidence; the texts of its trials follow, and
    `SAMPLE_END`.

    Args:
        sample_id: the sample's id.
        aggregated: its scores over all trials, if any.
    """
    head = {"sample_id": sample_id, "sample": None, "solver": None, "scores": aggregated, "errors": []}
    return dumps(head)[:-1] + b',"trials":['


def trial_pieces(trial: MappedTrial, context: ContextChoice = "full") -> Iterator[Piece]:
    """The JSON text of one trial, with as much of the models' inputs as is wanted."""
    text = _short_trial(trial, context)
    if text is None:
        yield from _trial(trial, context)
    else:
        yield text


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
    document = {
        "index": trial.index,
        "sample_id": trial.sample_id,
        "sample": {"data": trial.data},
        "solver": {"output": output},
        "scores": trial.scores,
        "errors": trial.errors,
    }
    try:
        return orjson.dumps(document)
    except TypeError:
        # Only the part that orjson cannot write (see `json_text`) is to be changed.
        return None


def _with_contexts(events: list[Event], context: ContextChoice) -> list[Event]:
    """Events with as much of the contexts of their model calls as is wanted, the context last."""
    delta = ContextDelta()
    written = []
    for event in events:
        if event["type"] != "model_call_event":
            written.append(event)
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
        written.append(call)
    return written


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

    A context is nearly always the one before in the same span and some more: such calls share one text, of
    which each has the beginning. Nothing is handed out before the texts have stopped growing.
    """
    growing: dict[str | None, tuple[list[Item], _Growing]] = {}
    ends: list[tuple[_Growing, int]] = []
    for event in events:
        if event["type"] != "model_call_event":
            continue
        span, context = event.get("span_id"), event["input_context"]
        earlier, text = growing.get(span, ([], None))
        length = len(earlier)
        if text is None or context[:length] != earlier:
            text, length = _Growing(), 0
        text.add(texts.of(context[length:]))
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
        texts = self._known
        parts = []
        for item in items:
            text = texts.get(id(item))
            if text is None:
                text = dumps(item)
                if len(text) < _ROOM:
                    # A copy of just its size: what the encoder leaves of its block is of no use among
                    # thousands of others.
                    text = bytes(memoryview(text))
                texts[id(item)] = text
            parts.append(text)
        return parts


class ContextDelta:
    """Finds, call by call in trace order, what a context adds to the one before it in the same span."""

    def __init__(self) -> None:
        self._last: dict[str | None, tuple[str, list[Item]]] = {}

    def shorten(self, event: Event) -> tuple[list[Item], dict[str, Any] | None]:
        """The items to write for a model call, and the note that goes with them (`None`: these are all)."""
        context: list[Item] = event["input_context"]
        span = event.get("span_id")
        previous = self._last.get(span)
        self._last[span] = (event["id"], context)
        if previous is None:
            return context, None
        first = common_start(previous[1], context)
        if not first:
            return context, None
        return context[first:], {"of": previous[0], "first": first}


def common_start(items: list[Any], counterparts: list[Any]) -> int:
    """Length of the longest common prefix; fast when one list starts with the whole other."""
    shorter = min(len(items), len(counterparts))
    if items[:shorter] == counterparts[:shorter]:
        return shorter
    for index in range(shorter):
        if items[index] is not counterparts[index] and items[index] != counterparts[index]:
            return index
    return shorter


def write_json(
    log: LogReader,
    output: Path,
    options: ImportOptions,
    loss: LossReport,
    ranges: Callable[[DocumentWriter], Totals] | None = None,
) -> Totals:
    """Write the result file of an open log and return the totals of its samples.

    Args:
        log: the log.
        output: path of the result.
        options: how samples are imported.
        loss: where counts go.
        ranges: writes the samples with several processes; `None`: they are written in one stream.
    """
    if FRAME in log.members():
        try:
            if (carried := _write_carried(log, output, loss)) is not None:
                return carried
        except EvidenceError as error:
            # Inspect's members are sound all the same.
            log.note("_aigo/", error)
            loss.clear()
    # Secrets are taken out where the log is read.
    with open_for_replacing(output, clean=False) as file, no_collections():
        writer = DocumentWriter(file)
        reductions = reduced_scores(log, loss)
        totals = ranges(writer) if ranges else write_samples(log, writer, options, loss, reductions)
        finish(writer, frame_of(log.header, totals, log.damage, loss, superseded(log)))
    loss.changed.update(log.changes)
    return totals


def reduced_scores(log: LogReader, loss: LossReport) -> dict[str, list[dict[str, Any]]]:
    """Id of a sample → its scores over all trials, where a log has several."""
    return aggregated_scores(log.reductions(), loss) if log.has_epochs else {}


def write_samples(
    log: LogReader,
    writer: DocumentWriter,
    options: ImportOptions,
    loss: LossReport,
    reductions: Mapping[str, list[dict[str, Any]]],
    refs: Sequence[SampleRef] | None = None,
) -> Totals:
    """Write samples of an open log; returns what they add up to.

    Args:
        log: the log.
        writer: of the result.
        options: how they are imported.
        loss: where counts go.
        reductions: id of a sample → its scores over all trials.
        refs: the samples, those of an id next to each other; `None`: all.
    """
    totals = Totals()
    _keep_freed_memory()
    for trial, is_first in marked(read_trials(log, refs, keep=options.events, loss=loss)):
        if is_first:
            if writer.num_samples:
                writer.extend([SAMPLE_END])
            reduced = reductions.get(str(trial.sample_id))
            if reduced:
                loss.kept[REDUCED] += len(reduced)
            writer.sample(sample_start(trial.sample_id, reduced))
        else:
            writer.extend([b","])
        totals.count_trial(trial, first=is_first)
        writer.extend(trial_pieces(trial, options.context))
        # Freed before the next one is made, not after.
        del trial
    if writer.num_samples:
        writer.extend([SAMPLE_END])
    return totals


def _write_carried(log: LogReader, output: Path, loss: LossReport) -> Totals | None:
    """The evidence that a log was written from; `None` where the log was changed since."""
    # Late: hardly any log carries evidence.
    from aigo_inspect.exporting.log import carried_frame, carried_samples, carries_evidence

    if not carries_evidence(log):
        return None
    totals, tally = Totals(), CountsTally()
    with open_for_replacing(output, clean=False) as file:
        writer = DocumentWriter(file)
        for sample in carried_samples(log):
            trials = sample.get("trials") or [sample]
            writer.sample(dumps(sample))
            totals.samples += 1
            totals.trials += len(trials)
            tally.add(sample_facts(sample))
            loss.kept["sample"] += len(trials)
        frame = carried_frame(log)
        totals.failed = tally.counts(scorers_in(frame.get("specification"))).failed
        finish(writer, frame)
    return totals


_NO_SAMPLES = orjson.Fragment(b"[\n]")
"""Laid out as any list of samples."""


def finish(writer: DocumentWriter, frame: dict[str, object]) -> None:
    """Write what stands behind the samples of a result."""
    evidence = frame.pop("evidence", None)
    fields = (
        {key: value for key, value in evidence.items() if key != "samples"}
        if isinstance(evidence, dict)
        else {}
    )
    if not writer.num_samples:
        fields = {"samples": _NO_SAMPLES, **fields}
    writer.finish(dumps(fields), dumps(frame))


_LARGE_BLOCK = 31 << 20
"""Bytes; glibc learns from freed blocks of up to 32 MiB."""


@cache
def _keep_freed_memory() -> None:
    """Let glibc keep what a sample frees for the next one.

    It returns freed memory to the system, page by page, until it has seen a larger block freed; the pages
    that every sample then had to be given again took a tenth of the time. The block is never touched, so it
    costs no memory; a second one, out of what glibc has kept, would be.
    """
    bytes(_LARGE_BLOCK)


def write_tables(log: LogReader, folder: Path, keep: EventChoice, loss: LossReport) -> Totals:
    """Write the tables of a log to `folder`, which appears when all is written.

    Raises:
        UsageError: pyarrow is not installed.
    """
    totals = Totals()
    reduced = reduced_scores(log, loss)
    with written_tables(folder, loss) as (tables, draft):
        for trial, first in marked(read_trials(log, keep=keep, loss=loss)):
            totals.count_trial(trial, first=first)
            tables.add(_parts(trial))
            # Freed before the next one is made, not after.
            del trial
        frame = frame_of(log.header, totals, log.damage, loss, superseded(log))
        if reduced:
            frame["reduced_scores"] = reduced
            loss.kept[REDUCED] += sum(map(len, reduced.values()))
        loss.changed.update(log.changes)
        (draft / "result.json").write_bytes(dumps(frame) + b"\n")
    return totals


def _parts(trial: MappedTrial) -> TrialParts:
    usages = [model_usage(usage) or {} for usage in trial.usage.values()]
    metadata = trial.trace.metadata if trial.trace is not None else {}
    return TrialParts(
        sample_id=trial.sample_id,
        index=trial.index,
        data=trial.data,
        items=trial.trace.items if trial.trace is not None else (),
        events=trial.trace.events if trial.trace is not None else (),
        metadata=metadata,
        scores=trial.scores or (),
        errors=trial.errors,
        extra=metadata.get("extra", {}).get("inspect", {}),
        prompt_tokens=total_of(usage.get("num_prompt_tokens") for usage in usages),
        completion_tokens=total_of(usage.get("num_completion_tokens") for usage in usages),
    )
