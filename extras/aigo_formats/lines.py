"""Files with one JSON object per line, of strangers: within bounds, and without a key that is there twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from aigo_bridge.access.bounds import Bounds, TooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.text.json_text import read_json, read_json_once, without_depths

Json = dict[str, Any]
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def numbered_lines(file: Any, bounds: Bounds) -> Iterator[tuple[int, int, bytes]]:
    """Lines that are not blank: byte at which one begins, its number from 1, the line.

    Raises:
        TooLargeError: a line is too long, or there are too many.
    """
    number = at = 0
    while line := file.readline(bounds.string_bytes + 1):
        start, at, number = at, at + len(line), number + 1
        if len(line) > bounds.string_bytes:
            raise TooLargeError(
                f"line {number} has more than {bounds.string_bytes:,} bytes"
                " (raise the bound 'string_bytes' if the file is yours)"
            )
        bounds.check_count("lines", number, 0, "the file")
        if line.strip():
            yield start, number, line


def line_at(file: Any, start: int, bounds: Bounds) -> bytes:
    """The line that begins at a byte."""
    file.seek(start)
    line: bytes = file.readline(bounds.string_bytes + 1)
    return line


def object_of(line: bytes, where: str, bounds: Bounds) -> Json:
    """A line as an object.

    Raises:
        EvidenceError: it is none, has a key twice, is nested too deeply, or asks for more than the bounds
            allow; the message says which.
    """
    bounds.check_document(where, line)
    text = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        value = read_json(text)
        # Fast parsers take the last of two equal keys; names that stand there once need no second look.
        if isinstance(value, dict) and any(line.count(json.dumps(name).encode()) > 1 for name in value):
            value = read_json_once(text)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"no JSON: {error}", code=Code.DAMAGED_LOG) from error
    if not isinstance(value, dict):
        raise EvidenceError(f"found {type(value).__name__}, expected an object", code=Code.DAMAGED_LOG)
    if without_depths(value):
        raise EvidenceError("nested too deeply", code=Code.DAMAGED_LOG)
    return value
