"""The footer of a Parquet file: how much its columns claim to hold, before anything is unpacked.

pyarrow reads footers too, but its objects for row groups and columns end the process when a damaged one does not add up. Format:
`parquet.thrift` of Apache Parquet in Thrift's compact protocol.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import TooLargeError

_MAGIC = b"PAR1"
_DEEPEST = 16
"""Nesting of the values; footers have six levels."""
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column in one row group."""

    path: str
    """Names from the outermost column to the value, with dots between them."""
    values: int
    """Number of values, nulls included."""
    packed: int
    """Bytes in the file."""
    unpacked: int
    """Bytes after decompression; a value that is repeated counts once."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that were written together."""

    rows: int
    size: int
    """Bytes after decompression."""
    chunks: tuple[Chunk, ...]


def read_footer(file: Any, size: int, most: int) -> list[RowGroup]:
    """The row groups of a file.

    Args:
        file: the file, open for reading bytes; its position is changed.
        size: its length in bytes.
        most: bytes that the footer may have.

    Raises:
        EvidenceError: it is no Parquet file, it is cut off, or its footer is damaged.
        TooLargeError: the footer is too long.
    """
    if size < 12:
        raise EvidenceError(f"found {size} bytes, expected a Parquet file")
    file.seek(0)
    start = bytes(file.read(4))
    file.seek(size - 8)
    tail = bytes(file.read(8))
    if tail[4:] != _MAGIC:
        what = "a Parquet file that is cut off" if start == _MAGIC else "no Parquet file"
        raise EvidenceError(f"found {what}: its last bytes are not {_MAGIC.decode()}")
    length = int.from_bytes(tail[:4], "little")
    if length > size - 12:
        raise EvidenceError(f"the footer claims {length:,} bytes of a file of {size:,}")
    if length > most:
        raise TooLargeError(f"the footer has {length:,} bytes, the limit is {most:,} (bound 'member_bytes')")
    file.seek(size - 8 - length)
    try:
        found = _Compact(bytes(file.read(length))).fields(0)
        return [_row_group(group) for group in found.get(4, [])]
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
        raise EvidenceError(f"the footer is damaged: {type(error).__name__}: {error}") from error


def _row_group(group: dict[int, Any]) -> RowGroup:
    chunks = []
    for column in group.get(1, []):
        found = column[3]
        path = b".".join(found[3]).decode()
        numbers = [_count(found[at]) for at in (5, 7, 6)]
        chunks.append(Chunk(path, *numbers))
    return RowGroup(_count(group[3]), _count(group[2]), tuple(chunks))


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"found {value!r}, expected a number from 0")
    return value


class _Compact:
    """Values in Thrift's compact protocol: structs as dictionaries by field number, texts as bytes."""

    def __init__(self, data: bytes):
        self._data = data
        self._at = 0
        self._readers: dict[int, Callable[[int], Any]] = {
            _TRUE: lambda depth: True,
            _FALSE: lambda depth: False,
            _BYTE: self._byte,
            _I16: self._integer,
            _I32: self._integer,
            _I64: self._integer,
            _DOUBLE: self._double,
            _BINARY: self._binary,
            _LIST: self._list,
            _SET: self._list,
            _MAP: self._map,
            _STRUCT: self.fields,
        }

    def fields(self, depth: int) -> dict[int, Any]:
        """The struct at the current position."""
        if depth > _DEEPEST:
            raise ValueError("values nested too deeply")
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self._data[self._at]
            self._at += 1
            kind = head & 0x0F
            if kind == _STOP:
                return found
            number = number + (head >> 4) if head >> 4 else self._integer(depth)
            found[number] = self._readers[kind](depth + 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number has more than 64 bits")

    def _integer(self, depth: int) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _byte(self, depth: int) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _double(self, depth: int) -> float:
        self._at += 8
        found: float = struct.unpack("<d", self._data[self._at - 8 : self._at])[0]
        return found

    def _binary(self, depth: int) -> bytes:
        length = self._varint()
        start = self._at
        self._at += length
        if self._at > len(self._data):
            raise ValueError("a text goes beyond the end")
        return self._data[start : self._at]

    def _list(self, depth: int) -> list[Any]:
        head = self._data[self._at]
        self._at += 1
        count = head >> 4 if head >> 4 < 15 else self._varint()
        kind = head & 0x0F
        self._fits(count)
        # In lists, unlike in structs, a boolean takes a byte of its own.
        reader = self._byte if kind in (_TRUE, _FALSE) else self._readers[kind]
        return [reader(depth + 1) for _ in range(count)]

    def _map(self, depth: int) -> list[tuple[Any, Any]]:
        count = self._varint()
        if not count:
            return []
        kinds = self._byte(depth)
        self._fits(count)
        key, value = self._readers[kinds >> 4], self._readers[kinds & 0x0F]
        return [(key(depth + 1), value(depth + 1)) for _ in range(count)]

    def _fits(self, count: int) -> None:
        if count > len(self._data) - self._at:
            raise ValueError("more values than bytes")
