"""The members of an archive by their local headers: where the directory is lost, or is wrong about them."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator

import zstandard

from aigo_bridge.importing.bounds import Bounds, TooLargeError

from .sources import Source
from .zip_records import (
    CENTRAL_SIGN,
    DEFLATED,
    DESCRIPTOR_SIGN,
    END64_SIGN,
    END_SIGN,
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
_LONGEST_DESCRIPTOR = 24
"""Bytes; those of small members have 16, or 12 without their sign."""
_RECORDS = frozenset({LOCAL_SIGN, CENTRAL_SIGN, END_SIGN, END64_SIGN})
_LONGEST_NAME = 1 << 12
"""Longer names (and extra fields) are not written by Inspect; in a search for headers they are noise."""


def walk_local_headers(
    source: Source, bounds: Bounds, begin: int = 0, end: int | None = None
) -> Iterator[Member]:
    """The members of a file, or a part of it, whatever its directory says: cut off while it was written, or overwritten since.

    Raises:
        TooLargeError: there are more than the bounds allow.
    """
    ahead = 0
    window = _Window(source)
    # What all members together may unpack to while their lengths are found: hostile headers overlap.
    budget = int(min(max(bounds.ratio_from, source.size * bounds.ratio), sys.maxsize))
    for count, at in enumerate(_places(window, begin, source.size if end is None else end)):
        if count > bounds.members:
            raise TooLargeError(f"the archive has more members than the bound 'members', {bounds.members:,}")
        if at < ahead:
            continue
        found = _local_member(window, at)
        if found is None:
            continue
        member, start = found
        if member.compressed >= 0 and _leads_on(window, start + member.compressed):
            yield member
            ahead = start + member.compressed
            continue
        # Where the length is wrong, or bytes are missing, headers further on count as well.
        ahead = start
        claims = member.compressed >= 0
        # A length beyond the file is that of a member that is cut off, more often than not.
        if claims and (member.method == STORED or start + member.compressed > source.size or budget < 0):
            yield member
            continue
        measured, produced = _measured(source, member, start, budget)
        budget -= produced
        if budget < 0:
            yield member if claims else measured
            if not claims:
                return
            continue
        yield measured
        if measured.compressed >= 0 and measured != member:
            ahead = start + measured.compressed


def member_at(source: Source, bounds: Bounds, offset: int) -> tuple[Member, int] | None:
    """The member whose local header is at `offset`, as that tells it, and where its data starts."""
    found = _local_member(_Window(source), offset)
    if found is None or found[0].compressed >= 0:
        return found
    member, start = found
    return _measured(source, member, start, bounds.ratio_from)[0], start


def own_name(source: Source, offset: int) -> str | None:
    """What the local header at `offset` calls its member; `None` when there is none."""
    found = _local_member(_Window(source), offset)
    return None if found is None else found[0].name


def _leads_on(window: _Window, at: int) -> bool:
    """Whether another record begins where a member should end, behind its data descriptor if it has one."""
    if at >= window.source.size:
        return at == window.source.size
    behind = window.at(at, _LONGEST_DESCRIPTOR + 4)
    return any(behind[skip : skip + 4] in _RECORDS for skip in (0, 12, 16, 20, _LONGEST_DESCRIPTOR))


def _measured(source: Source, member: Member, start: int, budget: int) -> tuple[Member, int]:
    """A member with the length that unpacking finds, and how much that produced.

    It is `member` itself where unpacking finds no end, or not what a header that knows better says: then reading it will say what
    is wrong. It is longer than the bounds allow, if the stream is a bomb.
    """
    length, produced = _stream_length(source, start, member.method, budget)
    if produced > budget:
        return member._replace(compressed=length or 0, size=produced), produced
    if length is None or (member.compressed >= 0 and produced != member.size):
        return member, produced
    crc = member.crc
    if crc is None and (descriptor := source.read_at(start + length, 8))[:4] == DESCRIPTOR_SIGN:
        crc = int.from_bytes(descriptor[4:], "little")
    return member._replace(compressed=length, size=produced, crc=crc), produced


class _Window:
    """A part of the file in memory that moves on: millions of headers are not read one by one."""

    def __init__(self, source: Source):
        self.source = source
        self.base = 0
        self.data = b""

    def move(self, base: int, length: int) -> None:
        self.base, self.data = base, self.source.read_at(base, length)

    def at(self, offset: int, length: int) -> bytes:
        begin = offset - self.base
        if begin >= 0 and begin + length <= len(self.data):
            return self.data[begin : begin + length]
        return self.source.read_at(offset, length)


def _places(window: _Window, begin: int, end: int) -> Iterator[int]:
    """Offsets of what may be local headers."""
    while end - begin >= len(LOCAL_SIGN):
        window.move(begin, min(_CHUNK, end - begin))
        at = window.data.find(LOCAL_SIGN)
        while at >= 0:
            yield window.base + at
            at = window.data.find(LOCAL_SIGN, at + len(LOCAL_SIGN))
        if len(window.data) < len(LOCAL_SIGN):
            return
        begin = window.base + len(window.data) - len(LOCAL_SIGN) + 1


def _local_member(window: _Window, at: int) -> tuple[Member, int] | None:
    """The member whose local header is at `at`, and where its data starts; `None` when it is no header of a log."""
    head = window.at(at, LOCAL.size)
    if len(head) < LOCAL.size:
        return None
    sign, _, flags, method, _, _, crc, compressed, size, name_length, extra_length = LOCAL.unpack(head)
    if (
        sign != LOCAL_SIGN
        or method not in (STORED, DEFLATED, ZSTD)
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
