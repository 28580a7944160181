"""Reader of JSON values in trace files, with limits, redaction, and positions of damaged parts.

Files are untrusted. Their content is never executed, their paths are never opened, and memory use is limited
before parsing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds, LogTooLargeError
from aigo_bridge.access.opening import IrregularFileError, OutsideRootError, open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage, LossReport
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import redaction
from aigo_bridge.text.json_text import TOO_DEEP, read_json, without_depths, without_non_finite

LARGEST_FILE = 2 << 30
"""Maximum size of a trace file in bytes, if `Bounds.member_bytes` is not smaller."""
DEEPEST = 100
"""Maximum nesting depth that is kept. Real files have fewer than thirty levels."""


@dataclass
class ReadContext:
    """Settings for reading files, and the damage and losses found."""

    root: Path | None = None
    """Folder that files must not leave, also through symbolic links."""
    bounds: Bounds = DEFAULT_BOUNDS
    redaction: Redactor = field(default_factory=redaction)
    """Redactor of secrets, applied to the text before parsing."""
    loss: LossReport = field(default_factory=LossReport)
    damage: list[Damage] = field(default_factory=list)
    """Parts of files that are missing in the traces."""
    all_events: bool = False
    """Whether to keep records that only repeat others."""

    def damaged(self, file: Path, reason: str, offset: int | None = None) -> None:
        """Record an unreadable part.

        Raises:
            EvidenceError: there are too many unreadable parts.
        """
        self.damage.append(Damage(str(file), offset, reason))
        if len(self.damage) > self.bounds.damaged:
            raise EvidenceError(
                f"{str(file)!r}: more than {self.bounds.damaged:,} parts cannot be read",
                code=Code.DAMAGED_LOG,
            )

    def value(self, data: bytes, file: Path) -> Any:
        """Parse one JSON value without secrets. Numbers that are not finite become text.

        Raises:
            ValueError: the text is not JSON.
            TooLargeError: the value needs too much memory.
        """
        self.bounds.check_document(file.name, data)
        try:
            value = read_json(self.redaction.json(data))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        value, odd = without_non_finite(value)
        if odd:
            self.loss.changed["number that is not finite: written as text"] += odd
        if deep := without_depths([value], DEEPEST):
            self.loss.changed[f"value nested deeper than {DEEPEST}: {TOO_DEEP}"] += deep
        return value

    def data(self, file: Path) -> bytes:
        """Return the content of a file.

        Raises:
            EvidenceError: the file cannot be read or is too large.
        """
        largest = min(self.bounds.member_bytes, LARGEST_FILE)
        try:
            with open_regular(file, self.root) as stream:
                data = stream.read(largest + 1)
        except (OutsideRootError, IrregularFileError) as error:
            raise EvidenceError(f"{str(file)!r}: {error}", code=Code.NOT_A_LOG) from error
        except OSError as error:
            raise EvidenceError(
                f"{str(file)!r} cannot be read: {error.strerror or error}", code=Code.UNREADABLE_LOG
            ) from error
        if len(data) > largest:
            raise LogTooLargeError(f"{str(file)!r} has more than {largest:,} bytes (bound 'member_bytes')")
        return data.removeprefix(b"\xef\xbb\xbf")


@dataclass(frozen=True)
class Line:
    """Line of a file that contains a JSON object."""

    number: int
    """Line number from 1."""
    value: dict[str, Any]


def lines_of(file: Path, reading: ReadContext) -> Iterator[Line]:
    """Yield the objects of a JSONL file. A line that is not an object is damage.

    Raises:
        EvidenceError: the file cannot be read or is too large.
    """
    offset = 0
    for number, line in enumerate(reading.data(file).split(b"\n"), 1):
        text = line.strip()
        if text:
            try:
                value = reading.value(text, file)
            except LogTooLargeError:
                raise
            except ValueError as error:
                reading.damaged(file, f"line {number}: not JSON: {_short(error)}", offset)
            else:
                if isinstance(value, dict):
                    yield Line(number, value)
                else:
                    shown = text[:40].decode("utf-8", "replace")
                    reading.damaged(file, f"line {number}: found {shown}, expected a JSON object", offset)
        offset += len(line) + 1


def values_of(file: Path, reading: ReadContext) -> list[Any]:
    """Return the lines of a JSONL file, or the single value of a JSON file.

    Raises:
        EvidenceError: the file cannot be read or is too large.
    """
    data = reading.data(file)
    start = data.lstrip()
    if not start:
        raise EvidenceError(f"{str(file)!r} is empty", code=Code.NOT_A_LOG)
    head, _, tail = start.partition(b"\n")
    if tail.strip() and start[:1] == b"{" and _is_object(head):
        return [line.value for line in lines_of(file, reading)]
    try:
        return [reading.value(data, file)]
    except LogTooLargeError:
        raise
    except ValueError as error:
        if start[:1] == b"{" and tail.strip():
            # The file is not one document. Try single lines, although some may be damaged.
            lines = [line.value for line in lines_of(file, reading)]
            if lines:
                return lines
            reading.damage.clear()
        offset = getattr(error, "pos", None)
        reading.damaged(file, f"not JSON: {_short(error)}", offset)
        return []


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _short(error: Exception) -> str:
    return str(error)[:200]
