"""SQL over results, by DuckDB: the tables that a query names are filled in a temporary database, which is
then opened for reading alone. The query may be a stranger's: it reaches no file, no network, no variable of
this process, and can change no setting.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.tables.extras import package
from aigo_bridge.tables.results import BATCH_ROWS, Results
from aigo_bridge.tables.rows import Row
from aigo_bridge.tables.schema import SCHEMAS, TableName

_TYPES = {"string": "VARCHAR", "int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN"}
_LIMITS = {"memory_limit": "1GB", "max_temp_directory_size": "20GB"}
_LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    # Last: from then on nothing can be set.
    "lock_configuration": "true",
}


@dataclass(frozen=True)
class Answer:
    """What a query gives."""

    columns: tuple[str, ...]
    schema: Any
    """A `pyarrow.Schema`."""
    batches: Iterator[Any]

    @property
    def rows(self) -> Iterator[Row]:
        """The rows, each a mapping from columns to values; they can be read once."""
        for batch in self.batches:
            for row in batch.to_pylist():
                yield {name: _whole(value) for name, value in row.items()}


def _whole(value: Any) -> Any:
    """Whole numbers as such: sums of them come as decimals."""
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)
    return value


class Shown(Protocol):
    """Tables that are read while a query runs."""

    def show(self, connection: Any, names: Sequence[TableName]) -> None:
        """Have a database of DuckDB know the tables of these names; nothing is read yet."""
        ...


@contextmanager
def answered(query: str, results: Results | Shown) -> Iterator[Answer]:
    """Ask results.

    Args:
        query: one `SELECT` (also `WITH`, `FROM`, `DESCRIBE`, `SHOW`) in DuckDB's SQL.
        results: what its tables are of, or what shows them to the database.

    Raises:
        UsageError: DuckDB is not installed, or the query is something else, or wrong.
        EvidenceError: a result cannot be read, or is damaged.
    """
    duckdb = package("duckdb", "SQL", "sql")
    package("pyarrow", "SQL", "sql")
    names = tables_of(query)
    with tempfile.TemporaryDirectory(prefix="aigo-sql-") as folder:
        file = Path(folder) / "results.duckdb"
        limits = {**_LIMITS, "temp_directory": str(Path(folder) / "spilled")}
        with duckdb.connect(str(file), config=limits) as connection:
            if isinstance(results, Results):
                for name in names:
                    _fill(connection, name, results)
        with duckdb.connect(str(file), read_only=True, config=limits) as connection:
            if not isinstance(results, Results):
                results.show(connection, names)
            _lock(connection)
            try:
                batches = _batches(connection.sql(query))
                columns = tuple(batches.schema.names)
                _check_names(columns)
                yield Answer(columns, batches.schema, _computed(duckdb, batches))
            except duckdb.Error as error:
                raise _wrong(error) from error


def _batches(relation: Any) -> Any:
    # Releases have called it by different names.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(BATCH_ROWS)


def _computed(duckdb: Any, batches: Any) -> Iterator[Any]:
    """Batches; what goes wrong while they are computed is the query's fault."""
    try:
        yield from batches
    except (duckdb.Error, OSError, ValueError) as error:  # Arrow passes on its errors as one of the latter
        raise _wrong(error) from error


def _check_names(columns: tuple[str, ...]) -> None:
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise UsageError(
            f"the query gives several columns {twice[0]!r}, expected one of each name (… AS …)",
            code=Code.WRONG_QUERY,
        )


def tables_of(query: str) -> list[TableName]:
    """The tables of results that a query may name: its words decide, as DuckDB does not say of all queries.

    Raises:
        UsageError: DuckDB is not installed, or the query is no single `SELECT`, or wrong.
    """
    duckdb = package("duckdb", "SQL", "sql")
    try:
        kinds = [statement.type.name for statement in duckdb.extract_statements(query)]
        if kinds != ["SELECT"]:
            what = f"{len(kinds)} statements" if len(kinds) != 1 else kinds[0]
            raise UsageError(f"the query: found {what}, expected one SELECT", code=Code.WRONG_QUERY)
        with duckdb.connect(":memory:") as connection:
            for name in SCHEMAS:
                connection.execute(_definition(name))
            _lock(connection)
            # Faults of the query are found here, before anything is read.
            connection.sql(query)
    except duckdb.Error as error:
        raise _wrong(error) from error
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
    """The tables and their columns, for people."""
    return "\n\n".join(
        "\n".join(
            [
                f"{name}: {schema.meaning}",
                *(f"  {column.name:<18}{column.kind:<8}{column.meaning}" for column in schema.columns),
            ]
        )
        for name, schema in SCHEMAS.items()
    )
