"""Data files by their extension, and folders of text files.

A folder has one row per text file, recursively. Columns: `sample_id` (SHA-256 of the bytes), `file_name`
(path inside the folder), `content`, then the keys of YAML front matter, which is removed from the content.
As on the platform, hidden files are included (the user must allow them), PDF files are not, and rows are
sorted by path.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

import yaml
import zstandard

from aigo_bridge.access.existence import is_folder
from aigo_bridge.access.opening import (
    IrregularFileError,
    OutsideRootError,
    conversion,
    open_regular,
    read_regular,
    wrong_byte,
)
from aigo_bridge.access.private import refusal
from aigo_bridge.codes import Code
from aigo_bridge.datasets.filtering import compile_filters
from aigo_bridge.datasets.rows import (
    ExpandedSize,
    Missing,
    Problems,
    RawRow,
    Rows,
    RowTable,
    Selection,
    collect,
)
from aigo_bridge.datasets.tables import CsvTable, JsonLinesTable, ObjectTable, json_table, plain
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.process import install_command
from aigo_bridge.spec.base import Filter

_OWN_COLUMNS = ("sample_id", "file_name", "content")
_LONGEST_FRONT_MATTER = 64 * 1024
_DEEPEST_FRONT_MATTER = 100

_LONG_NUMBER = re.compile(r"[-+]?[0-9][0-9_:.]{1000}")

LONGEST_TEXT = 64 * 2**20
"""Maximum bytes of one file, which becomes one cell."""


class FolderTable(ObjectTable):
    """Files below a folder, filtered by `extension` (with or without dot, in any case)."""

    def __init__(
        self, folder: Path, extension: str | None, *, root: Path | None = None, own: Path | None = None
    ):
        super().__init__(())
        self._folder = folder
        self._ending = None if extension is None else "." + extension.lower().removeprefix(".")
        self._root = root
        self._own = own
        self.warnings: list[Issue] = []

    def records(self, problems: Problems) -> Iterator[RawRow]:
        """Yield one record per file. A file that is not UTF-8 or is outside the root folder is recorded as a
        problem.

        Raises `DatasetError` if the folder does not exist.
        """
        if not is_folder(self._folder):
            raise DatasetError("the folder does not exist", file=str(self._folder), code=Code.MISSING_FILE)
        for number, path in enumerate(self._files()):
            data = self._row(path, problems)
            if data is not None:
                yield RawRow(number, None, data)

    def _files(self) -> list[Path]:
        paths = [Path(folder, name) for folder, _, names in os.walk(self._folder) for name in names]
        return sorted(path for path in paths if self._wanted(path.suffix.lower()))

    def _wanted(self, suffix: str) -> bool:
        return suffix != ".pdf" and (self._ending is None or suffix == self._ending)

    def _row(self, path: Path, problems: Problems) -> dict[str, Any] | None:
        name = path.relative_to(self._folder).as_posix()
        shown = f"{name}: the link" if path.is_symlink() else name
        if (issue := refusal(path, self._root, shown, own=self._own)) is not None:
            problems.add(issue.message, code=issue.code, hint=issue.hint)
            return None
        try:
            content = read_regular(path, LONGEST_TEXT, self._root)
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            problems.add(f"{name}: {wrong_byte(error)}", code=Code.NOT_UTF8, hint=conversion(error, name))
            return None
        except OSError as error:
            problems.add(f"{name}: {error.strerror}", code=Code.UNREADABLE_FILE)
            return None
        matter, body = self._split(text, str(path))
        columns = dict(zip(_OWN_COLUMNS, (hashlib.sha256(content).hexdigest(), name, body), strict=True))
        return {**columns, **{key: value for key, value in matter.items() if key not in columns}}

    def _split(self, text: str, file: str) -> tuple[dict[str, Any], str]:
        """Return the front matter and the text after it. The newline after the closing `---` belongs to the
        text.
        """
        first_line, newline, content = text.partition("\n")
        if first_line.rstrip("\r") != "---" or not newline:
            return {}, text
        end = _closing(content)
        if end is None:
            return {}, text
        matter = _parsed(content[:end])
        if matter is None:
            message = "the front matter is not a plain YAML mapping, so the text was kept whole"
            self.warnings.append(Issue(message, file, line=1, severity="warning", code=Code.DOUBTFUL_ROWS))
            return {}, text
        return matter, content[end + 3 :]


def _closing(text: str) -> int | None:
    """Return the start of the line that contains only `---`."""
    start = 0
    for line in text.splitlines(keepends=True):
        if line.rstrip("\r\n") == "---":
            return start
        start += len(line)
        if start > _LONGEST_FRONT_MATTER:
            break
    return None


def _parsed(source: str) -> dict[str, Any] | None:
    try:
        if not _is_harmless(source):
            return None
        value = yaml.load(source, Loader=yaml.CSafeLoader)
        return {str(key): plain(item) for key, item in value.items()} if isinstance(value, dict) else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _is_harmless(source: str) -> bool:
    """Return whether loading the YAML text needs time and memory in proportion to its length.

    Anchors are not useful in front matter, and a few of them can expand to gigabytes. libyaml overflows
    the C stack at about ten thousand brackets. A base-60 number takes quadratic time.
    """
    depth = 0
    for event in yaml.parse(source, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            return False
        if isinstance(event, yaml.ScalarEvent) and _LONG_NUMBER.match(event.value):
            return False
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST_FRONT_MATTER:
            return False
    return True


ENDINGS = (".csv", ".jsonl", ".ndjson", ".json", ".parquet")
"""File extensions of data files. `.gz` or `.zst` may follow (not after `.parquet`)."""

_ALL = Selection()


def load_file(
    path: Path,
    selection: Selection = _ALL,
    *,
    filters: Sequence[Filter] = (),
    missing: Missing = "nan",
    root: Path | None = None,
) -> Rows:
    """Return the selected rows of a local CSV, JSONL, JSON or Parquet file.

    Filters read CSV cells as texts (`"3"` counts as 3 there, see `filtering`), before types are assigned.
    Memory grows with the number of selected rows, not with the file; only a `.json` file is in memory as a
    whole. With a `root`, the file must be in this folder after following links.

    Raises `DatasetError` with the file, the line and all problems together (the first 20 in full), and
    `TemplateError` if a filter expression is not a template.
    """
    compiled = compile_filters(filters)
    kind, packing = file_kind(path)
    if kind == ".parquet":
        with _opened(path, None, root):
            pass  # pyarrow opens the file itself, with less helpful errors for invalid files.
        return collect(ParquetTable(path), selection, filters=compiled, missing=missing, file=str(path))
    with _opened(path, packing, root) as stream:
        table = _table(stream, kind, path)
        rows = collect(table, selection, filters=compiled, missing=missing, file=str(path))
    doubts = table.doubts() if isinstance(table, CsvTable) else ()
    return replace(rows, warnings=(*rows.warnings, *doubts)) if doubts else rows


def file_kind(path: Path) -> tuple[str, str | None]:
    """Return the extension that determines how a file is read, and its compression.

    Raises `DatasetError` for other extensions.
    """
    endings = [ending.lower() for ending in path.suffixes]
    packing = endings.pop() if endings and endings[-1] in (".gz", ".zst") else None
    if not endings or endings[-1] not in ENDINGS or (endings[-1] == ".parquet" and packing):
        raise DatasetError(
            f"unknown kind of data file {path.name!r}; expected {', '.join(ENDINGS)}",
            file=str(path),
            code=Code.UNKNOWN_DATA_FORMAT,
        )
    return endings[-1], packing


def _table(stream: BinaryIO, kind: str, path: Path) -> RowTable:
    if kind == ".csv":
        return CsvTable(stream, str(path))
    if kind == ".json":
        return json_table(stream, str(path))
    return JsonLinesTable(stream)


class _ZstdFrames(RawIOBase):
    """Reader of zstd frames that detects a truncated last frame, unlike the library's reader."""

    # One compressed byte can expand to 32 KiB, so a chunk can expand to 64 MiB.
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


class _Counted(RawIOBase):
    """Reader that limits the expanded size of a compressed file in proportion to its size."""

    def __init__(self, stream: BinaryIO, unpacked: ExpandedSize):
        self._stream = stream
        self._unpacked = unpacked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        part = self._stream.read(min(len(buffer), 1 << 20))
        self._unpacked.add(len(part))
        buffer[: len(part)] = part
        return len(part)


@contextmanager
def _opened(path: Path, packing: str | None, root: Path | None) -> Iterator[BinaryIO]:
    try:
        with open_regular(path, root) as file:
            unpacked = ExpandedSize(os.fstat(file.fileno()).st_size, str(path))
            if packing == ".gz":
                with gzip.open(file) as stream:
                    yield BufferedReader(_Counted(cast("BinaryIO", stream), unpacked), 1 << 20)
            elif packing == ".zst":
                frames = BufferedReader(_ZstdFrames(file), 1 << 20)
                yield BufferedReader(_Counted(frames, unpacked), 1 << 20)
            else:
                yield file
    except OutsideRootError as error:
        raise DatasetError([error.issue]) from error
    except FileNotFoundError as error:
        raise DatasetError("the data file does not exist", file=str(path), code=Code.MISSING_FILE) from error
    except IrregularFileError as error:
        raise DatasetError(
            f"the data file {error.strerror}", file=str(path), code=Code.UNREADABLE_FILE
        ) from error
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise DatasetError(
            f"the data file cannot be read: {error}", file=str(path), code=Code.UNREADABLE_FILE
        ) from error


_BATCH = 1_000
"""Number of rows to read at a time."""

_BATCH_BYTES = 64 * 1024 * 1024
"""Maximum expanded bytes of a batch that is created as a whole. Larger batches are split."""


class ParquetTable(ObjectTable):
    """Rows of a Parquet file, read in batches through pyarrow (an optional dependency).

    A file of kilobytes can expand to terabytes, because rows can repeat a dictionary text by its number.
    Texts are therefore read as numbers and a dictionary, so that their size is known before they are created.

    Raises:
        DatasetError: the file is not a Parquet file, or pyarrow is not installed.
    """

    def __init__(self, path: Path):
        try:
            self._pa: Any = importlib.import_module("pyarrow")
            self._pc: Any = importlib.import_module("pyarrow.compute")
            self._pq: Any = importlib.import_module("pyarrow.parquet")
        except ImportError as error:
            message = f"reading Parquet needs pyarrow; run: {install_command('parquet')}"
            raise DatasetError(message, file=str(path), code=Code.MISSING_PACKAGE) from error
        self._path = path
        self._texts: list[str] | None = None
        with self._opened() as file:
            self.num_rows: int = file.metadata.num_rows
            self._types = {field.name: field.type for field in file.schema_arrow}
            self._texts = _texts(file.metadata.schema)
            self._batch = _batch_size(file.metadata, set(self._texts))
        super().__init__(self._rows(None, 0))

    def column(self, name: str, start: int) -> Iterator[Any] | None:
        """Return the cells of a column (see `ColumnTable`)."""
        return (row[name] for row in self._rows([name], start)) if name in self._types else None

    def _opened(self) -> Any:
        try:
            return self._pq.ParquetFile(self._path, read_dictionary=self._texts)
        except (self._pa.ArrowInvalid, OSError) as error:
            raise DatasetError(
                f"not a Parquet file: {error}", file=str(self._path), code=Code.DAMAGED_TABLE
            ) from error

    def _rows(self, columns: list[str] | None, start: int) -> Iterator[dict[str, Any]]:
        unpacked = ExpandedSize(self._path.stat().st_size, str(self._path))
        try:
            with self._opened() as file:
                for batch in file.iter_batches(batch_size=self._batch, columns=columns):
                    skipped = min(start, batch.num_rows)
                    start -= skipped
                    for part in self._parts(batch.slice(skipped), unpacked):
                        for row in part.to_pylist():
                            yield {name: plain(value) for name, value in row.items()}
        except (self._pa.ArrowException, OSError) as error:
            raise DatasetError(
                f"the Parquet file is damaged: {error}", file=str(self._path), code=Code.DAMAGED_TABLE
            ) from error

    def _parts(self, batch: Any, unpacked: ExpandedSize) -> Iterator[Any]:
        """Yield a batch in parts that are small enough to create as a whole."""
        if not batch.num_rows:
            return
        size = sum(self._size(column) for column in batch.columns)
        if size <= _BATCH_BYTES:
            unpacked.add(size)
            names = batch.schema.names
            arrays = [self._decoded(column, name) for name, column in zip(names, batch.columns, strict=True)]
            yield self._pa.RecordBatch.from_arrays(arrays, names=names)
        elif batch.num_rows == 1:
            unpacked.add(size)
            yield batch
        else:
            middle = batch.num_rows // 2
            yield from self._parts(batch.slice(0, middle), unpacked)
            yield from self._parts(batch.slice(middle), unpacked)

    def _size(self, column: Any) -> int:
        types = self._pa.types
        if types.is_dictionary(column.type):
            lengths = self._pc.binary_length(column.dictionary)
            return int(self._pc.sum(lengths.take(column.indices)).as_py() or 0) + 8 * len(column)
        if types.is_list(column.type) or types.is_large_list(column.type) or types.is_map(column.type):
            values = column.items if types.is_map(column.type) else column.flatten()
            keys = self._size(column.keys) if types.is_map(column.type) else 0
            return 8 * len(column) + keys + self._size(values)
        if types.is_struct(column.type):
            return 8 * len(column) + sum(self._size(part) for part in column.flatten())
        return int(column.nbytes)

    def _decoded(self, column: Any, name: str) -> Any:
        """Return the column in a type from which values are created faster."""
        plain_type = self._types[name]
        if column.type == plain_type:
            return column
        try:
            return column.cast(plain_type)
        except (
            self._pa.ArrowException
        ):  # Some lists of structures cannot be converted. Their values are the same.
            return column


def _texts(schema: Any) -> list[str]:
    columns = [schema.column(number) for number in range(len(schema))]
    return [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL"
    ]


def _batch_size(metadata: Any, texts: set[str]) -> int:
    """Return the number of rows per batch, so that the expanded size of the other columns fits. The file
    metadata contains the number of their values.
    """
    worst = 1.0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            column = group.column(index)
            if column.path_in_schema not in texts and group.num_rows:
                length = max(16, metadata.schema.column(index).length)
                worst = max(worst, column.num_values / group.num_rows * length)
    return max(1, min(_BATCH, int(_BATCH_BYTES / worst)))
