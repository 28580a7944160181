"""Reader for the zip archive of an `.eval` log, including damaged archives.

The standard library's `zipfile` cannot read zstd (before Python 3.14) or several zstd frames in one member,
and it does not limit sizes. This reader checks each member separately against bounds, length and CRC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from operator import attrgetter
from typing import cast

import zstandard
from zlib_ng import zlib_ng

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds, LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage
from aigo_inspect.logs.sources import ByteSource
from aigo_inspect.logs.zip_members import (
    DEFLATED,
    LOCAL,
    LOCAL_SIGN,
    STORED,
    ZSTD,
    Member,
    header_at,
    is_written,
    may_lack_members,
    member_name,
    read_directory,
    walk_local_headers,
)

# The type stub declares the class as an instance.
_INFLATE_ERROR = cast("type[Exception]", zlib_ng.error)
_SIZE_UNKNOWN = -1
"""Content size that zstandard reports for a frame written as a stream."""
_STEP = 16 << 20
_MOST_NAMED = 100


class Archive:
    """Members of a zip file by name. If a name occurs several times, the last member counts, because Inspect
    appends.
    """

    def __init__(self, source: ByteSource, bounds: Bounds = DEFAULT_BOUNDS):
        self._source = source
        self._bounds = bounds
        # Shared by all members, because creating it takes as long as unpacking a small member.
        self._zstd = zstandard.ZstdDecompressor()
        self.damage: list[Damage] = []
        """Damage found so far. Reading a member may add more."""
        self.members: dict[str, Member] = {}
        self.doubtful: set[str] = set()
        """Members that were read although their local headers contain another name, which may be the right
        one."""
        self._walked: dict[str, list[Member]] | None = None
        self._most = bounds.most_unpacked(source.size)
        """Limit for the unpacked size of all members together, in bytes. Above it, sizes in the directory are
        not trusted."""
        self._mended = 0
        """Bytes unpacked from members with a wrong directory entry."""
        try:
            directory = read_directory(source, bounds)
        except LogTooLargeError:
            raise
        except EvidenceError as error:
            self.damage.append(Damage("", source.size, str(error)))
            self._add(walk_local_headers(source, bounds))
            if not self.members:
                raise EvidenceError(
                    f"{source.name!r} is not an .eval log: {error}", code=Code.NOT_A_LOG
                ) from error
        else:
            self._add(directory.members)
            if directory.damage is not None:
                self.damage.append(directory.damage)
            if may_lack_members(source, bounds, directory):
                self.recover()

    def _add(self, members: Iterable[Member]) -> None:
        for member in members:
            # Inserting the name again moves it to the position of its last version.
            self.members.pop(member.name, None)
            self.members[member.name] = member
        self._suspicious = (
            sum(member.size for member in self.members.values() if member.size > 0) > self._most
        )
        # Overlapping members would unpack the same bytes several times.
        ordered = sorted(self.members.values(), key=attrgetter("offset")) if self._suspicious else []
        self._overlapping = {
            member.name
            for member, following in pairwise(ordered)
            if following.offset < member.offset + LOCAL.size + max(member.compressed, 0)
        }

    def _local(self) -> dict[str, list[Member]]:
        """Return the members with a local header, by the name in that header."""
        if self._walked is None:
            self._walked = {}
            for member in walk_local_headers(self._source, self._bounds):
                self._walked.setdefault(member.name, []).append(member)
        return self._walked

    def recover(self) -> bool:
        """Find members that are missing in the directory or have another name there, and add them to
        `damage`. Return whether any were found.

        A wrong byte in a name of the directory is only noticed when the member is missing. The local header
        still contains the right name.
        """
        listed = {member.offset: member for member in self.members.values()}
        local = sorted(chain.from_iterable(self._local().values()), key=attrgetter("offset"))
        misnamed: dict[int, str] = {}
        for member in local:
            entry = listed.get(member.offset)
            if entry is None or entry.name == member.name:
                continue
            if is_written(member.name) or not is_written(entry.name):
                misnamed[member.offset] = entry.name
                self.members.pop(entry.name, None)
        lost: dict[str, Member] = {}
        for member in local:
            if member.name in self.members or not is_written(member.name):
                continue
            # The directory has more information than a local header that was written before the data.
            entry = listed.get(member.offset)
            lost.pop(member.name, None)
            lost[member.name] = member if entry is None else entry._replace(name=member.name)
        self._add(lost.values())
        for member in list(lost.values())[:_MOST_NAMED]:
            name = misnamed.get(member.offset)
            wrong = "does not list it" if name is None else f"calls it {name!r}"
            reason = f"the zip directory {wrong}; it was found by its own header"
            self.damage.append(Damage(member.name, member.offset, reason))
        if len(lost) > _MOST_NAMED:
            more = len(lost) - _MOST_NAMED
            self.damage.append(Damage("", None, f"{more:,} more members were found by their own headers"))
        return bool(lost)

    def read(self, name: str) -> bytes:
        """Return the unpacked bytes of a member, checked against its length and CRC.

        If only the directory entry is wrong and the local header is usable, this is noted in `damage`.

        Raises:
            EvidenceError: the member is missing, damaged, or larger than the bounds allow.
        """
        member = self.members.get(name)
        if member is None:
            raise EvidenceError(f"member {name!r} is missing from the archive", code=Code.DAMAGED_LOG)
        try:
            return self._read(member)
        except EvidenceError as error:
            # Embedded evidence must not be repaired.
            if name.startswith("_aigo/"):
                raise
            for account, start in self._accounts(member):
                self._mended += max(account.size, 0)
                if self._mended > self._most:
                    break
                try:
                    data = self._read(account, start)
                except EvidenceError:
                    continue
                if start is None:
                    self.members[name] = account
                reason = f"{error}; it was read using "
                reason += "its own header" if start is None else "the zip directory alone"
                self.damage.append(Damage(name, account.offset, reason))
                return data
            raise

    def _accounts(self, member: Member) -> Iterator[tuple[Member, int | None]]:
        """Yield alternatives to a member's directory entry, each with the start of its data if a header does
        not give it.
        """
        local = header_at(self._source, member.offset)
        if local is not None and local.name == member.name:
            if local.compressed < 0:
                walked = self._local().get(member.name, [])
                local = next((version for version in walked if version.offset == member.offset), local)
            if local != member:
                yield local if local.crc is not None else local._replace(crc=member.crc), None
        elif versions := self._local().get(member.name):
            # If there are several versions, use the one with the CRC in the directory, otherwise the last
            # one.
            yield next((version for version in versions if version.crc == member.crc), versions[-1]), None
            return
        elif local is not None and is_written(local.name):
            if local.name in self.members:
                return
            # Either name may be wrong.
            self.doubtful.add(member.name)
        if member.crc is not None:
            # The header is damaged, but its data usually starts at the normal distance.
            yield member, member.offset + LOCAL.size + len(member.name.encode())

    def _read(self, member: Member, start: int | None = None) -> bytes:
        name = member.name
        if member.compressed >= 0:
            self._bounds.check_member(name, member.size, member.compressed, any_size=self._suspicious)
        if name in self._overlapping:
            raise LogTooLargeError(f"member {name!r} overlaps another member: it looks like a zip bomb")
        packed = self._packed(member) if start is None else self._data(member, start)
        data = self._unpack(name, member.method, packed, member.size)
        if member.crc is not None and zlib_ng.crc32(data) != member.crc:
            raise EvidenceError(f"member {name!r} is damaged: its CRC does not match", code=Code.DAMAGED_LOG)
        return data

    def _packed(self, member: Member) -> bytes:
        if member.compressed > self._source.size:
            raise EvidenceError(
                f"member {member.name!r} is damaged:"
                f" the archive is shorter than its {member.compressed:,} bytes",
                code=Code.DAMAGED_LOG,
            )
        # Header and data are read together. Their distance is almost always that of a header without extra
        # fields.
        ahead = LOCAL.size + len(member.name)
        head = self._source.read_at(member.offset, ahead + max(member.compressed, 0))
        if len(head) < LOCAL.size or head[:4] != LOCAL_SIGN:
            raise EvidenceError(
                f"member {member.name!r} is damaged: no local header at byte {member.offset}",
                code=Code.DAMAGED_LOG,
            )
        fields = LOCAL.unpack_from(head)
        if fields[2] & 1:
            raise EvidenceError(f"member {member.name!r} is encrypted", code=Code.DAMAGED_LOG)
        raw = head[LOCAL.size : LOCAL.size + fields[9]]
        if len(raw) < fields[9]:
            raw = self._source.read_at(member.offset + LOCAL.size, fields[9])
        if member_name(raw, fields[2]) != member.name:
            header = member_name(raw, fields[2])
            raise EvidenceError(
                f"the zip directory names the member {member.name!r}, but its own header names it {header!r}",
                code=Code.DAMAGED_LOG,
            )
        behind = LOCAL.size + fields[9] + fields[10]
        if member.compressed >= 0 and len(head) == behind + member.compressed:
            return head[behind:]
        return self._data(member, member.offset + behind)

    def _data(self, member: Member, start: int) -> bytes:
        length = member.compressed if member.compressed >= 0 else self._source.size - start
        packed = self._source.read_at(start, length)
        if len(packed) < length:
            raise EvidenceError(
                f"member {member.name!r} is truncated: it has {len(packed):,} of {length:,} bytes",
                code=Code.DAMAGED_LOG,
            )
        return packed

    def _unpack(self, name: str, method: int, packed: bytes, size: int) -> bytes:
        limit = size if size >= 0 else self._bounds.ratio_from
        try:
            if method == ZSTD:
                data = self._unpack_zstd(packed, limit)
            elif method == DEFLATED:
                data = zlib_ng.decompressobj(-15).decompress(packed, limit + 1)
            elif method == STORED:
                data = packed
            else:
                raise EvidenceError(
                    f"member {name!r} uses compression method {method}, expected stored, deflate or zstd",
                    code=Code.DAMAGED_LOG,
                )
        except (_INFLATE_ERROR, zstandard.ZstdError) as error:
            raise EvidenceError(f"member {name!r} is damaged: {error}", code=Code.DAMAGED_LOG) from error
        if len(data) > limit:
            raise EvidenceError(
                f"member {name!r} unpacks to more than the {limit:,} bytes it should have",
                code=Code.DAMAGED_LOG,
            )
        if 0 <= size != len(data):
            raise EvidenceError(
                f"member {name!r} is damaged: {len(data):,} of {size:,} bytes unpacked", code=Code.DAMAGED_LOG
            )
        return data

    def _unpack_zstd(self, packed: bytes, limit: int) -> bytes:
        try:
            if zstandard.frame_content_size(packed) in (limit, _SIZE_UNKNOWN):
                # The usual case is one frame, which can be unpacked in one call into a buffer of the exact
                # size.
                data = self._zstd.decompress(packed, max_output_size=limit, allow_extra_data=False)
                if len(data) == limit:
                    return data
        except zstandard.ZstdError:
            # The stream reader below also fails on damaged frames, and stops early.
            pass
        # Members above 200 MiB consist of several frames.
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        parts: list[bytes] = []
        room = limit + 1
        while room and (part := reader.read(min(room, _STEP))):
            parts.append(part)
            room -= len(part)
        return b"".join(parts)
