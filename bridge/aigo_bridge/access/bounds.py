"""How much a log, recording, bundle or other packed file may ask of the machine before it is refused.

They come from strangers. The defaults let every real log through that we know of (the largest single sample
reported to Inspect's tracker is about 4 GB) and stop a zip bomb before anything is unpacked.
"""

from __future__ import annotations

import io
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, BinaryIO, cast

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError


class TooLargeError(EvidenceError):
    """A log asks for more than the bounds allow; it is refused rather than salvaged."""

    def __init__(self, message: str):
        super().__init__(message, code=Code.LOG_TOO_LARGE)


@dataclass(frozen=True)
class Bounds:
    """Limits on one log; every field can be raised by the caller."""

    member_bytes: int = 8 << 30
    """Largest uncompressed size of one member (or of a whole `.json` log), in bytes."""
    ratio: float = 200.0
    """Largest uncompressed/compressed ratio of a member above `ratio_from` bytes. Real logs reach about
    30."""
    ratio_from: int = 32 << 20
    """Members smaller than this (uncompressed bytes) may have any ratio, as long as all together are below
    `together_from`."""
    together_from: int = 128 << 20
    """Bytes that all members may unpack to, whatever their ratio; beyond, and beyond `ratio` times the
    archive, each is judged."""
    members: int = 2_000_000
    """Most entries of the archive's directory."""
    events: int = 5_000_000
    """Most events in one sample."""
    smallest: int = 64
    """Bytes of JSON that the events, messages, scores and attachments of a sample have on average at least,
    where there are more than ten thousand."""
    density: float = 12.0
    """Most times its own size that the objects and lists of a sample, or of another document, may come to in
    memory, where it is larger than 16 MiB. The densest real logs, those with log probabilities, have about
    seven."""
    damaged: int = 10_000
    """Parts that may be unreadable before the rest of the log is not read any more."""
    string_bytes: int = 256 << 20
    """Longest text, in bytes of JSON."""
    growth: float = 50.0
    """Most times its own size that a sample's attachments may come to when they are put back, beyond
    `growth_from`."""
    growth_from: int = 64 << 20
    """Characters that may be put back into any sample."""
    context_growth: float = 1000.0
    """Most times its own size that the inputs of a sample's model calls may come to, beyond `growth_from`.
    They grow with the square of the turns: a thousand calls may come to five hundred times the size."""
    context_messages: int = 10_000_000
    """Most messages in the inputs of all model calls of one sample together; a log names them by number."""
    seconds: float = 24 * 3600.0
    """Longest time for one log, in seconds of wall clock."""

    def changed(self, limits: Mapping[str, float]) -> Bounds:
        """These bounds with some of them set anew, by name; raises `UsageError` for names that are none."""
        known = {field.name: type(getattr(self, field.name)) for field in fields(self)}
        for name, value in limits.items():
            if name not in known:
                raise UsageError(
                    f"found bound {name!r}, expected one of {', '.join(known)}", code=Code.UNKNOWN_CHOICE
                )
            if not value >= 0 or (known[name] is int and math.isinf(value)):
                raise UsageError(
                    f"found {value!r} for the bound {name!r}, expected a number from 0",
                    code=Code.WRONG_OPTION,
                )
        return replace(self, **{name: known[name](value) for name, value in limits.items()})

    def check_member(self, name: str, size: int, compressed: int, *, any_size: bool = False) -> None:
        """Refuse a member by what its directory entry claims; raises `TooLargeError`.

        Args:
            name: of the member.
            size: its length in bytes when it is unpacked.
            compressed: its length in the archive, in bytes.
            any_size: the ratio matters for members of any size, as all of them together are too large.
        """
        if size > self.member_bytes:
            raise TooLargeError(
                f"member {name!r} is {size:,} bytes unpacked, the limit is {self.member_bytes:,}"
                " (raise the bound 'member_bytes' if the log is yours)"
            )
        if (any_size or size > self.ratio_from) and size > self.ratio * max(compressed, 1):
            raise TooLargeError(
                f"member {name!r} looks like a zip bomb: {size:,} bytes unpacked from "
                f"{compressed:,}, more than {self.ratio:g} times (if you trust the log, raise "
                "the bound 'ratio')"
            )

    def most_unpacked(self, packed: int) -> int:
        """Return the bytes that a compressed file, or all members of an archive, may unpack to.

        Args:
            packed: size of the file in bytes.
        """
        return max(self.together_from, int(min(self.ratio * max(packed, 1), sys.maxsize)))

    def unpacked(self, stream: BinaryIO, packed: int, name: str) -> BinaryIO:
        """Return what a compressed file of `packed` bytes contains, as long as that is in proportion.

        Reading from it raises `TooLargeError`.
        """
        counted = _Counted(stream, self.most_unpacked(packed), name)
        return cast("BinaryIO", io.BufferedReader(counted, buffer_size=1 << 17))

    def check_count(self, what: str, count: int, size: int, where: str = "the sample") -> None:
        """Refuse a sample, or log, of `size` bytes (0: unknown) with too many, and too small, events or
        messages.
        """
        if count > self.events:
            raise TooLargeError(f"{where} has {count:,} {what}, the bound 'events' is {self.events:,}")
        if count > 10_000 and 0 < size < count * self.smallest:
            raise TooLargeError(
                f"{where} has {count:,} {what} in {size:,} bytes, which none can be"
                " (lower the bound 'smallest' if the log is yours)"
            )

    def check_document(self, name: str, data: bytes) -> None:
        """Refuse a document before it is parsed: a text that is too long, or next to nothing but brackets.

        An empty object is two bytes of JSON and forty times as many in memory. Raises `TooLargeError`.
        """
        if len(data) > _LARGE and self._is_dense(data):
            raise TooLargeError(
                f"member {name!r} has {len(data):,} bytes of hardly anything but brackets"
                " (raise the bound 'density' if the log is yours)"
            )
        if _has_text_of(data, self.string_bytes + 1):
            raise TooLargeError(
                f"member {name!r} has a text of more than {self.string_bytes:,} bytes"
                " (raise the bound 'string_bytes' if the log is yours)"
            )

    def _is_dense(self, data: bytes) -> bool:
        most = self.density * len(data)
        # Brackets in texts cost nothing, but only where there are many is it worth looking which of them are.
        return _weight(data) > most and sum(map(_weight, _without_texts(data))) > most

    def room(self, size: int) -> int:
        """Characters that the attachments of a sample of `size` bytes may come to."""
        return self.growth_from + int(size * self.growth)

    def deadline(self) -> float:
        """The moment on the monotonic clock at which a log that starts now has used up its time."""
        return time.monotonic() + self.seconds


class _Counted(io.RawIOBase):
    def __init__(self, stream: BinaryIO, most: int, name: str):
        self._stream, self._most, self._name = stream, most, name
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        part = self._stream.read(len(buffer))
        self._read += len(part)
        if self._read > self._most:
            raise TooLargeError(
                f"{self._name!r} unpacks to more than {self._most:,} bytes: it looks like a zip bomb"
                " (if the file is yours, decompress it first)"
            )
        buffer[: len(part)] = part
        return len(part)


_LARGE = 16 << 20
_OBJECT, _LIST = 200, 88
"""Bytes that an object and a list with a single value take in memory."""
_WINDOW = 1 << 20
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BARE = rb'(?:[^"]++|' + _TEXT + rb")*+"


def _weight(data: bytes) -> int:
    return _OBJECT * data.count(b"{") + _LIST * data.count(b"[")


def _without_texts(data: bytes) -> Iterator[bytes]:
    """A document without its texts, in pieces."""
    text, bare = re.compile(_TEXT, re.DOTALL), re.compile(_BARE, re.DOTALL)
    at = 0
    while at < len(data):
        match = bare.match(data, at, at + _WINDOW)
        if match is not None and match.end() > at:
            yield text.sub(b"", match[0])
            at = match.end()
        elif (match := text.match(data, at)) is not None:
            at = match.end()
        else:
            return


_MOST_QUOTES = 1_000


def _has_text_of(data: bytes, length: int) -> bool:
    """Whether there is a text of at least `length` bytes, as its quotes tell.

    A text that long leaves a window of its length without a quote, so only the last quote of each window is
    looked for. One behind a backslash is part of a text; after a thousand of them in a row the next is taken
    for an end all the same.
    """
    at = 0
    while at + length <= len(data):
        end = data.rfind(b'"', at, at + length)
        for _ in range(_MOST_QUOTES):
            if end <= 0 or data[end - 1] != _BACKSLASH:
                break
            end = data.rfind(b'"', at, end)
        if end < 0:
            return True
        at = end + 1
    return False


_BACKSLASH = ord("\\")

DEFAULT_BOUNDS = Bounds()
