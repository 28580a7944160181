"""A result log as files of a lake: its tables, and the log itself, in one reading; memory holds a few
thousand rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from aigo_bridge.lake.layout import EVIDENCE, TABLES, arrow_schema, data_file
from aigo_bridge.lake.manifest import DataFile, Result
from aigo_bridge.lake.stores import Store
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results import LogReader
from aigo_bridge.results.log_files import AFTER_SAMPLES, open_for_reading
from aigo_bridge.tables.extras import package
from aigo_bridge.tables.rows import Row, SampleCounts, rows_of_all

_ROWS, _CHARACTERS = 20_000, 32 << 20
"""Of rows that become a part of a file together."""
_OF_ALL = ("results", "metrics")
"""Tables of a result as a whole."""
COMPRESSION: dict[str, Any] = {"compression": "zstd", "compression_level": 3, "write_page_index": False}


class Writer:
    """A Parquet file that appears when it is closed well."""

    def __init__(self, store: Store, table: str, name: str, stack: ExitStack):
        self.table, self.name = table, name
        self.rows = 0
        self._arrow = package("pyarrow", "a lake", "parquet")
        self._schema = arrow_schema(table)
        parquet = package("pyarrow.parquet", "a lake", "parquet")
        self._file: BinaryIO = stack.enter_context(store.new(name))
        self._writer: Any = stack.enter_context(
            parquet.ParquetWriter(self._file, self._schema, **COMPRESSION)
        )
        self._waiting: list[Row] = []
        self._characters = 0

    def add(self, row: Row) -> None:
        """Write a row, sooner or later."""
        self._waiting.append(row)
        self._characters += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(self._waiting) >= _ROWS or self._characters >= _CHARACTERS:
            self._flush()

    def add_batch(self, batch: Any) -> None:
        """Write rows that are Arrow's already."""
        self._writer.write(batch)
        self.rows += batch.num_rows

    def end(self) -> DataFile:
        """Write what waits; the file appears when its stack is closed."""
        self._flush()
        self._writer.close()
        return DataFile(self.table, self.name, self.rows, self._file.tell())

    def _flush(self) -> None:
        if self._waiting:
            batch = self._arrow.Table.from_pylist(self._waiting, schema=self._schema)
            self._writer.write_table(batch)
            self.rows += len(self._waiting)
            self._waiting, self._characters = [], 0


def write_result(store: Store, log: Path, *, name: str, key: str, run_id: str) -> Result:
    """Write the files of a result; they belong to the lake when an entry names them.

    Args:
        store: of the lake.
        log: the result log, on this machine.
        name: what its rows call the result.
        key: of the result.
        run_id: of its run.

    Raises:
        EvidenceError: it cannot be read, or is damaged; then nothing of it appears.
        UsageError: pyarrow is not installed.
        StorageError: a file cannot be written.
    """
    reader = LogReader(log)
    rows = itertools.chain(rows_of_all(reader, name), ((EVIDENCE, row) for row in _lines(log)))
    files, facts = _write(store, reader, rows, key, key, run_id)
    return _result(reader, log, files, facts, key, run_id)


def write_samples(
    store: Store,
    log: Path,
    *,
    name: str,
    key: str,
    file_key: str,
    run_id: str,
    first: int,
    is_last: bool,
    counts: dict[int | None, SampleCounts],
) -> tuple[DataFile, ...]:
    """Write the files of some samples of a result, without what is of the result as a whole.

    Args:
        store: of the lake.
        log: a plain `.json` result log of these samples.
        name: what rows call the result.
        key: of the result.
        file_key: names the files.
        run_id: of the run.
        first: position of the first sample in the result; before it the result's first line is written.
        is_last: whether no sample follows.
        counts: what stands behind metrics; that of these samples is added.

    Raises:
        EvidenceError: it cannot be read, or is damaged; then nothing of it appears.
        StorageError: a file cannot be written.
    """
    reader = LogReader(log)
    rows = (
        (table, row)
        for table, row in rows_of_all(reader, name, first=first, counts=counts)
        if table not in _OF_ALL
    )
    lines = ((EVIDENCE, row) for row in _lines_of_samples(log, first, is_last=is_last))
    files, _ = _write(store, reader, itertools.chain(rows, lines), key, file_key, run_id)
    return files


def write_frame(
    store: Store,
    log: Path,
    *,
    name: str,
    key: str,
    run_id: str,
    samples: int,
    files: Sequence[DataFile],
    counts: dict[int | None, SampleCounts],
) -> Result:
    """Write the files of what is of a result as a whole, its samples being there.

    Args:
        store: of the lake.
        log: a plain `.json` result log without samples.
        name: what rows call the result.
        key: of the result.
        run_id: of the run.
        samples: how many there are.
        files: those of the samples, in their order.
        counts: what stands behind metrics in all of them.

    Raises:
        EvidenceError: it cannot be read, or is damaged; then nothing of it appears.
        StorageError: a file cannot be written.
    """
    reader = LogReader(log)
    last = {"position": samples + 1, "line": log.read_bytes().splitlines(keepends=True)[-1].decode()}
    rows = itertools.chain(rows_of_all(reader, name, counts=counts), [(EVIDENCE, last)])
    written, facts = _write(store, reader, rows, key, key, run_id)
    return _result(reader, log, (*files, *written), facts, key, run_id)


def _write(
    store: Store, reader: LogReader, rows: Iterable[tuple[str, Row]], key: str, file_key: str, run_id: str
) -> tuple[tuple[DataFile, ...], Row]:
    """Write rows, each to the file of its table; the files, and the row of the result, if there is one."""
    task, model = _names(reader)
    head, of_lake = {"task": task, "model": model}, {"run_id": run_id, "log": key}
    writers: dict[str, Writer] = {}
    facts: Row = {}
    with ExitStack() as stack:
        for table, row in rows:
            if table not in writers:
                place = data_file(table, task, model, run_id, file_key)
                writers[table] = Writer(store, table, place, stack)
            whole = {**row, **of_lake}
            writers[table].add(redact_value(whole) if table != EVIDENCE else {**head, **whole})
            if table == "results":
                facts = row
        return tuple(writers[table].end() for table in TABLES if table in writers), facts


def _names(reader: LogReader) -> tuple[str, str | None]:
    specification = reader.frame().specification
    entity = specification.evaluated_entity
    return specification.task.key, None if entity is None else entity.display_name


def _result(
    reader: LogReader, log: Path, files: tuple[DataFile, ...], facts: Row, key: str, run_id: str
) -> Result:
    task, model = _names(reader)
    return Result(
        key=key,
        run_id=run_id,
        task=task,
        model=model,
        status=str(reader.frame().status),
        samples=facts["samples"] or 0,
        failed=facts["failed"] or 0,
        started_at=facts["started_at"],
        ended_at=facts["ended_at"],
        suffix=".tasklog.jsonl" if ".jsonl" in log.name else ".tasklog.json",
        files=files,
    )


def _lines(log: Path) -> Iterator[Row]:
    with open_for_reading(log) as lines:
        for position, line in enumerate(lines):
            yield {"position": position, "line": line.decode()}


def _lines_of_samples(log: Path, first: int, *, is_last: bool) -> Iterator[Row]:
    """The lines of samples, as they stand in the whole; before the first one that of the log's beginning."""
    with open_for_reading(log) as lines:
        beginning = next(lines)
        if first == 0:
            yield {"position": 0, "line": beginning.decode()}
        for position, (line, behind) in enumerate(itertools.pairwise(lines), first + 1):
            is_end = behind.startswith(AFTER_SAMPLES[1:])
            text = line.decode()
            yield {"position": position, "line": f"{text[:-1]},\n" if is_end and not is_last else text}
