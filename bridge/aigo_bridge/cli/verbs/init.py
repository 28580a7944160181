"""`aigo-bridge init`: a project to begin with, which runs at once."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)

NAMES = "chat|judge|multi-turn|agent|rag|data-set|jsonl"


@app.command("init")
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Where; made when it is missing. [the current folder]")
    ] = Path(),
    template: Annotated[
        str, typer.Option("--template", "-t", metavar=NAMES, help="What it evaluates.")
    ] = "chat",
) -> None:
    """Begin a project: task, rows, scripted answers, run file, CI workflow, editor settings.

    It runs at once, without a network. Files that exist are never written over: if one of them does, nothing
    is written.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.terminal import name_of, short_path
    from aigo_bridge.errors import UsageError
    from aigo_bridge.projects import TEMPLATES, create_files, project_files

    with reported():
        if template not in TEMPLATES:
            raise UsageError(
                f"--template: found {template!r}, expected one of {', '.join(TEMPLATES)}",
                code=Code.WRONG_OPTION,
            )
        written = create_files(folder, project_files(template))
    for path in written:
        typer.echo(name_of(short_path(path)))
    run = "tasks.jsonl" if template == "jsonl" else "run.yaml"
    typer.echo("\nnext:")
    if folder.resolve() != Path.cwd():
        typer.echo(f"  cd {name_of(shlex.quote(str(folder)))}")
    typer.echo(f"  aigo-bridge validate .\n  aigo-bridge run {run}")
