"""`aigo-bridge view`: shows a folder of results, logs and runs in a browser, with live updates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command

if TYPE_CHECKING:
    from aigo_report.viewing.library import Library

app = typer.Typer(**VERB)


@app.command(
    "view",
    cls=verb_command(
        "aigo-bridge view out --open", exit_codes={"0": "stopped by ctrl-C", "2": "wrong arguments"}
    ),
)
def view(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder with results, evaluations, engine logs and run files with task "
            "result logs, or one such run file.",
        ),
    ] = Path("out"),
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="PORT",
            help="Port of the local server, e.g. 8000; 0 selects a free port.",
        ),
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Browse a folder of results, engine logs and runs in progress in a web browser.

    The command prints a URL and serves it until you press ctrl-C. Only this machine can open it. The server
    only reads files in this folder.
    """
    from threading import Thread

    from aigo_bridge.cli.error_handling import exit_code
    from aigo_bridge.cli.terminal import name_of, short_path
    from aigo_bridge.exit_codes import of_signal
    from aigo_bridge.process.signals import accept_interrupt
    from aigo_bridge.results.sources import names_results
    from aigo_report.viewing import ViewServer

    if names_results(folder) and folder.parent.is_dir():
        folder = folder.parent
    server = ViewServer(folder, port)
    try:
        typer.echo(f"{'folder':12}{name_of(short_path(folder))}")
        typer.echo(f"{'view':12}{server.guard.address}")
        typer.echo("ctrl-C ends it", err=True)
        Thread(target=_note_entries, args=(server.library,), daemon=True).start()
        if open_browser:
            _open(server.guard.address, server.library.private)
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt as error:
        # Ctrl-C is the normal way to stop. SIGTERM and SIGHUP keep their default behaviour.
        code = exit_code()
        if code != of_signal(2):
            raise typer.Exit(code) from error
        accept_interrupt()
    finally:
        server.server_close()


def _note_entries(library: Library) -> None:
    """Print the number of results, logs and runs in the folder. This runs in a thread, because large folders
    take time.
    """
    from aigo_bridge.cli.terminal import note
    from aigo_bridge.text.plurals import plural

    listing = library.listing()
    entries = listing.entries.values()
    counts = (
        (sum(entry.kind == "result" for entry in entries), "result", None),
        (sum(entry.kind == "evaluation" for entry in entries), "evaluation", None),
        (sum(entry.kind == "log" for entry in entries), "engine log", None),
        (
            sum(bool(entry.run and entry.run.alive) for entry in entries),
            "run in progress",
            "runs in progress",
        ),
    )
    found = ", ".join(plural(count, one, many, form=",") for count, one, many in counts if count)
    more = "; the folder contains more files" if listing.cut else ""
    note(f"reading {found or 'a folder without results or engine logs'}{more}")


def _open(address: str, private: Path) -> None:
    """Open the URL in a browser through a file that redirects to it.

    The URL contains the token, and all users of the machine can read command lines.
    """
    import webbrowser

    page = private / "open.html"
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">', encoding="utf-8")
    if not webbrowser.open(page.as_uri()):
        typer.echo("note: found no browser to open; open the address yourself", err=True)
