"""Many small files of a lake as few large ones: written beside them, in force from one moment to the next;
only then are the small ones removed.

A reader sees the lake as it was or as it is then, by the manifest. Killed before that moment, new files are
nobody's; killed after it, old ones are. Either are removed by the next compaction.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.lake.layout import COMPACTED, DATA, TABLES, arrow_schema, data_file, entry_name
from aigo_bridge.lake.manifest import (
    Base,
    Cell,
    DataFile,
    Result,
    Source,
    State,
    commit_base,
    load_state,
    without_files,
)
from aigo_bridge.lake.reading import batches_of
from aigo_bridge.lake.stores import Bucket, Folder, Store
from aigo_bridge.lake.writing import Writer
from aigo_bridge.process.locks import CLOSED_IN_CHILDREN, lock_if_possible
from aigo_bridge.storage.mirrored import named

LARGEST = 256 << 20
"""Bytes of a compacted file, about: it ends with the run that is being written then."""
ABANDONED = 24 * 3600.0
"""Seconds after which a file that no entry names is nobody's: an import that still writes is younger."""
_LOCK = ".compacting.lock"
_PART = re.compile(r"\d{9}-\d+")
_GROUP_ROWS, _GROUP_BYTES = 100_000, 32 << 20


@dataclass(frozen=True)
class Compacted:
    """What a compaction did."""

    results: int
    superseded: int
    """Results that are gone, as improved logs have replaced them."""
    before: int
    after: int
    """Data files."""
    removed: int
    """Files that nothing named."""


def compact(location: str, store: Store, note: Callable[[str], None]) -> Compacted:
    """Compact a lake.

    Args:
        location: of the lake, for messages.
        store: its files.
        note: is told what a person may want to know.

    Raises:
        UsageError: another compaction is at work.
        EvidenceError: the lake is damaged; nothing was changed.
        StorageError: it cannot be read or written.
    """
    with _alone(store, note) as is_alone:
        state = load_state(store)
        number = state.number + 1
        cells = tuple(_cells(store, state, number))
        fresh = {file.name for cell in cells for file in cell.files}
        kept = {key for cell in cells for key in cell.keys}
        changed = bool(state.uncompacted) or bool(fresh - state.files) or bool(state.files - fresh)
        if changed:
            if not is_alone():
                raise UsageError(
                    f"another compaction has begun in {named(location)}: this one changed nothing",
                    code=Code.PLACE_IN_USE,
                )
            entries = tuple(without_files(entry) for entry in state.entries.values())
            commit_base(store, Base(number=number, entries=entries, cells=cells))
        removed = _clear_away(store, state, changed)
    before = len(state.files)
    superseded = sum(result.key not in kept for result in state.superseded)
    return Compacted(len(state.counting), superseded, before, len(fresh), removed)


# One at a time


@contextmanager
def _alone(store: Store, note: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    if isinstance(store, Folder):
        with _locked(store):
            yield lambda: True
        return
    assert isinstance(store, Bucket)
    from aigo_bridge.storage.leases import Lease, lease_seconds

    lease = Lease(store.root)
    lease.get(note)
    stopped = threading.Event()

    def renewed() -> None:
        while not stopped.wait(lease_seconds() / 4):
            with suppress(BridgeError):
                lease.renew()

    keeper = threading.Thread(target=renewed, daemon=True)
    keeper.start()
    try:
        yield lambda: lease.is_sole
    finally:
        stopped.set()
        keeper.join()
        with suppress(BridgeError):
            lease.give_back()


@contextmanager
def _locked(store: Folder) -> Iterator[None]:
    handle = os.open(store.root / _LOCK, os.O_RDWR | os.O_CREAT | CLOSED_IN_CHILDREN, 0o666)
    try:
        try:
            lock_if_possible(handle)
        except BlockingIOError as error:
            raise UsageError(
                f"another compaction is at work in {named(str(store))}: wait for its end, nothing changed",
                code=Code.PLACE_IN_USE,
            ) from error
        yield
    finally:
        os.close(handle)


# Cells


def _cells(store: Store, state: State, number: int) -> Iterator[Cell]:
    """The results that count by task and model, as large files; what is so already stays."""
    groups: dict[tuple[str | None, str | None], list[Result]] = {}
    for result in state.counting.values():
        groups.setdefault((result.task, result.model), []).append(result)
    for (task, model), results in groups.items():
        keys = frozenset(result.key for result in results)
        earlier = [cell for cell in state.cells if keys == frozenset(cell.keys)]
        if earlier:
            yield earlier[0]
            continue
        files = tuple(
            file
            for table in TABLES
            for file in _merged(store, table, _sources(state, table, results), (task, model), number)
        )
        yield Cell(task=task, model=model, keys=tuple(result.key for result in results), files=files)


def _sources(state: State, table: str, results: Sequence[Result]) -> list[Source]:
    """Files of a table that have rows of some results, in the order of their runs."""
    meant = {result.key for result in results}
    found = [source for source in state.sources(table) if source.keys & meant]
    order = {result.key: position for position, result in enumerate(results)}
    return sorted(found, key=lambda source: min(order[key] for key in source.keys if key in order))


def _merged(
    store: Store,
    table: str,
    sources: Sequence[Source],
    cell: tuple[str | None, str | None],
    number: int,
) -> Iterator[DataFile]:
    """Files with the rows of others, each large."""
    part, waiting = 0, list(sources)
    while waiting:
        with ExitStack() as stack:
            name = data_file(table, *cell, COMPACTED, f"{number:09d}-{part}")
            writer = Writer(store, table, name, stack)
            size = 0
            groups = _Groups(writer, table)
            while waiting and (not size or size + waiting[0].file.size <= LARGEST):
                source = waiting.pop(0)
                size += source.file.size
                for batch in batches_of(store, table, source):
                    groups.add(batch)
            groups.end()
            yield writer.end()
        part += 1


class _Groups:
    """Batches of many small files, written together."""

    def __init__(self, writer: Writer, table: str):
        self._writer = writer
        self._schema: Any = arrow_schema(table)
        self._batches: list[Any] = []
        self._rows = self._bytes = 0

    def add(self, batch: Any) -> None:
        self._batches.append(self._whole(batch))
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self.end()

    def _whole(self, batch: Any) -> Any:
        """Return a batch with all columns; a column that an earlier release did not write is null."""
        import pyarrow as pa  # type: ignore[import-untyped]  # has no types

        arrays = [
            batch.column(field.name)
            if field.name in batch.schema.names
            else pa.nulls(batch.num_rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def end(self) -> None:
        if self._batches:
            import pyarrow as pa

            self._writer.add_batch(pa.Table.from_batches(self._batches, schema=self._schema))
            self._batches, self._rows, self._bytes = [], 0, 0


# What is nobody's


def _clear_away(store: Store, earlier: State, changed: bool) -> int:
    """Remove what the compaction has replaced, and what nothing names; how many files of the latter."""
    state = load_state(store) if changed else earlier
    for name in state.leftover:
        store.remove(name)
    if changed:
        for digest in earlier.uncompacted:
            store.remove(entry_name(digest))
    replaced = earlier.files | {file.name for one in earlier.superseded for file in one.files}
    known = {key for entry in state.entries.values() for key in (one.key for one in entry.results)}
    now, count = time.time(), 0
    for one in store.list(DATA):
        if one.name in state.files:
            continue
        stem = one.name.rpartition("/")[2].removesuffix(".parquet")
        is_compacted = _PART.fullmatch(stem) is not None
        # A log that the manifest has is written by nobody, or in vain.
        if is_compacted or stem.partition(".")[0] in known or now - one.modified > ABANDONED:
            store.remove(one.name)
            count += one.name not in replaced
    return count
