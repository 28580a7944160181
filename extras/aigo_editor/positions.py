"""Conversion between text offsets and editor positions: lines from 0, and columns in units of an encoding."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from aigo_bridge.errors import Issue

Unit = Literal["utf-8", "utf-16", "utf-32"]
"""Unit of a column: bytes, UTF-16 code units or characters."""


@dataclass(frozen=True, slots=True)
class TextRange:
    """Range of characters from `start` up to and excluding `end`."""

    start: int
    end: int


START = TextRange(0, 0)
"""Empty span at the start of a text."""


@dataclass(frozen=True)
class Lines:
    """Text split into lines. Line ends are line feeds."""

    text: str

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Offset of the first character of each line."""
        starts, at = [0], self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return tuple(starts)

    def line(self, number: int) -> str:
        """Return a line without its line feed; empty for a line that does not exist."""
        if not 0 <= number < len(self.starts):
            return ""
        return self.text[self.starts[number] : self._end(number)]

    def _end(self, number: int) -> int:
        return self.starts[number + 1] - 1 if number + 1 < len(self.starts) else len(self.text)

    def offset(self, line: int, column: int, unit: Unit = "utf-16") -> int:
        """Return the offset of a position. A position that does not exist becomes the nearest one before
        it.
        """
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.text)
        return self.starts[line] + characters(self.line(line), column, unit)

    def place(self, offset: int, unit: Unit = "utf-16") -> tuple[int, int]:
        """Return the line and the column of an offset."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.starts, offset) - 1
        start = self.starts[line]
        return line, units(self.text[start:offset], unit)

    def span_of(self, issue: Issue) -> TextRange:
        """Return the span to underline for an issue: the word or quoted text at its position, or the rest of
        its line.
        """
        if issue.line is None:
            return TextRange(0, self._end(0))
        line = min(max(issue.line - 1, 0), len(self.starts) - 1)
        text = self.line(line)
        column = min(max((issue.column or 1) - 1, 0), len(text))
        start = self.starts[line] + column
        end = start + _width(text[column:])
        if end == start and column:  # at the end of a line, underline its last character
            start -= 1
        return TextRange(start, end)


def _width(text: str) -> int:
    """Return the length of the word or quoted text at the start of a text."""
    if text[:1] in {'"', "'"} and (closing := text.find(text[0], 1)) > 0:
        return closing + 1
    for number, letter in enumerate(text):
        if letter in ",]}" or (letter == ":" and text[number + 1 : number + 2] in {" ", ""}) or letter == "#":
            return len(text[: max(number, 1)].rstrip()) or 1
    return len(text.rstrip())


def units(text: str, unit: Unit) -> int:
    """Return the length of a text in units."""
    if unit == "utf-32":
        return len(text)
    if text.isascii():
        return len(text)
    if unit == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(letter > "\uffff" for letter in text)


def characters(text: str, count: int, unit: Unit) -> int:
    """Return the number of characters before a column. A column inside a character counts the characters
    before it.
    """
    if unit == "utf-32" or text.isascii():
        return min(max(count, 0), len(text))
    width = 0
    for number, letter in enumerate(text):
        width += units(letter, unit)
        if width > count:
            return number
    return len(text)
