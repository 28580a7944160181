"""`aigo-bridge report`: writes results as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_bridge.text.plurals import plural

app = typer.Typer(**VERB)


@app.command(
    "report",
    cls=verb_command(
        "aigo-bridge report out --out report.html",
        exit_codes={
            "0": "the page was written",
            "2": "wrong arguments, or no result can be read",
            "3": "a result is missing or could only be read in part",
        },
    ),
)
def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT…",
            help=RESULTS_HELP,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="HTML file to write.")] = Path(
        "report.html"
    ),
    max_size: Annotated[
        int,
        typer.Option(
            "--max-size",
            min=1,
            metavar="MB",
            help="Maximum size of one page, in MB. Larger reports are split into a folder next to it.",
        ),
    ] = 48,
) -> None:
    """Write results as one HTML page with a summary, the metrics and every conversation.

    The page works offline, loads no external files and never executes content of a result.
    """
    from aigo_bridge.exit_codes import ExitCode
    from aigo_report.page import sources_of, write_report
    from aigo_report.terminal import show_report

    written = write_report(sources_of(results), out, largest=max_size * 1_000_000, verify=_verify)
    if written.pages > 1:
        typer.echo(
            f"note: a page would be larger than {max_size} MB (--max-size); the report is a folder of"
            f" {plural(written.pages, 'page')}",
            err=True,
        )
    show_report(written)
    if written.problems:
        raise typer.Exit(ExitCode.PARTIAL)


def _verify(result: Path) -> Any:
    """Verify a result with provenance. Others do not load the modules for it."""
    from aigo_bridge import verify

    return verify(result)
