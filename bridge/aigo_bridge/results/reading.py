"""Result logs, read sample by sample. Memory is bounded by the largest sample, in any order of keys.

The `input_context` of a model call repeats the conversation so far, so a file with full contexts grows
with the square of the turns. With `--context delta`, an import writes only the items that a context adds
to the context of an earlier call, and marks it in the call's metadata. The reader restores such contexts:

```json
{"type": "model_call_event", "id": "b", "input_context": [<new items>],
 "metadata": {"inspect": {"context": {"of": "a", "first": 12}}}}
```

The whole context is the first 12 items of call `a`'s context, followed by the items in the file.
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

from pydantic import ValidationError

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SampleEvidence, TaskResultLog
from aigo_bridge.dtypes.task_result import adapted, one_trial
from aigo_bridge.dtypes.validation import issues_of
from aigo_bridge.errors import EvidenceError
from aigo_bridge.results.json_pieces import JsonPiece, JsonSyntaxError, pieces
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

_RELEASED = 16 << 20
"""Bytes of a mapped log to read before the pages are released."""

LONGEST_FRAME = 1 << 24
"""Bytes at the end of a file to search for the frame before the whole file is read."""


class SamplePart(NamedTuple):
    """Sample of a log as written, with restored contexts of model calls."""

    value: dict[str, Any]
    """Plain data, without validation."""
    position: int
    """Position among the samples of the task, or of the run."""
    run: int | None = None
    """Position of the run in a repeatability result; `None` for a sample of the task itself."""

    @property
    def path(self) -> tuple[str | int, ...]:
        """Keys and indices of the sample in the log."""
        place = ("evidence",) if self.run is None else ("evidence", "runs", self.run)
        return (*place, "samples", self.position)


class FramePart(NamedTuple):
    """Log as written, with empty lists of samples."""

    value: dict[str, Any]
    """Plain data, without validation."""


class LogReader:
    """Reader of a result log. Every method reads the file again.

    Args:
        path: the file.
        root: folder that must contain the file, after following links; `None` for any folder.
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
        """Yield the samples in order. Legacy samples of the task are returned as samples with one trial.

        Args:
            run: position of a run of a repeatability result; `None` for the samples of the task itself.

        Raises:
            EvidenceError: the file cannot be read, is truncated or malformed, or a sample is invalid.
                Samples before the error have been returned.
        """
        for part in self.parts():
            if isinstance(part, SamplePart) and part.run == run:
                yield self.typed_sample(part)

    def raw_samples(self, *, run: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the samples in order as plain data, without validation.

        Raises:
            EvidenceError: as for `samples`, except for invalid samples.
        """
        for part in self.parts():
            if isinstance(part, SamplePart) and part.run == run:
                yield part.value

    def frame(self) -> TaskResultLog:
        """Return the log without its samples: specification, metrics, execution, errors.

        This reads past the samples. In an uncompressed `.json` log that aigo-bridge wrote, it only reads
        the end.

        Raises:
            EvidenceError: the file cannot be read, is truncated or malformed, or is not a result log.
        """
        behind = self.quick_frame()
        if behind is not None:
            return self.typed_frame(behind)
        for part in self.parts():
            if isinstance(part, FramePart):
                return self.typed_frame(part)
        raise AssertionError("parts() ends with the frame or raises")

    def load(self) -> TaskResultLog:
        """Return the whole log, in memory.

        Raises:
            EvidenceError: as for `samples` and `frame`.
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
        """Convert a sample from `parts()` to evidence.

        Raises:
            EvidenceError: the sample is invalid.
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
                str(error), file=str(self.path), path=part.path, code=Code.DAMAGED_RESULT
            ) from error

    def typed_frame(self, part: FramePart) -> TaskResultLog:
        """Convert the last item from `parts()` to a log.

        Raises:
            EvidenceError: the log is invalid.
        """
        try:
            return TaskResultLog.model_validate(part.value)
        except ValidationError as error:
            raise EvidenceError(issues_of(error, adapted(part.value), file=str(self.path))) from error

    def parts(self) -> Iterator[SamplePart | FramePart]:
        """Yield every sample, then the log without its samples, as plain data.

        Raises:
            EvidenceError: the file cannot be read, is truncated or malformed.
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
        try:
            yield from islice(self._located_parts(document), count, None)
        except JsonSyntaxError as error:
            raise damage or self._malformed(error.message, error.offset, error.path) from error
        if damage is not None:
            raise damage

    def _written_parts(self) -> Iterator[SamplePart | FramePart]:
        """Yield the parts of a log of one run as aigo-bridge writes it; otherwise raise `OtherFormError`."""
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
                        message, file=str(self.path), path=("evidence",), code=Code.DAMAGED_RESULT
                    )
                yield FramePart(value)
                return
            yield self._sample(JsonPiece(("evidence", "samples", position), 0, value), position)

    def _located_parts(self, document: bytes | mmap.mmap) -> Iterator[SamplePart | FramePart]:
        """Yield the parts of any log, up to the first malformed position."""
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
        """Return the log without its samples if they can be skipped: in an uncompressed log that aigo-bridge
        wrote, recognized by its start and end. Return `None` for any other log.

        Raises:
            EvidenceError: the file cannot be opened.
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
                        yield self._sample(JsonPiece(("evidence", "samples", index), offset, value), index)
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
        return self._object(JsonPiece(path, offset, value))

    def _sample(self, piece: JsonPiece, position: int, run: int | None = None) -> SamplePart:
        part = SamplePart(self._object(piece), position, run)
        try:
            expand_contexts(part.value)
        except EvidenceError as error:
            raise EvidenceError(
                str(error), file=str(self.path), path=part.path, code=Code.DAMAGED_RESULT
            ) from error
        return part

    def _object(self, piece: JsonPiece) -> dict[str, Any]:
        if not isinstance(piece.value, dict):
            what = "a sample" if piece.path else "a result log"
            message = f"found {_kind(piece.value)}, expected {what}"
            raise EvidenceError(message, file=str(self.path), path=piece.path, code=Code.NOT_A_RESULT)
        return piece.value

    def _malformed(
        self, message: str, offset: int, path: tuple[str | int, ...], *, hint: str | None = None
    ) -> EvidenceError:
        return EvidenceError(
            f"{message} at byte {offset}",
            file=str(self.path),
            path=path,
            hint=hint or _HINT,
            code=Code.DAMAGED_RESULT,
        )


_HINT = "samples before this position can be read; write the log again to get all of them"


def read_log(path: str | Path) -> LogReader:
    """Return a reader that reads a result log sample by sample. The file is not opened yet.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    log = aigo_bridge.read_log(outcome.result)
    assert log.frame().evidence.metrics[0].values == {"Accuracy": 0.75}
    assert [len(sample.trials) for sample in log] == [1, 1, 1, 1]
    ```

    Args:
        path: file with the extension `.json` or `.jsonl`, followed by `.gz` or `.zst` for a compressed
            log.

    Returns:
        Reader of the log. Iteration yields `SampleEvidence`, one at a time. `frame()` returns everything
        except the samples; `load()` returns the whole log as a `TaskResultLog`. All of them raise
        `EvidenceError` if the file is missing, truncated, malformed or not a result log.

    Raises:
        UsageError: the file extension does not belong to a result log.
    """
    return LogReader(path)


def _release(document: bytes | mmap.mmap, start: int, end: int) -> int:
    """Release the pages of a mapped file from memory and return their end."""
    end -= end % mmap.ALLOCATIONGRANULARITY
    if isinstance(document, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        document.madvise(mmap.MADV_DONTNEED, start, end - start)
    return end


def _opened(path: tuple[str | int, ...]) -> bool:
    """Return whether the reader opens a container. It opens lists of samples, but not samples."""
    match path:
        case () | ("evidence",) | ("evidence", "samples" | "runs"):
            return True
        case ("evidence", "runs", int()) | ("evidence", "runs", int(), "samples"):
            return True
    return False


def _samples_of(frame: Any) -> Any:
    evidence = frame.get("evidence") if isinstance(frame, dict) else None
    return evidence.get("samples") if isinstance(evidence, dict) else None


def _put(frame: dict[str, Any], piece: JsonPiece) -> None:
    """Insert a piece into the frame; its container was inserted before."""
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
"""Maximum number of items in all contexts of one sample. A small file can claim any number of them."""


def expand_contexts(sample: dict[str, Any]) -> dict[str, Any]:
    """Restore the whole contexts of a sample's model calls in place; full contexts stay unchanged.

    Args:
        sample: `SampleEvidence` as plain data, valid or not. Equal items become the same dictionary.

    Returns:
        The sample.

    Raises:
        EvidenceError: the contexts are longer than any context that an import writes.
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
