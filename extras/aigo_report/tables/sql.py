"""SQL queries over results with DuckDB.

The tables named in a query are loaded into a temporary database, which is then opened read-only. The query
may be untrusted. It cannot access files, the network or environment variables, and cannot change settings.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process.extras import package
from aigo_bridge.process.temporary import temporary_folder
from aigo_report.tables.results import BATCH_ROWS, Results
from aigo_report.tables.rows import Row
from aigo_report.tables.schema import SCHEMAS, TableName

_TYPES = {"string": "VARCHAR", "int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN"}
_LIMITS = {"memory_limit": "1GB", "max_temp_directory_size": "20GB"}
_LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    # Must be last: afterwards no setting can be changed.
    "lock_configuration": "true",
}


SECONDS = 60.0
"""Time limit of a query in seconds."""
GRACE = 5.0
"""Seconds that DuckDB has to react to an interrupt. It only checks for one between operations."""


@dataclass(frozen=True)
class TimeLimit:
    """Time limit of a query."""

    seconds: float = SECONDS
    give_up: Callable[[UsageError], None] | None = None
    """Callback that ends the process if DuckDB ignores the interrupt. It is called from another thread."""

    @property
    def error(self) -> UsageError:
        """Return the error for a query that exceeded the time limit."""
        message = f"the query takes longer than {self.seconds:g} s; allow more with --timeout SECONDS"
        return UsageError(message, code=Code.WRONG_QUERY)


DEFAULT_LIMIT = TimeLimit()


@dataclass(frozen=True)
class QueryResult:
    """Answer to a query."""

    columns: tuple[str, ...]
    schema: Any
    """Schema as a `pyarrow.Schema`."""
    batches: Iterator[Any]

    @property
    def rows(self) -> Iterator[Row]:
        """Yield the rows as mappings. They can be read only once."""
        for batch in self.batches:
            for row in batch.to_pylist():
                yield {name: _whole(value) for name, value in row.items()}


def _whole(value: Any) -> Any:
    """Return integers as `int`, because DuckDB returns sums of integers as decimals."""
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)
    return value


class QueryTable(Protocol):
    """Source of tables that are read while a query runs."""

    def show(self, connection: Any, names: Sequence[TableName]) -> None:
        """Register the tables with a DuckDB connection without reading them."""
        ...


@contextmanager
def answered(
    query: str, results: Results | QueryTable, limit: TimeLimit = DEFAULT_LIMIT
) -> Iterator[QueryResult]:
    """Run a query over results.

    Args:
        query: one `SELECT` (also `WITH`, `FROM`, `DESCRIBE`, `SHOW`) in DuckDB SQL.
        results: results, or another source of tables.
        limit: time limit of the query. Time for reading results is not counted.

    Raises:
        UsageError: DuckDB is not installed, the query is not a valid `SELECT`, or it takes too long.
        EvidenceError: a result cannot be read or is damaged.
    """
    duckdb = package("duckdb", "SQL", "sql")
    package("pyarrow", "SQL", "sql")
    names = tables_of(query, limit)
    with temporary_folder("aigo-sql-") as folder:
        file = folder / "results.duckdb"
        limits = {**_LIMITS, "temp_directory": str(folder / "spilled")}
        with duckdb.connect(str(file), config=limits) as connection:
            if isinstance(results, Results):
                for name in names:
                    _fill(connection, name, results)
        with duckdb.connect(str(file), read_only=True, config=limits) as connection:
            if not isinstance(results, Results):
                results.show(connection, names)
            _lock(connection)
            with _interrupted(connection, limit) as fault:
                try:
                    batches = _batches(connection.sql(query))
                    columns = tuple(batches.schema.names)
                    _check_names(columns)
                    yield QueryResult(columns, batches.schema, _computed(duckdb, batches, fault))
                except duckdb.Error as error:
                    raise fault(error) from error


Fault = Callable[[BaseException], UsageError]
"""Function that converts a DuckDB error to a usage error."""


@contextmanager
def _interrupted(connection: Any, limit: TimeLimit) -> Iterator[Fault]:
    """Interrupt the query of a block at its time limit."""
    ended, expired = threading.Event(), threading.Event()

    def watch() -> None:
        if ended.wait(limit.seconds):
            return
        expired.set()
        last = time.monotonic() + GRACE
        while not ended.wait(0.1):
            connection.interrupt()
            if time.monotonic() > last and limit.give_up is not None:
                limit.give_up(limit.error)

    def fault(error: BaseException) -> UsageError:
        return limit.error if expired.is_set() else _wrong(error)

    thread = threading.Thread(target=watch, name="time limit of a query", daemon=True)
    thread.start()
    try:
        yield fault
    finally:
        ended.set()
        thread.join()


def _batches(relation: Any) -> Any:
    # The name of this class depends on the DuckDB release.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(BATCH_ROWS)


def _computed(duckdb: Any, batches: Any, fault: Fault) -> Iterator[Any]:
    """Yield batches. Errors while computing them are reported as errors in the query."""
    try:
        yield from batches
    except (duckdb.Error, OSError, ValueError) as error:  # Arrow re-raises DuckDB errors as one of the latter
        raise fault(error) from error


def _check_names(columns: tuple[str, ...]) -> None:
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise UsageError(
            f"the query gives several columns {twice[0]!r}, expected one of each name (… AS …)",
            code=Code.WRONG_QUERY,
        )


def tables_of(query: str, limit: TimeLimit = DEFAULT_LIMIT) -> list[TableName]:
    """Return the result tables that a query may use, from the words of its text.

    DuckDB itself cannot list the tables of every query.

    Raises:
        UsageError: DuckDB is not installed, the query is not one valid `SELECT`, or it takes too long.
    """
    duckdb = package("duckdb", "SQL", "sql")
    with duckdb.connect(":memory:") as connection, _interrupted(connection, limit) as fault:
        try:
            kinds = [statement.type.name for statement in duckdb.extract_statements(query)]
            if kinds != ["SELECT"]:
                what = f"{len(kinds)} statements" if len(kinds) != 1 else kinds[0]
                raise UsageError(f"the query: found {what}, expected one SELECT", code=Code.WRONG_QUERY)
            for name in SCHEMAS:
                connection.execute(_definition(name))
            _lock(connection)
            # Find errors in the query here, before any result is read.
            connection.sql(query)
        except duckdb.Error as error:
            raise fault(error) from error
    words = set(re.findall(r"\w+", query.lower()))
    return [name for name in SCHEMAS if name in words]


def _lock(connection: Any) -> None:
    for setting, value in _LOCKED.items():
        connection.execute(f"SET {setting} = {value}")


def _definition(name: TableName) -> str:
    columns = ", ".join(f'"{column.name}" {_TYPES[column.kind]}' for column in SCHEMAS[name].columns)
    return f"CREATE TABLE {name} ({columns})"


def _fill(connection: Any, name: TableName, results: Results) -> None:
    connection.execute(_definition(name))
    for batch in results.table(name).batches():
        arrow = package("pyarrow", "SQL", "sql")
        connection.register("incoming", arrow.Table.from_batches([batch]))
        connection.table("incoming").insert_into(name)
        connection.unregister("incoming")


def _wrong(error: BaseException) -> UsageError:
    names = ", ".join(SCHEMAS)
    return UsageError(
        f"the query: {str(error).strip()}\n  expected tables: {names} (columns: aigo-bridge sql --schema)",
        code=Code.WRONG_QUERY,
    )


def schema_text() -> str:
    """Return the tables and their columns as display text."""
    return "\n\n".join(
        "\n".join(
            [
                f"{name}: {schema.meaning}",
                *(f"  {column.name:<18}{column.kind:<8}{column.meaning}" for column in schema.columns),
            ]
        )
        for name, schema in SCHEMAS.items()
    )
