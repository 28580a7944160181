"""Files that are not UTF-8: which byte says so, what the file probably is, and how to convert it."""

from __future__ import annotations

import shlex
from pathlib import Path

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Marks at the start of a file."""


def wrong_byte(error: UnicodeDecodeError) -> str:
    """What is said of the first byte that is not UTF-8, counted from 1 in what was decoded."""
    return f"byte {error.start + 1} is not UTF-8 (0x{error.object[error.start]:02X})"


def conversion(error: UnicodeDecodeError, name: str) -> str:
    """What to do about it: `name` is the file."""
    if error.object[:2] in UTF_16:
        return from_utf_16(name)
    around = error.object[max(0, error.start - 10) : error.start + 10]
    letter = error.object[error.start : error.start + 1]
    try:
        seen = letter.decode("cp1252")
        around.decode("cp1252")
    except UnicodeDecodeError:
        return f"save it as UTF-8; if you know its encoding: {_iconv('ENCODING', name)}"
    return f"in Windows-1252 it is {seen!r}; if that is meant, {_command('CP1252', name)}"


def from_utf_16(name: str) -> str:
    """What to do about a file that begins with a mark of UTF-16."""
    return _command("UTF-16", name)


def _command(encoding: str, name: str) -> str:
    return f"convert the file to UTF-8: {_iconv(encoding, name)}"


def _iconv(encoding: str, name: str) -> str:
    path = Path(name)
    source, target = shlex.quote(path.name), shlex.quote(f"{path.stem}.utf8{path.suffix}")
    return f"iconv -f {encoding} -t UTF-8 {source} > {target}"
