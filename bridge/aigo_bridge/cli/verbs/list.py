"""`aigo-bridge list`: list shipped tasks, or the installed benchmarks of an engine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.tables import print_entries
from aigo_bridge.cli.terminal import print_json, width_of

if TYPE_CHECKING:
    from aigo_bridge.evaluation.shipped_tasks import ShippedTask

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
    from aigo_bridge.evaluation.shipped_tasks import shipped_task
    from aigo_bridge.reading.locating import shipped_tasks
    from aigo_bridge.spec.base import SAMPLE_NOTE

    tasks = {name: shipped_task(path) for name, path in shipped_tasks().items()}
    if as_json:
        rows = [
            {
                "name": name,
                "key": task.key,
                "display_name": task.display_name,
                "description": task.description.strip(),
                "tags": list(task.tags),
                "sample_data": task.is_sample,
                "full_data": list(task.full),
                "parameters": list(task.parameters),
            }
            for name, task in tasks.items()
        ]
        print_json(rows)
        return
    _print_rows(
        ("task", "rows", "what it does", "config"),
        [
            (name, _rows(task), " ".join(task.description.split()), ", ".join(task.parameters))
            for name, task in tasks.items()
        ],
        piped_width=_WIDE,
    )
    if any(task.is_sample for task in tasks.values()):
        note = (
            f"sample: {SAMPLE_NOTE}; if --full is shown, `aigo-bridge run NAME --full` uses "
            "the real rows from the Hugging Face hub"
        )
        typer.echo(f"\n{note}")


def _rows(task: ShippedTask) -> str:
    """Return which rows a task uses by default."""
    if not task.is_sample:
        return ""
    return "sample, --full" if task.full else "sample"


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
