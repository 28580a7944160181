"""What the user sees when something is wrong; issues as text for people, JSON for programs, or annotations
for GitHub.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import typer

from aigo_bridge.cli.terminal import colour_of, name_of, printable, short_path, width_of
from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, Issue, dotted
from aigo_bridge.exit_codes import ExitCode, of_signal
from aigo_bridge.process.signals import STOPPED_BY, is_stopped

if TYPE_CHECKING:
    from aigo_bridge.engine.outcome import Outcome


@contextmanager
def reported(code: ExitCode = ExitCode.WRONG_USE) -> Iterator[None]:
    """Show expected errors as messages, never as tracebacks, and exit with `code`."""
    try:
        yield
    except BridgeError as error:
        if _failed_by_signal():
            raise interrupted() from error
        show(error)
        raise typer.Exit(code) from error
    except OSError as error:
        if _failed_by_signal():
            raise interrupted() from error
        # A folder that cannot be written to, a full disk: the user's to mend, and nothing half-written is
        # left.
        place = f"{short_path(error.filename)}: " if error.filename is not None else ""
        typer.echo(f"error: {name_of(place)}{error.strerror or error} [{Code.SYSTEM_ERROR}]", err=True)
        raise typer.Exit(code) from error
    except KeyboardInterrupt as error:
        raise interrupted() from error


def interrupted() -> typer.Exit:
    """Say that somebody has stopped the command, and how to end it."""
    typer.echo(f"interrupted; {_what_remains()}", err=True)
    return typer.Exit(exit_code())


def _what_remains() -> str:
    """Files that a stopped command leaves."""
    verb = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    if verb == "run":
        return "finished samples are in the log; continue with `run --resume`"
    return "complete files were written; no partial files are left"


def shown(out: Path, work: Callable[[], None]) -> bool:
    """Show what a run came to; where that fails say so, and where everything is, and return false: models
    have been paid for by then.
    """
    try:
        work()
    except Exception as error:  # noqa: BLE001  # evidence and logs are written, whatever becomes of tables and summaries
        from aigo_bridge.results.faults import explained

        show_message(f"the summary cannot be shown: {explained(error)}", Code.OUTCOME_NOT_SHOWN)
        typer.echo(f"evidence and engine logs are in {short_path(out)}", err=True)
        return False
    return True


def show_differences(outcome: Outcome) -> None:
    """Where the written evidence differs from what is shown, on standard error; nothing where they agree."""
    if not outcome.differences or outcome.result is None:
        return
    # Late: most runs have none.
    from aigo_bridge.engine.outcome import REPORT

    place = short_path(outcome.result)
    show_message(f"{place}: the evidence differs from this summary ({REPORT})", Code.OUTCOME_NOT_SHOWN)
    for difference in outcome.differences:
        typer.echo(f"  {printable(difference)}", err=True)


def show(error: BridgeError) -> None:
    """An error on standard error: every issue with its place, or the message."""
    issues: tuple[Issue, ...] = getattr(error, "issues", ())
    if issues:
        show_issues(issues)
    else:
        show_message(str(error), error.code)


def show_message(message: str, code: Code) -> None:
    """An error on standard error, its code behind the first line: further ones are lists and tables."""
    first, feed, more = printable(message).partition("\n")
    typer.echo(wrapped(f"error: {first}{mark(code)}{feed}{more}", width_of(sys.stderr)), err=True)


def mark(code: Code) -> str:
    """A code behind a message; nothing where an addition of others has given none."""
    return "" if code == Code.UNCODED else f" [{code}]"


def show_issues(issues: Iterable[Issue]) -> None:
    """Issues on standard error: place, message, the line with a caret, the hint."""
    text = render_issues(shortened(issues), colour=colour_of(sys.stderr), width=width_of(sys.stderr))
    typer.echo(text, err=True, nl=False)


def shortened(issues: Iterable[Issue]) -> list[Issue]:
    """Issues whose files below the current folder are named from there."""
    return [replace(issue, file=issue.file and short_path(issue.file)) for issue in issues]


# Issues as text


Format = Literal["rich", "json", "github"]

LONGEST_LINE = 160
"""Characters of a source line that are shown; the rest is cut around the column."""

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def render_issues(
    issues: Iterable[Issue],
    format: Format = "rich",  # noqa: A002  # the option's name
    *,
    colour: bool = False,
    width: int | None = None,
) -> str:
    """All issues in one text, ending with a line feed; empty when there are none.

    Args:
        issues: in the order in which they are to be shown.
        format: `rich`: each with its line and a caret; `json`: one array of objects; `github`: one
            workflow command per line.
        colour: whether the `rich` form is for a terminal. Control characters that stand in a file are
            never passed on, in any form.
        width: columns at which messages and hints of the `rich` form go on in the next line; `None`: never.
    """
    issues = list(issues)
    if format == "json":
        return json.dumps([as_json(issue) for issue in issues], indent=2, ensure_ascii=False) + "\n"
    if format == "github":
        return "".join(_github(issue) + "\n" for issue in issues)
    text = "\n".join(_plain(issue, colour, width) for issue in issues)
    return text + summary(issues) + "\n" if issues else ""


def summary(issues: Iterable[Issue]) -> str:
    """`2 errors, 1 warning`."""
    issues = list(issues)
    counts = [(kind, sum(issue.severity == kind for issue in issues)) for kind in ("error", "warning")]
    return ", ".join(f"{count} {kind}{'s' if count != 1 else ''}" for kind, count in counts if count)


def as_json(issue: Issue) -> dict[str, object]:
    """One issue for programs; every key is always there."""
    return {
        "severity": issue.severity,
        "code": issue.code,
        "message": issue.message,
        "file": issue.file,
        "line": issue.line,
        "column": issue.column,
        "path": list(issue.path),
        "hint": issue.hint,
        "source_line": issue.source_line,
    }


def visible(text: str) -> str:
    """Text that cannot steer a terminal: control and direction characters escaped, tabs as a space."""
    if text.isprintable():
        return text
    return "".join(
        " "
        if letter == "\t"
        else letter
        if _is_harmless(letter)
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def wrapped(text: str, width: int | None, indent: str = "  ") -> str:
    """A text in lines of so many columns, further ones indented; words, such as paths, stay whole."""
    if width is None or _width(text) <= width:
        return text
    lines = list[str]()
    for word in text.split(" "):
        if lines and _width(f"{lines[-1]} {word}") <= max(width, _NARROWEST):
            lines[-1] += f" {word}"
        else:
            lines.append(word if not lines else indent + word)
    return "\n".join(lines)


_NARROWEST = 40
"""Fewest columns for wrapped text."""


def _plain(issue: Issue, colour: bool, width: int | None) -> str:
    paint, bold, dim, reset = (_COLOURS[issue.severity], _BOLD, _DIM, _RESET) if colour else ("", "", "", "")
    # A line says where; without one the path inside the document does, as in a result log.
    inside = dotted(issue.path) if issue.line is None else ""
    where = ": ".join(part for part in (issue.place, inside) if part)
    head = f"{bold}{visible(where)}{reset}: " if where else ""
    message = f"{visible(issue.message)}{dim}{mark(issue.code)}{reset}"
    rows = [wrapped(f"{head}{paint}{issue.severity}{reset}: {message}", width)]
    if issue.source_line is not None and issue.line is not None:
        number = str(issue.line)
        line, at = _window(issue.source_line, (issue.column or 1) - 1)
        preceding = visible(line[:at])
        rows.append(f"{dim}{number} |{reset} {preceding}{visible(line[at:])}")
        if issue.column is not None:
            rows.append(f"{dim}{' ' * len(number)} |{reset} {' ' * _width(preceding)}{paint}^{reset}")
    if issue.hint:
        rows.append("  " + wrapped(f"hint: {visible(issue.hint)}", width and width - 2, indent="    "))
    return "\n".join(rows) + "\n"


def _window(line: str, at: int) -> tuple[str, int]:
    """The part of a long line around a position, and the position in it."""
    if len(line) <= LONGEST_LINE:
        return line, min(at, len(line))
    start = max(0, min(at - LONGEST_LINE // 2, len(line) - LONGEST_LINE))
    part = line[start : start + LONGEST_LINE]
    opening, closing = "…" if start else "", "…" if start + LONGEST_LINE < len(line) else ""
    return opening + part + closing, at - start + len(opening)


def _width(text: str) -> int:
    """Columns that text takes on a terminal: wide letters take two, combining marks and colours none."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in _COLOUR.sub("", text)
    )


def _github(issue: Issue) -> str:
    message = issue.message + (f" ({issue.hint})" if issue.hint else "")
    properties = [
        f"{name}={_escaped(visible(str(value)), also=':,')}"
        for name, value in (
            ("file", _repository_path(issue.file)),
            ("line", issue.line),
            ("col", issue.column),
            ("title", None if issue.code == Code.UNCODED else issue.code),
        )
        if value is not None
    ]
    return f"::{issue.severity} {','.join(properties)}::{_escaped(visible(message))}"


def _repository_path(file: str | None) -> str | None:
    return file.replace(os.sep, "/") if file is not None else None


def _escaped(text: str, also: str = "") -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for sign in also:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


# Stopped by signals


STOPPING = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""Signals that stop a command."""

_PATIENCE = 0.5
"""Seconds that a signal waits for the thread that counts them."""


def exit_code() -> ExitCode:
    """What a stopped command ends with."""
    return of_signal(STOPPED_BY[0] if STOPPED_BY else signal.SIGINT)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as ctrl-C, in this block; the second signal, whichever it is, ends the process
    with one line.

    A signal that was ignored when the command began (`nohup`, `&` in a script) stays ignored. Nothing is done
    outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    heard = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    if signal.SIGINT not in heard:
        # Event loops know one way to be stopped, and it must be there for the other signals: so SIGINT is
        # held back in place of ignored.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in heard:
        if number != signal.SIGINT:
            signal.signal(number, _as_interrupt)
    sys.unraisablehook = _quiet_about_interrupts(sys.unraisablehook)
    _watch(frozenset(map(int, heard)))
    try:
        yield
    except SystemExit as end:
        if is_stopped():
            raise SystemExit(exit_code()) from end
        raise
    except typer.Exit:
        raise
    except BaseException as error:
        # An import that a signal strikes may fail with any error, and its text is no news.
        if _failed_by_signal():
            raise SystemExit(interrupted().exit_code) from error
        raise
    finally:
        # All is done; what comes now would only interrupt the interpreter's own end.
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)


def _failed_by_signal() -> bool:
    """Return whether a signal came before an error, which it then explains."""
    time.sleep(0.05)  # the thread that counts may not have had its turn
    return is_stopped()


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """Do what ctrl-C does at this moment: who runs an event loop has a way of its own."""
    deadline = time.monotonic() + _PATIENCE
    while not STOPPED_BY and time.monotonic() < deadline:
        time.sleep(0.001)  # the thread that counts knows whether another came before
    if not STOPPED_BY:
        STOPPED_BY.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def _quiet_about_interrupts(hook: Callable[[Any], object]) -> Callable[[Any], None]:
    """A signal that strikes where nothing can be raised (a weak reference's end) is no news."""

    def quiet(error: Any) -> None:
        if not isinstance(error.exc_value, KeyboardInterrupt):
            hook(error)

    return quiet


def _watch(heard: frozenset[int]) -> None:
    """Count signals in a thread of its own, so that the second one is obeyed whatever the main thread is busy
    with.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Python writes the number of each signal that it has a handler for, whoever set the handler.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def count() -> None:
        came = 0
        while numbers := os.read(reading, 64):
            for number in numbers:
                if number not in heard:
                    continue
                if not STOPPED_BY:
                    STOPPED_BY.append(number)
                came += 1
            if came > 1:
                _end_at_once()

    threading.Thread(target=count, name="signals", daemon=True).start()


def _end_at_once() -> None:
    """End without another word: nothing that is written in its place when complete is there by half."""
    with suppress(OSError):  # the terminal may be gone
        os.write(2, f"\nstopped at once; {_what_remains()}\n".encode())
    os._exit(exit_code())
