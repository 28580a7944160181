"""Results as tables. Each iteration reads the rows from the result files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.access.display_paths import refuse_address
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
"""Maximum number of text characters in a batch of rows."""
_PREVIEW_ROWS, _PREVIEW_CHARACTERS = 20, 200


class ResultTable:
    """Table of results. Each iteration reads the results again and yields rows as mappings. Rows are not
    cached.
    """

    def __init__(self, name: TableName, results: Results):
        self.name = name
        self.columns = tuple(column.name for column in SCHEMAS[name].columns)
        self._results = results

    def __iter__(self) -> Iterator[Row]:
        for path, name in zip(self._results.paths, self._results.names, strict=True):
            yield from rows_of(self.name, LogReader(path), name)

    def batches(self) -> Iterator[Any]:
        """Yield the rows as Arrow record batches of some thousand rows.

        Raises:
            UsageError: pyarrow is not installed.
            EvidenceError: a result cannot be read or is damaged.
        """
        schema = self.arrow_schema()
        arrow = package("pyarrow", "an Arrow table", "parquet")
        for rows in batched(self):
            yield arrow.RecordBatch.from_pylist(rows, schema=schema)

    def reader(self) -> Any:
        """Return the rows as a stream of record batches: a `pyarrow.RecordBatchReader`.

        Raises:
            UsageError: pyarrow is not installed.
        """
        arrow = package("pyarrow", "an Arrow table", "parquet")
        return arrow.RecordBatchReader.from_batches(self.arrow_schema(), self.batches())

    def arrow_schema(self) -> Any:
        """Return the columns with their types as a `pyarrow.Schema`.

        Raises:
            UsageError: pyarrow is not installed.
        """
        arrow = package("pyarrow", "an Arrow table", "parquet")
        kinds = {"bool": "bool_"}
        fields = [
            (column.name, getattr(arrow, kinds.get(column.kind, column.kind.replace("double", "float64")))())
            for column in SCHEMAS[self.name].columns
        ]
        return arrow.schema(fields)

    def to_arrow(self) -> Any:
        """Return all rows as a `pyarrow.Table`.

        Raises:
            UsageError: pyarrow is not installed.
            EvidenceError: a result cannot be read or is damaged.
        """
        return self.reader().read_all()

    def to_pandas(self) -> Any:
        """Return all rows as a `pandas.DataFrame`. Integer columns stay integers, even with null values.

        Raises:
            UsageError: pandas or pyarrow is not installed.
            EvidenceError: a result cannot be read or is damaged.
        """
        frames = package("pandas", "a pandas data frame")
        arrow = package("pyarrow", "a pandas data frame", "parquet")
        kinds = {
            arrow.int32(): frames.Int32Dtype(),
            arrow.int64(): frames.Int64Dtype(),
            arrow.bool_(): frames.BooleanDtype(),
        }
        return self.to_arrow().to_pandas(types_mapper=kinds.get)

    def to_polars(self) -> Any:
        """Return all rows as a `polars.DataFrame`.

        Raises:
            UsageError: polars or pyarrow is not installed.
            EvidenceError: a result cannot be read or is damaged.
        """
        frames = package("polars", "a polars data frame")
        return frames.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return f"<Table {self.name!r} of {plural(len(self._results), 'result')}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        rows = list(islice(self, _PREVIEW_ROWS + 1))
        cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
        more = "<p>… and more</p>" if len(rows) > _PREVIEW_ROWS else ""
        return _html(self.columns, cells[:_PREVIEW_ROWS]) + more


def batched(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield batches of some thousand rows, or fewer rows with long texts."""
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
    """Result logs as tables. Results are read when a table is used, a few samples at a time."""

    def __init__(self, sources: Sequence[ResultSource]):
        self.sources = tuple(source for source in sources if source.path is not None)
        self.paths = tuple(source.path for source in sources if source.path is not None)
        """Paths of the result logs."""
        self.names = tuple(source.label for source in self.sources)
        """Names of the results: paths, or `run.yaml#quiz` for results in a run file."""
        self.missing = tuple(source.name for source in sources if source.path is None)
        """Tasks of evaluations without a result."""

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        """Return the locations of the results without reading them."""
        names = [repr(str(path)) for path in self.paths[:_PREVIEW_ROWS]]
        more = [f"{len(self.paths) - _PREVIEW_ROWS} more"] if len(self.paths) > _PREVIEW_ROWS else []
        missing = f"; without a result: {', '.join(map(repr, self.missing))}" if self.missing else ""
        return f"<Results: {', '.join([*names, *more]) or 'none'}{missing}>"

    def table(self, name: TableName) -> ResultTable:
        """Return a table by name.

        Raises:
            UsageError: the table name is unknown.
        """
        if name not in SCHEMAS:
            raise UsageError(
                f"no table {name!r}, expected one of {', '.join(map(repr, SCHEMAS))}",
                code=Code.UNKNOWN_CHOICE,
            )
        return ResultTable(name, self)

    def results(self) -> ResultTable:
        """Return the results table, with a row for each result: subject, times and number of failed
        samples.
        """
        return self.table("results")

    def metrics(self) -> ResultTable:
        """Return the metrics table, with a row for each metric and its number of samples."""
        return self.table("metrics")

    def samples(self) -> ResultTable:
        """Return the samples table, with a row for each sample."""
        return self.table("samples")

    def trials(self) -> ResultTable:
        """Return the trials table, with a row for each trial of a sample: question, answer, tokens."""
        return self.table("trials")

    def scores(self) -> ResultTable:
        """Return the scores table, with a row for each score. `counted` is true if metrics include the
        score.
        """
        return self.table("scores")

    def events(self) -> ResultTable:
        """Return the events table, with a row for each trace event: model calls, function calls and spans."""
        return self.table("events")

    def to_arrow(self, table: TableName = "trials") -> Any:
        """Return a table as a `pyarrow.Table`; see `ResultTable.to_arrow`."""
        return self.table(table).to_arrow()

    def to_pandas(self, table: TableName = "trials") -> Any:
        """Return a table as a `pandas.DataFrame`; see `ResultTable.to_pandas`."""
        return self.table(table).to_pandas()

    def to_polars(self, table: TableName = "trials") -> Any:
        """Return a table as a `polars.DataFrame`; see `ResultTable.to_polars`."""
        return self.table(table).to_polars()

    def _repr_html_(self) -> str:
        """Return the metrics of every result as HTML. It contains only sample counts, so no samples are
        read.
        """
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
    """Return a notebook table with all content as plain text."""

    def cells(tag: str, texts: Iterable[str]) -> str:
        return "".join(f"<{tag}>{_text(text)}</{tag}>" for text in texts)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', columns)}</tr></thead>"
    # Notebooks treat text between dollar signs as mathematics.
    return f'<table class="mathjax_ignore tex2jax_ignore">{head}<tbody>{body}</tbody></table>'


def _text(text: str) -> str:
    return escape(visible(short_text(text, _PREVIEW_CHARACTERS) or "", keep="\n\t"))


def results_at(locations: Iterable[str | os.PathLike[str]]) -> Results:
    """Return the results at some locations.

    A location is a file, folder, evaluation, run file with task result logs, or pattern
    (`out/*.tasklog.json`).

    Raises:
        UsageError: a location does not contain results.
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
        locations: one or more of these:

            - a result log, also compressed (`.gz`, `.zst`), or a folder with result logs
            - a pattern, e.g. `out/*.tasklog.json`
            - the summary of an evaluation (`evaluation.json`)
            - a run file with task result logs (`run.yaml`, or `run.yaml#KEY` for one task specification)

    Returns:
        Results with six tables: `results()`, `metrics()`, `samples()`, `trials()`, `scores()` and `events()`.

        Iterate over a table for its rows as mappings. Use `to_pandas()`, `to_polars()` or `to_arrow()` for
        the whole table, and `batches()` for Arrow record batches. These methods raise `EvidenceError` if a
        result cannot be read, and `UsageError` if a package is missing.

    Raises:
        UsageError: a location does not contain results.
        EvidenceError: the summary of an evaluation cannot be read.
        SpecError: a run file is invalid, or its task result logs are missing or outside its folder.
    """
    for location in locations:
        refuse_address(location, "locations")
    return results_at(locations)
