"""`aigo-bridge view`: a folder of results, logs and runs in a browser, while it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB

app = typer.Typer(**VERB)


@app.command("view")
def view(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder with results, evaluations, run files with task result logs, and logs of engines; or "
            "such a run file.",
        ),
    ] = Path("out"),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="0 takes any that is free.")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the address in a browser, too.")
    ] = False,
) -> None:
    """Look at a folder in a browser: results, evaluations, logs of engines, runs that go on, comparisons.

    Prints an address, and serves it to this machine alone until ctrl-C. It only reads, and nothing outside
    the folder.
    Exit code: 0 ended by ctrl-C, 2 wrong use.
    """
    from aigo_bridge.cli.failing import exit_code, reported
    from aigo_bridge.cli.terminal import name_of, short_path
    from aigo_bridge.exit_codes import of_signal
    from aigo_bridge.process.signals import accept_interrupt
    from aigo_bridge.results.sources import names_results
    from aigo_report.viewing import ViewServer

    with reported():
        if names_results(folder) and folder.parent.is_dir():
            folder = folder.parent
        server = ViewServer(folder, port)
        try:
            typer.echo(f"{'folder':12}{name_of(short_path(folder))}")
            typer.echo(f"{'view':12}{server.guard.address}")
            typer.echo("ctrl-C ends it", err=True)
            if open_browser:
                _open(server.guard.address, server.library.private)
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt as error:
            # It is how one ends it; SIGTERM and SIGHUP stay what they are.
            code = exit_code()
            if code != of_signal(2):
                raise typer.Exit(code) from error
            accept_interrupt()
        finally:
            server.server_close()


def _open(address: str, private: Path) -> None:
    """Open the address in a browser, by a file that leads there: what stands on a command line every user of
    the machine can see.
    """
    import webbrowser

    page = private / "open.html"
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">', encoding="utf-8")
    if not webbrowser.open(page.as_uri()):
        typer.echo("note: found no browser to open; open the address yourself", err=True)
