"""The zip archive of an `.eval` log, also when it is damaged.

The standard library's `zipfile` reads neither zstd (before Python 3.14) nor several zstd frames in one member,
opens nothing at all without an intact directory, and unpacks whatever it is told to. Here each member is read on
its own, checked against its length and CRC, and a missing directory is rebuilt from the local headers.

Format: PKWARE APPNOTE 6.3.10, sections 4.3 (records) and 4.5.3 (zip64); method 93 is zstd.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import zstandard

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import DEFAULT_BOUNDS, Bounds, TooLargeError
from aigo_bridge.importing.damage import Damage

from .sources import Source

STORED, DEFLATED, ZSTD = 0, 8, 93
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_LOCAL_SIGN, _CENTRAL_SIGN, _END_SIGN = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64_SIGN, _LOCATOR64_SIGN = b"PK\x06\x06", b"PK\x06\x07"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SIZE_UNKNOWN = -1
"""What zstandard says of a frame that was written as a stream."""
_FULL32 = 0xFFFFFFFF
_CHUNK = 1 << 20
_LONGEST_NAME = 1 << 12
"""Longer names (and extra fields) are not written by Inspect; in a search for headers they are noise."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file in the archive."""

    name: str
    offset: int
    """Byte offset of its local header."""
    compressed: int
    """Length in the archive, in bytes; -1 when only unpacking can tell."""
    size: int
    """Length unpacked, in bytes; -1 when only unpacking can tell."""
    method: int
    crc: int | None
    """CRC-32 of the unpacked bytes; `None` when it is unknown."""


class Archive:
    """The members of a zip file, by name; the last of several equal names counts, as Inspect appends."""

    def __init__(self, source: Source, bounds: Bounds = DEFAULT_BOUNDS):
        self._source = source
        self._bounds = bounds
        # One for all members: making it takes as long as unpacking a small member.
        self._zstd = zstandard.ZstdDecompressor()
        self.damage: list[Damage] = []
        """What is wrong with the archive as a whole."""
        self.members: dict[str, Member] = {}
        try:
            members = list(_directory(source, bounds))
        except TooLargeError:
            raise
        except EvidenceError as error:
            self.damage.append(Damage("", source.size, str(error)))
            members = list(_walk_local_headers(source, bounds))
            if not members:
                raise EvidenceError(f"{source.name!r} is not an .eval log: {error}") from error
        for member in members:
            # Re-inserting moves the name to where its last version was written.
            self.members.pop(member.name, None)
            self.members[member.name] = member

    def read(self, name: str) -> bytes:
        """The unpacked bytes of a member, checked against length and CRC.

        Raises:
            EvidenceError: the member is absent, damaged, or larger than the bounds allow.
        """
        member = self.members.get(name)
        if member is None:
            raise EvidenceError(f"the archive has no member {name!r}")
        if member.compressed >= 0:
            self._bounds.check_member(name, member.size, member.compressed)
        packed = self._packed(member)
        data = self._unpack(name, member.method, packed, member.size)
        if member.crc is not None and zlib.crc32(data) != member.crc:
            raise EvidenceError(f"member {name!r} is damaged: its CRC does not match")
        return data

    def _packed(self, member: Member) -> bytes:
        # Header and data at once: their distance is nearly always that of a header without extra fields.
        ahead = _LOCAL.size + len(member.name)
        head = self._source.read_at(member.offset, ahead + max(member.compressed, 0))
        if len(head) < _LOCAL.size or head[:4] != _LOCAL_SIGN:
            raise EvidenceError(f"member {member.name!r} is damaged: no local header at byte {member.offset}")
        fields = _LOCAL.unpack_from(head)
        if fields[2] & 1:
            raise EvidenceError(f"member {member.name!r} is encrypted")
        behind = _LOCAL.size + fields[9] + fields[10]
        start = member.offset + behind
        length = member.compressed if member.compressed >= 0 else self._source.size - start
        if len(head) == behind + length:
            return head[behind:]
        packed = self._source.read_at(start, length)
        if len(packed) < length:
            raise EvidenceError(
                f"member {member.name!r} is cut off: {len(packed):,} of {length:,} bytes are there"
            )
        return packed

    def _unpack(self, name: str, method: int, packed: bytes, size: int) -> bytes:
        limit = size if size >= 0 else self._bounds.ratio_from
        try:
            data = self._decompress(name, method, packed, limit)
        except (zlib.error, zstandard.ZstdError) as error:
            raise EvidenceError(f"member {name!r} is damaged: {error}") from error
        if len(data) > limit:
            raise EvidenceError(f"member {name!r} unpacks to more than the {limit:,} bytes it should have")
        if 0 <= size != len(data):
            raise EvidenceError(f"member {name!r} is damaged: {len(data):,} of {size:,} bytes unpacked")
        return data

    def _decompress(self, name: str, method: int, packed: bytes, limit: int) -> bytes:
        if method == ZSTD:
            return self._decompress_zstd(packed, limit)
        if method == DEFLATED:
            return zlib.decompressobj(-15).decompress(packed, limit + 1)
        if method == STORED:
            return packed
        raise EvidenceError(
            f"member {name!r} uses compression method {method}, expected stored, deflate or zstd"
        )

    def _decompress_zstd(self, packed: bytes, limit: int) -> bytes:
        try:
            if zstandard.frame_content_size(packed) in (limit, _SIZE_UNKNOWN):
                # Nearly always: one frame, which is unpacked in one go, into memory of just its size.
                data = self._zstd.decompress(packed, max_output_size=limit, allow_extra_data=False)
                if len(data) == limit:
                    return data
        except zstandard.ZstdError:
            # Damaged frames are damaged for the stream as well, which also knows how to end early.
            pass
        # Members above 200 MiB are several frames.
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        if limit <= 256 << 20:
            return reader.read(limit + 1)
        parts: list[bytes] = []
        total = 0
        while total <= limit and (part := reader.read(16 * _CHUNK)):
            parts.append(part)
            total += len(part)
        return b"".join(parts)


def _directory(source: Source, bounds: Bounds) -> Iterator[Member]:
    tail_start = max(0, source.size - 65_557)
    tail = source.read_at(tail_start, source.size - tail_start)
    at = tail.rfind(_END_SIGN)
    if at < 0 or at + _END.size > len(tail):
        raise EvidenceError("the zip directory is missing")
    end_offset = tail_start + at
    fields = _END.unpack_from(tail, at)
    count, length, start = fields[4], fields[5], fields[6]
    directory_end = end_offset
    locator = source.read_at(end_offset - 20, 20) if end_offset >= 20 else b""
    if locator[:4] == _LOCATOR64_SIGN:
        end64_offset = struct.unpack_from("<Q", locator, 8)[0]
        end64 = source.read_at(end64_offset, 56)
        if len(end64) < 56 or end64[:4] != _END64_SIGN:
            raise EvidenceError("the zip64 directory is missing")
        count, length, start = struct.unpack_from("<Q", end64, 32)[0], *struct.unpack_from("<QQ", end64, 40)
        directory_end = end64_offset
    if count > bounds.members:
        raise TooLargeError(f"the archive has {count:,} members, the bound 'members' is {bounds.members:,}")
    # Bytes in front of the archive shift every offset by the same amount.
    shift = directory_end - length - start
    if shift < 0:
        raise EvidenceError("the zip directory is damaged: it claims to start before the file")
    directory = source.read_at(start + shift, length)
    if len(directory) < length:
        raise EvidenceError("the zip directory is cut off")
    yield from _entries(directory, shift)


def _entries(directory: bytes, shift: int) -> Iterator[Member]:
    at = 0
    while at < len(directory):
        if directory[at : at + 4] != _CENTRAL_SIGN or at + _CENTRAL.size > len(directory):
            raise EvidenceError("the zip directory is damaged")
        fields = _CENTRAL.unpack_from(directory, at)
        flags, method, crc, compressed, size = fields[3], fields[4], fields[7], fields[8], fields[9]
        name_length, extra_length, comment_length, offset = fields[10], fields[11], fields[12], fields[16]
        name_at = at + _CENTRAL.size
        raw_name = directory[name_at : name_at + name_length]
        extra = directory[name_at + name_length : name_at + name_length + extra_length]
        if _FULL32 in (size, compressed, offset):
            size, compressed, offset = _zip64(extra, size, compressed, offset)
        yield Member(_name(raw_name, flags), offset + shift, compressed, size, method, crc)
        at = name_at + name_length + extra_length + comment_length


def _name(raw: bytes, flags: int) -> str:
    return raw.decode("utf-8", errors="replace") if flags & 0x800 else raw.decode("cp437")


def _zip64(extra: bytes, *values: int) -> tuple[int, int, int]:
    """Fill the values that are 0xFFFFFFFF from the zip64 extra field, in their fixed order."""
    found = list(values)
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            numbers = [int(n) for n in struct.unpack_from(f"<{length // 8}Q", extra, at + 4)]
            for position, value in enumerate(found):
                if value == _FULL32 and numbers:
                    found[position] = numbers.pop(0)
        at += 4 + length
    found += [0] * (3 - len(found))
    return found[0], found[1], found[2]


def _walk_local_headers(source: Source, bounds: Bounds) -> Iterator[Member]:
    """The members of a file whose directory is lost: cut off while writing, or overwritten."""
    end = 0
    # What all members together may unpack to while their lengths are found: hostile headers overlap.
    budget = int(max(bounds.ratio_from, source.size * bounds.ratio))
    for count, at in enumerate(_places(source, _LOCAL_SIGN)):
        if count > bounds.members:
            raise TooLargeError(f"the archive has more members than the bound 'members', {bounds.members:,}")
        if at < end:
            continue
        found = _local_member(source, at)
        if found is None:
            continue
        member, start = found
        if member.compressed >= 0:
            yield member
            end = start + member.compressed
            continue
        length, produced = _stream_length(source, start, member.method, budget)
        if produced > budget:
            yield replace(member, compressed=length or 0, size=produced)
            return
        budget -= produced
        # Without a length it is left for `read`, which says what is wrong with it.
        yield member if length is None else replace(member, compressed=length, size=produced)
        end = start + (length or 0)


def _local_member(source: Source, at: int) -> tuple[Member, int] | None:
    """The member whose local header is at `at`, and where its data starts; `None` when it is no header of a log."""
    head = source.read_at(at, _LOCAL.size)
    if len(head) < _LOCAL.size:
        return None
    fields = _LOCAL.unpack(head)
    flags, method, crc, compressed, size = fields[2], fields[3], fields[6], fields[7], fields[8]
    if (
        method not in (STORED, DEFLATED, ZSTD)
        or not 0 < fields[9] <= _LONGEST_NAME
        or fields[10] > _LONGEST_NAME
    ):
        return None
    rest = source.read_at(at + _LOCAL.size, fields[9] + fields[10])
    if len(rest) < fields[9] + fields[10]:
        return None
    name = _name(rest[: fields[9]], flags)
    if _FULL32 in (size, compressed):
        size, compressed, _ = _zip64(rest[fields[9] :], size, compressed)
    start = at + _LOCAL.size + len(rest)
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


def _places(source: Source, needle: bytes) -> Iterator[int]:
    """Offsets of `needle` in the file; every byte is read once."""
    base = 0
    carried = b""
    while chunk := source.read_at(base + len(carried), _CHUNK):
        data = carried + chunk
        at = data.find(needle)
        while at >= 0:
            yield base + at
            at = data.find(needle, at + len(needle))
        carried = data[-(len(needle) - 1) :]
        base += len(data) - len(carried)
