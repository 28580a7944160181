"""Reader for untrusted files with one JSON object per line, with size limits and a check for duplicate
keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from aigo_bridge.access.bounds import Bounds, LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.text.json_text import read_json, read_json_once, without_depths

Json = dict[str, Any]
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def numbered_lines(file: Any, bounds: Bounds) -> Iterator[tuple[int, int, bytes]]:
    """Yield the lines that are not blank: start offset in bytes, line number from 1, and content.

    Raises:
        TooLargeError: a line is too long, or there are too many lines.
    """
    number = at = 0
    while line := file.readline(bounds.string_bytes + 1):
        start, at, number = at, at + len(line), number + 1
        if len(line) > bounds.string_bytes:
            raise LogTooLargeError(
                f"line {number} has more than {bounds.string_bytes:,} bytes"
                " (raise the bound 'string_bytes' if the file is yours)"
            )
        bounds.check_count("lines", number, 0, "the file")
        if line.strip():
            yield start, number, line


def line_at(file: Any, start: int, bounds: Bounds) -> bytes:
    """Return the line at a byte offset."""
    file.seek(start)
    line: bytes = file.readline(bounds.string_bytes + 1)
    return line


def object_of(line: bytes, where: str, bounds: Bounds) -> Json:
    """Parse a line as a JSON object.

    Raises:
        EvidenceError: the line is not an object, has a duplicate key, is nested too deeply, or exceeds
            the bounds. The message contains the reason.
    """
    bounds.check_document(where, line)
    text = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        value = read_json(text)
        # Fast parsers keep the last of two equal keys. Names that occur only once need no second check.
        if isinstance(value, dict) and any(line.count(json.dumps(name).encode()) > 1 for name in value):
            value = read_json_once(text)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"no JSON: {error}", code=Code.DAMAGED_LOG) from error
    if not isinstance(value, dict):
        raise EvidenceError(f"found {type(value).__name__}, expected an object", code=Code.DAMAGED_LOG)
    if without_depths(value):
        raise EvidenceError("nested too deeply", code=Code.DAMAGED_LOG)
    return value
