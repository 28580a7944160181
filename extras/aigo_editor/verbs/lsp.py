"""`aigo-bridge lsp`: starts the language server for editors."""

from __future__ import annotations

import typer

from aigo_bridge.cli.options import VERB, verb_command

app = typer.Typer(**VERB)


@app.command(
    "lsp", cls=verb_command(exit_codes={"0": "the editor closed the connection", "2": "wrong arguments"})
)
def lsp() -> None:
    """Start the language server for your editor.

    It reports problems while you type and offers completion, descriptions, definitions and prompt previews.
    Editors start it themselves and use the Language Server Protocol on standard input and output. It only
    reads local files of the project, executes no snippet and calls no model.
    """
    from aigo_bridge.process.extras import package

    package("pygls", "the language server", "lsp")
    from aigo_editor.server import serve

    serve()
