"""Reading of a lake: its tables for SQL, and exact copies of the imported result logs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_report.tables.schema import TableName
from aigo_scale.lake.commits import LakeResult, PartitionSelection, load_state
from aigo_scale.lake.files import damaged
from aigo_scale.lake.tables import (
    EVIDENCE,
    KEYS,
    PARTITIONS,
    columns_of,
    dataset_of,
    is_lake,
    open_lake,
    use_delta,
)

_OF_LAKES = 2
"""Number of columns that only tables in lakes have."""


def split(location: str | os.PathLike[str]) -> tuple[str, PartitionSelection]:
    """Split a location into the lake and the selected partitions: `LAKE/by_task=…/by_model=…/by_run=…`. Each
    part is optional.
    """
    parts = os.fspath(location).rstrip("/").split("/")
    chosen: dict[str, str] = {}
    while len(parts) > 1 and parts[-1].partition("=")[0] in KEYS and "=" in parts[-1]:
        key, _, value = parts.pop().partition("=")
        chosen[key] = value
    return "/".join(parts), PartitionSelection(*(chosen.get(key) for key in KEYS))


def lake_at(location: str | os.PathLike[str]) -> tuple[str, PartitionSelection] | None:
    """Return the lake at a local path and the selected partitions; `None` if it is not a lake."""
    folder, selection = split(location)
    return (folder, selection) if is_lake(folder) else None


class LakeReader:
    """Lake, or partitions of it, at one moment."""

    def __init__(self, location: str | os.PathLike[str], selection: PartitionSelection | None = None):
        self.files = open_lake(os.fspath(location))
        self.selection = selection or PartitionSelection()
        self.state = load_state(self.files)

    def results(self) -> list[LakeResult]:
        """Return the selected results that count.

        Raises:
            UsageError: the selection is empty.
        """
        results = self.state.results(self.selection)
        if not results:
            where = self.selection.path
            raise UsageError(
                f"{self.files}{where}: the lake does not contain a result"
                + (" there (`lake list` names the partitions)" if where else ""),
                code=Code.NOTHING_THERE,
            )
        return results

    def dataset(self, table: str) -> Any:
        """Return a table as an Arrow dataset, which opens only the data files needed for a filter.

        Raises:
            EvidenceError: the table is damaged.
        """
        selected = zip(PARTITIONS, (self.selection.task, self.selection.model), strict=True)
        partitions = {name: value for name, value in selected if value is not None}
        return dataset_of(self.files, table, self.state.tables[table], partitions)

    @property
    def excluded(self) -> frozenset[str]:
        """Return values of `log` in rows that do not count or are not selected."""
        others = (*self.state.superseded, *self.state.unfinished)
        unselected = (key for key, one in self.state.counting.items() if not self.selection.has(one))
        return frozenset(one.key for one in others).union(unselected)

    def write_logs(self, folder: Path) -> list[Path]:
        """Write exact copies of the imported result logs.

        Args:
            folder: an empty folder.

        Raises:
            UsageError: the selection is empty.
            EvidenceError: the lake is damaged.
        """
        return use_delta(self.files, EVIDENCE, lambda: self._write_logs(folder))

    def _write_logs(self, folder: Path) -> list[Path]:
        from pyarrow import dataset  # type: ignore[import-untyped]  # untyped

        results = self.results()
        names = _names(results)
        logs = {result.key: _ResultLog(folder / names[result.key], result.parts) for result in results}
        columns = ["log", "part", "position", "line"]
        wanted = dataset.field("log").isin(list(logs)) if self.excluded else None
        last: _ResultLog | None = None
        try:
            for batch in self.dataset(EVIDENCE).to_batches(
                columns=columns, filter=wanted, batch_size=1_000, batch_readahead=2, fragment_readahead=1
            ):
                for row in batch.to_pylist():
                    log = logs.get(row["log"])
                    if log is None:
                        continue
                    if last is not log:
                        _close(last)
                    last = log
                    if None in row.values() or not log.add(row["part"], row["position"], row["line"]):
                        raise self._incomplete(log)
        finally:
            _close(last)
        for log in logs.values():
            if not log.is_complete:
                raise self._incomplete(log)
        return [log.path for log in logs.values()]

    def _incomplete(self, log: _ResultLog) -> Exception:
        text = f"found only a part of the result log {log.path.name!r}"
        return damaged(f"{self.files}/{EVIDENCE}", text, "aigo-bridge lake verify")


def _names(results: list[LakeResult]) -> dict[str, str]:
    """Return file names by result key: the task, with the run if a task has several."""
    from aigo_bridge.importing.log_import import file_stem

    often = Counter(one.task for one in results)
    taken: set[str] = set()
    return {
        one.key: file_stem(f"{one.task}-{one.run_id}"[:120] if often[one.task] > 1 else f"{one.task}", taken)
        + one.suffix
        for one in results
    }


class _ResultLog:
    """Result log that is written line by line in any order."""

    def __init__(self, path: Path, parts: Sequence[int]):
        self.path = path
        self._parts = parts
        self._begins = [0, *accumulate(parts)]
        self._written = 0
        self._file: BinaryIO | None = None

    def add(self, part: int, position: int, line: str) -> bool:
        """Write a line. Return `False` if its position is outside the result log."""
        content = line.encode()
        if not (0 <= part < len(self._parts) and 0 <= position <= self._parts[part] - len(content)):
            return False
        if self._file is None:
            self._file = self.path.open("r+b" if self._written else "wb")
        self._file.seek(self._begins[part] + position)
        self._file.write(content)
        self._written += len(content)
        return True

    @property
    def is_complete(self) -> bool:
        """Return whether every byte has been written exactly once."""
        return self._written == self._begins[-1]

    def close(self) -> None:
        """Close the file until the next line is added."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _close(log: _ResultLog | None) -> None:
    if log is not None:
        log.close()


# SQL


class LakeTables:
    """Tables of a lake, or of partitions of it, for SQL. A query reads only the data files and columns it
    needs.
    """

    def __init__(self, location: str, selection: PartitionSelection):
        self._reader = LakeReader(location, selection)
        self._reader.results()

    def show(self, connection: Any, names: Sequence[TableName]) -> None:
        """Register the tables in a DuckDB database."""
        excluded, counting = self._reader.excluded, {one.key for one in self._reader.results()}
        keys, word = (counting, "IN") if len(counting) < len(excluded) else (excluded, "NOT IN")
        listed = ", ".join(f"'{key}'" for key in sorted(keys))
        wanted = f" WHERE log {word} ({listed})" if excluded else ""
        for name in names:
            connection.register(f"lake_{name}", self._reader.dataset(name))
            columns = ", ".join(f'"{column.name}"' for column in columns_of(name)[:-_OF_LAKES])
            # The query contains only aigo-bridge's own names and checked keys.
            view = f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM lake_{name}{wanted}"  # noqa: S608
            connection.execute(view)
