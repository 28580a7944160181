"""The zip archive of an `.eval` log, also when it is damaged.

The standard library's `zipfile` reads neither zstd (before Python 3.14) nor several zstd frames in one member,
opens nothing at all without an intact directory, and unpacks whatever it is told to. Here each member is read on
its own, checked against its length and CRC, and a missing directory is rebuilt from the local headers.

Format: PKWARE APPNOTE 6.3.10, sections 4.3 (records) and 4.5.3 (zip64); method 93 is zstd.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import pairwise
from typing import cast

import zstandard
from zlib_ng import zlib_ng

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import DEFAULT_BOUNDS, Bounds, TooLargeError
from aigo_bridge.importing.damage import Damage

from .sources import Source
from .zip_records import (
    CENTRAL,
    CENTRAL_SIGN,
    DEFLATED,
    END,
    END64_SIGN,
    END_SIGN,
    FULL32,
    LOCAL,
    LOCAL_SIGN,
    LOCATOR64_SIGN,
    STORED,
    ZSTD,
    Member,
    member_name,
    zip64_values,
)
from .zip_salvage import walk_local_headers

# The stub of the package takes the class for an instance.
_INFLATE_ERROR = cast("type[Exception]", zlib_ng.error)
_SIZE_UNKNOWN = -1
"""What zstandard says of a frame that was written as a stream."""
_STEP = 16 << 20
_MOST_ENDS = 16
"""Records that may be the end of the directory; behind the real one, or in a comment, may be others."""


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
            self._add(_directory(source, bounds, self.damage))
        except TooLargeError:
            raise
        except EvidenceError as error:
            self.damage.append(Damage("", source.size, str(error)))
            self._add(walk_local_headers(source, bounds))
            if not self.members:
                raise EvidenceError(f"{source.name!r} is not an .eval log: {error}") from error
        self._suspicious = self._is_bomb()
        self._overlapping = self._overlaps() if self._suspicious else frozenset()

    def _add(self, members: Iterable[Member]) -> None:
        for member in members:
            # Re-inserting moves the name to where its last version was written.
            self.members.pop(member.name, None)
            self.members[member.name] = member

    def _is_bomb(self) -> bool:
        """Whether all members together unpack to so much that none is believed any more."""
        total = sum(member.size for member in self.members.values() if member.size > 0)
        return total > max(self._bounds.together_from, self._bounds.ratio * self._source.size)

    def _overlaps(self) -> frozenset[str]:
        """Names of members in whose data others begin: bytes that are unpacked many times."""
        members = sorted(self.members.values(), key=lambda member: member.offset)
        return frozenset(
            member.name
            for member, following in pairwise(members)
            if following.offset < member.offset + LOCAL.size + max(member.compressed, 0)
        )

    def recover(self) -> list[str]:
        """Look for members that the directory has lost, and give back their names.

        A wrong byte in a name of the directory is seen by nobody but those who miss the member; its own header still has
        the name.
        """
        local = {member.offset: member for member in walk_local_headers(self._source, self._bounds)}
        by_offset = {member.offset: member for member in self.members.values()}
        found = []
        for offset, member in local.items():
            known = self.members.get(member.name)
            if known is not None and known.offset in local and local[known.offset].name == member.name:
                continue
            listed = by_offset.get(offset)
            self._add([member if listed is None else listed._replace(name=member.name)])
            found.append(member.name)
        return found

    def read(self, name: str) -> bytes:
        """The unpacked bytes of a member, checked against length and CRC.

        Raises:
            EvidenceError: the member is absent, damaged, or larger than the bounds allow.
        """
        member = self.members.get(name)
        if member is None:
            raise EvidenceError(f"the archive has no member {name!r}")
        if member.compressed >= 0:
            self._bounds.check_member(name, member.size, member.compressed, any_size=self._suspicious)
        if name in self._overlapping:
            raise TooLargeError(f"member {name!r} has another one in its data: it looks like a zip bomb")
        packed = self._packed(member)
        data = self._unpack(name, member.method, packed, member.size)
        if member.crc is not None and zlib_ng.crc32(data) != member.crc:
            raise EvidenceError(f"member {name!r} is damaged: its CRC does not match")
        return data

    def _packed(self, member: Member) -> bytes:
        if member.compressed > self._source.size:
            raise EvidenceError(
                f"member {member.name!r} is damaged: the archive is shorter than its {member.compressed:,} bytes"
            )
        # Header and data at once: their distance is nearly always that of a header without extra fields.
        ahead = LOCAL.size + len(member.name)
        head = self._source.read_at(member.offset, ahead + max(member.compressed, 0))
        if len(head) < LOCAL.size or head[:4] != LOCAL_SIGN:
            raise EvidenceError(f"member {member.name!r} is damaged: no local header at byte {member.offset}")
        fields = LOCAL.unpack_from(head)
        if fields[2] & 1:
            raise EvidenceError(f"member {member.name!r} is encrypted")
        raw = head[LOCAL.size : LOCAL.size + fields[9]]
        if len(raw) < fields[9]:
            raw = self._source.read_at(member.offset + LOCAL.size, fields[9])
        if member_name(raw, fields[2]) != member.name:
            own = member_name(raw, fields[2])
            raise EvidenceError(f"the zip directory calls the member {member.name!r}, its own header {own!r}")
        behind = LOCAL.size + fields[9] + fields[10]
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
        except (_INFLATE_ERROR, zstandard.ZstdError) as error:
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
            return zlib_ng.decompressobj(-15).decompress(packed, limit + 1)
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
        while total <= limit and (part := reader.read(_STEP)):
            parts.append(part)
            total += len(part)
        return b"".join(parts)


def _directory(source: Source, bounds: Bounds, damage: list[Damage]) -> list[Member]:
    """The members that the directory lists; raises `EvidenceError` when it gives none."""
    tail_start = max(0, source.size - 65_557)
    tail = source.read_at(tail_start, source.size - tail_start)
    at = len(tail)
    problem: EvidenceError | None = None
    for _ in range(_MOST_ENDS):
        at = tail.rfind(END_SIGN, 0, at)
        if at < 0:
            break
        if at + END.size > len(tail):
            continue
        try:
            members, count = _listed(source, bounds, tail_start + at, END.unpack_from(tail, at))
        except TooLargeError:
            raise
        except EvidenceError as error:
            # Behind the end of the directory may be what looks like another one.
            problem = problem or error
            continue
        # Some count in sixteen bits, however many there are.
        if (len(members) - count) % 65_536:
            reason = f"the zip directory has {len(members):,} members, {count:,} are announced"
            damage.append(Damage("", tail_start + at, reason))
        return members
    raise problem or EvidenceError("the zip directory is missing")


def _listed(
    source: Source, bounds: Bounds, end_offset: int, fields: tuple[int, ...]
) -> tuple[list[Member], int]:
    """The members of the directory that ends at `end_offset`, and how many it says it has."""
    count, length, start = fields[4], fields[5], fields[6]
    directory_end = end_offset
    locator = source.read_at(end_offset - 20, 20) if end_offset >= 20 else b""
    if locator[:4] == LOCATOR64_SIGN:
        end64_offset = struct.unpack_from("<Q", locator, 8)[0]
        end64 = source.read_at(end64_offset, 56) if end64_offset < end_offset else b""
        if len(end64) < 56 or end64[:4] != END64_SIGN:
            raise EvidenceError("the zip64 directory is missing")
        count, length, start = struct.unpack_from("<Q", end64, 32)[0], *struct.unpack_from("<QQ", end64, 40)
        directory_end = end64_offset
    # Bytes in front of the archive shift every offset by the same amount.
    shift = directory_end - length - start
    if shift < 0:
        raise EvidenceError("the zip directory is damaged: it claims to start before the file")
    if length // CENTRAL.size > bounds.members:
        raise TooLargeError(
            f"the archive has {count:,} members or room for them, the bound 'members' is {bounds.members:,}"
        )
    directory = source.read_at(start + shift, length)
    if len(directory) < length:
        raise EvidenceError("the zip directory is cut off")
    members = _entries(directory, shift, source.size)
    if not members:
        raise EvidenceError("the zip directory is empty")
    if len(members) > bounds.members:
        raise TooLargeError(
            f"the archive has {len(members):,} members, the bound 'members' is {bounds.members:,}"
        )
    if not any(source.read_at(member.offset, 4) == LOCAL_SIGN for member in members[:_MOST_ENDS]):
        raise EvidenceError("the zip directory is damaged: no member is where it says")
    return members, count


def _entries(directory: bytes, shift: int, end: int) -> list[Member]:
    at = 0
    members = []
    while at < len(directory):
        if directory[at : at + 4] != CENTRAL_SIGN or at + CENTRAL.size > len(directory):
            raise EvidenceError("the zip directory is damaged")
        fields = CENTRAL.unpack_from(directory, at)
        flags, method, crc, compressed, size = fields[3], fields[4], fields[7], fields[8], fields[9]
        name_length, extra_length, comment_length, offset = fields[10], fields[11], fields[12], fields[16]
        name_at = at + CENTRAL.size
        raw_name = directory[name_at : name_at + name_length]
        extra = directory[name_at + name_length : name_at + name_length + extra_length]
        if FULL32 in (size, compressed, offset):
            size, compressed, offset = zip64_values(extra, size, compressed, offset)
        # Offsets of 64 bits may be more than a file can have.
        offset = min(offset + shift, end)
        members.append(Member(member_name(raw_name, flags), offset, compressed, size, method, crc))
        at = name_at + name_length + extra_length + comment_length
    return members
