"""`aigo-bridge report`: results as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.looking import RESULTS_HELP
from aigo_bridge.cli.options import VERB
from aigo_bridge.text.plurals import plural

app = typer.Typer(**VERB)


@app.command("report")
def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT…",
            help=RESULTS_HELP,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page, in HTML.")] = Path(
        "report.html"
    ),
    max_size: Annotated[
        int,
        typer.Option(
            "--max-size", min=1, metavar="MB", help="A larger page becomes a folder of pages, beside it."
        ),
    ] = 48,
) -> None:
    """Write results as one page of HTML: summary, metrics, and every sample with its conversation.

    The page opens without a network, loads nothing, and runs nothing that stands in a result.
    Exit code: 0 done, 2 wrong use or no result that can be read, 3 a result could be read in part or not at
    all.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.pages import show_report
    from aigo_bridge.exit_codes import ExitCode
    from aigo_report.page import sources_of, write_report

    with reported():
        written = write_report(sources_of(results), out, largest=max_size * 1_000_000)
    if written.pages > 1:
        typer.echo(
            f"note: a page would be larger than {max_size} MB (--max-size); the report is a folder of"
            f" {plural(written.pages, 'page')}",
            err=True,
        )
    show_report(written)
    if written.problems:
        raise typer.Exit(ExitCode.PARTIAL)
