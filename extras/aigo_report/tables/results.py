"""Results as tables, which are read row by row each time you iterate over them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.access.mirrored import refuse_address
from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.process.extras import package
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.sources import ResultSource, require_result, sources_of
from aigo_bridge.results.values import number_text, short_text
from aigo_bridge.text.escapes import visible
from aigo_bridge.text.plurals import plural
from aigo_report.tables.rows import Row, rows_of
from aigo_report.tables.schema import SCHEMAS, TableName

if TYPE_CHECKING:
    from aigo_bridge.api.planning import StrPath

BATCH_ROWS = 5_000
BATCH_CHARACTERS = 16 << 20
"""Of the texts of rows that are held together."""
_PREVIEW_ROWS, _PREVIEW_CHARACTERS = 20, 200


class Table:
    """A table of results. Iterating gives its rows, each a mapping from columns to values, and reads the
    results anew; nothing is kept.
    """

    def __init__(self, name: TableName, results: Results):
        self.name = name
        self.columns = tuple(column.name for column in SCHEMAS[name].columns)
        self._results = results

    def __iter__(self) -> Iterator[Row]:
        for path, name in zip(self._results.paths, self._results.names, strict=True):
            yield from rows_of(self.name, LogReader(path), name)

    def batches(self) -> Iterator[Any]:
        """The rows as record batches of Arrow, a few thousand at a time.

        Raises:
            UsageError: pyarrow is not installed.
            EvidenceError: a result cannot be read, or is damaged.
        """
        schema = self.arrow_schema()
        arrow = package("pyarrow", "a table of Arrow", "parquet")
        for rows in batched(self):
            yield arrow.RecordBatch.from_pylist(rows, schema=schema)

    def reader(self) -> Any:
        """The rows as a stream of record batches: a `pyarrow.RecordBatchReader`.

        Raises:
            UsageError: pyarrow is not installed.
        """
        arrow = package("pyarrow", "a table of Arrow", "parquet")
        return arrow.RecordBatchReader.from_batches(self.arrow_schema(), self.batches())

    def arrow_schema(self) -> Any:
        """The columns and their types, as a `pyarrow.Schema`.

        Raises:
            UsageError: pyarrow is not installed.
        """
        arrow = package("pyarrow", "a table of Arrow", "parquet")
        kinds = {"bool": "bool_"}
        fields = [
            (column.name, getattr(arrow, kinds.get(column.kind, column.kind.replace("double", "float64")))())
            for column in SCHEMAS[self.name].columns
        ]
        return arrow.schema(fields)

    def to_arrow(self) -> Any:
        """All rows as a `pyarrow.Table`.

        Raises:
            UsageError: pyarrow is not installed.
            EvidenceError: a result cannot be read, or is damaged.
        """
        return self.reader().read_all()

    def to_pandas(self) -> Any:
        """All rows as a `pandas.DataFrame`; whole numbers stay whole, also beside null.

        Raises:
            UsageError: pandas or pyarrow is not installed.
            EvidenceError: a result cannot be read, or is damaged.
        """
        frames = package("pandas", "a data frame of pandas")
        arrow = package("pyarrow", "a data frame of pandas", "parquet")
        kinds = {
            arrow.int32(): frames.Int32Dtype(),
            arrow.int64(): frames.Int64Dtype(),
            arrow.bool_(): frames.BooleanDtype(),
        }
        return self.to_arrow().to_pandas(types_mapper=kinds.get)

    def to_polars(self) -> Any:
        """All rows as a `polars.DataFrame`.

        Raises:
            UsageError: polars or pyarrow is not installed.
            EvidenceError: a result cannot be read, or is damaged.
        """
        frames = package("polars", "a data frame of polars")
        return frames.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return f"<Table {self.name!r} of {plural(len(self._results), 'result')}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        rows = list(islice(self, _PREVIEW_ROWS + 1))
        cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
        more = "<p>… and more</p>" if len(rows) > _PREVIEW_ROWS else ""
        return _html(self.columns, cells[:_PREVIEW_ROWS]) + more


def batched(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows a few thousand at a time, fewer where their texts are long."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(batch) >= BATCH_ROWS or size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Results:
    """Result logs, as tables. Nothing is read before it is asked for, and never more than a few samples at a
    time.
    """

    def __init__(self, sources: Sequence[ResultSource]):
        self.sources = tuple(source for source in sources if source.path is not None)
        self.paths = tuple(source.path for source in sources if source.path is not None)
        """The result logs."""
        self.names = tuple(source.label for source in self.sources)
        """Names of the results: paths, or of a run file `run.yaml#quiz`."""
        self.missing = tuple(source.name for source in sources if source.path is None)
        """Tasks of evaluations that have no result."""

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        """Return the places of the results; nothing is read."""
        names = [repr(str(path)) for path in self.paths[:_PREVIEW_ROWS]]
        more = [f"{len(self.paths) - _PREVIEW_ROWS} more"] if len(self.paths) > _PREVIEW_ROWS else []
        missing = f"; without a result: {', '.join(map(repr, self.missing))}" if self.missing else ""
        return f"<Results: {', '.join([*names, *more]) or 'none'}{missing}>"

    def table(self, name: TableName) -> Table:
        """One of the tables, by its name.

        Raises:
            UsageError: there is no such table.
        """
        if name not in SCHEMAS:
            raise UsageError(
                f"no table {name!r}, expected one of {', '.join(map(repr, SCHEMAS))}",
                code=Code.UNKNOWN_CHOICE,
            )
        return Table(name, self)

    def results(self) -> Table:
        """A row for each result: what was evaluated, when, and how many samples failed."""
        return self.table("results")

    def metrics(self) -> Table:
        """A row for each number, with the samples that stand behind it."""
        return self.table("metrics")

    def samples(self) -> Table:
        """A row for each sample."""
        return self.table("samples")

    def trials(self) -> Table:
        """A row for each trial of a sample: question, answer, tokens."""
        return self.table("trials")

    def scores(self) -> Table:
        """A row for each score; `counted` says whether metrics take it."""
        return self.table("scores")

    def events(self) -> Table:
        """A row for each event of the traces: calls of models and functions, spans."""
        return self.table("events")

    def to_arrow(self, table: TableName = "trials") -> Any:
        """A table as a `pyarrow.Table`; see `Table.to_arrow`."""
        return self.table(table).to_arrow()

    def to_pandas(self, table: TableName = "trials") -> Any:
        """A table as a `pandas.DataFrame`; see `Table.to_pandas`."""
        return self.table(table).to_pandas()

    def to_polars(self, table: TableName = "trials") -> Any:
        """A table as a `polars.DataFrame`; see `Table.to_polars`."""
        return self.table(table).to_polars()

    def _repr_html_(self) -> str:
        """The numbers of every result; of the samples only how many there are, which needs no reading."""
        columns = ("result", "task", "model", "metric", "value", "samples", "failed")
        return _html(
            columns,
            (row for path, name in zip(self.paths, self.names, strict=True) for row in _overview(path, name)),
        )


def _overview(path: Path, result: str) -> Iterator[list[str]]:
    try:
        log = LogReader(path).frame()
    except BridgeError as error:
        yield [result, "", "", "", str(error), "", ""]
        return
    entity, evidence = log.specification.evaluated_entity, log.evidence
    failures = None if evidence is None else evidence.failures
    counts = ["", ""] if failures is None else [str(failures.num_total), str(failures.num_errors)]
    head = [result, log.specification.task.key, "" if entity is None else entity.display_name]
    metrics = (evidence.metrics if evidence is not None else None) or ()
    numbers = [(name, number_text(value)) for metric in metrics for name, value in metric.values.items()]
    for name, text in numbers or [("", "")]:
        yield [*head, name, text, *counts]


def _html(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table for a notebook: all that stands in it is text."""

    def cells(tag: str, texts: Iterable[str]) -> str:
        return "".join(f"<{tag}>{_text(text)}</{tag}>" for text in texts)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', columns)}</tr></thead>"
    # Notebooks look for mathematics between dollar signs.
    return f'<table class="mathjax_ignore tex2jax_ignore">{head}<tbody>{body}</tbody></table>'


def _text(text: str) -> str:
    return escape(visible(short_text(text, _PREVIEW_CHARACTERS) or "", keep="\n\t"))


def results_at(locations: Iterable[str | os.PathLike[str]]) -> Results:
    """Return the results at some locations: files, folders, evaluations, run files with task result logs, and
    patterns (`out/*.tasklog.json`).

    Raises:
        UsageError: a location has no results.
        EvidenceError: a summary cannot be read.
        SpecError: a run file is invalid.
    """
    sources = sources_of(locations)
    for source in sources:
        require_result(source)
    return Results(sources)


def open_results(*locations: StrPath) -> Results:
    """Return results as tables, for data frames.

    Each table reads the results when you use it, sample by sample.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    results = aigo_bridge.open_results(outcome.result)
    (metric,) = results.metrics()
    assert (metric["name"], metric["text"], metric["scored"]) == ("Accuracy", "0.75", 4)
    assert [trial["answer"] for trial in results.trials()] == ["Oslo", "Lima", "Sydney", "Tokyo"]
    assert results.to_pandas("scores").query("counted")["value"].mean() == 0.75
    ```

    Args:
        locations: result logs (also `.gz`, `.zst`), folders of them, patterns (`out/*.tasklog.json`),
            summaries of evaluations (`evaluation.json`), run files with task result logs (`run.yaml`, or
            `run.yaml#KEY` for one task specification).

    Returns:
        The results: `results()`, `metrics()`, `samples()`, `trials()`, `scores()` and `events()` are tables.
        Iterating over a table gives its rows as mappings; `to_pandas()`, `to_polars()` and `to_arrow()` give
        all of it, `batches()` in batches of Arrow. These raise `EvidenceError` if a result cannot
        be read, and `UsageError` if a package is missing.

    Raises:
        UsageError: a location has no results.
        EvidenceError: the summary of an evaluation cannot be read.
        SpecError: a run file is invalid, or its task result logs are missing or outside its folder.
    """
    for location in locations:
        refuse_address(location, "locations")
    return results_at(locations)
