"""`aigo-bridge error`: what the codes of errors mean, without a network."""

from __future__ import annotations

from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)


@app.command("error")
def error(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="As it stands behind a message: AB116. [all codes]")
    ] = None,
) -> None:
    """Say what the code of an error means, with an example and what to do about it.

    Without a code: all of them, each with one line.
    """
    from aigo_bridge.catalogue import CATALOGUE, FAMILIES, family_of
    from aigo_bridge.catalogue.text import page
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.errors import UsageError

    if code is None:
        for family in FAMILIES.values():
            typer.echo(f"{family}")
            for entry in CATALOGUE.values():
                if family_of(entry.code) == family:
                    typer.echo(f"  {entry.code}  {entry.title}")
        return
    with reported():
        known = Code(code.upper()) if code.upper() in set(Code) else None
        if known is None:
            message = f"there is no error {code!r}; `aigo-bridge error` lists all"
            raise UsageError(message, code=Code.UNKNOWN_CHOICE)
        typer.echo(page(CATALOGUE[known]), nl=False)
