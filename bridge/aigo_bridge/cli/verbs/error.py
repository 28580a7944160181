"""`aigo-bridge error`: explain an error code offline."""

from __future__ import annotations

from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)


@app.command(
    "error",
    cls=verb_command(
        "aigo-bridge error AB116", exit_codes={"0": "the explanation was printed", "2": "unknown code"}
    ),
)
def error(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE", help="Error code at the end of a message, e.g. AB116. [default: list all codes]"
        ),
    ] = None,
) -> None:
    """Explain an error code, with its fix and an example.

    Without a code, list all codes with their titles.
    """
    from aigo_bridge.catalogue import CATALOGUE, FAMILIES, family_of
    from aigo_bridge.catalogue.text import page
    from aigo_bridge.errors import UsageError

    if code is None:
        for family in FAMILIES.values():
            typer.echo(f"{family}")
            for entry in CATALOGUE.values():
                if family_of(entry.code) == family:
                    typer.echo(f"  {entry.code}  {entry.title}")
        return
    known = Code(code.upper()) if code.upper() in set(Code) else None
    if known is None:
        message = f"unknown error code {code!r}; run `aigo-bridge error` to list all codes"
        raise UsageError(message, code=Code.UNKNOWN_CHOICE)
    typer.echo(page(CATALOGUE[known]), nl=False)
