"""`aigo-bridge upgrade`: replace deprecated syntax in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

app = typer.Typer(**VERB)


@app.command(
    "upgrade",
    cls=verb_command(
        "aigo-bridge upgrade task.yaml",
        "aigo-bridge upgrade --write tasks/*.yaml",
        exit_codes={
            "0": "the new text was printed or written",
            "2": "wrong arguments, or the file cannot be read",
        },
    ),
)
def upgrade(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="YAML files of any kind. Several files need --write."),
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Replace the files instead of printing the new text.")
    ] = False,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Folder that the files of the task may read from. [default: the project folder]",
        ),
    ] = None,
) -> None:
    """Replace deprecated syntax in a file with the current syntax. Comments and layout are kept.

    Only the named files are changed. Upgrade included files separately.
    """
    from aigo_bridge.cli.terminal import short_path
    from aigo_bridge.errors import UsageError
    from aigo_bridge.reading.reader import upgrade_text
    from aigo_bridge.results.log_files import open_for_replacing

    if len(files) > 1:
        if not write:
            raise UsageError(
                f"found {plural(len(files), 'file')}, expected one file, or --write",
                code=Code.OPTIONS_APART,
            )
        for path in files:
            upgrade([path], write=True, root=root)
        return
    (file,) = files
    if not file.is_file():
        raise UsageError(f"file {str(file)!r} does not exist", code=Code.NOTHING_THERE)
    text = upgrade_text(file, root=root)
    if not write:
        typer.echo(text, nl=False)
    elif text == file.read_text(encoding="utf-8"):
        typer.echo(f"{short_path(file)}: already up to date")
    else:
        with open_for_replacing(file, clean=False) as out:
            out.write(text.encode())
        typer.echo(f"{short_path(file)}: upgraded")
