"""Rows of a dataset as planning sees them: identified, selected, complete, and within bounds; and the one
pass over a source that filters, selects, and only then completes them.

A small file can stand for a very large one: bytes that a packed file stands for are counted, and memory that
values take.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from aigo_bridge.access.opening import Bound, in_words
from aigo_bridge.codes import Code
from aigo_bridge.datasets.filtering import CompiledFilter
from aigo_bridge.datasets.spilled import Mapped, Spilled
from aigo_bridge.errors import DatasetError, Issue, TemplateError, UsageError
from aigo_bridge.text.plurals import plural

ROWS = Bound("AIGO_BRIDGE_ROWS_MIB", 2048)
"""Memory that the rows of one dataset may take, as estimated."""

FACTOR = 100
"""A packed file may stand for so many times its size; text that people or models wrote is packed to a third
or a tenth.
"""

SMALL = 8
"""A packed file may always stand for this part of the memory that rows may take."""

MOST_COLUMNS = 100_000
"""Columns of a dataset: each row gets them all."""

_CELL = 100
"""Bytes of a cell in a row, beside its value: names, places, the row's second form."""

_OBJECT = 64
"""Bytes of an empty object or list."""


class Unpacked:
    """Counts what a packed file stands for.

    Args:
        packed: bytes of the file.
        file: its name, for messages.
    """

    def __init__(self, packed: int, file: str):
        self._packed = packed
        self._file = file
        self._most = max(FACTOR * packed, ROWS.bytes // SMALL)
        self._found = 0

    def add(self, count: int) -> None:
        """So many bytes more.

        Raises:
            DatasetError: that is more than a file of that size should stand for.
        """
        self._found += count
        if self._found > self._most:
            message = (
                f"its {in_words(self._packed)} expand to more than {in_words(self._most)} of "
                f"rows; expected at most {FACTOR} times its size"
            )
            raise DatasetError(
                [
                    Issue(
                        message,
                        self._file,
                        hint=f"if you trust the file, {ROWS.hint}",
                        code=Code.TOO_MANY_ROWS,
                    )
                ]
            )


class Kept:
    """Counts what the rows that are kept take.

    Args:
        file: where they are from, for messages.
    """

    def __init__(self, file: str | None):
        self._file = file
        self._most = ROWS.bytes
        self._found = 0

    def add(self, weight: int) -> None:
        """So many bytes more, or fewer.

        Raises:
            DatasetError: that is more than rows may take.
        """
        self._found += weight
        if self._found > self._most:
            self._refuse("the selected rows take")

    def check_columns(self, rows: int, columns: int) -> None:
        """Every row gets every column.

        Raises:
            DatasetError: that is more than rows may take.
        """
        if columns > MOST_COLUMNS:
            message = f"the rows have more than {MOST_COLUMNS:,} columns"
            raise DatasetError(
                [
                    Issue(
                        message,
                        self._file,
                        hint="use values, not keys, for data that differs between rows",
                        code=Code.TOO_MANY_ROWS,
                    )
                ]
            )
        if self._found + rows * columns * _CELL > self._most:
            self._refuse(
                f"{plural(rows, 'row', form=',')} with {plural(columns, 'column', form=',')} each take"
            )

    def _refuse(self, what: str) -> None:
        message = f"{what} more than {in_words(self._most)} of memory"
        hint = f"select fewer rows (--num-samples), or {ROWS.hint}"
        raise DatasetError([Issue(message, self._file, hint=hint, code=Code.TOO_MANY_ROWS)])


def weight(value: Any) -> int:
    """Memory that a JSON value takes, about."""
    if isinstance(value, str):
        return 50 + len(value) * (1 if value.isascii() else 4)
    if isinstance(value, dict):
        return _OBJECT + sum(_CELL + weight(item) for item in value.values())
    if isinstance(value, list | tuple):
        return _OBJECT + sum(8 + weight(item) for item in value)
    return 32


def check_text(content: bytes, file: str | None, line: int | None = None) -> None:
    """Refuse JSON whose values would take more than rows may, before it is read.

    Raises:
        DatasetError: that is so.
    """
    if len(content) < 1 << 16:
        return
    parts = content.count(b"{") + content.count(b"[")
    if len(content) + parts * 2 * _OBJECT + content.count(b",") * _OBJECT // 2 > ROWS.bytes:
        message = f"its {in_words(len(content))} of JSON take more than {in_words(ROWS.bytes)} of memory"
        raise DatasetError([Issue(message, file, line, hint=ROWS.hint, code=Code.TOO_MANY_ROWS)])


Missing = Literal["nan", "none", "absent"]
"""What stands for a value a row lacks: NaN (as published scorers expect), `None`, or no key at all."""

SEED = 20_240_917
"""Seed of random subsampling; fixed, so that a run can be repeated."""

_SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One sample of a dataset."""

    sample_id: str | int
    """The row's `sample_id` column, or its 0-based number in the source (see `Rows`)."""
    data: dict[str, Any]
    """All columns, `sample_id` included; values are JSON values, or NaN for a missing one."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows of a dataset are used.

    Random subsampling gives each row a rank from a hash of the seed and the row's number and takes the lowest
    ranks, in the order of the source. That needs one pass, is the same on every machine and in every Python,
    and the 100 rows of one selection contain the 10 of a smaller one.
    """

    num_samples: int | None = None
    """Number of rows; `None`: all. More than there are means all."""
    subsampling: Literal["head", "random"] = "head"
    """The first rows, or a random choice."""
    seed: int = SEED
    """Seed of the random choice."""
    on_disk: bool = False
    """Whether the rows wait in a temporary file, for who looks at all of them and keeps a part."""

    def __post_init__(self) -> None:
        if self.num_samples is not None and self.num_samples < 1:
            raise UsageError(
                f"num_samples is {self.num_samples}, expected at least 1", code=Code.WRONG_OPTION
            )

    def rank(self, number: int) -> int:
        """The place of a row (by its number in the source) in the random order."""
        digest = hashlib.blake2b(b"%d/%d" % (self.seed, number), digest_size=8).digest()
        return int.from_bytes(digest, "big")


@dataclass(frozen=True, slots=True)
class Rows:
    """The selected rows of a dataset.

    A row's data and identity do not depend on how many rows are selected: column types, the set of columns
    and the uniqueness of ids are decided over all rows that pass the filters. `sample_id` is the column of
    that name when every row has a text or number in it and no two print the same; otherwise the row number.
    """

    rows: Sequence[Row]
    """In the order of the source; read anew each time where they are on disk."""
    columns: tuple[str, ...]
    """All columns of the rows that pass the filters, in order of first appearance."""
    total: int | None
    """Rows that pass the filters, before subsampling; `None` when not known."""
    digest: str
    """SHA-256 over the selected rows (id and data, canonical JSON, one per line), in hexadecimal."""
    warnings: tuple[Issue, ...] = ()
    """What is odd about the source but does not stop it from being used."""

    def __len__(self) -> int:
        return len(self.rows)


def digest_of(rows: Iterable[Row]) -> str:
    """SHA-256 of rows: per row one line `[sample_id,data]` of JSON with sorted keys and ASCII only."""
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode
    digest = hashlib.sha256()
    for row in rows:
        digest.update(encode([row.sample_id, row.data]).encode("ascii"))
        digest.update(b"\n")
    return digest.hexdigest()


class Problems:
    """What is wrong with the rows of one file: the first few in full, the rest counted."""

    def __init__(self, file: str | None):
        self.file = file
        self.count = 0
        self._issues: list[Issue] = []

    def add(
        self,
        message: str,
        *,
        code: Code,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
        path: Sequence[str | int] = (),
    ) -> None:
        """Note one problem; `line` is 1-based in the file."""
        self.count += 1
        if len(self._issues) < _SHOWN_PROBLEMS:
            self._issues.append(Issue(message, self.file, line, column, tuple(path), hint, code=code))

    def raise_if_any(self) -> None:
        """Raise `DatasetError` with everything noted."""
        if not self.count:
            return
        issues = list(self._issues)
        if self.count > len(issues):
            issues.append(
                Issue(f"and {self.count - len(issues):,} more problems", self.file, code=Code.TOO_MUCH)
            )
        raise DatasetError(issues)


SAMPLE_ID = "sample_id"
"""Column that identifies rows."""


class Record(NamedTuple):
    """A row as read, before its columns are typed and completed."""

    number: int
    """0-based number among the rows of the source."""
    line: int | None
    """1-based line in the file, where there is one."""
    data: dict[str, Any]
    """Cells as they stand in the source."""


class Table(Protocol):
    """A source of records that learns about its columns while it is read."""

    def records(self, problems: Problems) -> Iterator[Record]:
        """All records; what cannot be read is noted and left out."""
        ...

    def observe(self, record: Record) -> None:
        """Learn from a record that passes the filters."""
        ...

    def columns(self) -> list[str]:
        """All columns observed."""
        ...

    def complete(self, record: Record, missing: Missing) -> dict[str, Any]:
        """The data of a record, once all are observed."""
        ...


@runtime_checkable
class ColumnTable(Protocol):
    """A table that knows its columns and the number of its rows before it is read."""

    num_rows: int

    def column(self, name: str, start: int) -> Iterator[Any] | None:
        """The cells of one column, from a row on; `None` when there is no such column."""
        ...


def collect(
    table: Table,
    selection: Selection,
    *,
    filters: Sequence[CompiledFilter] = (),
    missing: Missing = "nan",
    file: str | None = None,
) -> Rows:
    """The selected rows of a table.

    Every record is read once and only selected ones are kept. Reading goes on after the last selected row on
    purpose: a broken row, a column or a second use of an id further down must not go unseen just because few
    samples were asked for. Of rows that are not selected only their ids are remembered, if they have any.
    Where a source knows its columns beforehand, nothing but the ids is read of the rows behind the last
    selected one.

    Raises `DatasetError` with all problems of all rows.
    """
    problems = Problems(file)
    memory = Kept(file)
    keep = _Keep(selection, memory)
    ids = _Ids()
    total = 0
    # Asked once: for a protocol, `isinstance` takes longer than reading a row.
    column_table = table if isinstance(table, ColumnTable) and not filters else None
    for record in table.records(problems):
        if filters and not _passes(record, filters, problems):
            continue
        total += 1
        table.observe(record)
        ids.observe(record.data.get(SAMPLE_ID))
        keep.offer(record)
        if column_table is not None and keep.is_full:
            total += _count_others(column_table, total, ids)
            break
    problems.raise_if_any()
    identified = ids.are_usable()
    columns = table.columns()
    memory.check_columns(keep.num_in_memory, len(columns))

    def row(record: Record) -> Row:
        data = table.complete(record, missing)
        return Row(_typed_id(data[SAMPLE_ID]) if identified else record.number, data)

    rows: Sequence[Row]
    if keep.spilled is None:
        rows = tuple(map(row, keep.records()))
    else:
        read = keep.spilled.read
        rows = Mapped(len(keep), lambda start, stop: (row(Record(*fields)) for fields in read(start, stop)))
    doubt = ids.doubt(total)
    warnings = () if doubt is None else (Issue(doubt, file, severity="warning", code=Code.DOUBTFUL_ROWS),)
    return Rows(rows, tuple(columns), total, digest_of(rows), warnings)


def _count_others(table: ColumnTable, start: int, ids: _Ids) -> int:
    """How many rows there are from one on; their ids are observed."""
    count = table.num_rows - start
    cells = table.column(SAMPLE_ID, start) if count else None
    for cell in cells or ():
        ids.observe(cell)
    return count


def fill(missing: Missing) -> Any:
    """The value that stands for a missing one."""
    return None if missing == "none" else math.nan


def _passes(record: Record, filters: Sequence[CompiledFilter], problems: Problems) -> bool:
    # Old files name columns directly, new ones through `sample`.
    variables = {**record.data, "sample": record.data}
    try:
        return all(rule.matches(variables) for rule in filters)
    except TemplateError as error:
        for issue in error.issues:
            problems.add(f"filter: {issue.message}", code=issue.code, line=record.line, hint=issue.hint)
        return False


class _Keep:
    """The records a selection chooses, never more than it asks for."""

    def __init__(self, selection: Selection, memory: Kept):
        self._selection = selection
        self._kept = memory
        self._head: list[Record] = []
        # The highest rank is the first to go, hence the negative ranks.
        self._heap: list[tuple[int, int, Record]] = []
        # A random choice gives up what it took before, so it stays in memory.
        on_disk = selection.on_disk and (selection.num_samples is None or selection.subsampling == "head")
        self.spilled = Spilled() if on_disk else None

    def offer(self, record: Record) -> None:
        wanted = self._selection.num_samples
        if wanted is None or self._selection.subsampling == "head":
            if wanted is None or len(self) < wanted:
                if self.spilled is not None:
                    self.spilled.append(tuple(record))
                    return
                self._kept.add(weight(record.data))
                self._head.append(record)
            return
        entry = (-self._selection.rank(record.number), -record.number, record)
        if len(self._heap) < wanted:
            self._kept.add(weight(record.data))
            heapq.heappush(self._heap, entry)
        elif entry[:2] > self._heap[0][:2]:
            self._kept.add(weight(record.data))
            given_up = heapq.heapreplace(self._heap, entry)
            self._kept.add(-weight(given_up[2].data))

    @property
    def is_full(self) -> bool:
        """Whether no further record can be chosen."""
        wanted = self._selection.num_samples
        return wanted is not None and self._selection.subsampling == "head" and len(self) >= wanted

    def __len__(self) -> int:
        return self.num_in_memory + (0 if self.spilled is None else len(self.spilled))

    @property
    def num_in_memory(self) -> int:
        return len(self._head) + len(self._heap)

    def records(self) -> list[Record]:
        return self._head or sorted((record for *_, record in self._heap), key=lambda record: record.number)


class _Ids:
    """Whether the `sample_id` column identifies every row.

    Eight bytes of hash per row, counted in 256 parts, so that a million ids take 8 MB
    (`benchmarks/data_sets.py` fails beyond a quarter of what a set of them takes). Two different ids with one
    hash would, once in tens of millions of files of that size, give row numbers instead, on every machine
    alike.
    """

    def __init__(self) -> None:
        self._usable = True
        self._found = 0
        self._hashes = [array("Q") for _ in range(256)]

    def observe(self, value: Any) -> None:
        """Take note of the cell of one row, `None` when it has none."""
        if value is None or value == "" or value != value or not isinstance(value, str | int | float):
            self._usable = False
            return
        self._found += 1
        if not self._usable:
            return
        name = str(_typed_id(value)).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(name, digest_size=8).digest()
        self._hashes[digest[0]].append(int.from_bytes(digest, "big"))

    def are_usable(self) -> bool:
        """Whether every row has an id and no two have the same."""
        return self._usable and not self._repeated()

    def doubt(self, total: int) -> str | None:
        """Why a column that is there does not identify the rows; `None` when it does, or no row has a value
        in it.
        """
        if not self._found:
            return None
        if not self._usable:
            return (
                f"{total - self._found} of {plural(total, 'row')} have no usable 'sample_id', so "
                "row numbers identify the samples"
            )
        if repeated := self._repeated():
            again = plural(repeated, "row has", "rows have")
            return f"{again} the same 'sample_id' as an earlier row, so row numbers identify the samples"
        return None

    def _repeated(self) -> int:
        return sum(len(hashes) - len(set(hashes)) for hashes in self._hashes)


def _typed_id(value: Any) -> str | int:
    return value if isinstance(value, str | int) and not isinstance(value, bool) else str(value)
