"""Data files of a result: its tables and the result log, written in one pass with limited memory."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from aigo_bridge.process.extras import package
from aigo_bridge.redaction.secrets import redact, redact_value
from aigo_bridge.results.log_files import AFTER_SAMPLES, open_for_reading
from aigo_bridge.results.reading import LogReader
from aigo_report.tables.rows import Row, SampleCounts, rows_of_all
from aigo_scale.lake.commits import DataFile, LakeResult
from aigo_scale.lake.files import LakeFiles
from aigo_scale.lake.tables import EVIDENCE, EXTRA, TABLES, arrow_schema

_ROWS, _CHARACTERS = 20_000, 32 << 20
"""Maximum rows and characters that are written together."""
_SMALL = 64 << 10
"""Maximum characters of a file for which compression takes longer than everything else."""
_FAST: dict[str, Any] = {"compression": "snappy"}
_STRONG: dict[str, Any] = {"compression": "zstd", "compression_level": 3}
_OF_ALL = ("results", "metrics")
"""Tables with rows for the whole result."""


class Writer:
    """Writer of a table's Parquet file in the lake's folder. The file is not part of the lake yet."""

    def __init__(self, files: LakeFiles, table: str, key: str, stack: ExitStack):
        self.table, self.name = table, f"{key}-{uuid.uuid4().hex}.parquet"
        self.rows = 0
        self._arrow = package("pyarrow", EXTRA, "lake")
        self._schema = arrow_schema(table)
        self._stack = stack
        self._file: BinaryIO = stack.enter_context(files.new(f"{table}/{self.name}"))
        self._writer: Any = None
        self._waiting: list[Row] = []
        self._characters = 0

    def add(self, row: Row) -> None:
        """Add a row, which is written now or with later rows."""
        self._waiting.append(row)
        self._characters += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        if len(self._waiting) >= _ROWS or self._characters >= _CHARACTERS:
            self._flush()

    def end(self) -> DataFile:
        """Write the remaining rows."""
        self._flush()
        self._writer.close()
        return DataFile(self.table, self.name, self.rows, self._file.tell())

    def _flush(self) -> None:
        if self._waiting:
            batch = self._arrow.Table.from_pylist(self._waiting, schema=self._schema)
            if self._writer is None:
                compression = _FAST if self._characters <= _SMALL else _STRONG
                parquet = package("pyarrow.parquet", EXTRA, "lake")
                self._writer = self._stack.enter_context(
                    parquet.ParquetWriter(self._file, self._schema, **compression)
                )
            self._writer.write_table(batch)
            self.rows += len(self._waiting)
            self._waiting, self._characters = [], 0


@dataclass(frozen=True)
class Target:
    """Target of a result's rows, and the values that all rows share."""

    files: LakeFiles
    name: str
    """Name of the result in its rows."""
    key: str
    run_id: str


@dataclass(frozen=True)
class WrittenData:
    """Written data files."""

    files: tuple[DataFile, ...]
    size: int
    """Size in bytes of the result log in the files."""
    facts: Row
    """Row of the table `results`, if it was written."""


def write_result(target: Target, log: Path) -> LakeResult:
    """Write the data files of a result. They become part of the lake with a later commit.

    Args:
        target: lake and names.
        log: local result log.

    Raises:
        EvidenceError: the log cannot be read or is damaged.
        StorageError: a file cannot be written.
    """
    reader = LogReader(log)
    rows = itertools.chain(rows_of_all(reader, target.name), _evidence(_lines(log)))
    written = _write(target, reader, rows)
    return _result(target, log, written.facts, written.files, (written.size,))


def write_samples(
    target: Target,
    log: Path,
    number: int,
    *,
    first: int,
    is_last: bool,
    counts: dict[int | None, SampleCounts],
) -> WrittenData:
    """Write the data files of a range of samples, without rows for the whole result.

    Args:
        target: lake and names.
        log: plain `.json` result log of these samples.
        number: number of the range, from 0.
        first: position of the first sample in the result. Range 0 also has the first line of the result
            log.
        is_last: whether this is the last range.
        counts: counts for the metrics. The counts of these samples are added.

    Raises:
        EvidenceError: the log cannot be read or is damaged.
        StorageError: a file cannot be written.
    """
    reader = LogReader(log)
    rows = (
        (table, row)
        for table, row in rows_of_all(reader, target.name, first=first, counts=counts)
        if table not in _OF_ALL
    )
    lines = _evidence(_lines_of_samples(log, number, is_last=is_last), number)
    return _write(target, reader, itertools.chain(rows, lines), f"{target.key}.{number:04d}")


def write_frame(
    target: Target,
    log: Path,
    *,
    ranges: Sequence[WrittenData],
    counts: dict[int | None, SampleCounts],
) -> LakeResult:
    """Write the data files for the whole result, after its ranges of samples.

    Args:
        target: lake and names.
        log: plain `.json` result log without samples.
        ranges: data files of the samples, in order.
        counts: counts for the metrics over all samples.

    Raises:
        EvidenceError: the log cannot be read or is damaged.
        StorageError: a file cannot be written.
    """
    reader = LogReader(log)
    last = log.read_bytes().splitlines(keepends=True)[-1]
    rows = itertools.chain(
        rows_of_all(reader, target.name, counts=counts), _evidence(iter((last,)), len(ranges))
    )
    frame = _write(target, reader, rows)
    files = tuple(file for one in (*ranges, frame) for file in one.files)
    return _result(target, log, frame.facts, files, tuple(one.size for one in (*ranges, frame)))


def _write(
    target: Target, reader: LogReader, rows: Iterable[tuple[str, Row]], file_key: str | None = None
) -> WrittenData:
    """Write each row to the file of its table."""
    specification = reader.frame().specification
    entity = specification.evaluated_entity
    head = redact_value(
        {"task": specification.task.key, "model": None if entity is None else entity.display_name}
    )
    of_lake = redact_value({"run_id": target.run_id, "log": target.key})
    writers: dict[str, Writer] = {}
    facts: Row = {}
    last_line: Row = {"position": 0, "line": b""}
    with ExitStack() as stack:
        for table, row in rows:
            if table not in writers:
                writers[table] = Writer(target.files, table, file_key or target.key, stack)
            if table == EVIDENCE:
                # The result log was redacted when it was written, and must remain unchanged.
                last_line = row
                whole = {**head, **row, **of_lake}
            else:
                whole = {**row, **of_lake}
                # One search takes a fraction of the time of a search in each value.
                texts = "\n".join(value for value in whole.values() if isinstance(value, str))
                if redact(texts) != texts:
                    whole = redact_value(whole)
            if table == "results":
                facts = whole
            writers[table].add(whole)
        files = tuple(writers[table].end() for table in TABLES if table in writers)
    return WrittenData(files, last_line["position"] + len(last_line["line"]), facts)


def _result(
    target: Target, log: Path, facts: Row, files: tuple[DataFile, ...], parts: tuple[int, ...]
) -> LakeResult:
    return LakeResult(
        key=target.key,
        run_id=facts["run_id"],
        task=facts["task"],
        model=facts["model"],
        status=facts["status"] or "",
        samples=facts["samples"] or 0,
        failed=facts["failed"] or 0,
        started_at=facts["started_at"],
        ended_at=facts["ended_at"],
        is_superseded=facts["superseded_by"] is not None,
        suffix=".tasklog.jsonl" if ".jsonl" in log.name else ".tasklog.json",
        parts=parts,
        files=files,
    )


def _evidence(lines: Iterable[bytes], part: int = 0) -> Iterator[tuple[str, Row]]:
    """Yield rows with the lines of a result log, in UTF-8, and their positions."""
    position = 0
    for line in lines:
        yield EVIDENCE, {"part": part, "position": position, "line": line}
        position += len(line)


def _lines(log: Path) -> Iterator[bytes]:
    with open_for_reading(log) as lines:
        yield from lines


def _lines_of_samples(log: Path, number: int, *, is_last: bool) -> Iterator[bytes]:
    """Yield the lines of samples as in the whole result log. Range 0 also has the first line."""
    with open_for_reading(log) as lines:
        beginning = next(lines)
        if number == 0:
            yield beginning
        for line, following in itertools.pairwise(lines):
            is_end = following.startswith(AFTER_SAMPLES[1:])
            yield line[:-1] + b",\n" if is_end and not is_last else line
