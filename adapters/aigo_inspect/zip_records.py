"""Records of the zip format that archives of logs have.

Format: PKWARE APPNOTE 6.3.10, sections 4.3 (records) and 4.5.3 (zip64); method 93 is zstd.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

STORED, DEFLATED, ZSTD = 0, 8, 93
LOCAL = struct.Struct("<4s5H3L2H")
CENTRAL = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
LOCAL_SIGN, CENTRAL_SIGN, END_SIGN = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
END64_SIGN, LOCATOR64_SIGN = b"PK\x06\x06", b"PK\x06\x07"
DESCRIPTOR_SIGN = b"PK\x07\x08"
FULL32 = 0xFFFFFFFF
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
    """Length in the archive, in bytes; -1 when only unpacking can tell."""
    size: int
    """Length unpacked, in bytes; -1 when only unpacking can tell."""
    method: int
    crc: int | None
    """CRC-32 of the unpacked bytes; `None` when it is unknown."""


def member_name(raw: bytes, flags: int) -> str:
    """The name of a member, whose encoding a flag tells."""
    return raw.decode("utf-8", errors="replace") if flags & 0x800 else raw.decode("cp437")


def is_written(name: str) -> bool:
    """Whether a member of this name is one that Inspect, or our export, writes."""
    return _WRITTEN.fullmatch(name) is not None


def is_plausible(name: str, names: set[str]) -> bool:
    """Whether a member of this name is one that is written beside members of the other `names`.

    Samples in pieces have sequences, of which the first part has the number 0.
    """
    found = _WRITTEN.fullmatch(name)
    if found is None or not found["part"]:
        return found is not None
    return f"{name[: found.start('part')]}0.json" in names


def zip64_values(extra: bytes, *values: int) -> tuple[int, int, int]:
    """Fill the values that are 0xFFFFFFFF from the zip64 extra field, in their fixed order."""
    found = list(values)
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        length = min(length, len(extra) - at - 4)
        if kind == 1:
            numbers = [int(n) for n in struct.unpack_from(f"<{length // 8}Q", extra, at + 4)]
            for position, value in enumerate(found):
                if value == FULL32 and numbers:
                    found[position] = numbers.pop(0)
        at += 4 + length
    found += [0] * (3 - len(found))
    return found[0], found[1], found[2]
