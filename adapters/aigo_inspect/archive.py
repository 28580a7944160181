"""The zip archive of an `.eval` log, also when it is damaged.

The standard library's `zipfile` reads neither zstd (before Python 3.14) nor several zstd frames in one member,
opens nothing at all without an intact directory, and unpacks whatever it is told to. Here each member is read on
its own, checked against its length and CRC, and a missing directory is rebuilt from the local headers.

Format: PKWARE APPNOTE 6.3.10, sections 4.3 (records) and 4.5.3 (zip64); method 93 is zstd.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import cast

import zstandard
from zlib_ng import zlib_ng

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import DEFAULT_BOUNDS, Bounds, TooLargeError
from aigo_bridge.importing.damage import Damage

from .sources import Source
from .zip_directory import may_have_lost, read_directory
from .zip_records import DEFLATED, LOCAL, LOCAL_SIGN, STORED, ZSTD, Member, is_written, member_name
from .zip_salvage import member_at, walk_local_headers

# The stub of the package takes the class for an instance.
_INFLATE_ERROR = cast("type[Exception]", zlib_ng.error)
_SIZE_UNKNOWN = -1
"""What zstandard says of a frame that was written as a stream."""
_STEP = 16 << 20
_MOST_NAMED = 100


class Archive:
    """The members of a zip file, by name; the last of several equal names counts, as Inspect appends."""

    def __init__(self, source: Source, bounds: Bounds = DEFAULT_BOUNDS):
        self._source = source
        self._bounds = bounds
        # One for all members: making it takes as long as unpacking a small member.
        self._zstd = zstandard.ZstdDecompressor()
        self.damage: list[Damage] = []
        """What is wrong with the archive, so far: reading a member may find more."""
        self.members: dict[str, Member] = {}
        self.doubtful: set[str] = set()
        """Members that were read although their own headers give them other names, which may be right."""
        self._suspicious = False
        self._overlapping: frozenset[str] = frozenset()
        self._by_header: dict[str, list[Member]] | None = None
        self._read_otherwise = 0
        """Bytes that were unpacked from members that the directory is wrong about."""
        try:
            directory = read_directory(source, bounds)
        except TooLargeError:
            raise
        except EvidenceError as error:
            self.damage.append(Damage("", source.size, str(error)))
            self._add(walk_local_headers(source, bounds))
            if not self.members:
                raise EvidenceError(f"{source.name!r} is not an .eval log: {error}") from error
        else:
            self._add(directory.members)
            if directory.damage is not None:
                self.damage.append(directory.damage)
            if may_have_lost(source, directory, bounds):
                self.recover()
        self._judge()

    def _add(self, members: Iterable[Member]) -> None:
        for member in members:
            # Re-inserting moves the name to where its last version was written.
            self.members.pop(member.name, None)
            self.members[member.name] = member

    def _judge(self) -> None:
        """See whether what the members say of themselves can be believed."""
        self._suspicious = self._is_bomb()
        self._overlapping = self._overlaps() if self._suspicious else frozenset()

    def _most_together(self) -> float:
        return max(self._bounds.together_from, self._bounds.ratio * self._source.size)

    def _is_bomb(self) -> bool:
        """Whether all members together unpack to so much that none is believed any more."""
        return sum(member.size for member in self.members.values() if member.size > 0) > self._most_together()

    def _overlaps(self) -> frozenset[str]:
        """Names of members in whose data others begin: bytes that are unpacked many times."""
        members = sorted(self.members.values(), key=lambda member: member.offset)
        return frozenset(
            member.name
            for member, following in pairwise(members)
            if following.offset < member.offset + LOCAL.size + max(member.compressed, 0)
        )

    def _local(self) -> dict[str, list[Member]]:
        """The members that have a header of their own, by the name that it gives them."""
        if self._by_header is None:
            self._by_header = {}
            for member in walk_local_headers(self._source, self._bounds):
                self._by_header.setdefault(member.name, []).append(member)
        return self._by_header

    def recover(self) -> bool:
        """Look for members that the directory has lost, or has under other names, and note them in `damage`; whether there are any.

        A wrong byte in a name of the directory is seen by nobody but those who miss the member; its own header still has
        the name.
        """
        listed = {member.offset: member for member in self.members.values()}
        called: dict[int, str] = {}
        own = sorted((member for found in self._local().values() for member in found), key=_offset)
        for member in own:
            other = listed.get(member.offset)
            if other is None or other.name == member.name:
                continue
            if is_written(member.name) or not is_written(other.name):
                called[member.offset] = other.name
                self.members.pop(other.name, None)
        found: dict[str, Member] = {}
        for member in own:
            if member.name in self.members or not is_written(member.name):
                continue
            # The directory knows more of it than a header that was written before the data.
            entry = listed.get(member.offset)
            found.pop(member.name, None)
            found[member.name] = member if entry is None else entry._replace(name=member.name)
        self._add(found.values())
        for member in list(found.values())[:_MOST_NAMED]:
            name = called.get(member.offset)
            wrong = "does not have it" if name is None else f"calls it {name!r}"
            reason = f"the zip directory {wrong}; it was found by its own header"
            self.damage.append(Damage(member.name, member.offset, reason))
        if len(found) > _MOST_NAMED:
            more = len(found) - _MOST_NAMED
            self.damage.append(Damage("", None, f"{more:,} more members were found by their own headers"))
        self._judge()
        return bool(found)

    def read(self, name: str) -> bytes:
        """The unpacked bytes of a member, checked against length and CRC.

        Where the directory is wrong about it, but the member's own header is not, that is noted in `damage`.

        Raises:
            EvidenceError: the member is absent, damaged, or larger than the bounds allow.
        """
        member = self.members.get(name)
        if member is None:
            raise EvidenceError(f"the archive has no member {name!r}")
        try:
            return self._read(member)
        except EvidenceError as error:
            # Evidence that is carried along has to be untouched.
            if name.startswith("_aigo/"):
                raise
            for other, start in self._accounts(member):
                self._read_otherwise += max(other.size, 0)
                if self._read_otherwise > self._most_together():
                    break
                try:
                    data = self._read(other, start)
                except EvidenceError:
                    continue
                if start is None:
                    self.members[name] = other
                reason = f"{error}; it could be read all the same, by "
                reason += "its own header" if start is None else "the zip directory alone"
                self.damage.append(Damage(name, other.offset, reason))
                return data
            raise

    def _accounts(self, member: Member) -> Iterator[tuple[Member, int | None]]:
        """What else is said of a member than its entry in the directory says, and where its data starts if no header tells."""
        found = member_at(self._source, self._bounds, member.offset)
        if found is not None and found[0].name == member.name:
            if found[0] != member:
                own = found[0]
                yield own if own.crc is not None else own._replace(crc=member.crc), None
        elif elsewhere := self._local().get(member.name):
            # Of several versions, the one that the directory means; else the last.
            yield next((own for own in elsewhere if own.crc == member.crc), elsewhere[-1]), None
            return
        elif found is not None and is_written(found[0].name):
            if found[0].name in self.members:
                return
            # Either name may be wrong.
            self.doubtful.add(member.name)
        if member.crc is not None:
            # What of the header is spoiled does not matter if the data stands where it does behind nearly any header.
            yield member, member.offset + LOCAL.size + len(member.name.encode())

    def _read(self, member: Member, start: int | None = None) -> bytes:
        name = member.name
        if member.compressed >= 0:
            self._bounds.check_member(name, member.size, member.compressed, any_size=self._suspicious)
        if name in self._overlapping:
            raise TooLargeError(f"member {name!r} has another one in its data: it looks like a zip bomb")
        packed = self._packed(member) if start is None else self._data(member, start)
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
        if member.compressed >= 0 and len(head) == behind + member.compressed:
            return head[behind:]
        return self._data(member, member.offset + behind)

    def _data(self, member: Member, start: int) -> bytes:
        length = member.compressed if member.compressed >= 0 else self._source.size - start
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


def _offset(member: Member) -> int:
    return member.offset
