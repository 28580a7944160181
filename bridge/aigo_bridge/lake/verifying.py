"""Whether a lake is whole: every file that its manifest names is there, with the rows that belong to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aigo_bridge.errors import EvidenceError
from aigo_bridge.lake.layout import DATA, EVIDENCE, TABLES
from aigo_bridge.lake.manifest import State, load_state
from aigo_bridge.lake.reading import batches_of
from aigo_bridge.lake.stores import Store
from aigo_bridge.text.plurals import plural


def problems_of(store: Store) -> Iterator[str]:
    """What is wrong with a lake, one sentence each; all of it is read.

    Raises:
        EvidenceError: its manifest is damaged.
        StorageError: it cannot be read.
    """
    state = load_state(store)
    there = {one.name: one.size for one in store.list(DATA)}
    for table in TABLES:
        rows = Counter[str]()
        for source in state.sources(table):
            file = source.file
            if file.name not in there:
                yield f"{file.name}: is not there"
                continue
            try:
                count = 0
                for batch in batches_of(store, table, source):
                    rows.update(batch.column("log").to_pylist())
                    count += batch.num_rows
            except (EvidenceError, OSError) as error:
                yield str(error)
                continue
            if source.is_whole and count != file.rows:
                yield f"{file.name}: found {plural(count, 'row', form=',')}, expected {file.rows:,}"
        yield from _miscounted(state, table, rows)


def _miscounted(state: State, table: str, rows: Counter[str]) -> Iterator[str]:
    """Results that have rows of nobody, or not their own."""
    for key in sorted(rows.keys() - state.counting.keys()):
        yield f"{table}: has rows of {key}, which is no result of the lake"
    if table in ("results", EVIDENCE):
        for key in sorted(state.counting.keys() - rows.keys()):
            yield f"{table}: has no row of {key}"
    if table == "results":
        for key, count in sorted(rows.items()):
            if count != 1:
                yield f"{table}: has {plural(count, 'row')} of {key}, expected one"


def strangers(store: Store, state: State) -> list[str]:
    """Data files that belong to nothing: of imports that go on or were killed, or of superseded logs."""
    return [one.name for one in store.list(DATA) if one.name not in state.files]
