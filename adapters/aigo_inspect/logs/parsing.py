"""Parsing of Inspect's JSON to exact Python values, and conversion of its times to AI GO times (UTC with
`Z`).

Inspect's JSON is not standard: scores may be the constants `NaN` and `Infinity`, and texts may contain lone
surrogates. `msgspec` is one of the fastest parsers and needs little memory, but rejects both. The slower
parser of the standard library is used if `msgspec` fails.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import NO_REDACTION

_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_SURROGATE_ESCAPE = rb"\\u[dD][89a-fA-F]"
_LONE_SURROGATE = "[\ud800-\udfff]"


@dataclass(frozen=True)
class ParsedDocument:
    """A parsed document and the changes made to read it."""

    value: Any
    non_finite: bool = False
    """Whether the document contains `NaN` or an infinity. `value` contains them as floats."""
    changes: Counter[str] = field(default_factory=Counter)
    """Kind of change → number of changes."""


def parse_json(data: bytes, name: str, redaction: Redactor = NO_REDACTION) -> ParsedDocument:
    """Parse one JSON document.

    Args:
        data: bytes of the document.
        name: name of the document in messages.
        redaction: secrets to remove first.

    Raises:
        EvidenceError: the document is not JSON, or nested too deeply. The message contains the byte offset if
            known.
    """
    try:
        value = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        clean = redaction.json(data)
        return _parse_leniently(data, name, error) if clean is data else parse_json(clean, name)
    # Checked after parsing, because the parser also validates UTF-8, which takes longer than the search for
    # secrets.
    if redaction.suspects(data) and (clean := redaction.json(data)) is not data:
        del value
        return parse_json(clean, name)
    return ParsedDocument(value)


def _parse_leniently(data: bytes, name: str, cause: Exception) -> ParsedDocument:
    changes: Counter[str] = Counter()
    non_finite = False

    def constant(text: str) -> float:
        nonlocal non_finite
        non_finite = True
        return float(text)

    def number(text: str) -> float:
        nonlocal non_finite
        value = float(text)
        non_finite = non_finite or math.isinf(value)
        return value

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", errors="replace")
        changes["bytes that are not UTF-8 replaced by U+FFFD"] += 1
    try:
        value = json.loads(text, parse_constant=constant, parse_float=number, strict=False)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise EvidenceError(
            f"{name} is not valid JSON at byte {offset}: {error.msg}", code=Code.DAMAGED_LOG
        ) from error
    except (RecursionError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise EvidenceError(f"{name} cannot be read: {reason}", code=Code.DAMAGED_LOG) from cause
    if re.search(_SURROGATE_ESCAPE, data):
        del text
        value, count = _take_out_surrogates(value)
        if count:
            changes["lone surrogates written as escapes"] += count
    return ParsedDocument(value, non_finite, changes)


def _take_out_surrogates(root: Any) -> tuple[Any, int]:
    """Return the value with lone surrogates replaced by escapes, and their number. Lists and dictionaries are
    changed in place.
    """
    count = 0

    def clean(text: str) -> str:
        nonlocal count
        if text.isascii():
            return text
        cleaned, replaced = re.subn(_LONE_SURROGATE, lambda match: f"\\u{ord(match[0]):04x}", text)
        count += replaced
        return cleaned

    nodes: list[Any] = [[root]]
    top = nodes[0]
    while nodes:
        node = nodes.pop()
        if type(node) is dict and not all(map(str.isascii, node)):
            items = list(node.items())
            node.clear()
            node.update((clean(key), value) for key, value in items)
        for key, value in node.items() if type(node) is dict else enumerate(node):
            if type(value) is str:
                node[key] = clean(value)
            elif type(value) is dict or type(value) is list:
                nodes.append(value)
    return top[0], count


_from_iso = datetime.fromisoformat
_usual = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}\+00:00", re.ASCII
).fullmatch
"""Matches a valid time in UTC with six digits, except on the last days of a month."""


def utc(value: object) -> str | None:
    """Convert an ISO time with any offset to the form `2024-01-01T00:00:00.123456Z`; `None` if it is not
    valid.

    The result always has six digits, so that sorting the texts sorts the times. Times without an offset are
    UTC, as in Inspect.
    """
    if type(value) is not str:
        return None
    # Fast path for the usual form. Other forms are parsed with datetime.
    if _usual(value):
        return value[:-6] + "Z"
    time = parse_time(value)
    return None if time is None else time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(value: object) -> datetime | None:
    """Convert an ISO time to a `datetime` in UTC; `None` if it is not valid."""
    if not isinstance(value, str) or not value:
        return None
    try:
        time = _from_iso(value)
        if time.tzinfo is UTC:
            return time
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def seconds_between(start: object, end: object) -> float | None:
    """Return the seconds between two ISO times, at least 0; `None` if either is unknown."""
    begin, finish = parse_time(start), parse_time(end)
    if begin is None or finish is None:
        return None
    return max(0.0, (finish - begin).total_seconds())


def running_time(start: object, end: object, first_start: object, last_end: object) -> float:
    """Return the duration of a run in seconds; 0 if unknown.

    Inspect writes whole seconds, so the start and end of a short run may be equal. The times of the samples
    are then used.

    Args:
        start: ISO time of the start.
        end: ISO time of the end.
        first_start: start of the first sample, which may be from an earlier run if the sample was reused.
        last_end: end of the last sample.
    """
    between = seconds_between(start, end)
    if between:
        return between
    begun, began = parse_time(start), parse_time(first_start)
    if begun is not None and began is not None and began < begun:
        first_start = start
    return seconds_between(first_start, last_end) or 0.0


def unix_seconds(value: object) -> int | None:
    """Convert an ISO time to whole Unix seconds; `None` if it is not valid."""
    time = parse_time(value)
    return None if time is None else int(time.timestamp())
