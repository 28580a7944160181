"""A lake read: the partitions that are meant and no others, as batches of Arrow, and as the result logs that
were imported, to the byte.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Self

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.lake.layout import EVIDENCE, KEYS, arrow_schema, columns_of, is_lake, open_lake
from aigo_bridge.lake.manifest import Result, Selection, Source, State, load_state
from aigo_bridge.lake.stores import Store
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.storage.mirrored import named
from aigo_bridge.tables.extras import package
from aigo_bridge.tables.schema import TableName
from aigo_bridge.text.plurals import plural

_TRIES = 3
_OF_LAKES = 2
"""Columns that tables have in lakes alone."""
_ROWS = 20_000


def split(location: str | os.PathLike[str]) -> tuple[str, Selection]:
    """A location as that of a lake, and the partitions that are meant:
    `LAKE/by_task=…/by_model=…/by_run=…`, of which any may be left out.
    """
    parts = os.fspath(location).rstrip("/").split("/")
    chosen: dict[str, str] = {}
    while len(parts) > 1 and parts[-1].partition("=")[0] in KEYS and "=" in parts[-1]:
        key, _, value = parts.pop().partition("=")
        chosen[key] = value
    return "/".join(parts), Selection(*(chosen.get(key) for key in KEYS))


def lake_at(location: str | os.PathLike[str]) -> tuple[str, Selection] | None:
    """The lake at a path of this machine, and the partitions that are meant; `None`: there is none."""
    folder, selection = split(location)
    return (folder, selection) if is_lake(folder) else None


class LakeReader:
    """A lake, or partitions of it, at one moment; read anew where a compaction has come in between."""

    def __init__(self, location: str | os.PathLike[str], selection: Selection | None = None):
        self.store = open_lake(os.fspath(location))
        self.selection = selection or Selection()
        self.state = load_state(self.store)

    def results(self) -> list[Result]:
        """The results that are meant.

        Raises:
            UsageError: there are none.
        """
        results = self.state.results(self.selection)
        if not results:
            where = self.selection.path
            raise UsageError(
                f"{named(str(self.store))}{where}: the lake has no result"
                + (" there (`lake list` names the partitions)" if where else ""),
                code=Code.NOTHING_THERE,
            )
        return results

    def again(self) -> bool:
        """Read the manifest again; whether it has changed."""
        earlier, self.state = self.state, load_state(self.store)
        return earlier.files != self.state.files

    def tried(self, work: Callable[[State], Any]) -> Any:
        """Do something with its files, again where a compaction has removed them meanwhile.

        Raises:
            EvidenceError: a file is not there, or damaged.
        """
        for number in range(_TRIES):
            try:
                return work(self.state)
            except FileNotFoundError as error:
                if number == _TRIES - 1 or not self.again():
                    raise EvidenceError(
                        [
                            Issue(
                                f"a file of the lake is not there: {error}",
                                file=named(str(self.store)),
                                code=Code.DAMAGED_RESULT,
                            )
                        ]
                    ) from error
        raise AssertionError("a try returns or raises")

    def dataset(self, table: str) -> tuple[Any, frozenset[str]]:
        """A table as a data set of Arrow, of which only the files are opened that a filter leaves; and the
        keys (`log`) of rows in it that are not meant.
        """
        package("pyarrow", "a lake", "parquet")
        from pyarrow import dataset  # type: ignore[import-untyped]  # has no types

        schema, form = arrow_schema(table), dataset.ParquetFileFormat()
        fragments, others, filesystem = [], set[str](), None
        for source in self.state.sources(table, self.selection):
            path, filesystem = self.store.for_arrow(source.file.name)
            known = _known(dataset, source)
            fragments.append(form.make_fragment(path, filesystem, partition_expression=known))
            others |= source.others
        return dataset.FileSystemDataset(fragments, schema, form, filesystem), frozenset(others)

    def write_logs(self, folder: Path) -> list[Path]:
        """Write the result logs that were imported, to the byte.

        Args:
            folder: an empty one.

        Raises:
            UsageError: there are none.
            EvidenceError: the lake is damaged.
        """
        return list(self.tried(lambda state: self._write_logs(state, folder)))

    def _write_logs(self, state: State, folder: Path) -> list[Path]:
        names = _names(self.results())
        with _Logs(folder, names) as logs:
            for source in state.sources(EVIDENCE, self.selection):
                for batch in batches_of(self.store, EVIDENCE, source):
                    for row in batch.select(["log", "line"]).to_pylist():
                        logs.add(row["log"], row["line"])
        written = logs.written
        missing = names.keys() - written.keys()
        if missing:
            number = plural(len(missing), "result has", "results have")
            text = f"{number} no evidence in it, {min(missing)} among them"
            raise EvidenceError(
                [
                    Issue(
                        text,
                        file=named(str(self.store)),
                        hint="aigo-bridge lake verify",
                        code=Code.DAMAGED_RESULT,
                    )
                ]
            )
        return [written[key] for key in names]


def _known(dataset: Any, source: Source) -> Any:
    """What is known of the rows of a file before it is opened."""
    known = dataset.field("task") == source.task
    if source.model is not None:
        known &= dataset.field("model") == source.model
    return known


def batches_of(store: Store, table: str, source: Source) -> Iterator[Any]:
    """The rows of a file that count, in their order.

    Raises:
        FileNotFoundError: it is not there.
        EvidenceError: it is damaged, or has other columns.
    """
    package("pyarrow", "a lake", "parquet")
    import pyarrow as pa
    from pyarrow import compute, parquet

    path, filesystem = store.for_arrow(source.file.name)
    place = f"{named(str(store))}/{source.file.name}"
    try:
        with filesystem.open_input_file(path) as file:
            content = parquet.ParquetFile(file)
            if content.schema_arrow.names != [column.name for column in columns_of(table)]:
                raise EvidenceError(
                    [
                        Issue(
                            "found other columns than those of the table",
                            file=place,
                            code=Code.DAMAGED_RESULT,
                        )
                    ]
                )
            for batch in content.iter_batches(_ROWS):
                if source.is_whole:
                    yield batch
                else:
                    meant = compute.is_in(batch.column("log"), pa.array(sorted(source.keys)))
                    yield batch.filter(meant)
    except pa.ArrowInvalid as error:
        raise EvidenceError(
            [Issue(f"found no sound Parquet: {error}", file=place, code=Code.DAMAGED_RESULT)]
        ) from error


def _names(results: list[Result]) -> dict[str, str]:
    """Key → name of the file that a result is written as: of its task, so that results of one task have one
    name in all folders; with the run where a task has several.
    """
    from aigo_bridge.importing.log_import import file_stem

    often = Counter(one.task for one in results)
    taken: set[str] = set()
    return {
        one.key: file_stem(f"{one.task}-{one.run_id}"[:120] if often[one.task] > 1 else f"{one.task}", taken)
        + one.suffix
        for one in results
    }


class _Logs:
    """Result logs that are written line by line, one at a time."""

    def __init__(self, folder: Path, names: dict[str, str]):
        self._folder, self._names = folder, names
        self._stack = ExitStack()
        self._key: str | None = None
        self._file: BinaryIO | None = None
        self.written: dict[str, Path] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]  # as they came

    def add(self, key: str, line: str) -> None:
        """Write a line of a log."""
        if key not in self._names:
            return
        if key != self._key or self._file is None:
            self._stack.close()
            path = self._folder / self._names[key]
            self._file = self._stack.enter_context(open_for_replacing(path))
            self._key, self.written[key] = key, path
        self._file.write(line.encode())


# SQL


class LakeTables:
    """The tables of a lake, or of partitions of it, for SQL: rows are read when a query wants them, and of
    files only those, of these only the columns, that it names.
    """

    def __init__(self, location: str, selection: Selection):
        self._reader = LakeReader(location, selection)
        self._reader.results()

    def show(self, connection: Any, names: Sequence[TableName]) -> None:
        """Have a database of DuckDB know the tables."""
        for name in names:
            rows, others = self._reader.dataset(name)
            connection.register(f"lake_{name}", rows)
            columns = ", ".join(f'"{column.name}"' for column in columns_of(name)[:-_OF_LAKES])
            keys = ", ".join(f"'{key}'" for key in sorted(others))
            meant = f" WHERE log NOT IN ({keys})" if keys else ""
            # Names of our own tables and columns, and digests.
            view = f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM lake_{name}{meant}"  # noqa: S608
            connection.execute(view)
