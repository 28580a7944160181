"""Rows of a dataset for planning: identified, selected, complete and within limits. One pass over a source
filters and selects the rows, and then completes the selected ones.

A small file can expand to a very large one. Therefore, the expanded bytes of a compressed file and the
memory of its values are counted.
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
from aigo_bridge.datasets.spill_files import LazySequence, SpillFile
from aigo_bridge.errors import DatasetError, Issue, TemplateError, UsageError
from aigo_bridge.text.plurals import plural

ROWS = Bound("AIGO_BRIDGE_ROWS_MIB", 2048)
"""Estimated memory that the rows of one dataset may use."""

FACTOR = 100
"""Maximum ratio of the expanded to the compressed size. Text is compressed to a third or a tenth."""

SMALL = 8
"""Divisor of the row memory. A compressed file may always expand to this part of it."""

MOST_COLUMNS = 100_000
"""Maximum number of columns in a dataset. Each row contains all columns."""

_CELL = 100
"""Bytes of a cell in a row in addition to its value: names, positions, the second form of the row."""

_OBJECT = 64
"""Bytes of an empty object or list."""


class ExpandedSize:
    """Counter of the expanded size of a compressed file.

    Args:
        packed: size of the file in bytes.
        file: name of the file, for messages.
    """

    def __init__(self, packed: int, file: str):
        self._packed = packed
        self._file = file
        self._most = max(FACTOR * packed, ROWS.bytes // SMALL)
        self._found = 0

    def add(self, count: int) -> None:
        """Add a number of bytes.

        Raises:
            DatasetError: the total is too large for a file of this size.
        """
        self._found += count
        if self._found > self._most:
            message = (
                f"its {in_words(self._packed)} expand to more than {in_words(self._most)} of "
                f"rows; expected at most {FACTOR} times its size"
            )
            raise DatasetError(
                message, file=self._file, hint=f"if you trust the file, {ROWS.hint}", code=Code.TOO_MANY_ROWS
            )


class MemoryBudget:
    """Counter of the memory for selected rows.

    Args:
        file: file of the rows, for messages.
    """

    def __init__(self, file: str | None):
        self._file = file
        self._most = ROWS.bytes
        self._found = 0

    def add(self, weight: int) -> None:
        """Add a number of bytes, which may be negative.

        Raises:
            DatasetError: the rows exceed the memory limit.
        """
        self._found += weight
        if self._found > self._most:
            self._refuse("the selected rows take")

    def check_columns(self, rows: int, columns: int) -> None:
        """Check the memory for all columns in every row.

        Raises:
            DatasetError: the rows exceed the memory limit.
        """
        if columns > MOST_COLUMNS:
            message = f"the rows have more than {MOST_COLUMNS:,} columns"
            raise DatasetError(
                message,
                file=self._file,
                hint="use values, not keys, for data that differs between rows",
                code=Code.TOO_MANY_ROWS,
            )
        if self._found + rows * columns * _CELL > self._most:
            self._refuse(
                f"{plural(rows, 'row', form=',')} with {plural(columns, 'column', form=',')} each take"
            )

    def _refuse(self, what: str) -> None:
        message = f"{what} more than {in_words(self._most)} of memory"
        hint = f"select fewer rows (--num-samples), or {ROWS.hint}"
        raise DatasetError(message, file=self._file, hint=hint, code=Code.TOO_MANY_ROWS)


def weight(value: Any) -> int:
    """Return the approximate memory of a JSON value."""
    if isinstance(value, str):
        return 50 + len(value) * (1 if value.isascii() else 4)
    if isinstance(value, dict):
        return _OBJECT + sum(_CELL + weight(item) for item in value.values())
    if isinstance(value, list | tuple):
        return _OBJECT + sum(8 + weight(item) for item in value)
    return 32


def check_text(content: bytes, file: str | None, line: int | None = None) -> None:
    """Check the estimated memory of JSON values before they are parsed.

    Raises:
        DatasetError: the values exceed the memory limit for rows.
    """
    if len(content) < 1 << 16:
        return
    parts = content.count(b"{") + content.count(b"[")
    if len(content) + parts * 2 * _OBJECT + content.count(b",") * _OBJECT // 2 > ROWS.bytes:
        message = f"its {in_words(len(content))} of JSON take more than {in_words(ROWS.bytes)} of memory"
        raise DatasetError(message, file=file, line=line, hint=ROWS.hint, code=Code.TOO_MANY_ROWS)


Missing = Literal["nan", "none", "absent"]
"""Representation of a value that a row lacks: NaN (as published scorers expect), `None`, or no key."""

SEED = 20_240_917
"""Seed of random subsampling; fixed, so that runs are reproducible."""

_SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One sample of a dataset."""

    sample_id: str | int
    """Value of the `sample_id` column, or the 0-based row number in the source (see `Rows`)."""
    data: dict[str, Any]
    """All columns, including `sample_id`. Values are JSON values, or NaN for a missing one."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of rows in a dataset.

    Random subsampling computes a rank for each row from a hash of the seed and the row number. The rows
    with the lowest ranks are selected, in the order of the source. This needs one pass, gives the same
    result on every machine and with every Python version, and a selection of 100 rows contains the
    selection of 10.
    """

    num_samples: int | None = None
    """Number of rows; `None` for all. A larger number than available selects all rows."""
    subsampling: Literal["head", "random"] = "head"
    """First rows, or a random selection."""
    seed: int = SEED
    """Seed of the random selection."""
    on_disk: bool = False
    """Whether the rows are kept in a temporary file, for callers that read all of them and keep a part."""

    def __post_init__(self) -> None:
        if self.num_samples is not None and self.num_samples < 1:
            raise UsageError(
                f"num_samples is {self.num_samples}, expected at least 1", code=Code.WRONG_OPTION
            )

    def rank(self, number: int) -> int:
        """Return the rank of a row (by its number in the source) in the random order."""
        digest = hashlib.blake2b(b"%d/%d" % (self.seed, number), digest_size=8).digest()
        return int.from_bytes(digest, "big")


@dataclass(frozen=True, slots=True)
class Rows:
    """Selected rows of a dataset.

    The data and id of a row do not depend on the number of selected rows. Column types, the set of columns
    and the uniqueness of ids are determined from all rows that pass the filters. `sample_id` is the column
    of that name if every row has a text or number in it and no two of them print the same. Otherwise it is
    the row number.
    """

    rows: Sequence[Row]
    """Rows in the order of the source. Rows on disk are read again each time."""
    columns: tuple[str, ...]
    """All columns of the rows that pass the filters, in order of first appearance."""
    total: int | None
    """Number of rows that pass the filters, before subsampling; `None` if unknown."""
    digest: str
    """SHA-256 checksum of the selected rows (id and data, canonical JSON, one per line), in hexadecimal."""
    warnings: tuple[Issue, ...] = ()
    """Warnings about the source that do not prevent its use."""

    def __len__(self) -> int:
        return len(self.rows)


def digest_of(rows: Iterable[Row]) -> str:
    """Return the SHA-256 checksum of rows: a line `[sample_id,data]` per row, ASCII JSON, keys sorted."""
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode
    digest = hashlib.sha256()
    for row in rows:
        digest.update(encode([row.sample_id, row.data]).encode("ascii"))
        digest.update(b"\n")
    return digest.hexdigest()


class Problems:
    """Problems of the rows in one file: the first few in full, the others counted."""

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
        """Record one problem; `line` is the line number in the file, from 1."""
        self.count += 1
        if len(self._issues) < _SHOWN_PROBLEMS:
            self._issues.append(Issue(message, self.file, line, column, tuple(path), hint, code=code))

    def raise_if_any(self) -> None:
        """Raise `DatasetError` with all recorded problems, if any."""
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


class RawRow(NamedTuple):
    """Row as read, before its columns are typed and completed."""

    number: int
    """Row number in the source, from 0."""
    line: int | None
    """Line number in the file, from 1, if available."""
    data: dict[str, Any]
    """Cells as written in the source."""


class RowTable(Protocol):
    """Source of records that determines its columns while it is read."""

    def records(self, problems: Problems) -> Iterator[RawRow]:
        """Yield all records. Unreadable ones are recorded as problems and skipped."""
        ...

    def observe(self, record: RawRow) -> None:
        """Update the columns from a record that passes the filters."""
        ...

    def columns(self) -> list[str]:
        """Return all observed columns."""
        ...

    def complete(self, record: RawRow, missing: Missing) -> dict[str, Any]:
        """Return the data of a record after all records were observed."""
        ...


@runtime_checkable
class ColumnTable(Protocol):
    """Table whose columns and number of rows are known before it is read."""

    num_rows: int

    def column(self, name: str, start: int) -> Iterator[Any] | None:
        """Return the cells of one column, from a start row; `None` if the column does not exist."""
        ...


def collect(
    table: RowTable,
    selection: Selection,
    *,
    filters: Sequence[CompiledFilter] = (),
    missing: Missing = "nan",
    file: str | None = None,
) -> Rows:
    """Return the selected rows of a table.

    Every record is read one time and only selected ones are kept. Reading continues after the last
    selected row on purpose. Otherwise, a broken row, a new column or a repeated id at the end of the file
    would be missed if few samples are requested. Of other rows, only the ids are kept, if there are any.
    If the columns of a source are known in advance, only the ids are read after the last selected row.

    Raises `DatasetError` with all problems of all rows.
    """
    problems = Problems(file)
    memory = MemoryBudget(file)
    keep = _Keep(selection, memory)
    ids = _Ids()
    total = 0
    # Check only one time, because `isinstance` with a protocol takes longer than reading a row.
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

    def row(record: RawRow) -> Row:
        data = table.complete(record, missing)
        return Row(_typed_id(data[SAMPLE_ID]) if identified else record.number, data)

    rows: Sequence[Row]
    if keep.spilled is None:
        rows = tuple(map(row, keep.records()))
    else:
        read = keep.spilled.read
        rows = LazySequence(
            len(keep), lambda start, stop: (row(RawRow(*fields)) for fields in read(start, stop))
        )
    doubt = ids.doubt(total)
    warnings = () if doubt is None else (Issue(doubt, file, severity="warning", code=Code.DOUBTFUL_ROWS),)
    return Rows(rows, tuple(columns), total, digest_of(rows), warnings)


def _count_others(table: ColumnTable, start: int, ids: _Ids) -> int:
    """Return the number of rows from a start position and observe their ids."""
    count = table.num_rows - start
    cells = table.column(SAMPLE_ID, start) if count else None
    for cell in cells or ():
        ids.observe(cell)
    return count


def fill(missing: Missing) -> Any:
    """Return the value for missing values."""
    return None if missing == "none" else math.nan


def _passes(record: RawRow, filters: Sequence[CompiledFilter], problems: Problems) -> bool:
    # Files with deprecated syntax name columns directly, current ones through `sample`.
    variables = {**record.data, "sample": record.data}
    try:
        return all(rule.matches(variables) for rule in filters)
    except TemplateError as error:
        for issue in error.issues:
            problems.add(f"filter: {issue.message}", code=issue.code, line=record.line, hint=issue.hint)
        return False


class _Keep:
    """Selected records, never more than requested."""

    def __init__(self, selection: Selection, memory: MemoryBudget):
        self._selection = selection
        self._kept = memory
        self._head: list[RawRow] = []
        # The heap removes the highest rank first, hence the negative ranks.
        self._heap: list[tuple[int, int, RawRow]] = []
        # A random selection discards earlier records, so it stays in memory.
        on_disk = selection.on_disk and (selection.num_samples is None or selection.subsampling == "head")
        self.spilled = SpillFile() if on_disk else None

    def offer(self, record: RawRow) -> None:
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
        """Whether the selection is complete."""
        wanted = self._selection.num_samples
        return wanted is not None and self._selection.subsampling == "head" and len(self) >= wanted

    def __len__(self) -> int:
        return self.num_in_memory + (0 if self.spilled is None else len(self.spilled))

    @property
    def num_in_memory(self) -> int:
        return len(self._head) + len(self._heap)

    def records(self) -> list[RawRow]:
        return self._head or sorted((record for *_, record in self._heap), key=lambda record: record.number)


class _Ids:
    """Check whether the `sample_id` column identifies every row.

    It stores eight bytes of hash per row in 256 parts, so that a million ids use 8 MB
    (`benchmarks/data_sets.py` fails above a quarter of the memory of a set). Two different ids with the
    same hash occur in one of tens of millions of files of that size. Row numbers are then used instead, on
    every machine.
    """

    def __init__(self) -> None:
        self._usable = True
        self._found = 0
        self._hashes = [array("Q") for _ in range(256)]

    def observe(self, value: Any) -> None:
        """Observe the cell of one row; `None` if it is missing."""
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
        """Return whether every row has a unique id."""
        return self._usable and not self._repeated()

    def doubt(self, total: int) -> str | None:
        """Return why an existing column does not identify the rows; `None` if it does, or if it is empty in
        all rows.
        """
        if not self._found:
            return None
        if not self._usable:
            return (
                f"'sample_id' is missing or unusable in {total - self._found} of {plural(total, 'row')}, so "
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
