"""Text that is safe to print: ids and messages come from strangers."""

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

from aigo_bridge.access.mirrored import address_of, with_addresses
from aigo_bridge.redaction.secrets import learn_environment, redact, redact_on_screen, redact_value
from aigo_bridge.text.escapes import json_text, visible
from aigo_bridge.text.summaries import summary


def printable(text: str) -> str:
    """The text without secrets, and with control characters made visible; line breaks and tabs stay."""
    return visible(redact(text), keep="\n\t")


def name_of(text: str) -> str:
    """A name without secrets, in one row: its line breaks and tabs are visible as well."""
    return visible(redact(text))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """A value as JSON on standard output, without secrets; characters that are not seen are escaped, and mean
    the same.
    """
    typer.echo(json_text(redact_value(value), indent=indent))


def one_line(text: str, length: int = 200) -> str:
    """The first line of a text that says something, printable and at most `length` characters."""
    # What is secret goes before anything is cut, so that no half of it stays.
    shown = printable(summary(redact(text)))
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def short_path(path: str | Path) -> str:
    """A path as it is shown: without the current folder where it is below that, in one row; of a copy the
    address that it is of.
    """
    address = address_of(path)
    if address is not None:
        return visible(address)
    try:
        return visible(str(Path(path).relative_to(Path.cwd())))
    except ValueError:
        return visible(str(path))


# How much is said, and how it looks


_QUIET: list[bool] = [False]
_VERBOSE: list[bool] = [False]


def set_verbosity(*, quiet: bool | None = None, verbose: bool | None = None) -> None:
    """How much is said from now on; `None` leaves it."""
    if quiet is not None:
        _QUIET[0] = quiet
    if verbose is not None:
        _VERBOSE[0] = verbose


def is_quiet() -> bool:
    """Whether nothing is said but results and errors."""
    return _QUIET[0]


def is_verbose() -> bool:
    """Whether more is said than most want to know."""
    return _VERBOSE[0]


def note(text: str) -> None:
    """Something that a person may want to know, on standard error."""
    if not is_quiet():
        typer.echo(text, err=True)


def colour_of(stream: TextIO) -> bool:
    """Whether a stream is for eyes that see colours: a terminal, and neither `NO_COLOR` nor a dumb one."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int | None:
    """Columns of a terminal; `None`: it is none, and lines stay as they are."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


class _CleanStream:
    """A stream of texts that writes no secret, also where it comes in pieces: lines are written when they are
    whole, or flushed.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._waiting: list[str] = []
        self.buffer = _CleanBytes(self)

    def write(self, text: str) -> int:
        """Write a text without what the process knows to be secret."""
        if not isinstance(text, str):  # some find out like this which kind of stream they have
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._waiting.append(text)
        if "\n" in text:
            self._write_waiting(whole=text.endswith("\n"))
        return len(text)

    def flush(self) -> None:
        """Write what has come so far."""
        self._write_waiting(whole=True)
        self._stream.flush()

    def _write_waiting(self, *, whole: bool) -> None:
        text = "".join(self._waiting)
        end = len(text) if whole else text.rindex("\n") + 1
        self._waiting = [text[end:]] if end < len(text) else []
        if end:
            self._stream.write(redact_on_screen(with_addresses(text[:end])))

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _CleanBytes:
    """The bytes behind a stream of texts: who writes them writes no secret either."""

    def __init__(self, stream: _CleanStream):
        self._stream = stream

    def write(self, data: bytes) -> int:
        """Write UTF-8."""
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        """Write what has come so far."""
        self._stream.flush()


def hide_secrets() -> None:
    """Have nothing secret on the terminal, whoever writes there: tables, JSON, warnings of engines,
    tracebacks.
    """
    learn_environment()
    sys.stdout = cast("TextIO", _CleanStream(sys.stdout))
    sys.stderr = cast("TextIO", _CleanStream(sys.stderr))
    # What waits for the end of its line is written when there is none.
    atexit.register(sys.stdout.flush)
    atexit.register(sys.stderr.flush)


@contextlib.contextmanager
def clean_streams() -> Iterator[None]:
    """Have all output of the block cleaned, and addresses in place of paths of copies."""
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
