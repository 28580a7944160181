"""JSONL and JSON: rows are objects, types are JSON's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import orjson

from aigo_bridge.datasets.rows import Missing, Problems
from aigo_bridge.datasets.tables import Record, fill
from aigo_bridge.encodings import UTF_16, conversion, from_utf_16, wrong_byte
from aigo_bridge.errors import DatasetError, Issue

LONGEST_LINE = 256 * 1024 * 1024
"""Bytes one line may have; what keeps a decompression bomb without newlines from filling the memory."""

BOM = b"\xef\xbb\xbf"

# orjson reads integers beyond 64 bits as floats, without a word.
_LONG_INTEGER = re.compile(rb"\d{19}")


class ObjectTable:
    """Rows that are objects already; columns are the union of their keys."""

    def __init__(self, objects: Iterable[Any]):
        self._objects = objects
        self._columns: dict[str, None] = {}

    def records(self, problems: Problems) -> Iterator[Record]:
        """Objects in order; anything else is noted as a problem."""
        for number, value in enumerate(self._objects):
            if isinstance(value, dict):
                yield Record(number, None, value)
            else:
                problems.add(
                    f"found {_kind(value)}, expected an object with one key per column", path=(number,)
                )

    def observe(self, record: Record) -> None:
        """Add the columns of a record."""
        if not record.data.keys() <= self._columns.keys():
            self._columns.update(dict.fromkeys(record.data))

    def columns(self) -> list[str]:
        """All keys, in order of first appearance."""
        return list(self._columns)

    def complete(self, record: Record, missing: Missing) -> dict[str, Any]:
        """The object with every column, in the order of the columns."""
        if missing == "absent" or len(record.data) == len(self._columns):
            return record.data
        value = fill(missing)
        return {column: record.data.get(column, value) for column in self._columns}


class JsonLinesTable(ObjectTable):
    """A stream of lines, each an object; blank lines are skipped."""

    def __init__(self, stream: BinaryIO):
        super().__init__(())
        self._stream = stream

    def records(self, problems: Problems) -> Iterator[Record]:
        """Objects in order; a line that is none is noted as a problem."""
        number = 0
        for line, content in numbered_lines(self._stream, problems):
            text = content.rstrip()
            if not text:
                continue
            try:
                value = parse_json(text)
            except (ValueError, RecursionError) as error:
                column = error.pos + 1 if isinstance(error, json.JSONDecodeError) else None
                hint = _remedy(error, problems.file) or "every line is one whole JSON object"
                problems.add(f"not JSON: {_explained(error)}", line=line, column=column, hint=hint)
            else:
                if isinstance(value, dict):
                    yield Record(number, line, value)
                else:
                    problems.add(
                        f"found {_kind(value)}, expected an object with one key per column", line=line
                    )
            number += 1


def numbered_lines(stream: BinaryIO, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Lines with their 1-based numbers, without a byte order mark; ends at a line that is too long."""
    number = 0
    while content := stream.readline(LONGEST_LINE):
        number += 1
        if number == 1:
            content = content.removeprefix(BOM)
            if content.startswith(UTF_16):
                hint = from_utf_16(problems.file or "FILE")
                problems.add("the file is UTF-16, expected UTF-8", line=1, hint=hint)
                return
        if len(content) == LONGEST_LINE:
            problems.add(f"a line of more than {LONGEST_LINE // 2**20} MiB", line=number)
            return
        yield number, content


def json_table(stream: BinaryIO, file: str) -> ObjectTable:
    """A JSON file that is a list of objects. Raises `DatasetError` when it is something else.

    The whole file is held in memory; JSONL is the form for large data.
    """
    try:
        value = parse_json(stream.read().removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        line, column = (
            (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (None, None)
        )
        issue = Issue(f"not JSON: {_explained(error)}", file, line, column, hint=_remedy(error, file))
        raise DatasetError([issue]) from error
    if not isinstance(value, list):
        hint = "one JSON object per line is a .jsonl file" if isinstance(value, dict) else None
        raise DatasetError([Issue(f"found {_kind(value)}, expected a list of objects", file, hint=hint)])
    return ObjectTable(value)


def parse_json(content: bytes) -> Any:
    """JSON as Python's own module reads it (NaN and Infinity accepted, integers exact), but fast.

    Raises `ValueError` or `RecursionError`.
    """
    if not _LONG_INTEGER.search(content):
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            pass
    return json.loads(content.decode("utf-8"))


def _explained(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}"
    if isinstance(error, UnicodeDecodeError):
        return wrong_byte(error)
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _remedy(error: Exception, file: str | None) -> str | None:
    return conversion(error, file or "FILE") if isinstance(error, UnicodeDecodeError) else None


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
