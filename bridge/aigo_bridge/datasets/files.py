"""Data files by their ending."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from aigo_bridge.datasets.csv_tables import CsvTable
from aigo_bridge.datasets.filtering import compile_filters
from aigo_bridge.datasets.json_tables import JsonLinesTable, json_table
from aigo_bridge.datasets.rows import Missing, Rows, Selection
from aigo_bridge.datasets.tables import Table, collect
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.spec.filters import Filter

ENDINGS = (".csv", ".jsonl", ".ndjson", ".json", ".parquet")
"""What a data file's name ends in; `.gz` or `.zst` may follow (not after `.parquet`)."""

_ALL = Selection()


def load_file(
    path: Path,
    selection: Selection = _ALL,
    *,
    filters: Sequence[Filter] = (),
    missing: Missing = "nan",
) -> Rows:
    """The selected rows of a local CSV, JSONL, JSON or Parquet file.

    Filters see CSV cells as texts (`"3"` counts as 3 there, see `filtering`); types come after them. Memory grows
    with the rows selected, not with the file; only `.json` is held whole.

    Raises `DatasetError` with the file, the line and all problems at once (the first 20 in full), and
    `TemplateError` when a filter's expression is not a template.
    """
    compiled = compile_filters(filters)
    kind, packing = file_kind(path)
    if kind == ".parquet":
        from aigo_bridge.datasets.parquet_tables import parquet_table

        _must_exist(path)
        return collect(parquet_table(path), selection, filters=compiled, missing=missing, file=str(path))
    with _opened(path, packing) as stream:
        table = _table(stream, kind, path)
        rows = collect(table, selection, filters=compiled, missing=missing, file=str(path))
    doubts = table.doubts() if isinstance(table, CsvTable) else ()
    return replace(rows, warnings=(*rows.warnings, *doubts)) if doubts else rows


def file_kind(path: Path) -> tuple[str, str | None]:
    """The ending that decides how a file is read, and the compression around it.

    Raises `DatasetError` for other endings.
    """
    endings = [ending.lower() for ending in path.suffixes]
    packing = endings.pop() if endings and endings[-1] in (".gz", ".zst") else None
    if not endings or endings[-1] not in ENDINGS or (endings[-1] == ".parquet" and packing):
        raise DatasetError(
            [Issue(f"unknown kind of data file {path.name!r}; expected {', '.join(ENDINGS)}", str(path))]
        )
    return endings[-1], packing


def _table(stream: BinaryIO, kind: str, path: Path) -> Table:
    if kind == ".csv":
        return CsvTable(stream, str(path))
    if kind == ".json":
        return json_table(stream, str(path))
    return JsonLinesTable(stream)


def _must_exist(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DatasetError([Issue(f"the data file {what}", str(path))])


class _ZstdFrames(RawIOBase):
    """What is in the frames of a zstd file; unlike the library's reader it notices that the last one is cut off."""

    # One compressed byte can stand for 32 KiB, so a chunk for 64 MiB.
    _CHUNK = 2048

    def __init__(self, file: BinaryIO):
        self._file = file
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._left = memoryview(b"")
        self._compressed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._left:
            self._compressed = self._compressed or self._file.read(self._CHUNK)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError("the compressed file ends in the middle")
                return 0
            self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            self._left = memoryview(self._frame.decompress(self._compressed))
            self._compressed = b""
            if self._frame.eof:
                self._compressed = self._frame.unused_data
                self._frame = None
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


@contextmanager
def _opened(path: Path, packing: str | None) -> Iterator[BinaryIO]:
    _must_exist(path)
    try:
        with path.open("rb") as file:
            if packing == ".gz":
                with gzip.open(file) as stream:
                    yield cast("BinaryIO", stream)
            elif packing == ".zst":
                yield BufferedReader(_ZstdFrames(file), 1 << 20)
            else:
                yield file
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise DatasetError([Issue(f"the data file cannot be read: {error}", str(path))]) from error
