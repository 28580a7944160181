"""The tail of a cassette that is being written: its last lines as they are, in a file beside it.

To pack each call by itself costs most of what recording costs. So the lines of calls go into the tail one by
one, each before its answer is used, and into the cassette as a whole when there are some hundred kilobytes.
Whoever kills the process leaves both: the tail says how many lines of which cassette stand in front of it, so
that no line counts twice, and none is lost, wherever the kill comes.
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
"""Behind the name of the cassette."""

_START = b' {"tail":'
_CHECKSUM = 8


def tail_of(path: Path) -> Path:
    """The file of a cassette's tail, which need not be there."""
    return path.with_name(path.name + SUFFIX)


@dataclass(frozen=True)
class Tail:
    """What stands in a tail."""

    path: Path
    cassette: str
    """Checksum of the first line of the cassette that it belongs to."""
    num_before: int
    """Lines of the cassette in front of its own."""
    lines: tuple[bytes, ...]
    """As they stand, each with its line feed; the last one may have been cut off."""


def read_tail(path: Path, batch: int, longest: int) -> Tail | None:
    """The tail of a cassette; `None`: there is none, or nothing in it.

    Args:
        path: the cassette.
        batch: bytes after which lines are packed: the line that reaches them is the last one.
        longest: bytes of the longest line; longer ones are cut off.
    """
    file = tail_of(path)
    try:
        with open_regular(file) as opened:
            content = opened.read(batch + longest)
    except (OSError, UsageError):
        return None
    # What is longer than a batch is a single line.
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
    """The tail of a cassette that is being written; its caller sees to it that one thread writes at a time.

    Args:
        path: the cassette.

    Raises:
        UsageError: something else stands in its place.
        OSError: it cannot be written.
    """

    def __init__(self, path: Path):
        self.path = tail_of(path)
        self.num_bytes = 0
        """Written since it was begun anew."""
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
        """Empty it: what stood in it stands in the cassette.

        Args:
            cassette: checksum of the cassette's first line.
            num_before: lines that the cassette has.

        Raises:
            OSError: it cannot be written.
        """
        os.ftruncate(self._file, 0)
        self.num_bytes = 0
        head = orjson.dumps({"tail": num_before, "of": cassette})
        self.put(b"%08x %s\n" % (zlib.crc32(head), head))

    def put(self, text: bytes) -> None:
        """Write at its end, all of it or nothing.

        Raises:
            OSError: it cannot be written.
        """
        self.num_bytes = written(self._file, text, self.num_bytes)

    def close(self, *, remove: bool) -> None:
        """Give it back; once.

        Args:
            remove: nothing stands in it that is not in the cassette.
        """
        os.close(self._file)
        if remove:
            with contextlib.suppress(OSError):
                self.path.unlink()


def _is_start(content: bytes) -> bool:
    """Whether a tail may begin like that, also one whose first line was cut off."""
    checksum, head = content[:_CHECKSUM], content[_CHECKSUM:]
    return all(byte in b"0123456789abcdef" for byte in checksum) and _START.startswith(head)


def written(file: int, data: bytes, size: int) -> int:
    """Write at the end of a file, all of it or nothing.

    Args:
        file: its descriptor.
        data: what is written.
        size: bytes that it has.

    Returns:
        Bytes that it has then.

    Raises:
        OSError: it cannot be written; it is as it was.
    """
    end = size
    try:
        while data:
            count = os.write(file, data)
            end += count
            data = data[count:]
    except OSError:
        # What is there of the last line would be in the way of nobody, but it is none.
        with contextlib.suppress(OSError):
            os.ftruncate(file, size)
        raise
    return end
