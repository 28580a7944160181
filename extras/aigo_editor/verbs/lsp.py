"""`aigo-bridge lsp`: the language server, for editors."""

from __future__ import annotations

import typer

from aigo_bridge.cli.options import VERB

app = typer.Typer(**VERB)


@app.command("lsp")
def lsp() -> None:
    """Serve an editor: problems while one types, completion, meanings, definitions, prompts of rows.

    Speaks the Language Server Protocol over standard input and output; editors start it themselves. It runs
    no snippet, calls no model, and reads only local files of the project.
    Exit code: 0 ended by the editor, 2 wrong use.
    """
    from aigo_bridge.cli.failing import reported

    with reported():
        from aigo_bridge.process.extras import package

        package("pygls", "the language server", "lsp")
        from aigo_editor.server import serve

        serve()
