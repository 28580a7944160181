"""`aigo-bridge list`: the shipped tasks, or the benchmarks that are installed for an engine."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import typer

from aigo_bridge.cli.settings import VERB

if TYPE_CHECKING:
    from aigo_bridge.full_data import SampleData

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

    With an engine: its own benchmarks in installed packages, without loading them; run one by `aigo-bridge run inspect:NAME`.
    """
    from aigo_bridge.cli.failing import reported

    if engine is not None:
        with reported():
            from aigo_bridge.cli.benchmarks import show_list

            show_list(engine, as_json=as_json)
        return
    from aigo_bridge.full_data import sample_data
    from aigo_bridge.locating import shipped_tasks
    from aigo_bridge.reading import read_task
    from aigo_bridge.spec.datasets import SAMPLE_NOTE

    with reported():
        documents = {name: read_task(path) for name, path in shipped_tasks().items()}
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
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
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
        note = f"sample: {SAMPLE_NOTE}; with --full, `aigo-bridge run NAME --full` takes the real rows from the Hugging Face hub"
        typer.echo(f"\n{note}")


def _rows(sample: SampleData | None) -> str:
    """What a task runs on by default."""
    if sample is None:
        return ""
    return "sample, --full" if sample.full else "sample"
