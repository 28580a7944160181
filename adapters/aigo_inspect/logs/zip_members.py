"""Positions of the members in a zip archive, from its directory or from the local headers.

The standard library takes several times as long for a directory, and cannot open an archive without one. If
the directory is missing or may be wrong, the file is searched for local headers.

Format: PKWARE APPNOTE 6.3.10, sections 4.3 (records) and 4.5.3 (zip64). Compression method 93 is zstd.
"""

from __future__ import annotations

import re
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import zstandard

from aigo_bridge.access.bounds import Bounds, LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage
from aigo_inspect.logs.sources import ByteSource

STORED, DEFLATED, ZSTD = 0, 8, 93
LOCAL = struct.Struct("<4s5H3L2H")
LOCAL_SIGN = b"PK\x03\x04"
_CENTRAL, _END_SIZE = struct.Struct("<4s2xBx2H4x3L3H8xL"), 22
_CENTRAL_SIGN, _END64_SIGN = b"PK\x01\x02", b"PK\x06\x06"
_END64 = struct.Struct("<4s36x2Q4sL8xL")
"""End record of zip64, and its locator."""
_LONGEST_END = _END_SIZE + 0xFFFF
"""Maximum size of the end record with a comment, in bytes."""
_DESCRIPTOR_SIGN = b"PK\x07\x08"
_END_SIGN = b"PK\x05\x06"
_RECORDS = frozenset({LOCAL_SIGN, _CENTRAL_SIGN, _END_SIGN, _END64_SIGN})
"""Signatures of local headers, directory entries, and end records."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_FULL32 = 0xFFFFFFFF
_CHUNK = 1 << 20
_LONGEST_DESCRIPTOR = 24
"""Maximum size of a data descriptor in bytes. Small members have 16, or 12 without a signature."""
_LONGEST_NAME = 1 << 12
"""Maximum length of a name (and of extra fields) that Inspect writes. In a search for headers, longer ones
are noise."""
_MOST_TRIED = 16
"""Maximum number of end records to try, because a comment or trailing data may look like one. Also the number
of members to check: the directory is rejected if all their positions are wrong."""
_NO_MEMBER = 64
"""Maximum gap between two members, in bytes, that cannot contain another member. It may be a data descriptor
or extra fields."""
_WRITTEN = re.compile(
    r"(?:header|summaries|reductions)\.json"
    r"|_journal/(?:start|(?:summaries|config_updates)/\d+)\.json"
    r"|samples/.*_epoch_\d+"
    r"(?:/(?:sample|metadata|skeleton|events/(?:stats|uuids)|(?:messages|events|calls|attachments)/(?P<part>\d+)))?\.json"
    r"|_aigo/.+\.json",
    re.DOTALL,
)


class Member(NamedTuple):
    """One file in the archive."""

    name: str
    offset: int
    """Byte offset of its local header."""
    compressed: int
    """Compressed size in bytes; -1 if only unpacking can determine it."""
    size: int
    """Unpacked size in bytes; -1 if only unpacking can determine it."""
    method: int
    crc: int | None
    """CRC-32 of the unpacked bytes; `None` if unknown."""


def member_name(raw: bytes, flags: int) -> str:
    """Decode the name of a member. A flag determines the encoding."""
    # Most names are ASCII, for which the decoder is much faster and the result the same.
    return raw.decode("utf-8", errors="replace") if flags & 0x800 or raw.isascii() else raw.decode("cp437")


def is_written(name: str) -> bool:
    """Return whether Inspect or aigo-bridge's export writes members with this name."""
    return _WRITTEN.fullmatch(name) is not None


# The directory


class Directory(NamedTuple):
    """Content of an archive's directory."""

    members: list[Member]
    """Members in directory order, including repeated names."""
    offset: int
    """Byte offset of the directory."""
    damage: Damage | None
    """Damage if the number of members differs from the stored count."""


def read_directory(source: ByteSource, bounds: Bounds) -> Directory:
    """Return the directory of an archive.

    Raises:
        TooLargeError: the number of members exceeds the bounds.
        EvidenceError: the directory is missing, damaged or empty.
    """
    begin = max(0, source.size - _LONGEST_END)
    tail = source.read_at(begin, source.size - begin)
    at = len(tail)
    problem: EvidenceError | None = None
    for _ in range(_MOST_TRIED):
        at = tail.rfind(_END_SIGN, 0, at)
        if at < 0:
            break
        try:
            return _directory(source, bounds, begin + at, int.from_bytes(tail[at + 10 : at + 12], "little"))
        except LogTooLargeError:
            raise
        except EvidenceError as error:
            # Data after the end of the directory may look like another end record.
            problem = problem or error
    raise problem or EvidenceError("the zip directory is missing", code=Code.DAMAGED_LOG)


def _directory(source: ByteSource, bounds: Bounds, end: int, count: int) -> Directory:
    """Return the directory for the end record at `end`, which announces `count` members."""
    try:
        start, shift, data = _entries(source, bounds, end)
        members = list(_listed(data, shift, source.size))
    except (ValueError, struct.error) as error:
        raise EvidenceError("the zip directory is damaged", code=Code.DAMAGED_LOG) from error
    if not members:
        raise EvidenceError("the zip directory is empty", code=Code.DAMAGED_LOG)
    if len(members) > bounds.members:
        raise LogTooLargeError(
            f"the archive has {len(members):,} members, the bound 'members' is {bounds.members:,}"
        )
    # If bytes before the directory are missing, all offsets are shifted.
    if min(member.offset for member in members) < 0:
        raise EvidenceError(
            "the zip directory is damaged: it claims to start before the file", code=Code.DAMAGED_LOG
        )
    if not any(source.read_at(member.offset, 4) == LOCAL_SIGN for member in members[:_MOST_TRIED]):
        raise EvidenceError("the zip directory is damaged: its offsets are wrong", code=Code.DAMAGED_LOG)
    damage = None
    # The count has 16 bits. If all are set, the real count is stored in another record.
    if len(members) % (1 << 16) != count != 0xFFFF:
        damage = Damage("", end, f"the zip directory has {len(members):,} members, expected {count:,}")
    return Directory(members, start, damage)


def _entries(source: ByteSource, bounds: Bounds, end: int) -> tuple[int, int, bytes]:
    """Return the start of the directory, the difference between the positions in the file and in the
    directory, and the entries.
    """
    size, offset = struct.unpack("<12x2L2x", source.read_at(end, _END_SIZE))
    at = max(0, end - _END64.size)
    if len(record := source.read_at(at, end - at)) == _END64.size:
        sign, size64, offset64, locator, disk, disks = _END64.unpack(record)
        if locator == b"PK\x06\x07" and (disk or disks > 1):
            raise ValueError("several disks")
        if locator == b"PK\x06\x07" and sign == _END64_SIGN:
            size, offset, end = size64, offset64, at
    if size > min(end, max(bounds.members * _CENTRAL.size, _LONGEST_END)):
        raise ValueError("an implausible size")
    return end - size, end - size - offset, source.read_at(end - size, size)


def _listed(data: bytes, shift: int, most: int) -> Iterator[Member]:
    """Yield the members in the entries of a directory."""
    at, unpack = 0, _CENTRAL.unpack_from
    while at < len(data):
        sign, version, flags, method, crc, compressed, size, name, extra, comment, offset = unpack(data, at)
        if sign != _CENTRAL_SIGN or version > 63:  # version 6.3 of the format
            raise ValueError("not an entry")
        at += _CENTRAL.size + name
        raw = data[at - name : at]
        if extra:
            size, compressed, offset = _zip64_lengths(
                data[at : at + extra], size, compressed, offset, strict=True
            )
        at += extra + comment
        decoded = raw.decode("utf-8" if flags & 0x800 or raw.isascii() else "cp437")
        # A 64-bit offset may exceed the file size.
        yield Member(decoded, min(offset + shift, most), compressed, size, method, crc)


def may_lack_members(source: ByteSource, bounds: Bounds, directory: Directory) -> bool:
    """Return whether the file contains members that are missing in the directory or have another name there.

    The file is only searched if the directory leaves room for another member. That is the case between listed
    members, and at members with unexpected or repeated names or from incomplete sequences.
    """
    if directory.damage is not None:
        return True
    counts = Counter(member.name for member in directory.members)
    at = 0
    for member in sorted(directory.members, key=lambda member: member.offset):
        if counts[member.name] > 1 or not _is_plausible(member.name, counts):
            continue
        if member.offset - at > _NO_MEMBER and _has_others(source, bounds, at, member.offset, counts):
            return True
        raw_name = member.name if member.name.isascii() else member.name.encode()
        at = member.offset + LOCAL.size + len(raw_name) + member.compressed
    return directory.offset - at > _NO_MEMBER and _has_others(source, bounds, at, directory.offset, counts)


def _is_plausible(name: str, names: Counter[str]) -> bool:
    """Return whether a member with this name fits the others. A sequence must have a part with the number
    0.
    """
    match = _WRITTEN.fullmatch(name)
    if match is None or not match["part"]:
        return match is not None
    return f"{name[: match.start('part')]}0.json" in names


def _has_others(source: ByteSource, bounds: Bounds, begin: int, end: int, names: Counter[str]) -> bool:
    # Inspect leaves the old version of a header in the file when it writes a new one.
    members = walk_local_headers(source, bounds, begin, end)
    return any(is_written(member.name) and member.name not in names for member in members)


# The local headers


def header_at(source: ByteSource, offset: int) -> Member | None:
    """Return the member with a local header at `offset`, as described by that header."""
    header = _local_header(_Window(source), offset)
    return None if header is None else header[0]


def walk_local_headers(
    source: ByteSource, bounds: Bounds, begin: int = 0, end: int | None = None
) -> Iterator[Member]:
    """Yield the members in a file or in a part of it, without using the directory. This works for truncated
    and overwritten files.

    Raises:
        TooLargeError: the number of members exceeds the bounds.
    """
    window = _Window(source)
    # Limit for unpacking members while their lengths are determined, because malicious headers may overlap.
    budget = int(min(max(bounds.ratio_from, source.size * bounds.ratio), sys.maxsize))
    ahead = 0
    for count, at in enumerate(window.places(LOCAL_SIGN, begin, source.size if end is None else end)):
        if count > bounds.members:
            raise LogTooLargeError(
                f"the archive has more members than the bound 'members', {bounds.members:,}"
            )
        header = _local_header(window, at) if at >= ahead else None
        if header is None:
            continue
        member, ahead = header
        claims, behind = member.compressed >= 0, ahead + member.compressed
        if claims and _leads_on(window, behind):
            ahead = behind
        # If the length is wrong or bytes are missing, the search also includes headers inside the member. A
        # length beyond the end of the file usually belongs to a truncated member.
        elif not claims or (member.method != STORED and behind <= source.size and budget >= 0):
            measured, produced = _measured(source, member, ahead, budget)
            budget -= produced
            if budget < 0 and not claims:
                yield measured
                return
            if budget >= 0 and measured != member:
                member, ahead = measured, ahead + measured.compressed
        yield member


class _Window:
    """A moving part of the file in memory, so that millions of headers are not read one by one."""

    def __init__(self, source: ByteSource):
        self.source = source
        self._base = 0
        self._data = b""

    def at(self, offset: int, length: int) -> bytes:
        begin = offset - self._base
        if begin >= 0 and begin + length <= len(self._data):
            return self._data[begin : begin + length]
        return self.source.read_at(offset, length)

    def places(self, sign: bytes, begin: int, end: int) -> Iterator[int]:
        """Yield the offsets of `sign` in a part of the file."""
        while end - begin >= len(sign):
            self._base, self._data = begin, self.source.read_at(begin, min(_CHUNK, end - begin))
            at = self._data.find(sign)
            while at >= 0:
                yield self._base + at
                at = self._data.find(sign, at + len(sign))
            if len(self._data) < len(sign):
                return
            begin += len(self._data) - len(sign) + 1


def _local_header(window: _Window, at: int) -> tuple[Member, int] | None:
    """Return the member with a local header at `at`, and the start of its data; `None` if it is not a header
    of a log.
    """
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
    behind = window.at(at + LOCAL.size, name_length + extra_length)
    if len(behind) < name_length + extra_length:
        return None
    name = member_name(behind[:name_length], flags)
    if _FULL32 in (size, compressed):
        size, compressed = _zip64_lengths(behind[name_length:], size, compressed)
    start = at + LOCAL.size + len(behind)
    if compressed or not (flags & 8 or size == 0):
        return Member(name, at, compressed, size, method, crc), start
    return Member(name, at, -1, -1, method, None), start


def _zip64_lengths(extra: bytes, *lengths: int, strict: bool = False) -> list[int]:
    """Return the lengths, with values of 0xFFFFFFFF replaced from the zip64 extra field, in their fixed
    order. With `strict`, raise `ValueError` if a field is cut off.
    """
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        field = extra[at + 4 : at + 4 + length]
        if strict and len(field) < length:
            raise ValueError("a field is cut off")
        if kind == 1:
            numbers = struct.iter_unpack("<Q", field[: len(field) // 8 * 8])
            lengths = tuple(next(numbers, (n,))[0] if n == _FULL32 else n for n in lengths)
            if strict and _FULL32 in lengths:
                raise ValueError("a length is missing")
        at += 4 + length
    return list(lengths)


def _leads_on(window: _Window, at: int) -> bool:
    """Return whether another record starts at the end of a member, or after its data descriptor."""
    if at >= window.source.size:
        return at == window.source.size
    behind = window.at(at, _LONGEST_DESCRIPTOR + 4)
    return any(behind[skip : skip + 4] in _RECORDS for skip in (0, 12, 16, 20, _LONGEST_DESCRIPTOR))


def _measured(source: ByteSource, member: Member, start: int, budget: int) -> tuple[Member, int]:
    """Return a member with the lengths found by unpacking, and the number of unpacked bytes.

    The member is unchanged if unpacking does not find an end, or contradicts a complete header. Reading the
    member then reports the error. A zip bomb is unpacked to slightly more than `budget` and returned with
    that size.
    """
    at, produced = start, 0
    frames = member.method != STORED
    while frames:
        unpacker = (
            zlib.decompressobj(-15)
            if member.method == DEFLATED
            else zstandard.ZstdDecompressor().decompressobj()
        )
        # Small steps, because even a zip bomb unpacks to at most about 30 MB in each step.
        step = 1 << 15 if member.method == DEFLATED else 1 << 10
        while not unpacker.eof:
            if not (chunk := source.read_at(at, step)):
                return member, produced
            try:
                produced += len(unpacker.decompress(chunk))
            except (zlib.error, zstandard.ZstdError):
                return member, produced
            at += len(chunk) - len(unpacker.unused_data)
            if produced > budget:
                return member._replace(compressed=at - start, size=produced), produced
        frames = member.method == ZSTD and source.read_at(at, 4) == _ZSTD_MAGIC
    if member.method == STORED or (member.compressed >= 0 and produced != member.size):
        return member, produced
    crc = member.crc
    if crc is None and (descriptor := source.read_at(at, 8))[:4] == _DESCRIPTOR_SIGN:
        crc = int.from_bytes(descriptor[4:], "little")
    return member._replace(compressed=at - start, size=produced, crc=crc), produced
