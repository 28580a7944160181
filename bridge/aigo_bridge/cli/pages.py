"""The page of reports that a command has written, as it is shown in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aigo_bridge.cli.terminal import name_of, printable, short_path

if TYPE_CHECKING:
    from aigo_report.page import Report

NAME = "report.html"


def show_report(report: Report, *, err: bool = False) -> None:
    """Say where a report is, and what of it could not be read.

    Args:
        report: that was written.
        err: whether standard output is for programs.
    """
    for problem in report.problems:
        typer.echo(f"error: {printable(problem)}", err=True)
    typer.echo(f"{'report':12}{name_of(short_path(report.path))}", err=err)


def report_of_run(results: Sequence[Path], out: Path, *, err: bool) -> None:
    """Write the report of a run beside its results; a run without a result has none.

    Args:
        results: result logs, or summaries of evaluations.
        out: folder of the run.
        err: whether standard output is for programs.
    """
    from aigo_report.page import sources_of, write_report

    if results:
        show_report(write_report(sources_of(results), out / NAME), err=err)
