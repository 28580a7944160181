"""A result log as files of a lake: its tables, and the log itself, in one reading; memory holds a few
thousand rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from aigo_bridge.lake.layout import EVIDENCE, TABLES, arrow_schema, data_file
from aigo_bridge.lake.manifest import DataFile, Result
from aigo_bridge.lake.stores import Store
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results import LogReader
from aigo_bridge.results.log_files import open_for_reading
from aigo_bridge.tables.extras import package
from aigo_bridge.tables.rows import Row, rows_of_all

_ROWS, _CHARACTERS = 20_000, 32 << 20
"""Of rows that become a part of a file together."""
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
    frame = reader.frame()
    entity = frame.specification.evaluated_entity
    task, model = frame.specification.task.key, None if entity is None else entity.display_name
    of_lake = {"run_id": run_id, "log": key}
    writers: dict[str, Writer] = {}
    facts: Row = {}
    with ExitStack() as stack:
        for table, row in _rows(reader, log, name, task, model):
            if table not in writers:
                place = data_file(table, task, model, run_id, key)
                writers[table] = Writer(store, table, place, stack)
            writers[table].add(redact_value({**row, **of_lake}) if table != EVIDENCE else {**row, **of_lake})
            if table == "results":
                facts = row
        files = tuple(writers[table].end() for table in TABLES if table in writers)
    return Result(
        key=key,
        run_id=run_id,
        task=task,
        model=model,
        status=str(frame.status),
        samples=facts["samples"] or 0,
        failed=facts["failed"] or 0,
        started_at=facts["started_at"],
        ended_at=facts["ended_at"],
        suffix=".tasklog.jsonl" if ".jsonl" in log.name else ".tasklog.json",
        files=files,
    )


def _rows(reader: LogReader, log: Path, name: str, task: str, model: str | None) -> Iterator[tuple[str, Row]]:
    yield from rows_of_all(reader, name)
    head = {"task": task, "model": model}
    with open_for_reading(log) as lines:
        for position, line in enumerate(lines):
            yield EVIDENCE, {**head, "position": position, "line": line.decode()}
