"""Text that is safe to print: ids and messages come from strangers."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path
from typing import Any, TextIO, cast

from aigo_bridge.secrets import redact


def printable(text: str) -> str:
    """The text without secrets, and with control characters made visible; line breaks and tabs stay."""
    text = redact(text)
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs") else _escaped(char)
        for char in text
    )


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, length: int = 200) -> str:
    """The first line of a text that says something, printable and at most `length` characters."""
    # What is secret goes before anything is cut, so that no half of it stays.
    lines = redact(text).strip().splitlines() or [""]
    shown = printable(lines[0])
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def short_path(path: str | Path) -> str:
    """A path below the current folder without that folder; any other as it is."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return str(path)


class _CleanStream:
    """A stream of texts that writes no secret."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without what the process knows to be secret."""
        self._stream.write(redact(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def hide_secrets() -> None:
    """Have nothing secret on the terminal, whoever writes there: tables, JSON, warnings of engines, tracebacks."""
    sys.stdout = cast("TextIO", _CleanStream(sys.stdout))
    sys.stderr = cast("TextIO", _CleanStream(sys.stderr))
