"""How a lake is laid out: its tables, the names of its folders and files, and what makes a folder a lake.

```text
lake.json                                             which release of the layout it is of
manifest/log-<digest>.json                            a log is committed
manifest/base-<number>.json                           a compaction is committed
data/<table>/by_task=…/by_model=…/by_run=…/<name>.parquet
```
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import quote

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.lake.stores import Store, store_at
from aigo_bridge.storage.mirrored import named
from aigo_bridge.tables.extras import package
from aigo_bridge.tables.schema import SCHEMAS, TABLE_NAMES, Column
from aigo_bridge.text.json_text import dumps, read_json

MARK = "lake.json"
VERSION = 1
"""Of the layout; another one is refused."""
MANIFEST, DATA = "manifest", "data"
EVIDENCE = "evidence"
"""The table of the result logs themselves, line by line: what all other verbs are given."""
TABLES: tuple[str, ...] = (*TABLE_NAMES, EVIDENCE)
KEYS = ("by_task", "by_model", "by_run")
COMPACTED = "compacted"
"""Stands for the run in names of files that have many."""

_EVIDENCE = (
    Column("task", "string", "key of the task"),
    Column("model", "string", "the evaluated model or data set"),
    Column("position", "int64", "of the line, from 0"),
    Column("line", "string", "a line of the result log, with its end"),
)
_OF_LAKES = (
    Column("run_id", "string", "of the run, by which an improved log replaces an earlier one"),
    Column("log", "string", "digest of the log, and number of the result in it"),
)
_LONGEST = 120


def columns_of(table: str) -> tuple[Column, ...]:
    """The columns of a table in a lake: those that it has everywhere, and two more."""
    return (*(_EVIDENCE if table == EVIDENCE else SCHEMAS[table].columns), *_OF_LAKES)  # type: ignore[index]  # else one of these


def arrow_schema(table: str) -> object:
    """The columns of a table and their types.

    Raises:
        UsageError: pyarrow is not installed.
    """
    arrow = package("pyarrow", "a lake", "parquet")
    kinds = {"bool": "bool_", "double": "float64"}
    return arrow.schema(
        [(one.name, getattr(arrow, kinds.get(one.kind, one.kind))()) for one in columns_of(table)]
    )


def part_name(text: str | None) -> str:
    """A name as part of a path: letters, digits, `.`, `_` and `-` as they are, all else as `%XX`, as Hive has
    it; long ones are cut, with a digest behind them.
    """
    if text is None:
        return "__HIVE_DEFAULT_PARTITION__"
    escaped = quote(text.encode("utf-8", "backslashreplace"), safe="").replace("~", "%7E") or "%00"
    if len(escaped) <= _LONGEST:
        return escaped
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{re.sub('%.?$', '', escaped[:_LONGEST])}~{digest}"


def data_file(table: str, task: str | None, model: str | None, run: str | None, name: str) -> str:
    """The name of a data file below the lake."""
    values = zip(KEYS, (task, model, run), strict=True)
    folders = "/".join(f"{key}={part_name(value)}" for key, value in values)
    return f"{DATA}/{table}/{folders}/{name}.parquet"


def entry_name(digest: str) -> str:
    """The name of what commits a log."""
    return f"{MANIFEST}/log-{digest}.json"


def base_name(number: int) -> str:
    """The name of what commits a compaction."""
    return f"{MANIFEST}/base-{number:09d}.json"


# Lakes


def _mark() -> bytes:
    tables = {table: {one.name: one.kind for one in columns_of(table)} for table in TABLES}
    return dumps({"aigo_bridge_lake": VERSION, "tables": tables}) + b"\n"


def is_lake(location: str | Path) -> bool:
    """Whether a folder of this machine, or the copy of one, is a lake."""
    return (Path(location) / MARK).is_file()


def open_lake(location: str | Path) -> Store:
    """An existing lake.

    Raises:
        UsageError: there is none, or it is of another release.
        StorageError: it cannot be read.
    """
    store = store_at(location)
    content = store.read([MARK]).get(MARK)
    if content is None:
        what = "nothing" if store.is_empty else "other files"
        raise UsageError(
            f"{named(str(store))} is no lake: found {what}, expected {MARK} (`import LOG… --lake` makes one)",
            code=Code.NOTHING_THERE,
        )
    _check_mark(store, content)
    return store


def make_lake(location: str | Path) -> Store:
    """A lake, which is made where nothing is.

    Raises:
        UsageError: something else is there, or a lake of another release.
        StorageError: it cannot be read or written.
        OSError: the same, on this machine.
    """
    store = store_at(location)
    content = store.read([MARK]).get(MARK)
    if content is not None:
        _check_mark(store, content)
        return store
    if not store.is_empty:
        raise UsageError(
            f"{named(str(store))} is no lake: found other files and no {MARK}, expected a lake, or an empty"
            " folder",
            code=Code.ALREADY_THERE,
        )
    with store.new(MARK) as file:
        file.write(_mark())
    return store


def _check_mark(store: Store, content: bytes) -> None:
    place = f"{named(str(store))}/{MARK}"
    try:
        found = read_json(content)
        version, tables = found["aigo_bridge_lake"], found["tables"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{place}: found something else, expected what marks a lake", code=Code.NOTHING_THERE
        ) from error
    if version != VERSION or tables != read_json(_mark())["tables"]:
        what = "columns of another release" if version == VERSION else f"a lake of version {version!r}"
        raise UsageError(
            f"{place}: found {what}, expected version {VERSION} with the columns of this release; nothing was"
            " changed: use the release that made it, or import the logs into a new lake",
            code=Code.OTHER_RELEASE,
        )
