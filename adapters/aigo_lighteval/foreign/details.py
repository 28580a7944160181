"""The details file of a task: its rows read within bounds, what is damaged left out and named, put in the order of the documents.

lighteval writes a row for each document and way of asking (answers, likelihoods), all rows of one way after the other, in an order of its own.
"""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships none
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import Bounds, TooLargeError
from aigo_bridge.importing.damage import Damage

from .columns import columns_of, has_odd_numbers
from .failures import COLUMN
from .finding import Place
from .footer import RowGroup, read_footer
from .rows import Asked, Json, Row

UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError, KeyError, TypeError)
"""What pyarrow raises at a damaged file; texts that are no UTF-8 are ValueErrors."""

PARTS = ("doc", "model_response", "metric")
_OLD = frozenset({"full_prompt", "predictions", "gold", "metrics"})
"""Columns that only releases before 0.11 wrote."""
_SLICE = 256
"""Rows that are turned into Python values at a time."""
_BATCH_BYTES = 1 << 30
"""What the rows of one batch may come to when every one of them is as large as its whole column."""


class Details:
    """The rows of a details file.

    Args:
        location: where the file is.
        bounds: what it may ask of the machine.
        note: told of what could not be read.

    Raises:
        EvidenceError: nothing can be read, or more is asked for than the bounds allow.
    """

    def __init__(self, location: str, bounds: Bounds, note: Callable[[Damage], None]):
        self._location = location
        self._bounds = bounds
        self._note = note
        self._deadline = bounds.deadline()
        place = Place.of(location)
        try:
            self._table = self._read(place)
        except UNREADABLE as error:
            if isinstance(error, EvidenceError):
                raise
            raise EvidenceError(f"the details cannot be read: {_first_line(error)}") from error
        self.renamed = 0
        """Documents whose id another document has."""

    def _read(self, place: Place) -> Any:
        size = place.size()
        with place.open() as handle:
            groups = read_footer(handle, size, self._bounds.member_bytes)
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
        """The columns that are there; the others are noted."""
        if "doc" not in schema.names:
            if len(_OLD & set(schema.names)) > 1:
                raise EvidenceError(
                    "the details were written by a release of lighteval before 0.11, expected 0.11 or later"
                )
            raise EvidenceError(f"the details have no column 'doc' (found {', '.join(schema.names[:8])})")
        if not pa.types.is_struct(schema.field("doc").type):
            raise EvidenceError(f"column 'doc' is {schema.field('doc').type}, expected a struct")
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
        # A number takes eight bytes of memory, however often it is repeated in the file.
        if values * 8 > self._bounds.room(size):
            raise TooLargeError(
                f"the details have {values:,} values in {size:,} bytes (raise the bound 'growth' if they are yours)"
            )

    def _row_group(self, file: Any, number: int, group: RowGroup, names: list[str], size: int) -> list[Any]:
        """The rows of one group, as far as they can be read."""
        try:
            return self._batches(file, number, group, names, size)
        except UNREADABLE as error:
            if isinstance(error, TooLargeError):
                raise
            where, reason = f"{self._location}: row group {number}", _first_line(error)
        leaves = [chunk.path for chunk in group.chunks if chunk.path.split(".", 1)[0] in names]
        good = [leaf for leaf in leaves if self._readable(file, number, group, leaf, size)]
        if any(leaf.startswith("doc.") for leaf in good):
            bad = ", ".join(leaf for leaf in leaves if leaf not in good)
            try:
                found = self._batches(file, number, group, good, size)
            except UNREADABLE as error:
                if isinstance(error, TooLargeError):
                    raise
                reason = _first_line(error)
            else:
                self._note(Damage(where, None, f"{bad or 'some columns'} cannot be read: {reason}"))
                return found
        self._note(Damage(where, None, f"{group.rows} rows cannot be read: {reason}"))
        return []

    def _readable(self, file: Any, number: int, group: RowGroup, leaf: str, size: int) -> bool:
        try:
            self._batches(file, number, group, [leaf], size)
        except UNREADABLE as error:
            if isinstance(error, TooLargeError):
                raise
            return False
        return True

    def _batches(self, file: Any, number: int, group: RowGroup, names: list[str], size: int) -> list[Any]:
        # A value that stands once in the file may be that of every row.
        largest = max((chunk.unpacked for chunk in group.chunks), default=0)
        batch = max(1, min(512, _BATCH_BYTES // max(largest, 1)))
        room = max(self._bounds.room(size), 2 * group.size)
        batches = []
        for part in file.iter_batches(batch, row_groups=[number], columns=names, use_threads=False):
            room -= part.nbytes
            if room < 0:
                raise TooLargeError(
                    f"row group {number} comes to more than {self._bounds.growth:g} times its size in memory"
                    " (raise the bound 'growth' if it is yours)"
                )
            self._check_time()
            batches.append(part)
        return batches

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TooLargeError(
                f"the details take more than {self._bounds.seconds:g} seconds (raise the bound 'seconds')"
            )

    def documents(self) -> Iterator[Asked]:
        """Every document with its rows, in the order of the ids where these are numbers, else of the file."""
        if self._table is None:
            return
        table, self._table = self._table, None
        order = self._order(table)
        table = _taken(table, [number for _, numbers in order for number in numbers])
        rows = self._values(table, [number for _, numbers in order for number in numbers])
        for sample_id, numbers in order:
            found = [row for row in (next(rows) for _ in numbers) if row is not None]
            if found:
                yield Asked(sample_id, found)

    def _order(self, table: Any) -> list[tuple[str, list[int]]]:
        ids = _field(table, "id")
        texts = [f"row-{number}" if value is None else str(value) for number, value in enumerate(ids)]
        first: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            first.setdefault(text, []).append(number)
        found: list[tuple[str, list[int]]] = []
        queries: list[Any] | None = None
        metrics: list[frozenset[str]] = []
        for text, numbers in first.items():
            if len(numbers) == 1:
                found.append((text, numbers))
                continue
            if queries is None:
                queries, metrics = _field(table, "query"), _metric_names(table)
            same: list[list[int]] = []
            for number in numbers:
                # Rows of one document ask in different ways and so have different metrics; ids are unique within a split only.
                place = next(
                    (
                        group
                        for group in same
                        if queries[group[0]] == queries[number]
                        and all(not metrics[other] & metrics[number] for other in group)
                    ),
                    None,
                )
                if place is None:
                    same.append([number])
                else:
                    place.append(number)
            found.append((text, same[0]))
            for count, group in enumerate(same[1:], 2):
                self.renamed += 1
                name = f"{text}-{count}"
                while name in first:
                    name += "'"
                found.append((name, group))
        if all(re.fullmatch(r"\d{1,18}", text) for text in first):
            found.sort(key=lambda entry: int(entry[0].partition("-")[0]))
        return found

    def _values(self, table: Any, numbers: list[int]) -> Iterator[Row | None]:
        """The rows of the table; `None` for those that cannot be had."""
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
                    found = list(_rows(part.slice(at, 1), [number]))
                except UNREADABLE as error:
                    spoiled += 1
                    self._note(Damage(f"{self._location}: row {number}", None, _first_line(error)))
                    if spoiled > self._bounds.damaged:
                        raise TooLargeError(
                            f"more than {self._bounds.damaged:,} rows cannot be read (bound 'damaged')"
                        ) from error
                    yield None
                    continue
                yield from found


def _rows(table: Any, numbers: list[int]) -> list[Row]:
    arrays = {name: _one(table, name) for name in PARTS if name in table.schema.names}
    odd = any(has_odd_numbers(found) for found in arrays.values())
    parts: dict[str, list[Json | None]] = {name: [None] * len(numbers) for name in PARTS}
    for name, found in arrays.items():
        columns = columns_of(found)
        if columns:
            keys = tuple(columns)
            parts[name] = [dict(zip(keys, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        else:
            parts[name] = [{} for _ in numbers]
        if found.null_count:
            valid = found.is_valid().to_pylist()
            parts[name] = [value if there else None for value, there in zip(parts[name], valid, strict=True)]
    failures = _one(table, COLUMN).to_pylist() if COLUMN in table.schema.names else [None] * len(numbers)
    return [
        Row(number, doc, response, metric, odd, failure)
        for number, doc, response, metric, failure in zip(
            numbers, parts["doc"], parts["model_response"], parts["metric"], failures, strict=True
        )
    ]


def _one(table: Any, name: str) -> Any:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _taken(table: Any, order: list[int]) -> Any:
    """The rows of a table in another order."""
    if order == list(range(table.num_rows)):
        return table
    # One piece, because `take` joins the pieces anew for every column otherwise.
    # `pa.array` would import pandas where it is installed, which takes longer than all the rest.
    numbers = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(array("q", order))])
    return table.combine_chunks().take(numbers)


def _field(table: Any, name: str) -> list[Any]:
    """A field of the documents as Python values; nothing but `None` where there is none."""
    kind = table.schema.field("doc").type
    if kind.get_field_index(name) < 0:
        return [None] * table.num_rows
    found: list[Any] = []
    for chunk in table.column("doc").chunks:
        column = chunk.flatten()[kind.get_field_index(name)]
        try:
            found += column.to_pylist()
        except ValueError:
            # Texts that are no UTF-8: which rows they spoil is found out row by row.
            found += [None] * len(column)
    return found


def _metric_names(table: Any) -> list[frozenset[str]]:
    """Names of the metrics that each row has."""
    if "metric" not in table.schema.names:
        return [frozenset()] * table.num_rows
    kind = table.schema.field("metric").type
    names = [field.name for field in kind]
    found: list[frozenset[str]] = []
    for chunk in table.column("metric").chunks:
        valid = [column.is_valid().to_pylist() for column in chunk.flatten()]
        found += [
            frozenset(name for name, there in zip(names, row, strict=True) if there)
            for row in zip(*valid, strict=True)
        ] or [frozenset()] * len(chunk)
    return found


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300]}" if text else type(error).__name__
