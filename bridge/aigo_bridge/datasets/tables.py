"""Tables by file format: JSONL and JSON with objects as rows and JSON types, CSV with a type per column, and
conversion of other values to JSON.
"""

from __future__ import annotations

import base64
import csv
import datetime as dt
import decimal
import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from aigo_bridge.access.opening import UTF_16, conversion, from_utf_16, wrong_byte
from aigo_bridge.codes import Code
from aigo_bridge.datasets.rows import MOST_COLUMNS, ROWS, Missing, Problems, RawRow, check_text, fill
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.text.json_text import read_common_json
from aigo_bridge.text.plurals import plural


def plain(value: Any) -> Any:
    """Convert a value to JSON: dates to ISO text, decimals to numbers, bytes to base64 text.

    Raises `DatasetError` for other types.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        is_integer = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_integer else float(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, uuid.UUID):
        return str(value)
    if callable(getattr(value, "tolist", None)):
        return plain(value.tolist())
    raise DatasetError(
        f"a value of type {type(value).__name__!r} cannot be written as JSON", code=Code.VALUE_WITHOUT_JSON
    )


LONGEST_LINE = 256 * 1024 * 1024
"""Maximum bytes of one line, which protects against decompression bombs without newlines."""

BOM = b"\xef\xbb\xbf"


class ObjectTable:
    """Rows that are objects already. The columns are the union of their keys."""

    def __init__(self, objects: Iterable[Any]):
        self._objects = objects
        self._columns: dict[str, None] = {}

    def records(self, problems: Problems) -> Iterator[RawRow]:
        """Yield objects in order. Other values are recorded as problems."""
        for number, value in enumerate(self._objects):
            if isinstance(value, dict):
                yield RawRow(number, None, value)
            else:
                problems.add(
                    f"found {_kind(value)}, expected an object with one key per column",
                    code=Code.ROW_SHAPE,
                    path=(number,),
                )

    def observe(self, record: RawRow) -> None:
        """Add the columns of a record."""
        if len(self._columns) <= MOST_COLUMNS and not record.data.keys() <= self._columns.keys():
            self._columns.update(dict.fromkeys(record.data))

    def columns(self) -> list[str]:
        """Return all keys, in order of first appearance."""
        return list(self._columns)

    def complete(self, record: RawRow, missing: Missing) -> dict[str, Any]:
        """Return the object with every column, in the order of the columns."""
        if missing == "absent" or len(record.data) == len(self._columns):
            return record.data
        value = fill(missing)
        return {column: record.data.get(column, value) for column in self._columns}


class JsonLinesTable(ObjectTable):
    """Stream of lines, each an object. Blank lines are skipped."""

    def __init__(self, stream: BinaryIO):
        super().__init__(())
        self._stream = stream

    def records(self, problems: Problems) -> Iterator[RawRow]:
        """Yield objects in order. Other lines are recorded as problems."""
        number = 0
        for line, content in numbered_lines(self._stream, problems):
            text = content.rstrip()
            if not text:
                continue
            check_text(text, problems.file, line)
            try:
                value = parse_json(text)
            except (ValueError, RecursionError) as error:
                column = error.pos + 1 if isinstance(error, json.JSONDecodeError) else None
                hint = _remedy(error, problems.file) or "each line must be one complete JSON object"
                problems.add(
                    f"not JSON: {_explained(error)}",
                    code=Code.ROWS_NOT_JSON,
                    line=line,
                    column=column,
                    hint=hint,
                )
            else:
                if isinstance(value, dict):
                    yield RawRow(number, line, value)
                else:
                    problems.add(
                        f"found {_kind(value)}, expected an object with one key per column",
                        code=Code.ROW_SHAPE,
                        line=line,
                    )
            number += 1


def numbered_lines(stream: BinaryIO, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Yield lines with their numbers, from 1, without a byte order mark, up to a line that is too long."""
    number = 0
    while content := stream.readline(LONGEST_LINE):
        number += 1
        if number == 1:
            content = content.removeprefix(BOM)
            if content.startswith(UTF_16):
                hint = from_utf_16(problems.file or "FILE")
                problems.add("the file is UTF-16, expected UTF-8", code=Code.NOT_UTF8, line=1, hint=hint)
                return
        if len(content) == LONGEST_LINE:
            problems.add(
                f"a line of more than {LONGEST_LINE // 2**20} MiB", code=Code.TOO_MANY_ROWS, line=number
            )
            return
        yield number, content


def json_table(stream: BinaryIO, file: str) -> ObjectTable:
    """Return the table of a JSON file with a list of objects. Raises `DatasetError` for other content.

    The whole file is in memory. Use JSONL for large data.
    """
    content = _whole(stream, ROWS.bytes)
    check_text(content, file)
    try:
        value = parse_json(content.removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        line, column = (
            (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (None, None)
        )
        issue = Issue(
            f"not JSON: {_explained(error)}",
            file,
            line,
            column,
            hint=_remedy(error, file),
            code=Code.ROWS_NOT_JSON,
        )
        raise DatasetError([issue]) from error
    if not isinstance(value, list):
        hint = "for one JSON object per line, use the extension .jsonl" if isinstance(value, dict) else None
        raise DatasetError(
            f"found {_kind(value)}, expected a list of objects", file=file, hint=hint, code=Code.ROW_SHAPE
        )
    return ObjectTable(value)


def _whole(stream: BinaryIO, most: int) -> bytes:
    """Return the content of a stream, or slightly more than the allowed size."""
    parts = []
    while most >= 0 and (part := stream.read(1 << 20)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def parse_json(content: bytes) -> Any:
    """Parse JSON like Python's own module (NaN and Infinity accepted, integers exact), but faster.

    Raises `ValueError` or `RecursionError`.
    """
    try:
        return read_common_json(content)
    except ValueError:
        return json.loads(content.decode("utf-8"))


def _explained(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}"
    if isinstance(error, UnicodeDecodeError):
        return wrong_byte(error)
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _remedy(error: Exception, file: str | None) -> str | None:
    return conversion(error, file or "FILE") if isinstance(error, UnicodeDecodeError) else None


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


LONGEST_CELL = 64 * 1024 * 1024
"""Maximum number of characters in one cell. An unclosed quote makes the rest of a file one cell."""

SEPARATORS = (";", "\t", "|")
"""Separators that other programs write instead of commas."""

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
    """CSV stream with a header line; comma, double quotes, UTF-8.

    Each column has one type, as in a data frame, but text is never changed. A column is

    * boolean if every filled cell is `true`, `True`, `TRUE` or the same of false,
    * integer if every filled cell is a whole number without leading zeros (at most 18 digits),
    * float if every filled cell is a number and at least one has a point or exponent (at most 15 digits
      before the point, so that a whole number among them stays exact, and an exponent of at most two
      digits),
    * text otherwise: `007`, `+41`, ` 5`, dates, `inf` and `nan` stay unchanged, for the whole column.

    An empty cell is a missing value in a typed column and `""` in a text column. A missing value does not
    turn integers into floats: `3` prints as `3`.
    """

    def __init__(self, stream: BinaryIO, file: str):
        self._stream = stream
        self._file = file
        self._header: list[str] = []
        self._possible: dict[str, tuple[str, ...]] = {}
        self._filled: set[str] = set()
        self._separator: str | None = None
        """Probable separator of the cells instead of commas."""
        self._short = 0
        self._first_short = 0

    def records(self, problems: Problems) -> Iterator[RawRow]:
        """Yield rows as texts. A row with too many cells is recorded as a problem; missing cells are left
        out.

        Raises `DatasetError` if there is no usable header.
        """
        csv.field_size_limit(LONGEST_CELL)
        # Without strict mode, a stray quote would silently join cells and lines.
        reader = csv.reader(_decoded(self._stream, problems), strict=True)
        number = 0
        while True:
            start = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                problems.add(
                    f"not CSV: {error}",
                    code=Code.ROW_SHAPE,
                    line=start,
                    hint="double the quotes inside a quoted cell",
                )
                continue
            if not cells:
                continue
            if not self._header:
                self._start(cells, start)
                continue
            if len(cells) > len(self._header):
                message = f"found {plural(len(cells), 'cell')}, expected {len(self._header)} as in the header"
                hint = "put a cell that contains a comma in quotes"
                if self._separator is not None:
                    hint = f"the cells seem to be separated by {self._separator!r}; only commas are supported"
                problems.add(message, code=Code.ROW_SHAPE, line=start, hint=hint)
            else:
                if len(cells) < len(self._header):
                    self._first_short = self._first_short or start
                    self._short += 1
                yield RawRow(number, start, dict(zip(self._header, cells, strict=False)))
            number += 1
        if not self._header and not problems.count:
            raise DatasetError(
                "the file is empty, expected a header line", file=self._file, code=Code.WRONG_HEADER
            )

    def doubts(self) -> tuple[Issue, ...]:
        """Return warnings about the file after it was read."""
        issues: list[Issue] = []
        if self._separator is not None:
            message = (
                f"the only column is {self._header[0]!r}; the cells seem to be separated by "
                f"{self._separator!r}, expected ','"
            )
            hint = "separate cells by commas, and put cells that contain a comma in quotes"
            issues.append(
                Issue(message, self._file, 1, 1, hint=hint, severity="warning", code=Code.WRONG_HEADER)
            )
        if self._short:
            which = plural(self._short, "row has", "rows have")
            message = (
                f"{which} fewer cells than the header, first in this line; the missing cells have no value"
            )
            issues.append(
                Issue(message, self._file, self._first_short, severity="warning", code=Code.DOUBTFUL_ROWS)
            )
        return tuple(issues)

    def observe(self, record: RawRow) -> None:
        """Narrow down the possible types of each column."""
        for column, cell in record.data.items():
            possible = self._possible[column]
            if cell and possible:
                self._filled.add(column)
                self._possible[column] = tuple(kind for kind in possible if _CHECKS[kind](cell))

    def columns(self) -> list[str]:
        """Return the header."""
        return list(self._header)

    def complete(self, record: RawRow, missing: Missing) -> dict[str, Any]:
        """Return the row with typed cells."""
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
                Issue(
                    f"the column {name!r} occurs twice in the header",
                    self._file,
                    line,
                    code=Code.WRONG_HEADER,
                )
                for name in twice
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
            problems.add(wrong_byte(error), code=Code.NOT_UTF8, line=number, hint=hint)
            # Replacing invalid bytes keeps the cells of other columns in place.
            yield content.decode("utf-8", "replace")
