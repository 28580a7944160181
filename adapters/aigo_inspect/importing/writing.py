"""Streaming output of an open log as a result file or tables. A large sample is never held as one string.

With full contexts, the text of a sample grows with the square of the number of turns, although the number of
distinct items does not. Each item is therefore encoded only once. The text of a context reuses the previous
one and appends the new items.

The context option sets the amount of model input in the output:

- `full`: everything, as AI GO expects.
- `delta`: only the items that a call adds to an earlier call of the same span. The call's metadata contains a
  reference (see `aigo_bridge.results.contexts` for the format).
- `none`: an empty context. The metadata contains the number of items, for example `{"context": {"left_out":
  13}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import ContextChoice, ImportOptions, LossReport
from aigo_bridge.importing.tables import TrialParts, total_of, written_tables
from aigo_bridge.process import no_collections
from aigo_bridge.results.counts import CountsTally, sample_facts, scorers_in
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.writing import DocumentWriter, Piece
from aigo_bridge.text.json_text import dumps
from aigo_inspect.importing.attempts import superseded
from aigo_inspect.importing.frame import LogTotals, frame_of
from aigo_inspect.logs.index import SampleRef
from aigo_inspect.logs.reader import InspectLogReader
from aigo_inspect.logs.shapes import FRAME
from aigo_inspect.mapping.events import EventChoice
from aigo_inspect.mapping.messages import Item
from aigo_inspect.mapping.model_calls import model_usage
from aigo_inspect.mapping.samples import MappedTrial, marked, read_trials
from aigo_inspect.mapping.scores import REDUCED, aggregated_scores
from aigo_inspect.mapping.spans import Event

_BATCH = 500
"""Maximum number of events, and of their context items, that are encoded together."""
_SHORT = 4 << 20
"""Maximum size of a sample in the log whose evidence may be written as one text, in bytes."""
SAMPLE_END = b"]}"


def sample_start(sample_id: str | int, aggregated: list[dict[str, Any]] | None) -> bytes:
    """Return the start of a sample's JSON text. The texts of its trials and `SAMPLE_END` follow."""
    head = {"sample_id": sample_id, "sample": None, "solver": None, "scores": aggregated, "errors": []}
    return dumps(head)[:-1] + b',"trials":['


def trial_pieces(trial: MappedTrial, context: ContextChoice = "full") -> Iterator[Piece]:
    """Yield the JSON text of one trial with the chosen amount of model input."""
    text = _short_trial(trial, context)
    yield from _trial(trial, context) if text is None else (text,)


def _short_trial(trial: MappedTrial, context: ContextChoice) -> bytes | None:
    """Return the text of a trial with few events; `None` if it must be written in pieces."""
    trace = trial.trace
    if trace is None or len(trace.events) > _BATCH or trial.size > _SHORT:
        return None
    contexts = (len(event["input_context"]) for event in trace.events if "input_context" in event)
    if context == "full" and sum(contexts) > _BATCH:
        return None
    events = trace.events if context == "full" else _with_contexts(trace.events, context)
    output = {
        "trace": {"items": trace.items, **trace.head(), "events": events},
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
        # The code for pieces can write values that orjson cannot (see `json_text`).
        return None


def _with_contexts(events: list[Event], context: ContextChoice) -> list[Event]:
    """Return events with less context than in the log."""
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
    yield dumps(head)[:-1]
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
    yield dumps(trial.trace.head())[1:-1]
    yield b',"events":['
    events = trial.trace.events
    yield from _events(events if context == "full" else _with_contexts(events, context), texts)
    yield b"]},"
    yield dumps({"raw_outputs": trial.raw_outputs, "direct_ios": trial.direct_ios})[1:]
    yield b"}," + tail


def _events(events: list[Event], texts: _ItemTexts) -> Iterator[Piece]:
    """Encode events together up to each model call. The context of the call follows its other fields."""
    contexts = _contexts(events, texts)
    batch: list[Event] = []
    comma = b""
    for event in events:
        is_call = event["type"] == "model_call_event"
        batch.append(_without_context(event) if is_call else event)
        if is_call:
            yield comma + dumps(batch)[1:-2] + b',"input_context":['
            yield next(contexts)
            yield b"]}"
        elif len(batch) == _BATCH:
            yield comma + dumps(batch)[1:-1]
        else:
            continue
        comma, batch = b",", []
    if batch:
        yield comma + dumps(batch)[1:-1]


def _contexts(events: list[Event], texts: _ItemTexts) -> Iterator[memoryview]:
    """Yield the encoded context of each model call.

    A context usually starts with the previous context of the same span. Such calls share one text, and each
    call uses the beginning of it. The output starts when all texts are complete.
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
    # Each text is freed after its last use, so that independent contexts are not all in memory.
    growing.clear()
    ends.reverse()
    while ends:
        text, end = ends.pop()
        yield text.start(end)


class _Growing:
    """Encoded items separated by commas, with cheap access to many prefixes."""

    def __init__(self) -> None:
        self.length = 0
        """Current length in bytes."""
        self._parts: list[bytes] = []
        self._joined: memoryview | None = None

    def add(self, parts: list[bytes]) -> None:
        """Append encoded items."""
        if parts:
            commas = len(parts) if self._parts else len(parts) - 1
            self._parts += parts
            self.length += sum(map(len, parts)) + commas

    def start(self, end: int) -> memoryview:
        """Return the first `end` bytes. Items must not be added afterwards."""
        if self._joined is None:
            # Joined only once, because appending to a text copies it every time.
            self._joined = memoryview(b",".join(self._parts))
            self._parts.clear()
        return self._joined[:end]


class _ItemTexts:
    """Cache of the encoded items of one trial, because each item occurs many times."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def of(self, items: list[Item]) -> list[bytes]:
        """Return the encoded items."""
        texts = self._known
        parts = []
        for item in items:
            text = texts.get(id(item))
            if text is None:
                text = dumps(item)
                # A short text is copied, because it keeps the unused memory of its buffer.
                text = texts[id(item)] = bytes(memoryview(text)) if len(text) < 4096 else text
            parts.append(text)
        return parts


class ContextDelta:
    """Comparison of each context with the previous context of the same span, in trace order."""

    def __init__(self) -> None:
        self._last: dict[str | None, tuple[str, list[Item]]] = {}

    def shorten(self, event: Event) -> tuple[list[Item], dict[str, Any] | None]:
        """Return the items to write for a model call, and the note for its metadata, if any."""
        context: list[Item] = event["input_context"]
        span = event.get("span_id")
        previous = self._last.get(span)
        self._last[span] = (event["id"], context)
        if previous is None:
            return context, None
        first = common_start(previous[1], context)
        return (context[first:], {"of": previous[0], "first": first}) if first else (context, None)


def common_start(items: list[Any], counterparts: list[Any]) -> int:
    """Return the length of the longest common prefix. This is fast if one list is a prefix of the other."""
    shorter = min(len(items), len(counterparts))
    if items[:shorter] == counterparts[:shorter]:
        return shorter
    return next((index for index in range(shorter) if items[index] != counterparts[index]), shorter)


def write_json(
    log: InspectLogReader,
    output: Path,
    options: ImportOptions,
    loss: LossReport,
    ranges: Callable[[DocumentWriter], LogTotals] | None = None,
) -> LogTotals:
    """Write the result file of an open log, and return the totals of its samples. `ranges` writes the samples
    with several processes; `None` writes them in one stream.
    """
    if FRAME in log.members():
        try:
            if (carried := _write_carried(log, output, loss)) is not None:
                return carried
        except EvidenceError as error:
            # Inspect's own members can still be read.
            log.note("_aigo/", error)
            loss.clear()
    # Secrets were already removed by the reader.
    with open_for_replacing(output, clean=False) as file, no_collections():
        writer = DocumentWriter(file)
        reductions = reduced_scores(log, loss)
        totals = ranges(writer) if ranges else write_samples(log, writer, options, loss, reductions)
        finish(writer, frame_of(log.header, totals, log.damage, loss, superseded(log)))
    loss.changed.update(log.changes)
    return totals


def reduced_scores(log: InspectLogReader, loss: LossReport) -> dict[str, list[dict[str, Any]]]:
    """Return sample id → scores over all trials; empty for a log with one trial."""
    return aggregated_scores(log.reductions(), loss) if log.has_epochs else {}


def write_samples(
    log: InspectLogReader,
    writer: DocumentWriter,
    options: ImportOptions,
    loss: LossReport,
    reductions: Mapping[str, list[dict[str, Any]]],
    refs: Sequence[SampleRef] | None = None,
) -> LogTotals:
    """Write samples of an open log, and return their totals. `reductions` maps a sample id to its scores over
    all trials. `refs` are the samples to write, grouped by id; `None` writes all samples.
    """
    totals = LogTotals()
    for trial, is_first in marked(read_trials(log, refs, keep=options.events, loss=loss)):
        if is_first:
            if totals.samples:
                writer.extend([SAMPLE_END])
            reduced = reductions.get(str(trial.sample_id))
            if reduced:
                loss.kept[REDUCED] += len(reduced)
            writer.sample(sample_start(trial.sample_id, reduced))
        else:
            writer.extend([b","])
        totals.count_trial(trial, first=is_first)
        writer.extend(trial_pieces(trial, options.context))
        # Free this trial before the next one is created.
        del trial
    if totals.samples:
        writer.extend([SAMPLE_END])
    return totals


def _write_carried(log: InspectLogReader, output: Path, loss: LossReport) -> LogTotals | None:
    """Write the evidence that a log was exported from; return `None` if the log was changed after the
    export.
    """
    # Imported late, because few logs contain evidence.
    from aigo_inspect.exporting.log import carried_frame, carried_samples, carries_evidence

    if not carries_evidence(log):
        return None
    totals, tally = LogTotals(), CountsTally()
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
"""Same layout as a list of samples."""


def finish(writer: DocumentWriter, frame: dict[str, object]) -> None:
    """Write the parts of a result that follow its samples."""
    evidence = frame.pop("evidence", None)
    fields = (
        {key: value for key, value in evidence.items() if key != "samples"}
        if isinstance(evidence, dict)
        else {}
    )
    if not writer.num_samples:
        fields = {"samples": _NO_SAMPLES, **fields}
    writer.finish(dumps(fields), dumps(frame))


def write_tables(log: InspectLogReader, folder: Path, keep: EventChoice, loss: LossReport) -> LogTotals:
    """Write the tables of a log to `folder`. The folder appears when all tables are complete.

    Raises:
        UsageError: pyarrow is not installed.
    """
    totals = LogTotals()
    reduced = reduced_scores(log, loss)
    with written_tables(folder, loss) as (tables, draft):
        for trial, first in marked(read_trials(log, keep=keep, loss=loss)):
            totals.count_trial(trial, first=first)
            tables.add(_parts(trial))
            # Free this trial before the next one is created.
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
