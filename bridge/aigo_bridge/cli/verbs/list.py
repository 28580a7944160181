"""`aigo-bridge list`: list shipped tasks, or the installed benchmarks of an engine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.tables import print_entries
from aigo_bridge.cli.terminal import print_json, width_of

if TYPE_CHECKING:
    from pathlib import Path

    from aigo_bridge.evaluation.sample_data import DefaultSampleData
    from aigo_bridge.reading import Document
    from aigo_bridge.spec.task import TaskSpec

app = typer.Typer(**VERB)

_WIDE = 2000
"""Line length without a terminal: each task is one line, for use with grep and cut."""

_NARROW = 120
"""Minimum terminal columns for a table; narrower terminals show entries."""


@app.command(
    "list",
    cls=verb_command(
        "aigo-bridge list",
        "aigo-bridge list inspect",
        exit_codes={"0": "the list was printed", "2": "wrong arguments"},
    ),
)
def list_tasks(
    engine: str | None = typer.Argument(
        None,
        metavar="[ENGINE]",
        help="Engine whose installed benchmarks to list, e.g. inspect or lighteval. "
        "[default: list shipped tasks]",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """List the tasks that come with aigo-bridge, or the benchmarks of an engine.

    Run a shipped task with `aigo-bridge run aigo_tasks/NAME`, and a benchmark with `aigo-bridge run
    inspect:NAME`.
    """
    if engine is not None:
        _list_benchmarks(engine, as_json=as_json)
        return
    from aigo_bridge.evaluation.sample_data import sample_data
    from aigo_bridge.reading.locating import shipped_tasks
    from aigo_bridge.spec.datasets import SAMPLE_NOTE

    documents = {name: _shipped(path) for name, path in shipped_tasks().items()}
    samples = {name: sample_data(document) for name, document in documents.items()}
    tasks = [(name, document.spec) for name, document in documents.items()]
    if as_json:
        rows = [
            {
                "name": name,
                "key": task.key,
                "display_name": task.display_name,
                "description": task.description.strip(),
                "tags": list(task.tags),
                "sample_data": samples[name] is not None,
                "full_data": list(sample.full) if (sample := samples[name]) is not None else [],
                "parameters": [parameter.key for parameter in task.config_spec],
            }
            for name, task in tasks
        ]
        print_json(rows)
        return
    _print_rows(
        ("task", "rows", "what it does", "config"),
        [
            (
                name,
                _rows(samples[name]),
                " ".join(task.description.split()),
                ", ".join(parameter.key for parameter in task.config_spec),
            )
            for name, task in tasks
        ],
        piped_width=_WIDE,
    )
    if any(samples.values()):
        note = (
            f"sample: {SAMPLE_NOTE}; if --full is shown, `aigo-bridge run NAME --full` uses "
            "the real rows from the Hugging Face hub"
        )
        typer.echo(f"\n{note}")


def _shipped(path: Path) -> Document[TaskSpec]:
    """Return a shipped task without the checks of `validate`: only valid tasks are shipped."""
    from pydantic import ValidationError

    from aigo_bridge.reading import read
    from aigo_bridge.reading.reader import open_document
    from aigo_bridge.spec.task import TaskSpec

    document: Document[Any] = open_document(path)[0]
    try:
        return replace(document, spec=TaskSpec.model_validate(document.data))
    except ValidationError:  # A task that was edited: the reader explains the mistake.
        return read(TaskSpec, path)


def _rows(sample: DefaultSampleData | None) -> str:
    """Return which rows a task uses by default."""
    if sample is None:
        return ""
    return "sample, --full" if sample.full else "sample"


def _list_benchmarks(engine: str, *, as_json: bool) -> None:
    """Print the installed benchmarks of an engine."""
    from aigo_bridge.cli.terminal import name_of, printable
    from aigo_bridge.engine.registry import load_benchmarks

    listing = load_benchmarks(engine).listing()
    for problem in listing.problems:
        typer.echo(f"warning: {printable(problem)}", err=True)
    if not listing.benchmarks:
        hint = f"; {listing.hint}" if listing.hint else ""
        typer.echo(f"no package with benchmarks for {engine} is installed{hint}", err=True)
    if as_json:
        rows = [
            {
                "name": f"{engine}:{benchmark.name}",
                "package": benchmark.package,
                "parameters": list(benchmark.parameters),
                "description": benchmark.summary,
            }
            for benchmark in listing.benchmarks
        ]
        print_json(rows)
        return
    if not listing.benchmarks:
        return
    _print_rows(
        ("benchmark", "what it does", "parameters"),
        [
            (
                name_of(f"{engine}:{benchmark.name}"),
                name_of(benchmark.summary),
                ", ".join(benchmark.parameters),
            )
            for benchmark in listing.benchmarks
        ],
        piped_width=160,
    )


def _print_rows(headers: Sequence[str], rows: Sequence[Sequence[str]], *, piped_width: int) -> None:
    """Print rows as a table, or below each other on a narrow terminal; no word is left out.

    Args:
        headers: name of each column; the first column contains the names of the rows.
        rows: texts of each row, as many as `headers`.
        piped_width: characters of a line if the output is not a terminal (rich's default is 80).
    """
    width = width_of(sys.stdout)
    if width is not None and width < _NARROW:
        print_entries(headers, rows, width)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    # Users need the full name to run a benchmark.
    table.columns[0].no_wrap = True
    table.columns[0].min_width = max(len(row[0]) for row in rows)
    for row in rows:
        table.add_row(*map(Text, row))
    Console(width=piped_width if width is None else None).print(table)
