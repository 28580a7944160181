"""Limits on the resources that a log, recording, bundle or other packed file may use.

These files are untrusted. The defaults accept every real log that we know (the largest single sample in
Inspect's issue tracker is about 4 GB) and stop a zip bomb before anything is unpacked.
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


class LogTooLargeError(EvidenceError):
    """Log that exceeds the limits; it is refused instead of salvaged."""

    def __init__(self, message: str):
        super().__init__(message, code=Code.LOG_TOO_LARGE)


@dataclass(frozen=True)
class Bounds:
    """Limits for one log; the caller can raise every field."""

    member_bytes: int = 8 << 30
    """Maximum uncompressed size of one member (or of a whole `.json` log), in bytes."""
    ratio: float = 200.0
    """Maximum ratio of uncompressed to compressed size above `ratio_from` bytes. Real logs reach 30."""
    ratio_from: int = 32 << 20
    """Uncompressed size in bytes below which members may have any ratio, if all members together are below
    `together_from`.
    """
    together_from: int = 128 << 20
    """Total unpacked bytes up to which any ratio is allowed. Above this, and above `ratio` times the
    archive size, each member is checked.
    """
    members: int = 2_000_000
    """Maximum entries of the archive's directory."""
    events: int = 5_000_000
    """Maximum events in one sample."""
    smallest: int = 64
    """Minimum average JSON bytes per event, message, score or attachment of a sample, if it has more than
    ten thousand of them.
    """
    density: float = 12.0
    """Maximum factor between the size of a document and its objects and lists in memory, for samples and
    other documents over 16 MiB. The densest real logs (with log probabilities) have about seven.
    """
    damaged: int = 10_000
    """Maximum unreadable parts before the rest of the log is skipped."""
    string_bytes: int = 256 << 20
    """Maximum length of a text, in bytes of JSON."""
    growth: float = 50.0
    """Maximum factor between a sample's size and its resolved attachments, above `growth_from`."""
    growth_from: int = 64 << 20
    """Characters of attachments that may be resolved in any sample."""
    context_growth: float = 1000.0
    """Maximum factor between a sample's size and the inputs of its model calls, above `growth_from`.
    Inputs grow with the square of the turns: a thousand calls may reach five hundred times the size.
    """
    context_messages: int = 10_000_000
    """Maximum messages in the inputs of all model calls of one sample; logs reference messages by number."""
    seconds: float = 24 * 3600.0
    """Maximum seconds of wall clock time for one log."""

    def changed(self, limits: Mapping[str, float]) -> Bounds:
        """Return these limits with some of them changed, by name; raise `UsageError` for unknown names."""
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
        """Check a member by its directory entry; raise `LogTooLargeError` if it exceeds the limits. With
        `any_size`, the ratio of small members is also checked, because all of them together are too large.
        """
        if size > self.member_bytes:
            raise LogTooLargeError(
                f"member {name!r} is {size:,} bytes unpacked, the limit is {self.member_bytes:,}"
                " (raise the bound 'member_bytes' if the log is yours)"
            )
        if (any_size or size > self.ratio_from) and size > self.ratio * max(compressed, 1):
            raise LogTooLargeError(
                f"member {name!r} looks like a zip bomb: {size:,} bytes unpacked from "
                f"{compressed:,}, more than {self.ratio:g} times (if you trust the log, raise "
                "the bound 'ratio')"
            )

    def most_unpacked(self, packed: int) -> int:
        """Return the maximum unpacked bytes of a file of `packed` bytes, or of all members of an archive."""
        return max(self.together_from, int(min(self.ratio * max(packed, 1), sys.maxsize)))

    def unpacked(self, stream: BinaryIO, packed: int, name: str) -> BinaryIO:
        """Return a stream of the unpacked content of a compressed file of `packed` bytes.

        Reading raises `LogTooLargeError` if the content is too large.
        """
        counted = _Counted(stream, self.most_unpacked(packed), name)
        return cast("BinaryIO", io.BufferedReader(counted, buffer_size=1 << 17))

    def check_count(self, what: str, count: int, size: int, where: str = "the sample") -> None:
        """Check the number of events or messages in a sample or log of `size` bytes (0: unknown); raise
        `LogTooLargeError` if there are too many, or if they are too small.
        """
        if count > self.events:
            raise LogTooLargeError(f"{where} has {count:,} {what}, the bound 'events' is {self.events:,}")
        if count > 10_000 and 0 < size < count * self.smallest:
            raise LogTooLargeError(
                f"{where} has {count:,} {what} in {size:,} bytes, which is impossible"
                " (lower the bound 'smallest' if the log is yours)"
            )

    def check_document(self, name: str, data: bytes) -> None:
        """Check a document before it is parsed; raise `LogTooLargeError` for a long text, or for a
        document of mostly brackets.

        An empty object has two bytes of JSON, but takes forty times as many in memory.
        """
        if len(data) > _LARGE and self._is_dense(data):
            raise LogTooLargeError(
                f"member {name!r} has {len(data):,} bytes that are almost only brackets"
                " (raise the bound 'density' if the log is yours)"
            )
        if _has_text_of(data, self.string_bytes + 1):
            raise LogTooLargeError(
                f"member {name!r} has a text of more than {self.string_bytes:,} bytes"
                " (raise the bound 'string_bytes' if the log is yours)"
            )

    def _is_dense(self, data: bytes) -> bool:
        most = self.density * len(data)
        # Brackets in texts cost no memory, but they are only separated if the document has many brackets.
        return _weight(data) > most and sum(map(_weight, _without_texts(data))) > most

    def room(self, size: int) -> int:
        """Return the maximum characters of resolved attachments in a sample of `size` bytes."""
        return self.growth_from + int(size * self.growth)

    def deadline(self) -> float:
        """Return the time on the monotonic clock at which a log that starts now has used up its time."""
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
            raise LogTooLargeError(
                f"{self._name!r} unpacks to more than {self._most:,} bytes: it looks like a zip bomb"
                " (if the file is yours, decompress it first)"
            )
        buffer[: len(part)] = part
        return len(part)


_LARGE = 16 << 20
_OBJECT, _LIST = 200, 88
"""Memory in bytes of an object and of a list with a single value."""
_WINDOW = 1 << 20
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BARE = rb'(?:[^"]++|' + _TEXT + rb")*+"


def _weight(data: bytes) -> int:
    return _OBJECT * data.count(b"{") + _LIST * data.count(b"[")


def _without_texts(data: bytes) -> Iterator[bytes]:
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
    """Return whether a document contains a text of at least `length` bytes, judged by its quotes.

    A text of that length leaves a window of its length without a quote, so only the last quote of each window
    is examined. A quote after a backslash is part of a text. After a thousand of them, the next quote counts
    as an end.
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
