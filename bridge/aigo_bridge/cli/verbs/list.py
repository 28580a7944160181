"""`aigo-bridge list`: the shipped tasks, or the benchmarks that are installed for an engine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from aigo_bridge.cli.options import VERB
from aigo_bridge.cli.terminal import print_json

if TYPE_CHECKING:
    from aigo_bridge.evaluation.task import SampleData

app = typer.Typer(**VERB)

_WIDE = 2000
"""Characters of a line where no terminal sets its width: a task is one line, to be searched and cut."""


@app.command("list")
def list_tasks(
    engine: str | None = typer.Argument(
        None, metavar="[ENGINE]", help="List the benchmarks installed for this engine, e.g. inspect."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print a machine-readable list."),
) -> None:
    """List the tasks that come with aigo-bridge; run one by its name: `aigo-bridge run aigo_tasks/NAME`.

    With an engine: its own benchmarks in installed packages, without loading them; run one by `aigo-bridge
    run inspect:NAME`.
    """
    from aigo_bridge.cli.failing import reported

    if engine is not None:
        with reported():
            _list_benchmarks(engine, as_json=as_json)
        return
    from aigo_bridge.evaluation.task import sample_data
    from aigo_bridge.reading import read
    from aigo_bridge.reading.locating import shipped_tasks
    from aigo_bridge.spec import TaskSpec
    from aigo_bridge.spec.datasets import SAMPLE_NOTE

    with reported():
        documents = {name: read(TaskSpec, path) for name, path in shipped_tasks().items()}
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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        "task", "rows", "what it does", "config", box=None, padding=(0, 2, 0, 0), header_style="bold"
    )
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for name, task in tasks:
        parameters = ", ".join(parameter.key for parameter in task.config_spec)
        description = " ".join(task.description.split())
        table.add_row(Text(name), Text(_rows(samples[name])), Text(description), Text(parameters))
    # In a pipe rich would take 80 characters, whatever stands there.
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
    if any(samples.values()):
        note = (
            f"sample: {SAMPLE_NOTE}; with --full, `aigo-bridge run NAME --full` takes the real rows "
            f"from the Hugging Face hub"
        )
        typer.echo(f"\n{note}")


def _rows(sample: SampleData | None) -> str:
    """What a task runs on by default."""
    if sample is None:
        return ""
    return "sample, --full" if sample.full else "sample"


def _list_benchmarks(engine: str, *, as_json: bool) -> None:
    """The benchmarks that are installed for an engine."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from aigo_bridge.cli.terminal import name_of, printable
    from aigo_bridge.engine.registry import load_benchmarks

    listing = load_benchmarks(engine).listing()
    for problem in listing.problems:
        typer.echo(f"warning: {printable(problem)}", err=True)
    if not listing.benchmarks:
        hint = f"; {listing.hint}" if listing.hint else ""
        typer.echo(f"no package with benchmarks for {engine} is installed here{hint}", err=True)
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
    table = Table("benchmark", "what it does", "parameters", box=None, padding=(0, 2, 0, 0))
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for benchmark in listing.benchmarks:
        name = Text(name_of(f"{engine}:{benchmark.name}"))
        table.add_row(name, Text(name_of(benchmark.summary)), Text(", ".join(benchmark.parameters)))
    # A name that is cut cannot be run; and in a pipe rich would take 80 characters.
    table.columns[0].min_width = (
        max(len(benchmark.name) for benchmark in listing.benchmarks) + len(engine) + 1
    )
    Console(width=None if sys.stdout.isatty() else 160).print(table)
