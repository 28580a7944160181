"""`aigo-bridge words`: count the words of a text file."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command("words")
def words(file: Annotated[Path, typer.Argument(metavar="FILE", help="Text file.")]) -> None:
    """Count the words of a text file."""
    typer.echo(f"{len(file.read_text(encoding='utf-8').split())} words")
