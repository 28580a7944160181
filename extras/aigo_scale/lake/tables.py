"""Tables of a lake: one Delta table each, with columns and partitions.

```text
LAKE/results  metrics  samples  trials  scores  events      the tables of `sql`, with `run_id` and `log`
LAKE/evidence                                               result logs, line by line
LAKE/logs                                                   imported logs: a log counts when it is here
```
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from aigo_bridge.access.object_addresses import Address, StorageError
from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.process.extras import package
from aigo_bridge.redaction.secrets import redact
from aigo_report.tables.schema import SCHEMAS, TABLE_NAMES, TableColumn
from aigo_scale.lake.files import DELTA_LOG, LakeFiles, damaged, files_at

T = TypeVar("T")

EVIDENCE, LOGS = "evidence", "logs"
TABLES: tuple[str, ...] = (*TABLE_NAMES, EVIDENCE)
"""Tables that contain rows of results."""
PARTITIONS = ("by_task", "by_model")
KEYS = (*PARTITIONS, "by_run")
"""Names of the partitions that the user can select."""
OLD_MARK = "lake.json"
"""File of a lake from a development version without Delta tables."""
EXTRA = "a lake (extra 'lake')"
"""Purpose of the packages, for messages."""

_EVIDENCE = (
    TableColumn("task", "string", "key of the task"),
    TableColumn("model", "string", "the evaluated model or dataset"),
    TableColumn("part", "int32", "range of samples that the line is in, from 0"),
    TableColumn("position", "int64", "first byte of the line in that part, from 0"),
    TableColumn("line", "string", "a line of the result log, with its line break"),
)
_OF_LAKES = (
    TableColumn("run_id", "string", "id of the run, by which a better log replaces an earlier one"),
    TableColumn("log", "string", "digest of the log, and number of the result in it"),
)
_LOGS = (
    TableColumn("batch", "int64", "number of the import step that has added the log, from 1"),
    TableColumn("digest", "string", "SHA-256 of the log's content"),
    TableColumn("location", "string", "path or address of the log"),
    TableColumn("mark", "string", "version of the object, if the storage has one"),
    TableColumn("status", "string", "status of the run as its engine has it"),
    TableColumn("damage", "int64", "number of parts that could not be read"),
    TableColumn("lost", "int64", "number of things that the import has dropped"),
    TableColumn("results", "string", "results of the log and their data files, JSON"),
)
_MAX_PART = 120
_NONE = "~"
_FINAL = re.compile(r"40[0-4] [A-Z]|credential|log segment", re.IGNORECASE)
"""Storage messages after which a retry is useless."""


def columns_of(table: str) -> tuple[TableColumn, ...]:
    """Return the columns of a table, without its partitions."""
    if table == LOGS:
        return _LOGS
    return (*(_EVIDENCE if table == EVIDENCE else SCHEMAS[table].columns), *_OF_LAKES)  # type: ignore[index]  # otherwise one of these


def arrow_schema(table: str, *, with_partitions: bool = False) -> Any:
    """Return the columns of a table with their Arrow types."""
    arrow = package("pyarrow", EXTRA, "lake")
    kinds = {"bool": "bool_", "double": "float64"}
    columns = [(one.name, getattr(arrow, kinds.get(one.kind, one.kind))()) for one in columns_of(table)]
    if with_partitions and table != LOGS:
        columns += [(name, arrow.string()) for name in PARTITIONS]
    return arrow.schema(columns)


def part_name(text: str | None) -> str:
    """Return a name as a partition value: `m/one` becomes `m%2Fone`. A long name ends with its checksum."""
    if text is None:
        return _NONE
    escaped = quote(text.encode("utf-8", "backslashreplace"), safe="").replace("~", "%7E") or "%00"
    if len(escaped) <= _MAX_PART:
        return escaped
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{re.sub('%.?$', '', escaped[:_MAX_PART])}~{digest}"


def require_packages() -> None:
    """Check that all packages of the extra `lake` are installed.

    Raises:
        UsageError: a package is missing. The message contains the install command.
    """
    for name in ("deltalake", "pyarrow"):
        package(name, EXTRA, "lake")


def is_lake(location: str | Path) -> bool:
    """Return whether a local folder, or a local copy, is a lake of any version."""
    return (Path(location) / LOGS / DELTA_LOG).is_dir() or (Path(location) / OLD_MARK).is_file()


# Opening


def open_lake(location: str | os.PathLike[str]) -> LakeFiles:
    """Return the files of an existing lake.

    Raises:
        UsageError: the lake is missing or old, or a package is missing.
        StorageError: the storage cannot be read.
    """
    require_packages()
    files = files_at(location)
    if not files.has_table(LOGS):
        entries = files.entries()
        _refuse_old(files, entries)
        what = "other files" if entries else "nothing"
        raise UsageError(
            f"{files} is not a lake: found {what}, expected the table '{LOGS}' (`import LOG… --lake` makes"
            " one)",
            code=Code.NOTHING_THERE,
        )
    return files


def make_lake(location: str | os.PathLike[str]) -> LakeFiles:
    """Return the files of a lake, which is created in an empty or missing folder.

    Raises:
        UsageError: the folder contains other files or an old lake, or a package is missing.
        StorageError: the storage cannot be read or written.
    """
    require_packages()
    files = files_at(location)
    if files.has_table(LOGS):
        return files
    entries = files.entries()
    _refuse_old(files, entries)
    if any(name not in (*TABLES, LOGS) or not files.may_become(name) for name in entries):
        raise UsageError(
            f"{files} is not a lake: found other files, expected a lake or an empty folder",
            code=Code.ALREADY_THERE,
        )
    for table in (*TABLES, LOGS):
        _create(files, table)
    return files


def _refuse_old(files: LakeFiles, entries: list[str]) -> None:
    if OLD_MARK in entries:
        raise UsageError(
            f"{files}/{OLD_MARK}: found a lake of a development version, expected Delta tables; import the"
            " logs again into a new lake: aigo-bridge import LOG… --lake NEW",
            code=Code.OTHER_RELEASE,
        )


def _create(files: LakeFiles, table: str) -> None:
    from deltalake import DeltaTable

    statistics = "batch" if table == LOGS else "task,model,run_id,log"

    def create() -> None:
        try:
            DeltaTable.create(
                files.uri(table),
                arrow_schema(table, with_partitions=True),
                mode="ignore",
                partition_by=None if table == LOGS else list(PARTITIONS),
                configuration={"delta.dataSkippingStatsColumns": statistics},
                storage_options=storage_options(files),
            )
        except Exception:
            # Two imports may create the same lake.
            if not files.has_table(table):
                raise

    use_delta(files, table, create)


def storage_options(files: LakeFiles) -> dict[str, str]:
    """Return settings for the Delta library in addition to environment variables."""
    return {"allow_http": "true"} if isinstance(files.root, Address) else {}


def open_table(files: LakeFiles, table: str, *, to_append: bool = False) -> Any:
    """Return a Delta table after checks of its log, columns and file names.

    Args:
        files: the lake.
        table: name of the table.
        to_append: whether data files are only added, so that existing names need no check.

    Raises:
        EvidenceError: the table is missing or damaged, or names files outside the lake.
        UsageError: the table has other columns.
        StorageError: the storage cannot be read.
    """
    from deltalake import DeltaTable

    files.check_log(table)
    delta = use_delta(
        files, table, lambda: DeltaTable(files.uri(table), storage_options=storage_options(files))
    )
    check_columns(files, table, delta)
    if not to_append:
        check_names(files, table, delta)
    return delta


def check_names(files: LakeFiles, table: str, delta: Any) -> None:
    """Check the names of an opened table's data files.

    Raises:
        EvidenceError: a name leads outside the lake or to a link.
    """
    for name in use_delta(files, table, lambda: delta.get_add_actions().column("path").to_pylist()):
        files.check_file(f"{table}/{name}")


def check_columns(files: LakeFiles, table: str, delta: Any) -> None:
    """Check the columns of an opened table. An earlier release may have had fewer.

    Raises:
        EvidenceError: the table needs Delta features that are not supported.
        UsageError: the table has other columns.
    """
    found = _columns(files, table, delta)
    reader = use_delta(files, table, lambda: delta.protocol().min_reader_version)
    place = f"{files}/{table}"
    expected = {one.name: one.type for one in arrow_schema(table, with_partitions=True)}
    needed = {*expected} - {one.name for one in SCHEMAS[table].columns} if table in SCHEMAS else {*expected}
    if not (needed <= found.keys() and found.items() <= expected.items()):
        raise UsageError(
            f"{place}: the columns do not match this release; use the release that created "
            "the lake, or import the logs into a new lake",
            code=Code.OTHER_RELEASE,
        )
    if reader > 1:
        raise damaged(place, f"found reader version {reader} of Delta, expected 1")


def _columns(files: LakeFiles, table: str, delta: Any) -> dict[str, Any]:
    arrow = package("pyarrow", EXTRA, "lake")
    schema = use_delta(files, table, lambda: arrow.schema(delta.schema().to_arrow()))
    return {one.name: one.type for one in schema}


def add_columns(files: LakeFiles, table: str, delta: Any) -> bool:
    """Add columns that an earlier release did not have. Return whether columns were missing.

    Raises:
        StorageError: the storage cannot be written.
    """
    from deltalake import Schema

    schema = arrow_schema(table, with_partitions=True)
    found = _columns(files, table, delta)
    missing = [field for field in Schema.from_arrow(schema).fields if field.name not in found]
    if missing:
        use_delta(files, table, lambda: delta.alter.add_columns(missing))
    return bool(missing)


def dataset_of(files: LakeFiles, table: str, delta: Any, selected: Mapping[str, str] | None = None) -> Any:
    """Return a checked table as an Arrow dataset, which opens only the data files needed for a filter.

    Args:
        files: the lake.
        table: name of the table.
        delta: the table.
        selected: partition values, if only these are needed.

    Raises:
        EvidenceError: the table is damaged.
        StorageError: the storage cannot be read.
    """
    filesystem = None
    if isinstance(files.root, Path):
        # Arrow reads local files faster than the Delta library.
        from pyarrow import fs  # type: ignore[import-untyped]  # untyped

        filesystem = fs.SubTreeFileSystem(files.uri(table), fs.LocalFileSystem())
    wanted = [(name, "=", value) for name, value in (selected or {}).items()]
    return use_delta(
        files,
        table,
        lambda: delta.to_pyarrow_dataset(
            filesystem=filesystem,
            file_pruning_predicate=wanted or None,
            schema=arrow_schema(table, with_partitions=True),
        ),
    )


def use_delta(files: LakeFiles, table: str, work: Callable[[], T]) -> T:
    """Return the result of work with the Delta library or Arrow. In object storage the work is retried.

    Args:
        files: the lake.
        table: name of the table, for messages.
        work: function that may be called several times.

    Raises:
        EvidenceError: a local table is damaged or missing.
        StorageError: the storage cannot be read or written.
        CommitFailedError: another process has changed the table.
    """
    if not isinstance(files.root, Address):
        with _delta_errors(files, table):
            return work()
    from aigo_scale.storage import objects

    for number in range(objects.TRIES):
        try:
            with _delta_errors(files, table):
                return work()
        except StorageError as error:
            if number == objects.TRIES - 1 or _FINAL.search(str(error)):
                raise
            time.sleep(min(objects.LONGEST_WAIT, 0.25 * 3**number))
    raise AssertionError("a try returns or raises")


@contextmanager
def _delta_errors(files: LakeFiles, table: str) -> Iterator[None]:
    from deltalake.exceptions import CommitFailedError

    try:
        yield
    except (BridgeError, CommitFailedError, MemoryError):
        raise
    except BaseException as error:
        # A panic of the library is not an `Exception`.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        text = _first_lines(redact(str(error))) or type(error).__name__
        if isinstance(files.root, Address):
            raise StorageError(f"{files}/{table} cannot be read or written: {text}") from error
        raise damaged(f"{files}/{table}", f"the Delta table cannot be used: {text}") from error


def _first_lines(text: str) -> str:
    """Return a message of the Delta library without colors, arrows and stack trace."""
    lines = (re.sub(r"\x1b\[[0-9;]*m|↳", "", line).strip() for line in text.splitlines())
    kept = [line for line in lines if line and not re.match(r"\d+: ", line)]
    return ": ".join(kept[:6])[:500]
