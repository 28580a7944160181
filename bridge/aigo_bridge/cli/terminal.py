"""Text that is safe to print, because IDs and messages may contain anything."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import typer

from aigo_bridge.access.display_paths import address_of, with_addresses
from aigo_bridge.redaction.secrets import learn_environment, redact, redact_on_screen, redact_value
from aigo_bridge.text.escapes import json_text, visible
from aigo_bridge.text.summaries import summary


def printable(text: str) -> str:
    """Return a text with secrets masked and control characters escaped, except line breaks and tabs."""
    return visible(redact(text), keep="\n\t")


def name_of(text: str) -> str:
    """Return a name with secrets masked, on one line: line breaks and tabs are also escaped."""
    return visible(redact(text))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON to standard output. Secrets are masked, and invisible characters are escaped
    without changing the value.
    """
    typer.echo(json_text(redact_value(value), indent=indent))


def one_line(text: str, length: int = 200) -> str:
    """Return the first meaningful line of a text, printable and with at most `length` characters."""
    # Mask secrets before truncation, so that half a secret never remains.
    shown = printable(summary(redact(text)))
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def short_path(path: str | Path) -> str:
    """Return a path for display on one line: relative to the current folder if it is below it. For a copy,
    return the address of the original.
    """
    address = address_of(path)
    if address is not None:
        return visible(address)
    try:
        return visible(str(Path(path).relative_to(Path.cwd())))
    except ValueError:
        return visible(str(path))


# Verbosity and style


_QUIET: list[bool] = [False]
_VERBOSE: list[bool] = [False]


def set_verbosity(*, quiet: bool | None = None, verbose: bool | None = None) -> None:
    """Set the verbosity; `None` leaves it unchanged."""
    if quiet is not None:
        _QUIET[0] = quiet
    if verbose is not None:
        _VERBOSE[0] = verbose


def is_quiet() -> bool:
    """Return whether only results and errors are printed."""
    return _QUIET[0]


def is_verbose() -> bool:
    """Return whether additional details are printed."""
    return _VERBOSE[0]


def note(text: str) -> None:
    """Print a note to standard error, unless quiet."""
    if not is_quiet():
        typer.echo(text, err=True)


def colour_of(stream: TextIO) -> bool:
    """Return whether a stream supports colors: a terminal that is not dumb, and no `NO_COLOR`."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int | None:
    """Return the columns of a terminal; `None` if the stream is not a terminal, and lines are not wrapped."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


class _CleanStream:
    """Text stream that masks secrets, even if they arrive in pieces: a line is written when it is complete or
    flushed.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._waiting: list[str] = []
        self.buffer = _CleanBytes(self)

    def write(self, text: str) -> int:
        """Write a text with known secrets masked."""
        if not isinstance(text, str):  # Some libraries use this error to detect the kind of stream.
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._waiting.append(text)
        if "\n" in text:
            self._write_waiting(whole=text.endswith("\n"))
        return len(text)

    def flush(self) -> None:
        """Write the pending text."""
        self._write_waiting(whole=True)
        self._stream.flush()

    def _write_waiting(self, *, whole: bool) -> None:
        text = "".join(self._waiting)
        end = len(text) if whole else text.rindex("\n") + 1
        self._waiting = [text[end:]] if end < len(text) else []
        if end:
            self._stream.write(redact_on_screen(with_addresses(text[:end])))

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _CleanBytes:
    """Binary buffer of a text stream that also masks secrets."""

    def __init__(self, stream: _CleanStream):
        self._stream = stream

    def write(self, data: bytes) -> int:
        """Write UTF-8 bytes."""
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        """Write the pending text."""
        self._stream.flush()


def hide_secrets() -> None:
    """Mask secrets in all terminal output, including tables, JSON, engine warnings and tracebacks."""
    learn_environment()
    sys.stdout = cast("TextIO", _CleanStream(sys.stdout))
    sys.stderr = cast("TextIO", _CleanStream(sys.stderr))
    # Write an incomplete last line at exit.
    atexit.register(sys.stdout.flush)
    atexit.register(sys.stderr.flush)


@contextlib.contextmanager
def clean_streams() -> Iterator[None]:
    """Mask secrets in all output of the block, and replace paths of copies by their addresses."""
    streams = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, _CleanStream):
            setattr(sys, name, cast("TextIO", _CleanStream(stream)))
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = streams
