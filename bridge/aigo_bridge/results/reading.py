"""Result logs, read sample by sample: memory is bounded by the largest sample, whatever the order of keys."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from aigo_bridge.dtypes import SampleEvidence, TaskResultLog
from aigo_bridge.dtypes.json_text import read_json
from aigo_bridge.dtypes.other_releases import adapted, one_trial
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.results.contexts import expand_contexts
from aigo_bridge.results.json_stream import JsonStream, JsonSyntaxError, Piece
from aigo_bridge.results.log_files import (
    AFTER_SAMPLES,
    COMPRESSIONS,
    FIRST_LINE,
    is_json_lines,
    open_for_reading,
)
from aigo_bridge.results.log_issues import issues_of

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
    """All of a log that is not samples, as it stands in the file; the lists of samples are there, but empty."""

    value: dict[str, Any]
    """Plain data, unchecked."""


class LogReader:
    """A result log in a file. Every method reads the file anew."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._by_line = is_json_lines(self.path)

    def __iter__(self) -> Iterator[SampleEvidence]:
        return self.samples()

    def samples(self, *, run: int | None = None) -> Iterator[SampleEvidence]:
        """The samples in order; legacy samples of the task as samples with one trial.

        Args:
            run: Position of a run of a repeatability result; `None` for the samples of the task itself.

        Raises:
            EvidenceError: The file cannot be read, is cut off or malformed, or a sample does not fit. Samples before
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
        behind = (
            None if self.path.suffix.lower() in COMPRESSIONS or self._by_line else self._frame_at_the_end()
        )
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
            raise EvidenceError([Issue(str(error), file=str(self.path), path=part.path)]) from error

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
        frame: dict[str, Any] = {}
        try:
            with open_for_reading(self.path) as file:
                for piece in JsonStream(file, opened=_opened).pieces():
                    match piece.path:
                        case ("evidence", "samples", int(position)):
                            yield self._sample(piece, position)
                        case ():
                            self._object(piece)
                        case ("evidence", "runs", int(run), "samples", int(position)):
                            yield self._sample(piece, position, run)
                        case _:
                            _put(frame, piece)
        except JsonSyntaxError as error:
            raise self._malformed(error.message, error.offset, error.path) from error
        yield FramePart(frame)

    def _frame_at_the_end(self) -> FramePart | None:
        """The frame of a log that was written here, known by how it begins and ends; `None` for any other."""
        with open_for_reading(self.path) as file:
            if file.read(len(FIRST_LINE)) != FIRST_LINE:
                return None
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LONGEST_FRAME))
            _, found, rest = file.read().rpartition(AFTER_SAMPLES)
        if not found or b"\n" in rest.rstrip():
            return None
        try:
            value = read_json(FIRST_LINE + found.lstrip() + rest)
        except ValueError:
            return None
        return FramePart(value) if "format_version" in value else None

    def _parts_of_lines(self) -> Iterator[SamplePart | FramePart]:
        frame: dict[str, Any] | None = None
        index = offset = 0
        with open_for_reading(self.path) as file:
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
            raise EvidenceError([Issue(str(error), file=str(self.path), path=part.path)]) from error
        return part

    def _object(self, piece: Piece) -> dict[str, Any]:
        if not isinstance(piece.value, dict):
            what = "a sample" if piece.path else "a result log"
            message = f"found {_kind(piece.value)}, expected {what}"
            raise EvidenceError([Issue(message, file=str(self.path), path=piece.path)])
        return piece.value

    def _malformed(
        self, message: str, offset: int, path: tuple[str | int, ...], *, hint: str | None = None
    ) -> EvidenceError:
        return EvidenceError(
            [Issue(f"{message} at byte {offset}", file=str(self.path), path=path, hint=hint or _HINT)]
        )


_HINT = "samples before this place can be read; write the log anew to have all"


def read_log(path: str | Path) -> LogReader:
    """A result log, to be read sample by sample. Nothing is read yet.

    Raises:
        UsageError: The suffix is not that of a result log.
    """
    return LogReader(path)


def _opened(path: tuple[str | int, ...]) -> bool:
    """Whether the stream goes into a container: lists of samples are, samples are not."""
    match path:
        case () | ("evidence",) | ("evidence", "samples" | "runs"):
            return True
        case ("evidence", "runs", int()) | ("evidence", "runs", int(), "samples"):
            return True
    return False


def _put(frame: dict[str, Any], piece: Piece) -> None:
    """Put a piece in its place; what holds it has come before."""
    *containers, key = piece.path
    here: Any = frame
    for container in containers:
        here = here[container]
    if isinstance(here, list):
        here.append(piece.value)
    else:
        here[key] = piece.value


def _kind(value: Any) -> str:
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
