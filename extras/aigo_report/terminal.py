"""Terminal output of the verbs for results, and the hook `report`: the page of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aigo_bridge.cli.hooks import RunReport
from aigo_bridge.cli.terminal import name_of, printable, short_path
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_report.page import Report
    from aigo_report.tables.files import WrittenFile

NAME = "report.html"


def show_report(report: Report, *, err: bool = False) -> None:
    """Print the path of a report, and the results that could not be read.

    Args:
        report: report that was written.
        err: whether to use standard error, because standard output contains machine-readable data.
    """
    for problem in report.problems:
        typer.echo(f"error: {printable(problem)}", err=True)
    typer.echo(f"{'report':12}{name_of(short_path(report.path))}", err=err)


def _report_of_run(results: Sequence[Path], out: Path, err: bool) -> None:
    from aigo_report.page import sources_of, write_report

    show_report(write_report(sources_of(results), out / NAME), err=err)


REPORT = RunReport(_report_of_run)


def print_written(out: Path, written: WrittenFile) -> None:
    """Print the file name, the number of rows, and the number of truncated texts."""
    if written.cut:
        typer.echo(
            f"note: {plural(written.cut, 'text was', 'texts were', form=',')} truncated: a cell"
            " can contain at most 32,767 characters",
            err=True,
        )
    typer.echo(f"{short_path(out)}: {plural(written.rows, 'row', form=',')}")


def plain_values(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows with JSON-serializable values."""
    return ({name: _plain(value) for name, value in row.items()} for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, (str, int, float, list, dict, type(None))) else str(value)
