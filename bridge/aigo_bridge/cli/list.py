"""`aigo-bridge list`: the shipped tasks, or the benchmarks that are installed for an engine."""

from __future__ import annotations

import json
import sys

import typer

from aigo_bridge.cli.settings import VERB

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
    from aigo_bridge.locating import shipped_tasks
    from aigo_bridge.reading import read_task

    with reported():
        tasks = [(name, read_task(path).spec) for name, path in shipped_tasks().items()]
    if as_json:
        rows = [
            {
                "name": name,
                "key": task.key,
                "display_name": task.display_name,
                "description": task.description.strip(),
                "tags": list(task.tags),
                "parameters": [parameter.key for parameter in task.config_spec],
            }
            for name, task in tasks
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("task", "what it does", "config", box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.columns[0].no_wrap = True
    for name, task in tasks:
        parameters = ", ".join(parameter.key for parameter in task.config_spec)
        table.add_row(Text(name), Text(" ".join(task.description.split())), Text(parameters))
    # In a pipe rich would take 80 characters, whatever stands there.
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
