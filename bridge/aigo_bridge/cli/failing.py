"""What the user sees when something is wrong, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from pathlib import Path

import typer

from aigo_bridge.cli.terminal import printable, short_path
from aigo_bridge.errors import BridgeError, Issue


class ExitCode(IntEnum):
    """Exit codes of every verb."""

    DONE = 0
    NOT_RIGHT = 1
    """The thing examined is not right: failed samples above the limit, a failed policy."""
    WRONG_USE = 2
    """Wrong arguments, or an invalid task."""
    PARTIAL = 3
    """Something was salvaged, not everything."""
    INTERRUPTED = 130
    """Stopped by ctrl-C; what was finished is kept where the verb says so."""


CANCELLED = "cancelled"
"""Status of a run that somebody has stopped."""


def code_of(statuses: Iterable[str], *, right: bool) -> ExitCode:
    """The exit code of runs by their statuses, and by whether all of them came out right."""
    if CANCELLED in statuses:
        return ExitCode.INTERRUPTED
    return ExitCode.DONE if right else ExitCode.NOT_RIGHT


@contextmanager
def reported(code: ExitCode = ExitCode.WRONG_USE) -> Iterator[None]:
    """Show expected errors as messages, never as tracebacks, and exit with `code`."""
    try:
        yield
    except BridgeError as error:
        show(error)
        raise typer.Exit(code) from error
    except OSError as error:
        # A folder that cannot be written to, a full disk: the user's to mend, and nothing half-written is left.
        place = f"{short_path(error.filename)}: " if error.filename is not None else ""
        typer.echo(f"error: {printable(place)}{error.strerror or error}", err=True)
        raise typer.Exit(code) from error
    except KeyboardInterrupt as error:
        raise interrupted() from error


def interrupted() -> typer.Exit:
    """Say that somebody has stopped the command, and how to end it."""
    typer.echo(
        "interrupted; what a run had finished is in its log, and `run --resume` goes on from there", err=True
    )
    return typer.Exit(ExitCode.INTERRUPTED)


def shown(out: Path, work: Callable[[], None]) -> bool:
    """Show what a run came to; where that fails say so, and where everything is, and return false: models have been paid for by then."""
    try:
        work()
    except Exception as error:  # noqa: BLE001  # evidence and logs are written, whatever becomes of tables and summaries
        from aigo_bridge.results.faults import explained

        typer.echo(f"error: the outcome cannot be shown: {printable(explained(error))}", err=True)
        typer.echo(f"evidence and native logs are in {short_path(out)}", err=True)
        return False
    return True


def show_differences(result: Path | None, differences: Sequence[str]) -> None:
    """What the written evidence has otherwise than it is shown, on standard error; nothing where they agree."""
    if not differences or result is None:
        return
    # Late: most runs have none.
    from aigo_bridge.results.agreement import REPORT

    typer.echo(f"error: {short_path(result)}: the evidence differs from what is shown ({REPORT})", err=True)
    for difference in differences:
        typer.echo(f"  {printable(difference)}", err=True)


def show(error: BridgeError) -> None:
    """An error on standard error: every issue with its place, or the message."""
    issues: tuple[Issue, ...] = getattr(error, "issues", ())
    if issues:
        show_issues(issues)
    else:
        typer.echo(f"error: {printable(str(error))}", err=True)


def show_issues(issues: Iterable[Issue]) -> None:
    """Issues on standard error: place, message, the line with a caret, the hint."""
    from aigo_bridge.reading.rendering import render_issues

    typer.echo(render_issues(shortened(issues), colour=sys.stderr.isatty()), err=True, nl=False)


def shortened(issues: Iterable[Issue]) -> list[Issue]:
    """Issues whose files below the current folder are named from there."""
    return [replace(issue, file=issue.file and short_path(issue.file)) for issue in issues]
