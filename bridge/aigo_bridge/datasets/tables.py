"""One pass over a source: filter, select, and only then complete the rows."""

from __future__ import annotations

import hashlib
import heapq
import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from aigo_bridge.datasets.filtering import CompiledFilter
from aigo_bridge.datasets.rows import Missing, Problems, Row, Rows, Selection, digest_of
from aigo_bridge.errors import Issue, TemplateError

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

    Raises `DatasetError` with all problems of all rows.
    """
    problems = Problems(file)
    keep = _Keep(selection)
    ids = _Ids()
    total = 0
    for record in table.records(problems):
        if filters and not _passes(record, filters, problems):
            continue
        total += 1
        table.observe(record)
        ids.observe(record.data.get(SAMPLE_ID))
        keep.offer(record)
    problems.raise_if_any()
    identified = ids.are_usable()
    rows = []
    for record in keep.records():
        data = table.complete(record, missing)
        rows.append(Row(_typed_id(data[SAMPLE_ID]) if identified else record.number, data))
    doubt = ids.doubt(total)
    warnings = () if doubt is None else (Issue(doubt, file, severity="warning"),)
    return Rows(tuple(rows), tuple(table.columns()), total, digest_of(rows), warnings)


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
            problems.add(f"filter: {issue.message}", line=record.line, hint=issue.hint)
        return False


class _Keep:
    """The records a selection chooses, never more than it asks for."""

    def __init__(self, selection: Selection):
        self._selection = selection
        self._head: list[Record] = []
        # The highest rank is the first to go, hence the negative ranks.
        self._heap: list[tuple[int, int, Record]] = []

    def offer(self, record: Record) -> None:
        wanted = self._selection.num_samples
        if wanted is None or self._selection.subsampling == "head":
            if wanted is None or len(self._head) < wanted:
                self._head.append(record)
            return
        entry = (-self._selection.rank(record.number), -record.number, record)
        if len(self._heap) < wanted:
            heapq.heappush(self._heap, entry)
        elif entry[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, entry)

    def records(self) -> list[Record]:
        return self._head or sorted((record for *_, record in self._heap), key=lambda record: record.number)


class _Ids:
    """Whether the `sample_id` column identifies every row.

    Eight bytes of hash per row, so that a million ids take 8 MB. Two different ids with one hash would, once in
    tens of millions of files of that size, give row numbers instead, on every machine alike.
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
        """Why a column that is there does not identify the rows; `None` when it does, or no row has a value in it."""
        if not self._found:
            return None
        if not self._usable:
            return (
                f"{total - self._found} of {total} rows have no usable 'sample_id',"
                " so samples are known by their row numbers"
            )
        if repeated := self._repeated():
            again = "1 row has" if repeated == 1 else f"{repeated} rows have"
            return (
                f"{again} a 'sample_id' that an earlier row has already,"
                " so samples are known by their row numbers"
            )
        return None

    def _repeated(self) -> int:
        return sum(len(hashes) - len(set(hashes)) for hashes in self._hashes)


def _typed_id(value: Any) -> str | int:
    return value if isinstance(value, str | int) and not isinstance(value, bool) else str(value)
