"""The directory of a zip archive, and whether it can be all that there is.

Format: PKWARE APPNOTE 6.3.10, sections 4.3 (records) and 4.5.3 (zip64).
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import Bounds, TooLargeError
from aigo_bridge.importing.damage import Damage

from .sources import Source
from .zip_records import (
    CENTRAL,
    CENTRAL_SIGN,
    END,
    END64_SIGN,
    END_SIGN,
    FULL32,
    LOCAL,
    LOCAL_SIGN,
    LOCATOR64_SIGN,
    Member,
    is_plausible,
    is_written,
    member_name,
    zip64_values,
)
from .zip_salvage import own_name, walk_local_headers

_MOST_ENDS = 16
"""Records that may be the end of the directory; behind the real one, or in a comment, may be others."""
_NO_MEMBER = 64
"""Bytes between two members that are no third one, but the end of the first, or its longer header."""


@dataclass(frozen=True, slots=True)
class Directory:
    """What the directory of an archive lists."""

    members: list[Member]
    """In its own order, repeated names included."""
    begin: int
    """Byte offset of the archive: what stands in front of it is no part of it."""
    end: int
    """Byte offset of the directory, where the last member has ended."""
    damage: Damage | None
    """It has not as many members as it says."""


def read_directory(source: Source, bounds: Bounds) -> Directory:
    """The directory of an archive; raises `EvidenceError` when it gives no members."""
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
            return _listed(source, bounds, tail_start + at, END.unpack_from(tail, at))
        except TooLargeError:
            raise
        except EvidenceError as error:
            # Behind the end of the directory may be what looks like another one.
            problem = problem or error
    raise problem or EvidenceError("the zip directory is missing")


def _listed(source: Source, bounds: Bounds, end_offset: int, fields: tuple[int, ...]) -> Directory:
    """The directory that ends at `end_offset`."""
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
    damage = None
    # Some count in sixteen bits, however many there are.
    if (len(members) - count) % 65_536:
        reason = f"the zip directory has {len(members):,} members, {count:,} are announced"
        damage = Damage("", end_offset, reason)
    return Directory(members, shift, start + shift, damage)


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


def may_have_lost(source: Source, directory: Directory, bounds: Bounds) -> bool:
    """Whether there may be members that the directory does not have, or calls by other names.

    Members are asked for their own names only where nobody writes the name, it is there twice, or is part of a sequence that
    has no begin; the file is looked at only where the directory leaves room for another member.
    """
    if directory.damage is not None:
        return True
    names = {member.name for member in directory.members}
    twice: set[str] = set()
    if len(names) < len(directory.members):
        twice = {name for name, n in Counter(member.name for member in directory.members).items() if n > 1}
    for member in directory.members:
        if member.name in twice or not is_plausible(member.name, names):
            own = own_name(source, member.offset)
            if own != member.name and (own is None or is_written(own)):
                return True
    at = directory.begin
    for member in sorted(directory.members, key=_offset):
        if member.offset - at > _NO_MEMBER and _lost(source, bounds, at, member.offset, names):
            return True
        raw_name = member.name if member.name.isascii() else member.name.encode()
        at = member.offset + LOCAL.size + len(raw_name) + member.compressed
    return directory.end - at > _NO_MEMBER and _lost(source, bounds, at, directory.end, names)


def _offset(member: Member) -> int:
    return member.offset


def _lost(source: Source, bounds: Bounds, begin: int, end: int, names: set[str]) -> bool:
    """Whether there is a member in a gap. Inspect leaves a header there that it has written anew."""
    return any(
        is_written(member.name) and member.name not in names
        for member in walk_local_headers(source, bounds, begin, end)
    )
