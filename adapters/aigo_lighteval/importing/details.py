"""Reader of a task's details file: checks limits, reports and skips damaged rows, and restores the document
order.

lighteval writes one row per document and request type (answers or likelihoods). Rows are grouped by request
type and shuffled.
"""

from __future__ import annotations

import base64
import re
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # no type stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]  # no type stubs
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # no type stubs

from aigo_bridge.access.bounds import Bounds, LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage
from aigo_bridge.importing.places import FileLocation
from aigo_bridge.process.pool import Worker
from aigo_bridge.text.plurals import plural
from aigo_bridge.text.summaries import named_summary_of
from aigo_lighteval.importing.footer import RowGroup, read_footer
from aigo_lighteval.importing.rows import COLUMN, DocumentRow, DocumentRows, Json

UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError, KeyError, TypeError)
"""Errors that pyarrow raises for a damaged file. Text that is not UTF-8 raises a ValueError."""

PARTS = ("doc", "model_response", "metric")
_OLD = frozenset({"full_prompt", "predictions", "gold", "metrics"})
"""Columns that only releases before 0.11 wrote."""
_SLICE = 256
"""Number of rows that are converted to Python values together."""
_BATCH_BYTES = 1 << 30
"""Maximum bytes of a batch, assuming that each row is as large as its whole column."""


class Details:
    """Rows of a details file.

    Args:
        location: path or URL of the file.
        bounds: limits on memory and time.
        note: callback for damage.
        worker: process that reads the footer.

    Raises:
        EvidenceError: the file cannot be read at all, or it exceeds the bounds.
    """

    def __init__(self, location: str, bounds: Bounds, note: Callable[[Damage], None], worker: Worker):
        self._location = location
        self._bounds = bounds
        self._note = note
        self._deadline = bounds.deadline()
        place = FileLocation.of(location)
        try:
            self._table = self._read(place, worker)
        except UNREADABLE as error:
            if isinstance(error, EvidenceError):
                raise
            raise EvidenceError(
                f"the details cannot be read: {named_summary_of(error)[:300]}", code=Code.UNREADABLE_LOG
            ) from error
        self.renamed = 0
        """Number of documents with the id of another document."""

    def _read(self, place: FileLocation, worker: Worker) -> Any:
        size = place.size()
        with place.open() as handle:
            groups = read_footer(handle, size, self._bounds.member_bytes, worker)
            handle.seek(0)
            with pq.ParquetFile(handle) as file:
                names = self._parts(file.schema_arrow)
                self._check(groups, size)
                batches: list[Any] = []
                for number, group in enumerate(groups):
                    batches += self._row_group(file, number, group, names, size)
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        return pa.concat_tables(tables, promote_options="permissive") if tables else None

    def _parts(self, schema: Any) -> list[str]:
        """Return the columns that exist, and report missing ones."""
        if "doc" not in schema.names:
            if len(_OLD & set(schema.names)) > 1:
                raise EvidenceError(
                    "the details were written by a release of lighteval before 0.11, expected 0.11 or later",
                    code=Code.OTHER_RELEASE,
                )
            raise EvidenceError(
                f"the details lack column 'doc' (found {', '.join(schema.names[:8])})", code=Code.NOT_A_LOG
            )
        if not pa.types.is_struct(schema.field("doc").type):
            raise EvidenceError(
                f"column 'doc' is {schema.field('doc').type}, expected a struct", code=Code.NOT_A_LOG
            )
        names = [
            name for name in PARTS if name in schema.names and pa.types.is_struct(schema.field(name).type)
        ]
        for name in PARTS:
            if name not in names:
                what = "is no struct" if name in schema.names else "is missing"
                self._note(Damage(self._location, None, f"column {name!r} {what}"))
        if COLUMN in schema.names and str(schema.field(COLUMN).type) in ("string", "large_string"):
            names.append(COLUMN)
        return names

    def _check(self, groups: list[RowGroup], size: int) -> None:
        values = 0
        for number, group in enumerate(groups):
            packed = sum(chunk.packed for chunk in group.chunks)
            self._bounds.check_member(f"row group {number}", group.size, packed)
            values += sum(chunk.values for chunk in group.chunks)
        # A number takes eight bytes in memory, even if the file stores a repeated value only once.
        if values * 8 > self._bounds.room(size):
            raise LogTooLargeError(
                f"the details have {plural(values, 'value', form=',')} in {size:,} bytes (raise"
                " the bound 'growth' if they"
                " are yours)"
            )

    def _row_group(self, file: Any, number: int, group: RowGroup, names: list[str], size: int) -> list[Any]:

        def rows(names: list[str]) -> list[Any] | str:
            """Return the rows with these columns, or the reason why they cannot be read."""
            try:
                return self._batches(file, number, group, names, size)
            except LogTooLargeError:
                raise
            except UNREADABLE as error:
                return named_summary_of(error)[:300]

        batches = rows(names)
        if not isinstance(batches, str):
            return batches
        where, reason = f"{self._location}: row group {number}", batches
        leaves = [chunk.path for chunk in group.chunks if chunk.path.split(".", 1)[0] in names]
        good = [leaf for leaf in leaves if not isinstance(rows([leaf]), str)]
        if any(leaf.startswith("doc.") for leaf in good):
            bad = ", ".join(leaf for leaf in leaves if leaf not in good)
            batches = rows(good)
            if not isinstance(batches, str):
                self._note(Damage(where, None, f"{bad or 'some columns'} cannot be read: {reason}"))
                return batches
            reason = batches
        self._note(Damage(where, None, f"{plural(group.rows, 'row')} cannot be read: {reason}"))
        return []

    def _batches(self, file: Any, number: int, group: RowGroup, names: list[str], size: int) -> list[Any]:
        # The file can store a value once that is repeated in every row.
        largest = max((chunk.unpacked for chunk in group.chunks), default=0)
        batch = max(1, min(512, _BATCH_BYTES // max(largest, 1)))
        room = max(self._bounds.room(size), 2 * group.size)
        batches = []
        for part in file.iter_batches(batch, row_groups=[number], columns=names, use_threads=False):
            room -= part.nbytes
            if room < 0:
                raise LogTooLargeError(
                    f"row group {number} expands to more than {self._bounds.growth:g} times its"
                    " size in memory"
                    " (raise the bound 'growth' if it is yours)"
                )
            self._check_time()
            batches.append(part)
        return batches

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise LogTooLargeError(
                f"the details take more than {self._bounds.seconds:g} seconds (raise the bound 'seconds')"
            )

    def documents(self) -> Iterator[DocumentRows]:
        """Yield every document with its rows, sorted by id if all ids are numbers, otherwise in file
        order.
        """
        if self._table is None:
            return
        table, self._table = self._table, None
        order = self._order(table)
        table = _taken(table, [number for _, numbers in order for number in numbers])
        rows = self._values(table, [number for _, numbers in order for number in numbers])
        for sample_id, numbers in order:
            document_rows = [row for row in (next(rows) for _ in numbers) if row is not None]
            if document_rows:
                yield DocumentRows(sample_id, document_rows)

    def _order(self, table: Any) -> list[tuple[str, list[int]]]:
        ids = _field(table, "id")
        texts = [f"row-{number}" if value is None else str(value) for number, value in enumerate(ids)]
        numbers_by_id: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            numbers_by_id.setdefault(text, []).append(number)
        order: list[tuple[str, list[int]]] = []
        queries: list[Any] | None = None
        metrics: list[frozenset[str]] = []
        for text, numbers in numbers_by_id.items():
            if len(numbers) == 1:
                order.append((text, numbers))
                continue
            if queries is None:
                queries, metrics = _field(table, "query"), _metric_names(table)
            same: list[list[int]] = []
            for number in numbers:
                # Rows of one document have different request types and thus different metrics. Ids are unique
                # only within a split.
                place = next(
                    (
                        group
                        for group in same
                        if queries[group[0]] == queries[number]
                        and all(not metrics[row] & metrics[number] for row in group)
                    ),
                    None,
                )
                if place is None:
                    same.append([number])
                else:
                    place.append(number)
            order.append((text, same[0]))
            for count, group in enumerate(same[1:], 2):
                self.renamed += 1
                name = f"{text}-{count}"
                while name in numbers_by_id:
                    name += "'"
                order.append((name, group))
        if all(re.fullmatch(r"\d{1,18}", text) for text in numbers_by_id):
            order.sort(key=lambda entry: int(entry[0].partition("-")[0]))
        return order

    def _values(self, table: Any, numbers: list[int]) -> Iterator[DocumentRow | None]:
        """Yield the rows of the table; `None` for an unreadable row."""
        spoiled = 0
        for start in range(0, len(numbers), _SLICE):
            self._check_time()
            slice_numbers = numbers[start : start + _SLICE]
            part = table.slice(start, len(slice_numbers))
            try:
                yield from _rows(part, slice_numbers)
                continue
            except UNREADABLE:
                pass
            for at, number in enumerate(slice_numbers):
                try:
                    rows = list(_rows(part.slice(at, 1), [number]))
                except UNREADABLE as error:
                    spoiled += 1
                    self._note(Damage(f"{self._location}: row {number}", None, named_summary_of(error)[:300]))
                    if spoiled > self._bounds.damaged:
                        raise LogTooLargeError(
                            f"more than {self._bounds.damaged:,} rows cannot be read (bound 'damaged')"
                        ) from error
                    yield None
                    continue
                yield from rows


def _rows(table: Any, numbers: list[int]) -> list[DocumentRow]:
    arrays = {name: _one(table, name) for name in PARTS if name in table.schema.names}
    odd = any(has_odd_numbers(column) for column in arrays.values())
    parts: dict[str, list[Json | None]] = {name: [None] * len(numbers) for name in PARTS}
    for name, column in arrays.items():
        columns = columns_of(column)
        if columns:
            keys = tuple(columns)
            parts[name] = [dict(zip(keys, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        else:
            parts[name] = [{} for _ in numbers]
        if column.null_count:
            valid = column.is_valid().to_pylist()
            parts[name] = [
                value if is_value else None for value, is_value in zip(parts[name], valid, strict=True)
            ]
    failures = _one(table, COLUMN).to_pylist() if COLUMN in table.schema.names else [None] * len(numbers)
    return [
        DocumentRow(number, doc, response, metric, odd, failure)
        for number, doc, response, metric, failure in zip(
            numbers, parts["doc"], parts["model_response"], parts["metric"], failures, strict=True
        )
    ]


def _one(table: Any, name: str) -> Any:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _taken(table: Any, order: list[int]) -> Any:
    if order == list(range(table.num_rows)):
        return table
    # Combine the chunks first because `take` would join them again for every column. `pa.array` is avoided
    # because it imports an installed pandas, which takes longer than the rest.
    numbers = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(array("q", order))])
    return table.combine_chunks().take(numbers)


def _field(table: Any, name: str) -> list[Any]:
    """Return a field of the documents as Python values; all `None` if the field does not exist."""
    kind = table.schema.field("doc").type
    if kind.get_field_index(name) < 0:
        return [None] * table.num_rows
    values: list[Any] = []
    for chunk in table.column("doc").chunks:
        column = chunk.flatten()[kind.get_field_index(name)]
        try:
            values += column.to_pylist()
        except ValueError:
            # Text that is not UTF-8. The affected rows are found later, row by row.
            values += [None] * len(column)
    return values


def _metric_names(table: Any) -> list[frozenset[str]]:
    if "metric" not in table.schema.names:
        return [frozenset()] * table.num_rows
    kind = table.schema.field("metric").type
    names = [field.name for field in kind]
    names_by_row: list[frozenset[str]] = []
    for chunk in table.column("metric").chunks:
        valid = [column.is_valid().to_pylist() for column in chunk.flatten()]
        names_by_row += [
            frozenset(name for name, is_value in zip(names, row, strict=True) if is_value)
            for row in zip(*valid, strict=True)
        ] or [frozenset()] * len(chunk)
    return names_by_row


# Conversion of Arrow columns to JSON-serializable Python values


_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)


def columns_of(array: Any) -> dict[str, list[Any]]:
    """Return the fields of a struct array as columns. Columns without any value are omitted.

    Raises:
        ValueError: a text is not UTF-8, or a time is out of Python's range.
    """
    return {
        field.name: values(column)
        for field, column in zip(array.type, array.flatten(), strict=True)
        if column.null_count < len(column)
    }


def values(array: Any) -> list[Any]:
    """Return the values of an array as JSON-serializable values, with bytes as `data:` URLs.

    Raises:
        ValueError: a text is not UTF-8, or a time is out of Python's range.
    """
    items: list[Any] = array.to_pylist()
    return [_without_bytes(value) for value in items] if _has(array.type, _is_binary) else items


def has_odd_numbers(array: Any) -> bool:
    """Return whether an array contains a number that is not finite, at any depth."""
    kind = array.type
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(array)).as_py() is False
    if not _has(kind, pa.types.is_floating):
        return False
    if pa.types.is_struct(kind):
        return any(has_odd_numbers(column) for column in array.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return has_odd_numbers(array.flatten())
    # lighteval does not write these types. Every value must be checked.
    return True


def _has(kind: Any, wanted: Callable[[Any], bool]) -> bool:
    return bool(wanted(kind)) or any(_has(kind.field(at).type, wanted) for at in range(kind.num_fields))


def _is_binary(kind: Any) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return data_url(value)
    if isinstance(value, dict):
        return {name: _without_bytes(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_bytes(item) for item in value]
    return value


def data_url(data: bytes) -> str:
    """Return bytes as a `data:` URL, with the type of the usual image formats."""
    kind = next((kind for sign, kind in _KINDS if data.startswith(sign)), None)
    if kind is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    return f"data:{kind or 'application/octet-stream'};base64,{base64.b64encode(data).decode()}"
