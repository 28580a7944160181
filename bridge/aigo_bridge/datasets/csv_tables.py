"""CSV with types: one type per column, as a data frame would have it, but never at the cost of text.

A column is

* boolean when every filled cell is `true`, `True`, `TRUE` or the same of false,
* integer when every filled cell is a whole number without leading zeros (at most 18 digits),
* float when every filled cell is a number and at least one has a point or exponent (at most 15 digits before
  the point, so that a whole number among them stays exact, and an exponent of at most two digits),
* text otherwise: `007`, `+41`, ` 5`, dates, `inf` and `nan` stay what they are, for the whole column.

An empty cell is a missing value in a typed column and `""` in a text column. A missing value does not turn
integers into floats: `3` prints as `3`.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from aigo_bridge.datasets.json_tables import numbered_lines
from aigo_bridge.datasets.rows import Missing, Problems
from aigo_bridge.datasets.tables import Record, fill
from aigo_bridge.encodings import conversion, wrong_byte
from aigo_bridge.errors import DatasetError, Issue

LONGEST_CELL = 64 * 1024 * 1024
"""Characters of one cell; an unclosed quote makes the rest of a file one cell."""

SEPARATORS = (";", "\t", "|")
"""What other programs write in place of commas."""

_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})").fullmatch
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?").fullmatch

_CHECKS: dict[str, Callable[[str], object]] = {
    "integer": _INTEGER,
    "float": _NUMBER,
    "boolean": _BOOLEAN.__contains__,
}
_CONVERSIONS: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "float": float,
    "boolean": _BOOLEAN.__getitem__,
}


class CsvTable:
    """A CSV stream with a header line; comma, double quotes, UTF-8."""

    def __init__(self, stream: BinaryIO, file: str):
        self._stream = stream
        self._file = file
        self._header: list[str] = []
        self._possible: dict[str, tuple[str, ...]] = {}
        self._filled: set[str] = set()
        self._separator: str | None = None
        """What seems to separate the cells in place of commas."""
        self._short = 0
        self._first_short = 0

    def records(self, problems: Problems) -> Iterator[Record]:
        """Rows as texts; a row with too many cells is noted as a problem, missing ones are left out.

        Raises `DatasetError` when there is no usable header.
        """
        csv.field_size_limit(LONGEST_CELL)
        # Not strict, a stray quote would silently join cells and lines.
        reader = csv.reader(_decoded(self._stream, problems), strict=True)
        number = 0
        while True:
            start = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                problems.add(f"not CSV: {error}", line=start, hint="quotes inside a quoted cell are doubled")
                continue
            if not cells:
                continue
            if not self._header:
                self._start(cells, start)
                continue
            if len(cells) > len(self._header):
                message = f"found {len(cells)} cells, expected {len(self._header)} as in the header"
                hint = "a comma inside a cell needs quotes around the cell"
                if self._separator is not None:
                    hint = f"{self._separator!r} seems to separate the cells, and only commas do"
                problems.add(message, line=start, hint=hint)
            else:
                if len(cells) < len(self._header):
                    self._first_short = self._first_short or start
                    self._short += 1
                yield Record(number, start, dict(zip(self._header, cells, strict=False)))
            number += 1
        if not self._header and not problems.count:
            raise DatasetError([Issue("the file is empty, expected a header line", self._file)])

    def doubts(self) -> tuple[Issue, ...]:
        """What is odd about the file, once it is read, and does not stop it from being used."""
        found: list[Issue] = []
        if self._separator is not None:
            message = f"the only column is {self._header[0]!r}: {self._separator!r} seems to separate the cells, expected ','"
            hint = "separate cells by commas, and put those with a comma in them in quotes"
            found.append(Issue(message, self._file, 1, 1, hint=hint, severity="warning"))
        if self._short:
            which = "1 row has" if self._short == 1 else f"{self._short} rows have"
            message = f"{which} fewer cells than the header, the first in this line; their last columns are missing values"
            found.append(Issue(message, self._file, self._first_short, severity="warning"))
        return tuple(found)

    def observe(self, record: Record) -> None:
        """Narrow down the type each column can have."""
        for column, cell in record.data.items():
            possible = self._possible[column]
            if cell and possible:
                self._filled.add(column)
                self._possible[column] = tuple(kind for kind in possible if _CHECKS[kind](cell))

    def columns(self) -> list[str]:
        """The header."""
        return list(self._header)

    def complete(self, record: Record, missing: Missing) -> dict[str, Any]:
        """The row with typed cells."""
        data: dict[str, Any] = {}
        for column in self._header:
            cell = record.data.get(column)
            kind = self._kind(column)
            if cell is None or (cell == "" and kind != "text"):
                if missing != "absent":
                    data[column] = fill(missing)
            else:
                data[column] = cell if kind == "text" else _CONVERSIONS[kind](cell)
        return data

    def _kind(self, column: str) -> str:
        possible = self._possible[column]
        return possible[0] if possible and column in self._filled else "text"

    def _start(self, header: list[str], line: int) -> None:
        twice = sorted(name for name, count in Counter(header).items() if count > 1)
        if twice:
            issues = [
                Issue(f"the column {name!r} occurs twice in the header", self._file, line) for name in twice
            ]
            raise DatasetError(issues)
        if len(header) == 1:
            self._separator = next((mark for mark in SEPARATORS if mark in header[0]), None)
        self._header = header
        self._possible = dict.fromkeys(header, ("integer", "float", "boolean"))


def _decoded(stream: BinaryIO, problems: Problems) -> Iterator[str]:
    for number, content in numbered_lines(stream, problems):
        try:
            yield content.decode("utf-8")
        except UnicodeDecodeError as error:
            hint = conversion(error, problems.file or "FILE")
            problems.add(wrong_byte(error), line=number, hint=hint)
            # The cells of other columns stay where they are.
            yield content.decode("utf-8", "replace")
