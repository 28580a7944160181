"""Where the samples of a `.json` log stand, found without reading it into memory.

Inspect writes these files with an indentation of two, and no text of JSON holds a raw line break. So what a line begins with
tells where it stands, whatever is broken in it: a sample begins on a line of four blanks and a brace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from aigo_bridge.importing.bounds import Bounds

from .json_salvage import Span
from .sources import Source

_LINE = re.compile(rb'\n    ([^ \r\n])|\n  "samples": (\[)(?=\r?\n)|\n  (\])(?=,?\r?\n)')
_LONGEST = 32
"""Bytes that a match needs at most, with what it looks ahead to."""
_WINDOW = 16 << 20
_CLOSE = b"\n    }"
_BETWEEN = b", \r\n"


@dataclass
class Rows:
    """The list of samples of a log in Inspect's layout."""

    begin: int
    """Behind its opening bracket, in bytes."""
    end: int | None = None
    """Its closing bracket; `None` when the log is cut off."""
    spans: list[Span] = field(default_factory=list)
    """Its elements. What stands between two of them is one as well: the rest of a broken one."""


def find_rows(source: Source, bounds: Bounds) -> Rows | None:
    """The samples of a log that is laid out as Inspect does; `None` when it is not.

    Raises:
        EvidenceError: the log cannot be read.
        TooLargeError: there are more, and smaller, elements than the bounds allow.
    """
    found: Rows | None = None
    start: int | None = None
    opened = b""
    close: int | None = None

    def finish(limit: int) -> None:
        if found is not None and start is not None:
            found.spans += _row(source, start, opened, close, limit)

    for at, groups in _lines(source):
        sign, begins, ends = groups
        if begins:
            if found is not None:
                continue
            found = Rows(at + 1)
        elif found is None:
            continue
        elif ends:
            finish(at)
            found.end = at
            return found
        elif sign == b"}":
            close = at if close is None else close
        elif sign != b"]":
            finish(at)
            start, opened, close = at, sign, None
            if len(found.spans) % 10_000 == 1:
                bounds.check_count("samples", len(found.spans), at - found.begin, "the log")
    finish(source.size)
    return found


def _lines(source: Source) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """What each line that matters begins with, and where that is."""
    base = 0
    while base < source.size:
        window = source.read_at(base, _WINDOW + _LONGEST)
        if not window:
            return
        for match in _LINE.finditer(window):
            if match.start() >= _WINDOW:
                break
            yield base + match.end() - 1, match.groups(b"")
        base += _WINDOW


def _row(source: Source, start: int, opened: bytes, close: int | None, limit: int) -> Iterator[Span]:
    at = start
    if opened == b"{":
        if close is None:
            at = start + len(source.read_at(start, limit - start).rstrip(_BETWEEN))
        else:
            at = close + 1
        yield start, at
    rest = source.read_at(at, limit - at)
    if rest.strip(_BETWEEN):
        yield at, at + len(rest.rstrip(_BETWEEN))
