"""Raw texts of a result.

Sample digests cover the raw text instead of parsed values. No digit is lost to number parsing, and a large
result needs little more memory than its bytes.
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
from aigo_bridge.errors import EvidenceError
from aigo_bridge.results.log_files import FIRST_LINE, is_json_lines, mapped
from aigo_bridge.text.json_text import read_json

OBJECT: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
"""Decoder for the members of an object as raw text."""
LIST: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])
"""Decoder for the items of a list as raw text."""

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(msgspec.defstruct("_Any", []))
"""Decoder that validates any object and keeps nothing."""

RELEASED = 1 << 22
"""Number of file bytes to keep in memory at a time."""

_LINES_END = b"\n]"


@dataclass(frozen=True)
class SampleText:
    """Raw text of a sample in a result."""

    text: bytes | memoryview
    position: int
    """Index among the samples of the task or of the run."""
    run: int | None = None
    """Index of the run in a repeatability result; `None` for a sample of the task itself."""

    @property
    def path(self) -> tuple[str | int, ...]:
        """Return the keys and indices that lead to the sample."""
        place = ("evidence",) if self.run is None else ("evidence", "runs", self.run)
        return (*place, "samples", self.position)


@dataclass(frozen=True)
class ResultTexts:
    """Content of a result: samples as raw text and everything else as data."""

    path: Path
    samples: tuple[SampleText, ...]
    """Samples of the task, followed by samples of its runs."""
    frame: Mapping[str, Any]
    """Log without its samples."""
    content: bytes | mmap.mmap
    """Uncompressed content of the file."""

    def digest(self) -> str:
        """Return the SHA-256 of the uncompressed file."""
        digest = hashlib.sha256()
        for place in range(0, len(self.content), RELEASED):
            digest.update(self.content[place : place + RELEASED])
            self.release()
        return digest.hexdigest()

    def release(self) -> None:
        """Release the memory of the file's pages. They are read again when needed."""
        _release(self.content)


def _release(content: bytes | mmap.mmap) -> None:
    if isinstance(content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        content.madvise(mmap.MADV_DONTNEED)


def read_texts(path: Path) -> ResultTexts:
    """Read the raw texts of a result log. Memory holds the frame and one position for each sample.

    Raises:
        EvidenceError: the file cannot be read, is truncated or malformed.
        UsageError: the file extension does not belong to a result log.
    """
    by_line = is_json_lines(path, is_read=True)
    content, damage = mapped(path)
    if damage is not None:
        raise damage
    try:
        return _of_lines(path, content) if by_line else _of_document(path, content)
    except (ValueError, TypeError, RecursionError) as error:
        raise EvidenceError(
            f"cannot be read as a result: {error}", file=str(path), code=Code.NOT_A_RESULT
        ) from error


def _of_document(path: Path, content: bytes | mmap.mmap) -> ResultTexts:
    try:
        if content[: len(FIRST_LINE)] == FIRST_LINE:
            try:
                return _of_written_document(path, content)
            except (ValueError, KeyError, TypeError):
                pass  # only its beginning looks like one
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
    """Read a `.json` log that aigo-bridge wrote, with one sample a line."""
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
    """Raise `ValueError` for a text that is not a JSON object."""
    try:
        _ANY.decode(text)
    except msgspec.DecodeError:  # such as half a surrogate pair, which strict readers reject
        if not isinstance(read_json(bytes(text)), dict):
            raise ValueError("found no object") from None  # noqa: TRY004  # wrong content, not a wrong argument type


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
    """Return the members of an object as raw text. Text that strict readers reject is rewritten by Python's
    `json`.

    Raises:
        ValueError: the text is not a JSON object.
    """
    try:
        return dict(OBJECT.decode(text))
    except msgspec.DecodeError:
        value = read_json(bytes(text))
        if not isinstance(value, dict):
            raise ValueError("found no object") from None  # noqa: TRY004  # wrong content, not a wrong argument type
        return {name: json.dumps(part).encode("ascii") for name, part in value.items()}


def items_of(text: bytes | memoryview | Raw) -> list[bytes | Raw]:
    """Return the items of a list as raw text, like `members_of`.

    Raises:
        ValueError: the text is not a JSON list.
    """
    try:
        return list(LIST.decode(text))
    except msgspec.DecodeError:
        value = read_json(bytes(text))
        if not isinstance(value, list):
            raise ValueError("found no list") from None  # noqa: TRY004  # wrong content, not a wrong argument type
        return [json.dumps(part).encode("ascii") for part in value]
