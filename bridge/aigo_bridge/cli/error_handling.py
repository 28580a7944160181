"""Error output: issues as text for people, as JSON, or as GitHub annotations; and the handling of signals."""

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
from aigo_bridge.process.signals import COUNTING_THREAD, STOPPED_BY, STOPPING, is_stopped
from aigo_bridge.text.escapes import visible

if TYPE_CHECKING:
    from aigo_bridge.engine.outcome import Outcome


@contextmanager
def reported(
    code: ExitCode = ExitCode.WRONG_USE,
    errors: tuple[type[Exception], ...] = (BridgeError, OSError),
) -> Iterator[None]:
    """Print expected errors as messages instead of tracebacks, and exit with `code`."""
    try:
        yield
    except BrokenPipeError:
        raise  # The reader of the output has ended, for example `head`. Click exits without a message.
    except (BridgeError, OSError) as error:
        if not isinstance(error, errors):
            raise
        if _failed_by_signal():
            raise interrupted() from error
        if isinstance(error, BridgeError):
            show(error)
        else:
            # For example, a full disk: the user can fix it, and no partial file is left.
            place = f"{short_path(error.filename)}: " if error.filename is not None else ""
            message = f"error: {name_of(place)}{error.strerror or error} [{Code.SYSTEM_ERROR}]"
            typer.echo(message, err=True)
        raise typer.Exit(code) from error
    except KeyboardInterrupt as error:
        raise interrupted() from error


def interrupted() -> typer.Exit:
    """Print that the command was interrupted, and return the exception that ends it."""
    typer.echo(f"interrupted; {_what_remains()}", err=True)
    return typer.Exit(exit_code())


def _what_remains() -> str:
    """Return a message about the files of an interrupted command."""
    verb = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    if verb == "run":
        return "finished samples are in the log; continue with `run --resume`"
    return "complete files were written; no partial files are left"


def shown(out: Path, work: Callable[[], None]) -> bool:
    """Show the outcome of a run. If that fails, print where the files are and return false: the model calls
    have already been paid for.

    If the reader has closed the pipe, as `head` does, further output is discarded without a message.
    """
    try:
        work()
    except (BrokenPipeError, SystemExit):  # Rich exits where other code raises the error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:  # noqa: BLE001  # evidence is written even if tables fail
        from aigo_bridge.results.internal_errors import explained

        show_message(f"the summary cannot be shown: {explained(error)}", Code.OUTCOME_NOT_SHOWN)
        typer.echo(f"evidence and engine logs are in {short_path(out)}", err=True)
        return False
    return True


def show_differences(outcome: Outcome) -> None:
    """Print differences between the written evidence and the displayed numbers to standard error."""
    if not outcome.differences or outcome.result is None:
        return
    # Imported late because most runs have no differences.
    from aigo_bridge.engine.outcome import REPORT

    place = short_path(outcome.result)
    show_message(f"{place}: the evidence differs from this summary ({REPORT})", Code.OUTCOME_NOT_SHOWN)
    for difference in outcome.differences:
        typer.echo(f"  {printable(difference)}", err=True)


def show(error: BridgeError) -> None:
    """Print an error to standard error: every issue with its position, or the message."""
    issues: tuple[Issue, ...] = getattr(error, "issues", ())
    if issues:
        show_issues(issues)
    else:
        show_message(str(error), error.code)


def show_message(message: str, code: Code) -> None:
    """Print an error to standard error. The code follows the first line because further lines are lists and
    tables.
    """
    first, feed, more = printable(message).partition("\n")
    typer.echo(wrapped(f"error: {first}{mark(code)}{feed}{more}", width_of(sys.stderr)), err=True)


def mark(code: Code) -> str:
    """Return the suffix with an error code; an empty text if a plug-in set no code."""
    return "" if code == Code.UNCODED else f" [{code}]"


def show_issues(issues: Iterable[Issue]) -> None:
    """Print issues to standard error: position, message, source line with a caret, hint."""
    text = render_issues(shortened(issues), colour=colour_of(sys.stderr), width=width_of(sys.stderr))
    typer.echo(text, err=True, nl=False)


def shortened(issues: Iterable[Issue]) -> list[Issue]:
    """Return the issues with file paths relative to the current folder."""
    return [replace(issue, file=issue.file and short_path(issue.file)) for issue in issues]


# Issues as text


Format = Literal["rich", "json", "github"]

LONGEST_LINE = 160
"""Maximum characters of a displayed source line; longer lines are truncated around the column."""

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
    """Render all issues as one text that ends with a line feed; an empty text without issues.

    Args:
        issues: issues in the order of display.
        format: `rich`: each issue with its source line and a caret; `json`: one array of objects; `github`:
            one workflow command per line.
        colour: whether the `rich` format uses terminal colors. Control characters from a file are
            escaped in every format.
        width: maximum columns of messages and hints in the `rich` format; `None`: no line breaks.
    """
    issues = list(issues)
    if format == "json":
        return json.dumps([as_json(issue) for issue in issues], indent=2, ensure_ascii=False) + "\n"
    if format == "github":
        return "".join(_github(issue) + "\n" for issue in issues)
    text = "\n".join(_plain(issue, colour, width) for issue in issues)
    return text + summary(issues) + "\n" if issues else ""


def summary(issues: Iterable[Issue]) -> str:
    """Return the number of issues, for example `2 errors, 1 warning`."""
    issues = list(issues)
    counts = [(kind, sum(issue.severity == kind for issue in issues)) for kind in ("error", "warning")]
    return ", ".join(f"{count} {kind}{'s' if count != 1 else ''}" for kind, count in counts if count)


def as_json(issue: Issue) -> dict[str, object]:
    """Return an issue as a JSON object; every key is always present."""
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


def _line(text: str) -> str:
    """Return a text without characters that could control a terminal or break a line."""
    return visible(text.replace("\t", " "))


def wrapped(text: str, width: int | None, indent: str = "  ") -> str:
    """Wrap a text to a number of columns with indented continuation lines; words are never split."""
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
"""Minimum columns of wrapped text."""


def _plain(issue: Issue, colour: bool, width: int | None) -> str:
    paint, bold, dim, reset = (_COLOURS[issue.severity], _BOLD, _DIM, _RESET) if colour else ("", "", "", "")
    # Without a line number, the path inside the document gives the position, for example in a result log.
    inside = dotted(issue.path) if issue.line is None else ""
    where = ": ".join(part for part in (issue.place, inside) if part)
    head = f"{bold}{_line(where)}{reset}: " if where else ""
    message = f"{_line(issue.message)}{dim}{mark(issue.code)}{reset}"
    rows = [wrapped(f"{head}{paint}{issue.severity}{reset}: {message}", width)]
    if issue.source_line is not None and issue.line is not None:
        number = str(issue.line)
        line, at = _window(issue.source_line, (issue.column or 1) - 1)
        preceding = _line(line[:at])
        rows.append(f"{dim}{number} |{reset} {preceding}{_line(line[at:])}")
        if issue.column is not None:
            rows.append(f"{dim}{' ' * len(number)} |{reset} {' ' * _width(preceding)}{paint}^{reset}")
    if issue.hint:
        rows.append("  " + wrapped(f"hint: {_line(issue.hint)}", width and width - 2, indent="    "))
    return "\n".join(rows) + "\n"


def _window(line: str, at: int) -> tuple[str, int]:
    """Return the part of a long line around a position, and the position in that part."""
    if len(line) <= LONGEST_LINE:
        return line, min(at, len(line))
    start = max(0, min(at - LONGEST_LINE // 2, len(line) - LONGEST_LINE))
    part = line[start : start + LONGEST_LINE]
    opening, closing = "…" if start else "", "…" if start + LONGEST_LINE < len(line) else ""
    return opening + part + closing, at - start + len(opening)


def _width(text: str) -> int:
    """Return the terminal columns of a text: wide letters take two, combining marks and color codes none."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in _COLOUR.sub("", text)
    )


def _github(issue: Issue) -> str:
    message = issue.message + (f" ({issue.hint})" if issue.hint else "")
    properties = [
        f"{name}={_escaped(_line(str(value)), also=':,')}"
        for name, value in (
            ("file", _repository_path(issue.file)),
            ("line", issue.line),
            ("col", issue.column),
            ("title", None if issue.code == Code.UNCODED else issue.code),
        )
        if value is not None
    ]
    return f"::{issue.severity} {','.join(properties)}::{_escaped(_line(message))}"


def _repository_path(file: str | None) -> str | None:
    return file.replace(os.sep, "/") if file is not None else None


def _escaped(text: str, also: str = "") -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for sign in also:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


# Signals that stop a command


_PATIENCE = 0.5
"""Maximum seconds that a signal handler waits for the counting thread."""


def exit_code() -> ExitCode:
    """Return the exit code of a stopped command."""
    return of_signal(STOPPED_BY[0] if STOPPED_BY else signal.SIGINT)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl+C in this block. The second signal ends the process with one line.

    A signal that was ignored at the start (`nohup`, `&` in a script) stays ignored. Outside the main thread,
    this does nothing.
    """
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    heard = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    if signal.SIGINT not in heard:
        # Event loops only know SIGINT, and other signals are converted to it. Therefore SIGINT is blocked
        # instead of ignored.
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
        # An import that a signal interrupts may fail with any error; its message is not useful.
        if _failed_by_signal():
            raise SystemExit(interrupted().exit_code) from error
        raise
    finally:
        # The command has finished. A later signal would only interrupt the interpreter's shutdown.
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)


def _failed_by_signal() -> bool:
    """Return whether a signal arrived before an error and explains it."""
    time.sleep(0.05)  # Give the counting thread time to run.
    return is_stopped()


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """Do the same as Ctrl+C at this moment; event loops have their own handler."""
    deadline = time.monotonic() + _PATIENCE
    while not STOPPED_BY and time.monotonic() < deadline:
        time.sleep(0.001)  # The counting thread knows whether another signal arrived before.
    if not STOPPED_BY:
        STOPPED_BY.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def _quiet_about_interrupts(hook: Callable[[Any], object]) -> Callable[[Any], None]:
    """Suppress the report of an interrupt where Python cannot raise, e.g. in a weak reference callback."""

    def quiet(error: Any) -> None:
        if not isinstance(error.exc_value, KeyboardInterrupt):
            hook(error)

    return quiet


def _watch(heard: frozenset[int]) -> None:
    """Count signals in a separate thread, so that the second signal works even if the main thread is busy."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Python writes the number of each handled signal, independent of the handler.
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

    threading.Thread(target=count, name=COUNTING_THREAD, daemon=True).start()


def _end_at_once() -> None:
    """End the process immediately. Files are renamed only when complete, so no partial files remain."""
    with suppress(OSError):  # The terminal may be closed.
        os.write(2, f"\nstopped at once; {_what_remains()}\n".encode())
    os._exit(exit_code())
