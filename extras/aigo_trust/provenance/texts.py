"""A result as the texts that stand in it: digests of samples are taken over these, not over what a reader
makes of them, so that no digit is lost to a reader's numbers, and a large result costs little more than its
bytes.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.results.log_files import FIRST_LINE, is_json_lines, mapped
from aigo_bridge.text.json_text import read_json

OBJECT: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
"""The members of an object as they stand there."""
LIST: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])
"""The items of a list as they stand there."""

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(msgspec.defstruct("_Any", []))
"""Any object; nothing of it is kept."""

RELEASED = 1 << 22
"""Bytes of a file that are in memory at a time."""

_LINES_END = b"\n]"


@dataclass(frozen=True)
class SampleText:
    """A sample as it stands in a result."""

    text: bytes | memoryview
    position: int
    """Among the samples of the task, or of the run."""
    run: int | None = None
    """Position of the run in a repeatability result; `None` for a sample of the task itself."""

    @property
    def path(self) -> tuple[str | int, ...]:
        """Keys and indices down to the sample."""
        place = ("evidence",) if self.run is None else ("evidence", "runs", self.run)
        return (*place, "samples", self.position)


@dataclass(frozen=True)
class ResultTexts:
    """A result: its samples as texts, and everything else as data."""

    path: Path
    samples: tuple[SampleText, ...]
    """Those of the task, then those of its runs."""
    frame: Mapping[str, Any]
    """The log without its samples."""
    content: bytes | mmap.mmap
    """The file, unpacked."""

    def digest(self) -> str:
        """SHA-256 of the file as it is unpacked."""
        digest = hashlib.sha256()
        for place in range(0, len(self.content), RELEASED):
            digest.update(self.content[place : place + RELEASED])
            self.release()
        return digest.hexdigest()

    def release(self) -> None:
        """Give back the memory that the file's pages are in; they are read again where they are needed."""
        _release(self.content)


def _release(content: bytes | mmap.mmap) -> None:
    if isinstance(content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        content.madvise(mmap.MADV_DONTNEED)


def read_texts(path: Path) -> ResultTexts:
    """The texts of a result log: memory is that of the frame, and of a place for each sample.

    Raises:
        EvidenceError: the file cannot be read, is cut off or malformed.
        UsageError: the suffix is not that of a result log.
    """
    by_line = is_json_lines(path, is_read=True)
    content, damage = mapped(path)
    if damage is not None:
        raise damage
    try:
        return _of_lines(path, content) if by_line else _of_document(path, content)
    except (ValueError, TypeError, RecursionError) as error:
        raise EvidenceError(
            [Issue(f"cannot be read as a result: {error}", file=str(path), code=Code.NOT_A_RESULT)]
        ) from error


def _of_document(path: Path, content: bytes | mmap.mmap) -> ResultTexts:
    try:
        if content[: len(FIRST_LINE)] == FIRST_LINE:
            try:
                return _of_written_document(path, content)
            except (ValueError, KeyError, TypeError):
                pass  # it only begins like one
        log = OBJECT.decode(content)
        evidence = log.pop("evidence", None)
        members = {} if evidence is None or bytes(evidence) == b"null" else OBJECT.decode(evidence)
        samples = [*_listed(members.pop("samples", None), None)]
        runs = members.pop("runs", None)
        frame: dict[str, Any] = {name: read_json(text) for name, text in log.items()}
        frame["evidence"] = None if evidence is None else {name: read_json(t) for name, t in members.items()}
        if runs is not None and bytes(runs) != b"null":
            frame["evidence"]["runs"] = []
            for number, run in enumerate(LIST.decode(runs)):
                parts = OBJECT.decode(run)
                samples += _listed(parts.pop("samples", None), number)
                frame["evidence"]["runs"].append({name: read_json(text) for name, text in parts.items()})
        return ResultTexts(path, tuple(samples), frame, content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _listed(text: Raw | None, run: int | None) -> Iterator[SampleText]:
    if text is None or bytes(memoryview(text)[:4]) == b"null":
        return
    for position, sample in enumerate(LIST.decode(text)):
        yield SampleText(memoryview(sample), position, run)


def _of_written_document(path: Path, content: bytes | mmap.mmap) -> ResultTexts:
    """A `.json` log that was written here: a sample a line."""
    samples: list[SampleText] = []
    view = memoryview(content)
    place = released = len(FIRST_LINE)
    while content[place - 1 : place + 1] != _LINES_END:
        end = content.find(b"\n", place)
        if end < 0:
            raise ValueError("the log is cut off")
        last = end - 1 if content[end - 1 : end] == b"," else end
        text = view[place:last]
        _check_object(text)
        samples.append(SampleText(text, len(samples)))
        place = end + 1
        if place - released > RELEASED:
            _release(content)
            released = place
    frame = read_json(FIRST_LINE + content[place:])
    del frame["evidence"]["samples"]
    return ResultTexts(path, tuple(samples), frame, content)


def _check_object(text: memoryview) -> None:
    """Raises `ValueError` where a text is no JSON object."""
    try:
        _ANY.decode(text)
    except msgspec.DecodeError:  # half a surrogate pair, say, which strict readers refuse
        if not isinstance(read_json(bytes(text)), dict):
            raise ValueError("found no object") from None  # noqa: TRY004  # of a content, not of an argument


def _of_lines(path: Path, content: bytes | mmap.mmap) -> ResultTexts:
    samples: list[SampleText] = []
    frame: dict[str, Any] | None = None
    place, size = 0, len(content)
    while place < size:
        end = content.find(b"\n", place)
        end = size if end < 0 else end
        text = content[place:end].strip()
        place = end + 1
        if not text:
            continue
        if b'"format_version"' in text and "format_version" in (value := read_json(text)):
            if frame is not None:
                raise ValueError("found a second line with `format_version`")
            frame = value
            if isinstance(frame.get("evidence"), dict):
                frame["evidence"].pop("samples", None)
        else:
            samples.append(SampleText(text, len(samples)))
    if frame is None:
        raise ValueError("the log is cut off: no line has `format_version`")
    return ResultTexts(path, tuple(samples), frame, content)


def members_of(text: bytes | memoryview | Raw) -> dict[str, bytes | Raw]:
    """The members of an object as they stand there; of what strict readers refuse as Python writes them.

    Raises:
        ValueError: it is no object.
    """
    try:
        return dict(OBJECT.decode(text))
    except msgspec.DecodeError:
        value = read_json(bytes(text))
        if not isinstance(value, dict):
            raise ValueError("found no object") from None  # noqa: TRY004  # of a content, not of an argument
        return {name: json.dumps(part).encode("ascii") for name, part in value.items()}


def items_of(text: bytes | memoryview | Raw) -> list[bytes | Raw]:
    """The items of a list, as `members_of`.

    Raises:
        ValueError: it is no list.
    """
    try:
        return list(LIST.decode(text))
    except msgspec.DecodeError:
        value = read_json(bytes(text))
        if not isinstance(value, list):
            raise ValueError("found no list") from None  # noqa: TRY004  # of a content, not of an argument
        return [json.dumps(part).encode("ascii") for part in value]
