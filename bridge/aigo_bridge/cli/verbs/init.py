"""`aigo-bridge init`: create a project."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)

NAMES = "chat|judge|multi-turn|agent|rag|data-set|jsonl"


@app.command(
    "init",
    cls=verb_command(
        "aigo-bridge init my-evaluation",
        "aigo-bridge init my-evaluation --template judge",
        exit_codes={"0": "the project was created", "2": "wrong arguments, or a file already exists"},
    ),
)
def init(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="[DIR]",
            show_default=False,
            help="Folder of the project, created if it does not exist. [default: the current folder]",
        ),
    ] = Path(),
    template: Annotated[
        str, typer.Option("--template", "-t", metavar=NAMES, help="Kind of evaluation to start from.")
    ] = "chat",
) -> None:
    """Create a project with a task, rows, scripted answers, a run file, a CI workflow and editor settings.

    You can run it at once, without network access. Existing files are never overwritten: if one of the
    files exists, the command stops and writes nothing.
    """
    from aigo_bridge.cli.terminal import name_of, short_path
    from aigo_bridge.errors import UsageError
    from aigo_bridge.projects import TEMPLATES, create_files, project_files

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
