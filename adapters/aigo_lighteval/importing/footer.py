"""Footer of a Parquet file, which contains the size of its columns before decompression.

pyarrow reads the footer in a separate process, because an inconsistent footer can crash it.
"""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from aigo_bridge.access.bounds import LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.process.pool import Worker

_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Column in a row group."""

    path: str
    """Column path: names from the outermost column to the value, separated by dots."""
    values: int
    """Number of values, including nulls."""
    packed: int
    """Compressed size in bytes."""
    unpacked: int
    """Decompressed size in bytes. A repeated value counts once."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that were written together."""

    rows: int
    size: int
    """Decompressed size in bytes."""
    chunks: tuple[Chunk, ...]


def read_footer(file: Any, size: int, most: int, worker: Worker) -> list[RowGroup]:
    """Return the row groups of a file.

    Args:
        file: binary file. Its position is changed.
        size: file size in bytes.
        most: maximum footer size in bytes.
        worker: process that reads the footer.

    Raises:
        EvidenceError: the file is not a Parquet file, is truncated, or has a damaged footer.
        TooLargeError: the footer is too long.
    """
    if size < 12:
        raise EvidenceError(f"found {size} bytes, expected a Parquet file", code=Code.NOT_A_LOG)
    file.seek(0)
    start = bytes(file.read(4))
    file.seek(size - 8)
    tail = bytes(file.read(8))
    if tail[4:] != _MAGIC:
        what = "a truncated Parquet file" if start == _MAGIC else "no Parquet file"
        raise EvidenceError(f"found {what}: its last bytes are not {_MAGIC.decode()}", code=Code.NOT_A_LOG)
    length = int.from_bytes(tail[:4], "little")
    if length > size - 12:
        raise EvidenceError(
            f"the footer claims {length:,} bytes, but the file has {size:,}", code=Code.DAMAGED_LOG
        )
    if length > most:
        raise LogTooLargeError(
            f"the footer has {length:,} bytes, the limit is {most:,} (bound 'member_bytes')"
        )
    file.seek(size - 8 - length)
    try:
        groups = worker.call(_row_groups, bytes(file.read(length)))
    except BrokenProcessPool as error:
        raise EvidenceError(
            "the footer is damaged: reading it crashes the process", code=Code.DAMAGED_LOG
        ) from error
    if isinstance(groups, str):
        raise EvidenceError(f"the footer is damaged: {groups}", code=Code.DAMAGED_LOG)
    return groups


def _row_groups(footer: bytes) -> list[RowGroup] | str:
    import pyarrow as pa  # type: ignore[import-untyped]  # no type stubs
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # no type stubs

    file = _MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC
    try:
        metadata = pq.read_metadata(pa.BufferReader(file))
        return [_row_group(metadata.row_group(number)) for number in range(metadata.num_row_groups)]
    except (pa.ArrowException, OSError, ValueError, OverflowError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


def _row_group(group: Any) -> RowGroup:
    columns = (group.column(number) for number in range(group.num_columns))
    chunks = [
        Chunk(
            column.path_in_schema,
            _count(column.num_values),
            _count(column.total_compressed_size),
            _count(column.total_uncompressed_size),
        )
        for column in columns
    ]
    return RowGroup(_count(group.num_rows), _count(group.total_byte_size), tuple(chunks))


def _count(value: int) -> int:
    if value < 0:
        raise ValueError(f"found {value!r}, expected a number from 0")
    return value
