"""Commits of a lake: the list of its logs, and a protocol that adds their rows to all tables or to none.

The table `logs` is written first, with the data files of each log. That is the commit. Each other table
follows in one Delta transaction, which also records the number of the last added batch. After a crash, the
next import or compaction completes missing steps. Until then, readers ignore such logs.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_scale.lake.files import LakeFiles, damaged
from aigo_scale.lake.tables import (
    KEYS,
    LOGS,
    PARTITIONS,
    TABLES,
    add_columns,
    arrow_schema,
    check_names,
    columns_of,
    dataset_of,
    open_table,
    part_name,
    use_delta,
)

_APP = "aigo-bridge"
"""Application id of the Delta transactions that record a table's batch number."""
_TRIES = 20
_MAX_STATISTIC = 100
_KEYS_TOGETHER = 500
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DATA_FILE = re.compile(r"[0-9a-f]{32}-\d{1,6}(\.\d{1,6})?-[0-9a-f]{32}\.parquet")


class DataFile(msgspec.Struct, frozen=True):
    """Parquet file with rows of one result, written by an import."""

    table: str
    name: str
    rows: int
    size: int


class LakeResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a log."""

    key: str
    """Checksum of the log and number of the result in it. It is the value of the column `log`."""
    run_id: str
    task: str | None
    model: str | None
    status: str
    samples: int
    failed: int
    started_at: str | None
    ended_at: str | None
    is_superseded: bool
    """Whether a later attempt of the run exists, according to the evidence."""
    suffix: Literal[".tasklog.json", ".tasklog.jsonl"]
    parts: tuple[int, ...]
    """Size of the result log in bytes, by range of samples."""
    files: tuple[DataFile, ...]

    @property
    def rank(self) -> tuple[bool, int, int, str, str]:
        """Return the rank among results of one run. The highest rank counts.

        The criteria in order are: not superseded, most samples without an error, most samples, latest end,
        and key.
        """
        done = self.samples - self.failed
        return not self.is_superseded, done, self.samples, self.ended_at or "", self.key

    @property
    def run(self) -> tuple[str, str | None, str | None]:
        """Return the identity of the run. One of its results counts."""
        return self.run_id, self.task, self.model

    @property
    def partitions(self) -> dict[str, str | None]:
        """Return the values of the partition columns."""
        return dict(zip(PARTITIONS, (part_name(self.task), part_name(self.model)), strict=True))

    def rows(self, table: str) -> int:
        """Return the number of rows that the result has in a table."""
        return sum(file.rows for file in self.files if file.table == table)


class LakeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Imported log."""

    digest: str
    location: str
    mark: str
    """Version of the object in the storage; empty if unknown."""
    status: str
    results: tuple[LakeResult, ...]
    damage: int = 0
    lost: int = 0
    batch: int = 0


@dataclass(frozen=True)
class PartitionSelection:
    """Partitions of a lake that the user selected; `None`: all."""

    task: str | None = None
    model: str | None = None
    run: str | None = None

    def has(self, result: LakeResult) -> bool:
        """Return whether a result is in these partitions."""
        wanted = zip(
            (self.task, self.model, self.run), (result.task, result.model, result.run_id), strict=True
        )
        return all(one is None or one == part_name(value) for one, value in wanted)

    @property
    def path(self) -> str:
        """Return the selection as a path suffix of the lake."""
        parts = zip(KEYS, (self.task, self.model, self.run), strict=True)
        return "".join(f"/{key}={value}" for key, value in parts if value is not None)


@dataclass(frozen=True)
class LakeState:
    """Content of a lake at one moment."""

    tables: Mapping[str, Any]
    """Opened Delta tables by name."""
    entries: Mapping[str, LakeEntry]
    """Imported logs by checksum."""
    counting: Mapping[str, LakeResult] = field(default_factory=dict)
    """Results that count, by key. They are ordered by task, model and run."""
    superseded: tuple[LakeResult, ...] = ()
    """Results that a better log of the run has replaced."""
    unfinished: tuple[LakeResult, ...] = ()
    """Results of an interrupted import, whose rows are missing in some tables."""

    def results(self, selection: PartitionSelection | None = None) -> list[LakeResult]:
        """Return the selected results that count."""
        return [
            result for result in self.counting.values() if (selection or PartitionSelection()).has(result)
        ]

    @property
    def log_files(self) -> tuple[str, ...]:
        """Return the data files of the table `logs`, with which other processes find the known logs."""
        return tuple(file_sizes(self.tables[LOGS]))


def file_sizes(delta: Any) -> dict[str, int]:
    """Return the names and sizes in bytes of a table's data files, as listed in its log."""
    actions = delta.get_add_actions()
    columns = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    return dict(zip(*columns, strict=True))


def load_state(files: LakeFiles) -> LakeState:
    """Return the content of a lake, with all tables from the same moment.

    Raises:
        EvidenceError: a table is damaged or names files outside the lake.
        UsageError: the lake belongs to another release, or other processes change it continuously.
        StorageError: the storage cannot be read.
    """
    tables = {name: open_table(files, name, to_append=True) for name in (*TABLES, LOGS)}
    for _ in range(_TRIES):
        versions = [delta.version() for delta in tables.values()]
        for name, delta in tables.items():
            use_delta(files, name, delta.update_incremental)
        if versions == [delta.version() for delta in tables.values()]:
            for name, delta in tables.items():
                check_names(files, name, delta)
            return _state(files, tables)
    raise _busy(files)


def _state(files: LakeFiles, tables: Mapping[str, Any]) -> LakeState:
    complete = min(_batch_of(tables[name]) for name in TABLES)
    entries: dict[str, LakeEntry] = {}
    for entry in _entries(files, tables[LOGS]):
        entries.setdefault(entry.digest, entry)
    best: dict[tuple[str, str | None, str | None], LakeResult] = {}
    finished = [result for one in entries.values() if one.batch <= complete for result in one.results]
    for result in finished:
        other = best.get(result.run)
        if other is None or other.rank < result.rank:
            best[result.run] = result
    ordered = sorted(best.values(), key=lambda one: (one.task or "", one.model or "", one.run_id))
    counting = {result.key: result for result in ordered}
    return LakeState(
        tables,
        entries,
        counting,
        tuple(result for result in finished if result.key not in counting),
        tuple(result for one in entries.values() if one.batch > complete for result in one.results),
    )


def _batch_of(delta: Any) -> int:
    return delta.transaction_version(_APP) or 0


def _entries(files: LakeFiles, logs: Any, after: int = 0) -> Iterator[LakeEntry]:
    """Yield the imported logs of later batches, oldest first."""
    from pyarrow import dataset  # type: ignore[import-untyped]  # untyped

    rows = _rows(files, LOGS, logs, filter=dataset.field("batch") > after)
    rows.sort(key=lambda row: (row["batch"], str(row["digest"])))
    for row in rows:
        try:
            results = msgspec.json.decode(row["results"] or "null", type=tuple[LakeResult, ...])
            entry = msgspec.convert({**row, "results": ()}, LakeEntry)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise damaged(f"{files}/{LOGS}", f"found a row that is not an imported log: {error}") from error
        entry = msgspec.structs.replace(entry, results=results)
        if not _is_sound(entry):
            raise damaged(
                f"{files}/{LOGS}",
                f"found digests or file names that an import does not write, in the row of {entry.digest!r}",
                "the lake was changed by another program; no data file was read or deleted",
            )
        yield entry


def _is_sound(entry: LakeEntry) -> bool:
    """Return whether checksums and file names of an imported log have the form that imports write."""
    keys = [f"{entry.digest[:32]}-{number}" for number in range(len(entry.results))]
    return (
        _DIGEST.fullmatch(entry.digest) is not None
        and [result.key for result in entry.results] == keys
        and all(
            file.table in TABLES and _DATA_FILE.fullmatch(file.name) and file.rows >= 0 and file.size >= 0
            for result in entry.results
            for file in result.files
        )
        and all(size >= 0 for result in entry.results for size in result.parts)
    )


def _rows(files: LakeFiles, table: str, delta: Any, **options: Any) -> list[dict[str, Any]]:
    """Return rows of a table. `columns` and `filter` are Arrow's arguments."""
    content = dataset_of(files, table, delta)
    return use_delta(files, table, lambda: list(content.to_table(**options).to_pylist()))


def known_digests(files: LakeFiles, names: Iterable[str]) -> frozenset[str]:
    """Return the checksums in data files of the table `logs`. This also works in forked processes.

    Raises:
        StorageError: the storage cannot be read.
    """
    import pyarrow as pa
    from pyarrow import parquet

    digests = set[str]()
    for name in names:
        content = pa.BufferReader(files.read(f"{LOGS}/{name}"))
        digests.update(parquet.read_table(content, columns=["digest"]).column("digest").to_pylist())
    return frozenset(digests)


# Writing


def commit_logs(files: LakeFiles, entries: Sequence[LakeEntry]) -> set[str]:
    """Add logs with existing data files to a lake. Return the checksums of the added logs.

    Raises:
        EvidenceError: the lake is damaged.
        UsageError: other processes change the lake continuously.
        StorageError: the lake cannot be written.
    """
    import pyarrow as pa
    from deltalake import CommitProperties, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError

    import_rows = [_row(entry) for entry in {entry.digest: entry for entry in entries}.values()]
    for _ in range(_TRIES):
        logs = open_table(files, LOGS)
        ours, known = _own_and_known(files, logs, import_rows)
        fresh = [row for row in import_rows if row["digest"] not in ours | known]
        if not fresh:
            complete(files)
            return ours
        batch = _batch_of(logs) + 1
        table = pa.Table.from_pylist([{**row, "batch": batch} for row in fresh], schema=arrow_schema(LOGS))
        options: dict[str, Any] = {
            "mode": "append",
            "commit_properties": CommitProperties(app_transactions=[Transaction(_APP, batch)]),
        }
        # If another import was faster or the storage's response was lost, the next iteration finds out.
        with suppress(CommitFailedError):
            use_delta(files, LOGS, lambda: write_deltalake(logs, table, **options))  # noqa: B023  # called in this iteration
    raise _busy(files)


def _own_and_known(files: LakeFiles, logs: Any, rows: Sequence[dict[str, Any]]) -> tuple[set[str], set[str]]:
    """Return the checksums of these rows that are in the table `logs`, and of logs from another import."""
    from pyarrow import dataset

    digests = dataset.field("digest").isin([row["digest"] for row in rows])
    found = _rows(files, LOGS, logs, columns=["digest", "results"], filter=digests)
    there = {(row["digest"], row["results"]) for row in found}
    ours = {row["digest"] for row in rows if (row["digest"], row["results"]) in there}
    return ours, {digest for digest, _ in there} - ours


def _row(entry: LakeEntry) -> dict[str, Any]:
    values = {column.name: getattr(entry, column.name) for column in columns_of(LOGS)}
    return {**values, "results": msgspec.json.encode(entry.results).decode()}


def complete(files: LakeFiles) -> None:
    """Add the data files of all committed logs to the tables that lack them.

    Raises:
        EvidenceError: the lake is damaged.
        UsageError: other processes change the lake continuously.
        StorageError: the lake cannot be written.
    """
    logs = open_table(files, LOGS)
    last = _batch_of(logs)
    entries: dict[int, list[LakeEntry]] = {}
    for table in TABLES:
        for _ in range(_TRIES):
            delta = open_table(files, table, to_append=True)
            done = _batch_of(delta)
            if done >= last:
                break
            if add_columns(files, table, delta):
                continue
            if done not in entries:
                entries[done] = list(_entries(files, logs, done))
            if _append(files, table, delta, entries[done], last):
                break
        else:
            raise _busy(files)


def _append(files: LakeFiles, table: str, delta: Any, entries: Sequence[LakeEntry], batch: int) -> bool:
    """Add data files to a table. Return `False` if another process has changed it at the same time."""
    from deltalake import CommitProperties, Transaction
    from deltalake.exceptions import CommitFailedError

    results = [result for entry in entries for result in entry.results]
    actions = [_add_action(one, file) for one in results for file in one.files if file.table == table]
    schema = arrow_schema(table, with_partitions=True)
    options: dict[str, Any] = {
        "partition_by": list(PARTITIONS),
        "commit_properties": CommitProperties(app_transactions=[Transaction(_APP, batch)]),
    }
    try:
        use_delta(files, table, lambda: delta.create_write_transaction(actions, "append", schema, **options))
    except CommitFailedError:
        return False
    return True


def _add_action(result: LakeResult, file: DataFile) -> Any:
    from deltalake.transaction import AddAction

    names = {"task": result.task, "model": result.model, "run_id": result.run_id, "log": result.key}
    values = {name: one for name, one in names.items() if one is not None and len(one) <= _MAX_STATISTIC}
    statistics = {
        "numRecords": file.rows,
        "minValues": values,
        "maxValues": values,
        "nullCount": {name: file.rows * (one is None) for name, one in names.items()},
    }
    now = int(time.time() * 1000)
    return AddAction(file.name, file.size, result.partitions, now, True, json.dumps(statistics))


def remove_superseded(files: LakeFiles, state: LakeState) -> None:
    """Delete the rows of replaced results, for readers that do not use `logs`.

    Raises:
        EvidenceError: the lake is damaged.
        StorageError: the lake cannot be written.
    """
    gone = {result.key for result in state.superseded}
    if not gone:
        return
    # Delete from `results` last: while it has the rows, other tables may still have them.
    present = _rows(files, "results", state.tables["results"], columns=["log"])
    keys = sorted(gone.intersection(row["log"] for row in present))
    for table in (*(one for one in TABLES if one != "results"), "results"):
        for begin in range(0, len(keys), _KEYS_TOGETHER):
            _delete(files, table, keys[begin : begin + _KEYS_TOGETHER])


def _delete(files: LakeFiles, table: str, keys: Sequence[str]) -> None:
    from deltalake import WriterProperties
    from deltalake.exceptions import CommitFailedError

    # Keys consist of checksums and numbers, which `_is_sound` has checked.
    predicate = f"log IN ({', '.join(repr(key) for key in keys)})"
    properties = WriterProperties(compression="ZSTD")
    for _ in range(_TRIES):
        delta = open_table(files, table)
        with suppress(CommitFailedError):
            use_delta(files, table, lambda: delta.delete(predicate, writer_properties=properties))  # noqa: B023  # called in this iteration
            return
    raise _busy(files)


def _busy(files: LakeFiles) -> UsageError:
    return UsageError(
        f"{files}: other processes change the lake continuously; run the command again (no log was lost)",
        code=Code.PLACE_IN_USE,
    )
