"""`aigo-bridge new`: add a task, scorer or dataset to a project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
"""Keys that are valid file names on all systems."""

_RESERVED = re.compile(r"(?i)con|prn|aux|nul|com\d|lpt\d")
"""Device names on Windows."""

NEXT = {
    "task": "aigo-bridge run tasks/{name} --model scripted/tasks/{name}/answers.jsonl\n"
    "in run.yaml:  tasks: [{{$ref: tasks/{name}/task.yaml}}], and a task specification with task_key: {name}",
    "scorer": "in tasks/…/task.yaml:  scorers: [{{$ref: ../../scorers/{name}.yaml}}]",
    "dataset": "in tasks/…/task.yaml:  dataset: {{key: {name}}}",
}
"""Part → what to do next."""


@app.command(
    "new",
    cls=verb_command(
        "aigo-bridge new task geography",
        exit_codes={"0": "the files were created", "2": "wrong arguments, or a file already exists"},
    ),
)
def new(
    part: Annotated[str, typer.Argument(metavar="task|scorer|dataset", help="Kind of file to add.")],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Key of the new task, scorer or dataset: letters, digits, - and _, e.g. geography.",
        ),
    ],
) -> None:
    """Add a task, a scorer or a dataset to the project of the current folder.

    The new files are complete: you can run a new task at once. Existing files are never overwritten.
    """
    from aigo_bridge.access.opening import project_of
    from aigo_bridge.cli.terminal import name_of, short_path
    from aigo_bridge.errors import UsageError
    from aigo_bridge.projects import PARTS, create_files, part_files

    if part not in PARTS:
        raise UsageError(
            f"new: found {part!r}, expected {', '.join(PARTS[:-1])} or {PARTS[-1]}",
            code=Code.WRONG_OPTION,
        )
    if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
        message = "expected letters, digits, - and _ (the name is a key and a file name)"
        raise UsageError(f"new {part}: found {name!r}, {message}", code=Code.WRONG_OPTION)
    project = project_of(Path.cwd())
    if project is None:
        raise UsageError(
            (
                f"new {part}: {name_of(str(Path.cwd()))} is not in a project; create one with "
                "`aigo-bridge init`"
            ),
            code=Code.NOTHING_THERE,
        )
    written = create_files(project, part_files(part, name))
    for path in written:
        typer.echo(name_of(short_path(path)))
    typer.echo(f"\nnext:\n{NEXT[part].format(name=name)}")
