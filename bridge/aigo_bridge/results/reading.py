"""Result logs, read sample by sample: memory is bounded by the largest sample, whatever the order of keys.

A model call's `input_context` repeats the conversation so far, so a file with full contexts grows with the
square of the turns. With `--context delta` an import writes only what a context adds to that of an earlier
call, and says so in the call's metadata; here such contexts are made whole again:

```json
{"type": "model_call_event", "id": "b", "input_context": [<new items>],
 "metadata": {"inspect": {"context": {"of": "a", "first": 12}}}}
```

The whole context is the first 12 items of call `a`'s context, followed by the items that are written.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, DecodeError, Raw, UnsetType
from pydantic import BaseModel, ValidationError

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SampleEvidence, TaskResultEvidence, TaskResultLog
from aigo_bridge.dtypes.task_result import adapted, one_trial
from aigo_bridge.dtypes.validation import issues_of
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.results.json_pieces import JsonSyntaxError, Piece, pieces
from aigo_bridge.results.log_files import (
    AFTER_SAMPLES,
    COMPRESSIONS,
    FIRST_LINE,
    is_json_lines,
    mapped,
    open_for_reading,
)
from aigo_bridge.results.written_lines import OtherFormError, repeats_key, written_lines
from aigo_bridge.text.json_text import read_json

LARGEST_AT_ONCE = 128 << 20
"""Bytes of a mapped log that are decoded at once, which is faster, and has all of them in memory."""

_RELEASED = 16 << 20
"""Bytes of a mapped log after which those that were read are given back to the system."""

LONGEST_FRAME = 1 << 24
"""Bytes at the end of a file in which its frame is looked for before the whole file is read."""


class SamplePart(NamedTuple):
    """A sample of a log, as it stands in the file; shortened contexts of model calls are whole again."""

    value: dict[str, Any]
    """Plain data, unchecked."""
    position: int
    """Position among the samples of the task, or of the run."""
    run: int | None = None
    """Position of the run in a repeatability result; `None` for a sample of the task itself."""

    @property
    def path(self) -> tuple[str | int, ...]:
        """Keys and indices down to the sample."""
        place = ("evidence",) if self.run is None else ("evidence", "runs", self.run)
        return (*place, "samples", self.position)


class FramePart(NamedTuple):
    """All of a log that is not samples, as it stands in the file; its lists of samples are empty."""

    value: dict[str, Any]
    """Plain data, unchecked."""


class LogReader:
    """A result log in a file. Every method reads the file anew.

    Args:
        path: the file.
        root: folder that it, all links followed, must lie in; `None`: anywhere.
    """

    def __init__(self, path: str | Path, *, root: Path | None = None):
        self.path = Path(path)
        self._root = root
        self._by_line = is_json_lines(self.path, is_read=True)

    def __iter__(self) -> Iterator[SampleEvidence]:
        return self.samples()

    def __repr__(self) -> str:
        return f"<LogReader of {str(self.path)!r}>"

    def samples(self, *, run: int | None = None) -> Iterator[SampleEvidence]:
        """The samples in order; legacy samples of the task as samples with one trial.

        Args:
            run: Position of a run of a repeatability result; `None` for the samples of the task itself.

        Raises:
            EvidenceError: The file cannot be read, is cut off or malformed, or a sample does not fit. Samples
                before
                that place have come out.
        """
        for part in self.parts():
            if isinstance(part, SamplePart) and part.run == run:
                yield self.typed_sample(part)

    def raw_samples(self, *, run: int | None = None) -> Iterator[dict[str, Any]]:
        """The samples in order as plain data, unchecked.

        Raises:
            EvidenceError: As `samples`, but for samples that do not fit.
        """
        for part in self.parts():
            if isinstance(part, SamplePart) and part.run == run:
                yield part.value

    def frame(self) -> TaskResultLog:
        """The log without its samples: specification, metrics, execution, errors.

        Reads past the samples, or not even that in a plain `.json` log that was written here.

        Raises:
            EvidenceError: The file cannot be read, is cut off or malformed, or is no result log.
        """
        behind = self.quick_frame()
        if behind is not None:
            return self.typed_frame(behind)
        for part in self.parts():
            if isinstance(part, FramePart):
                return self.typed_frame(part)
        raise AssertionError("parts() ends with the frame or raises")

    def load(self) -> TaskResultLog:
        """The whole log, in memory.

        Raises:
            EvidenceError: As `samples` and `frame`.
        """
        samples: dict[int | None, list[SampleEvidence]] = {}
        for part in self.parts():
            if isinstance(part, SamplePart):
                samples.setdefault(part.run, []).append(self.typed_sample(part))
                continue
            log = self.typed_frame(part)
            if log.evidence is not None:
                for run, of_run in samples.items():
                    place = log.evidence if run is None else (log.evidence.runs or [])[run]
                    place.samples = of_run
            return log
        raise AssertionError("parts() ends with the frame or raises")

    def typed_sample(self, part: SamplePart) -> SampleEvidence:
        """A sample of `parts()` as evidence.

        Raises:
            EvidenceError: It does not fit.
        """
        data = part.value
        try:
            if part.run is None:
                data = one_trial(data)
            return SampleEvidence.model_validate(data)
        except ValidationError as error:
            raise EvidenceError(issues_of(error, data, file=str(self.path), path=part.path)) from error
        except TypeError as error:
            raise EvidenceError(
                [Issue(str(error), file=str(self.path), path=part.path, code=Code.DAMAGED_RESULT)]
            ) from error

    def typed_frame(self, part: FramePart) -> TaskResultLog:
        """The last of `parts()` as a log.

        Raises:
            EvidenceError: It does not fit.
        """
        try:
            return TaskResultLog.model_validate(part.value)
        except ValidationError as error:
            raise EvidenceError(issues_of(error, adapted(part.value), file=str(self.path))) from error

    def parts(self) -> Iterator[SamplePart | FramePart]:
        """Every sample, then the log without its samples, all as plain data.

        Raises:
            EvidenceError: The file cannot be read, is cut off or malformed.
        """
        return self._parts_of_lines() if self._by_line else self._parts_of_document()

    def _parts_of_document(self) -> Iterator[SamplePart | FramePart]:
        count = 0
        try:
            for part in self._written_parts():
                yield part
                count += 1
            return
        except OtherFormError:
            pass
        document, damage = mapped(self.path, self._root)
        # What is decoded at once is in memory as a whole.
        if damage is None and count == 0 and len(document) <= LARGEST_AT_ONCE:
            try:
                for part in self._strict_parts(document):
                    yield part
                    count += 1
                return
            except _NOT_STRICT:
                pass  # samples are left, or nothing but the fault, which the other way names
        try:
            yield from islice(self._lenient_parts(document), count, None)
        except JsonSyntaxError as error:
            raise damage or self._malformed(error.message, error.offset, error.path) from error
        if damage is not None:
            raise damage

    def _written_parts(self) -> Iterator[SamplePart | FramePart]:
        """The parts of a log of one run that was written here; raises `OtherFormError` where it was not, or
        is damaged from there on.
        """
        lines = written_lines(self.path, self._root)
        for position in itertools.count():
            try:
                text, is_frame = next(lines)
                value = read_json(text)
            except (EvidenceError, ValueError, RecursionError) as error:
                raise OtherFormError(str(error)) from error
            if is_frame:
                if _samples_of(value) != [] or repeats_key(text):
                    message = "found samples, or evidence, twice"
                    raise EvidenceError(
                        [Issue(message, file=str(self.path), path=("evidence",), code=Code.DAMAGED_RESULT)]
                    )
                yield FramePart(value)
                return
            yield self._sample(Piece(("evidence", "samples", position), 0, value), position)

    def _strict_parts(self, document: bytes | mmap.mmap) -> Iterator[SamplePart | FramePart]:
        """The parts of a log of one run that has no fields but AI GO's: where samples stand is found at once,
        each is read in its turn.
        """
        log = _LOG.decode(document)
        frame = _read_fields(log)
        evidence = None if log.evidence is UNSET else log.evidence
        if evidence is not None and evidence.runs is not None and read_json(evidence.runs) is not None:
            raise ValueError("the samples of runs must be in document order")
        samples = UNSET if evidence is None else evidence.samples
        for position, text in enumerate(samples or ()):
            yield self._sample(Piece(("evidence", "samples", position), 0, read_json(text)), position)
        if log.evidence is not UNSET:
            frame["evidence"] = None if evidence is None else _read_fields(evidence)
        if samples is not UNSET:
            frame["evidence"]["samples"] = None if samples is None else []
        yield FramePart(frame)

    def _lenient_parts(self, document: bytes | mmap.mmap) -> Iterator[SamplePart | FramePart]:
        """The parts of any log, also before the place where it is malformed."""
        frame: dict[str, Any] = {}
        released = 0
        for piece in pieces(document, opened=_opened):
            if piece.offset - released > _RELEASED:
                released = _release(document, released, piece.offset)
            match piece.path:
                case ("evidence", "samples", int(position)):
                    yield self._sample(piece, position)
                case ():
                    self._object(piece)
                case ("evidence", "runs", int(run), "samples", int(position)):
                    yield self._sample(piece, position, run)
                case _:
                    _put(frame, piece)
        yield FramePart(frame)

    def quick_frame(self) -> FramePart | None:
        """The log without its samples, where it can be had without reading them: of a plain log that was
        written here, known by how it begins and ends; `None` for any other.

        Raises:
            EvidenceError: The file cannot be opened.
        """
        if self.path.suffix.lower() in COMPRESSIONS or self._by_line:
            return None
        with open_for_reading(self.path, self._root) as file:
            if file.read(len(FIRST_LINE)) != FIRST_LINE:
                return None
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LONGEST_FRAME))
            _, separator, behind = file.read().rpartition(AFTER_SAMPLES)
        if not separator or b"\n" in behind.rstrip():
            return None
        try:
            value = read_json(FIRST_LINE + separator.lstrip() + behind)
        except ValueError:
            return None
        return FramePart(value) if "format_version" in value else None

    def _parts_of_lines(self) -> Iterator[SamplePart | FramePart]:
        frame: dict[str, Any] | None = None
        index = offset = 0
        with open_for_reading(self.path, self._root) as file:
            for line in file:
                if not line.isspace():
                    value = self._line(line, offset, index)
                    if "format_version" in value:
                        if frame is not None:
                            raise self._malformed("found a second line with `format_version`", offset, ())
                        frame = value
                    else:
                        yield self._sample(Piece(("evidence", "samples", index), offset, value), index)
                        index += 1
                offset += len(line)
        if frame is None:
            hint = "the last line of a `.jsonl` log is the log without its samples"
            raise self._malformed("the log is cut off: no line has `format_version`", offset, (), hint=hint)
        yield FramePart(frame)

    def _line(self, line: bytes, offset: int, index: int) -> dict[str, Any]:
        path = ("evidence", "samples", index)
        try:
            value = read_json(line)
        except json.JSONDecodeError as error:
            at = offset + len(error.doc[: error.pos].encode("utf-8", "surrogatepass"))
            cut_off = not line.endswith(b"\n")
            message = "the log is cut off" if cut_off else error.msg[:1].lower() + error.msg[1:]
            raise self._malformed(message, offset + len(line) if cut_off else at, path) from error
        except UnicodeDecodeError as error:
            raise self._malformed("found bytes that are not UTF-8", offset + error.start, path) from error
        return self._object(Piece(path, offset, value))

    def _sample(self, piece: Piece, position: int, run: int | None = None) -> SamplePart:
        part = SamplePart(self._object(piece), position, run)
        try:
            expand_contexts(part.value)
        except EvidenceError as error:
            raise EvidenceError(
                [Issue(str(error), file=str(self.path), path=part.path, code=Code.DAMAGED_RESULT)]
            ) from error
        return part

    def _object(self, piece: Piece) -> dict[str, Any]:
        if not isinstance(piece.value, dict):
            what = "a sample" if piece.path else "a result log"
            message = f"found {_kind(piece.value)}, expected {what}"
            raise EvidenceError(
                [Issue(message, file=str(self.path), path=piece.path, code=Code.NOT_A_RESULT)]
            )
        return piece.value

    def _malformed(
        self, message: str, offset: int, path: tuple[str | int, ...], *, hint: str | None = None
    ) -> EvidenceError:
        return EvidenceError(
            [
                Issue(
                    f"{message} at byte {offset}",
                    file=str(self.path),
                    path=path,
                    hint=hint or _HINT,
                    code=Code.DAMAGED_RESULT,
                )
            ]
        )


_HINT = "samples before this position can be read; write the log again to get all of them"


def read_log(path: str | Path) -> LogReader:
    """A result log, to be read sample by sample. Nothing is read yet.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    log = aigo_bridge.read_log(outcome.result)
    assert log.frame().evidence.metrics[0].values == {"Accuracy": 0.75}
    assert [len(sample.trials) for sample in log] == [1, 1, 1, 1]
    ```

    Args:
        path: Ends in `.json` or `.jsonl`, with `.gz` or `.zst` behind it for a compressed log.

    Returns:
        The reader: iterating gives `SampleEvidence`, one at a time; `frame()` everything but the samples,
        `load()` the whole log as a `TaskResultLog`. These raise `EvidenceError` where the file is missing,
        cut off, malformed or something else.

    Raises:
        UsageError: The suffix is not that of a result log.
    """
    return LogReader(path)


_NOT_STRICT = (DecodeError, ValueError, RecursionError)
"""What reading a document strictly raises where it is malformed, or has something that JSON or AI GO does not
know (NaN, another field)."""


def _struct(name: str, model: type[BaseModel], *opened: tuple[str, Any]) -> Any:
    """The fields of a model: as text, but for those that are opened."""
    texts = [(field, Raw, None) for field in model.model_fields if field not in dict(opened)]
    fields = [*texts, *((field, kind | None | UnsetType, UNSET) for field, kind in opened)]
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True)


_Evidence = _struct("_Evidence", TaskResultEvidence, ("samples", list[Raw]))
_LOG: Any = msgspec.json.Decoder(_struct("_Log", TaskResultLog, ("evidence", _Evidence)))


def _read_fields(parts: Any) -> dict[str, Any]:
    """The fields that are text, where they are there."""
    fields = {name: getattr(parts, name) for name in parts.__struct_fields__}
    return {name: read_json(text) for name, text in fields.items() if isinstance(text, Raw)}


def _release(document: bytes | mmap.mmap, start: int, end: int) -> int:
    """Have the pages of a mapped file in memory no more; up to where they are."""
    end -= end % mmap.ALLOCATIONGRANULARITY
    if isinstance(document, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        document.madvise(mmap.MADV_DONTNEED, start, end - start)
    return end


def _opened(path: tuple[str | int, ...]) -> bool:
    """Whether the stream goes into a container: lists of samples are, samples are not."""
    match path:
        case () | ("evidence",) | ("evidence", "samples" | "runs"):
            return True
        case ("evidence", "runs", int()) | ("evidence", "runs", int(), "samples"):
            return True
    return False


def _samples_of(frame: Any) -> Any:
    evidence = frame.get("evidence") if isinstance(frame, dict) else None
    return evidence.get("samples") if isinstance(evidence, dict) else None


def _put(frame: dict[str, Any], piece: Piece) -> None:
    """Put a piece in its place; what holds it has come before."""
    *containers, key = piece.path
    holder: Any = frame
    for container in containers:
        holder = holder[container]
    if isinstance(holder, list):
        holder.append(piece.value)
    else:
        holder[key] = piece.value


def _kind(value: Any) -> str:
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


MOST_ITEMS = 50_000_000
"""Items of all contexts of one sample together; a small file can claim any number of them."""


def expand_contexts(sample: dict[str, Any]) -> dict[str, Any]:
    """Give the model calls of a written sample their whole contexts, in place; samples in full stay as they
    are.

    Args:
        sample: a `SampleEvidence` as plain data, checked or not. Equal items come back as the same
            dictionary.

    Returns:
        The sample.

    Raises:
        EvidenceError: the contexts are longer than any that an import writes.
    """
    trials = sample.get("trials")
    for trial in (sample, *(trials if isinstance(trials, list) else ())):
        value: Any = trial
        for key in ("solver", "output", "trace", "events"):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, list):
            _expand(value)
    return sample


def _expand(events: list[Any]) -> None:
    contexts: dict[str, list[Any]] = {}
    room = MOST_ITEMS
    for event in events:
        if not isinstance(event, dict) or event.get("type") != "model_call_event":
            continue
        context, name = event.get("input_context"), event.get("id")
        if not isinstance(context, list):
            continue
        metadata = event.get("metadata")
        inspect = metadata.get("inspect") if isinstance(metadata, dict) else None
        if not isinstance(inspect, dict):
            inspect = {}
        note = inspect.get("context")
        if isinstance(note, dict) and isinstance(note.get("of"), str) and isinstance(note.get("first"), int):
            earlier = contexts.get(note["of"])
            if earlier is not None and 0 <= note["first"] <= len(earlier):
                room -= note["first"]
                if room < 0:
                    raise EvidenceError(
                        f"the contexts of a sample have more than {MOST_ITEMS:,} items",
                        code=Code.DAMAGED_RESULT,
                    )
                context = event["input_context"] = earlier[: note["first"]] + context
                del inspect["context"]
        if isinstance(name, str):
            contexts[name] = context
