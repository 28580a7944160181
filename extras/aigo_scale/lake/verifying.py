"""Check of a lake: every result has exactly the rows that its import wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from aigo_bridge.errors import EvidenceError
from aigo_bridge.text.plurals import plural
from aigo_scale.lake.commits import LakeState, load_state
from aigo_scale.lake.files import LakeFiles
from aigo_scale.lake.tables import EVIDENCE, TABLES, arrow_schema, dataset_of, use_delta

_ROWS = 20_000


def problems_of(files: LakeFiles) -> Iterator[str]:
    """Yield the problems of a lake, one sentence each. All data files are read.

    Raises:
        EvidenceError: a table cannot be opened.
        StorageError: the storage cannot be read.
    """
    state = load_state(files)
    for table in TABLES:
        rows, size = Counter[str](), Counter[str]()
        fragments = list(dataset_of(files, table, state.tables[table]).get_fragments())
        is_readable = True
        for fragment in fragments:
            try:
                counted = use_delta(files, f"{table}/{fragment.path}", partial(_count, table, fragment))
            except EvidenceError as error:
                yield str(error)
                is_readable = False
            else:
                rows.update(counted[0])
                size.update(counted[1])
        yield from _miscounted(state, table, rows, is_readable=is_readable)
        if table == EVIDENCE and is_readable:
            for key, result in state.counting.items():
                if size[key] != sum(result.parts):
                    yield f"{table}: {key} has {size[key]:,} bytes, expected {sum(result.parts):,}"


def _count(table: str, fragment: Any) -> tuple[Counter[str], Counter[str]]:
    """Return the number of rows and of evidence bytes in a data file, by result."""
    from pyarrow import compute  # type: ignore[import-untyped]  # untyped

    rows, size = Counter[str](), Counter[str]()
    for batch in fragment.to_batches(schema=arrow_schema(table), batch_size=_ROWS):
        keys = batch.column("log").to_pylist()
        rows.update(keys)
        if table == EVIDENCE:
            for key, length in zip(
                keys, compute.binary_length(batch.column("line")).to_pylist(), strict=True
            ):
                size[key] += length or 0
    return rows, size


def _miscounted(state: LakeState, table: str, rows: Counter[str], *, is_readable: bool) -> Iterator[str]:
    """Yield the results with missing or additional rows. Missing rows are only known if all files are
    readable.
    """
    allowed = {one.key: one.rows(table) for one in (*state.superseded, *state.unfinished)}
    expected = {key: result.rows(table) for key, result in state.counting.items()}
    for key in sorted(rows.keys() - expected.keys(), key=str):
        if rows[key] != allowed.get(key):
            found = plural(rows[key], "row", form=",")
            yield f"{table}: has {found} of {key!r}, which is not a result of the lake"
    for key, count in expected.items():
        if rows[key] > count or (is_readable and rows[key] < count):
            yield f"{table}: has {plural(rows[key], 'row', form=',')} of {key}, expected {count:,}"
