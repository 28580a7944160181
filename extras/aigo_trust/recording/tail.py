"""Tail of a cassette during writing: a second file with its last, uncompressed lines.

Packing each call separately would take most of the recording time. Each call is therefore first appended to
the tail, before its answer is used. After some hundred kilobytes, all tail lines are packed into the cassette
together. The tail names its cassette and the number of lines before it. If the process is killed at any
moment, no line is lost and no line counts twice.
"""

from __future__ import annotations

import contextlib
import io
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import orjson

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process.locks import CLOSED_IN_CHILDREN, NO_LINK

SUFFIX = ".tail"
"""Suffix after the name of the cassette."""

_START = b' {"tail":'
_CHECKSUM = 8


def tail_of(path: Path) -> Path:
    """Return the path of a cassette's tail, which may not exist."""
    return path.with_name(path.name + SUFFIX)


@dataclass(frozen=True)
class Tail:
    """Content of a tail."""

    path: Path
    cassette: str
    """Checksum of the first line of the cassette."""
    num_before: int
    """Number of cassette lines before the tail."""
    lines: tuple[bytes, ...]
    """Raw lines, each with its line feed. The last one may be truncated."""


def read_tail(path: Path, batch: int, longest: int) -> Tail | None:
    """Return the tail of a cassette; `None` if it is missing or empty.

    Args:
        path: path of the cassette.
        batch: number of bytes after which lines are packed. The tail ends with the line that reaches it.
        longest: maximum number of bytes in a line. Longer lines are truncated.
    """
    file = tail_of(path)
    try:
        with open_regular(file) as opened:
            content = opened.read(batch + longest)
    except (OSError, UsageError):
        return None
    # Content larger than a batch is a single line.
    if (end := content.find(b"\n", batch)) >= 0:
        content = content[: end + 1]
    first, *lines = io.BytesIO(content).readlines() or [b""]
    try:
        head = orjson.loads(first[_CHECKSUM:])
        if int(first[:_CHECKSUM], 16) != zlib.crc32(first[_CHECKSUM + 1 : -1]):
            return None
        return Tail(file, str(head["of"]), int(head["tail"]), tuple(lines))
    except (ValueError, KeyError, TypeError):
        return None


class TailWriter:
    """Writer of the tail of a cassette. Only one thread may write at a time.

    Args:
        path: path of the cassette.

    Raises:
        UsageError: another kind of file already has this name.
        OSError: the tail cannot be written.
    """

    def __init__(self, path: Path):
        self.path = tail_of(path)
        self.num_bytes = 0
        """Number of bytes written since the tail was last emptied."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | CLOSED_IN_CHILDREN | NO_LINK
        self._file = os.open(self.path, flags, 0o600)
        start = os.read(self._file, _CHECKSUM + len(_START))
        if not _is_start(start):
            os.close(self._file)
            raise UsageError(
                f"--record: {str(self.path)!r} already exists and is not a cassette; name "
                "another file, or remove it",
                code=Code.ALREADY_THERE,
            )

    def begin(self, cassette: str, num_before: int) -> None:
        """Empty the tail after its lines were packed into the cassette.

        Args:
            cassette: checksum of the cassette's first line.
            num_before: number of lines in the cassette.

        Raises:
            OSError: the tail cannot be written.
        """
        os.ftruncate(self._file, 0)
        self.num_bytes = 0
        head = orjson.dumps({"tail": num_before, "of": cassette})
        self.put(b"%08x %s\n" % (zlib.crc32(head), head))

    def put(self, text: bytes) -> None:
        """Append bytes completely or not at all.

        Raises:
            OSError: the tail cannot be written.
        """
        self.num_bytes = written(self._file, text, self.num_bytes)

    def close(self, *, remove: bool) -> None:
        """Close the tail. Further calls do nothing.

        Args:
            remove: whether to delete the file, because the cassette contains all lines.
        """
        os.close(self._file)
        if remove:
            with contextlib.suppress(OSError):
                self.path.unlink()


def _is_start(content: bytes) -> bool:
    """Return whether a file may be a tail. A truncated first line is accepted."""
    checksum, head = content[:_CHECKSUM], content[_CHECKSUM:]
    return all(byte in b"0123456789abcdef" for byte in checksum) and _START.startswith(head)


def written(file: int, data: bytes, size: int) -> int:
    """Append bytes to a file completely or not at all.

    Args:
        file: file descriptor.
        data: bytes to write.
        size: current size of the file in bytes.

    Returns:
        New size of the file in bytes.

    Raises:
        OSError: the bytes cannot be written; the file is unchanged.
    """
    end = size
    try:
        while data:
            count = os.write(file, data)
            end += count
            data = data[count:]
    except OSError:
        # A partial last line would be harmless, but it would not be a valid line.
        with contextlib.suppress(OSError):
            os.ftruncate(file, size)
        raise
    return end
