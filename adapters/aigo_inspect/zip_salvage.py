"""The members of an archive by their local headers: where the directory is lost, or does not have them all."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import zstandard

from aigo_bridge.importing.bounds import Bounds, TooLargeError

from .sources import Source
from .zip_records import (
    DEFLATED,
    FULL32,
    LOCAL,
    LOCAL_SIGN,
    STORED,
    ZSTD,
    Member,
    member_name,
    zip64_values,
)

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 20
_LONGEST_NAME = 1 << 12
"""Longer names (and extra fields) are not written by Inspect; in a search for headers they are noise."""


def walk_local_headers(source: Source, bounds: Bounds) -> Iterator[Member]:
    """The members of a file, whatever its directory says: cut off while it was written, or overwritten since.

    Raises:
        TooLargeError: there are more than the bounds allow.
    """
    end = 0
    window = _Window(source)
    # What all members together may unpack to while their lengths are found: hostile headers overlap.
    budget = int(max(bounds.ratio_from, source.size * bounds.ratio))
    for count, at in enumerate(_places(window)):
        if count > bounds.members:
            raise TooLargeError(f"the archive has more members than the bound 'members', {bounds.members:,}")
        if at < end:
            continue
        found = _local_member(window, at)
        if found is None:
            continue
        member, start = found
        if member.compressed >= 0:
            yield member
            # A length beyond the file is wrong, or the file is cut off: then nothing is behind it.
            end = start + member.compressed if start + member.compressed <= source.size else start
            continue
        length, produced = _stream_length(source, start, member.method, budget)
        if produced > budget:
            yield member._replace(compressed=length or 0, size=produced)
            return
        budget -= produced
        # Without a length it is left for the reading, which says what is wrong with it.
        yield member if length is None else member._replace(compressed=length, size=produced)
        end = start + (length or 0)


class _Window:
    """A part of the file in memory that moves on: millions of headers are not read one by one."""

    def __init__(self, source: Source):
        self.source = source
        self.base = 0
        self.data = b""

    def move(self, base: int) -> None:
        self.base, self.data = base, self.source.read_at(base, _CHUNK)

    def at(self, offset: int, length: int) -> bytes:
        begin = offset - self.base
        if begin >= 0 and begin + length <= len(self.data):
            return self.data[begin : begin + length]
        return self.source.read_at(offset, length)


def _places(window: _Window) -> Iterator[int]:
    """Offsets of what may be local headers."""
    window.move(0)
    while window.data:
        at = window.data.find(LOCAL_SIGN)
        while at >= 0:
            yield window.base + at
            at = window.data.find(LOCAL_SIGN, at + len(LOCAL_SIGN))
        if len(window.data) < _CHUNK:
            return
        window.move(window.base + len(window.data) - len(LOCAL_SIGN) + 1)


def _local_member(window: _Window, at: int) -> tuple[Member, int] | None:
    """The member whose local header is at `at`, and where its data starts; `None` when it is no header of a log."""
    head = window.at(at, LOCAL.size)
    if len(head) < LOCAL.size:
        return None
    _, _, flags, method, _, _, crc, compressed, size, name_length, extra_length = LOCAL.unpack(head)
    if (
        method not in (STORED, DEFLATED, ZSTD)
        or not 0 < name_length <= _LONGEST_NAME
        or extra_length > _LONGEST_NAME
    ):
        return None
    rest = window.at(at + LOCAL.size, name_length + extra_length)
    if len(rest) < name_length + extra_length:
        return None
    name = member_name(rest[:name_length], flags)
    if FULL32 in (size, compressed):
        size, compressed, _ = zip64_values(rest[name_length:], size, compressed)
    start = at + LOCAL.size + len(rest)
    if compressed or not (flags & 8 or size == 0):
        return Member(name, at, compressed, size, method, crc), start
    return Member(name, at, -1, -1, method, None), start


def _stream_length(source: Source, start: int, method: int, budget: int) -> tuple[int | None, int]:
    """Compressed length of a stream whose header does not tell, by unpacking it, and how much that produced.

    The length is `None` if the stream does not end or is damaged. It is that of what was unpacked, which is then more
    than `budget` bytes, if the stream is a bomb.
    """
    at = start
    produced = 0
    while True:
        unpacker = (
            zlib.decompressobj(-15) if method == DEFLATED else zstandard.ZstdDecompressor().decompressobj()
        )
        # Small steps: a step unpacks to at most about 30 MB, even in a bomb.
        step = 1 << 15 if method == DEFLATED else 1 << 10
        while not unpacker.eof:
            chunk = source.read_at(at, step)
            if not chunk or method == STORED:
                return None, produced
            try:
                produced += len(unpacker.decompress(chunk))
            except (zlib.error, zstandard.ZstdError):
                return None, produced
            at += len(chunk) - len(unpacker.unused_data)
            if produced > budget:
                return at - start, produced
        if method != ZSTD or source.read_at(at, 4) != _ZSTD_MAGIC:
            return at - start, produced
