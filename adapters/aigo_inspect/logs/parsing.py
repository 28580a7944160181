"""JSON text as Inspect writes it → Python values, exactly; its times → AI GO times (UTC, written with `Z`).

Inspect's JSON is not quite JSON: scores may be the bare constants `NaN` and `Infinity`, and texts may hold
lone surrogates. `msgspec` is among the fastest parsers and needs no memory but for what it makes, but it
refuses both. So it goes first, and the slower parser of the standard library takes what it cannot do.
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
from aigo_bridge.importing.redaction import NO_REDACTION, Redaction

_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_SURROGATE_ESCAPE = rb"\\u[dD][89a-fA-F]"
_LONE_SURROGATE = "[\ud800-\udfff]"


@dataclass(frozen=True)
class Parsed:
    """A parsed document and what had to be changed to read it."""

    value: Any
    non_finite: bool = False
    """The document contains `NaN` or an infinity somewhere; `value` holds them as floats."""
    changes: Counter[str] = field(default_factory=Counter)
    """What is not as it stood in the text: kind of change → how often."""


def parse_json(data: bytes, name: str, redaction: Redaction = NO_REDACTION) -> Parsed:
    """Parse one JSON document.

    Args:
        data: the bytes of the document.
        name: what to call it in messages.
        redaction: secrets to take out first.

    Raises:
        EvidenceError: it is no JSON, or nested too deeply; the message has the byte offset where that is
            known.
    """
    try:
        value = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        clean = redaction.apply(data)
        return _parse_leniently(data, name, error) if clean is data else parse_json(clean, name)
    # Looked for afterwards: what the parser accepts is UTF-8, and checking that alone takes longer than the
    # search.
    if redaction.suspects(data) and (clean := redaction.apply(data)) is not data:
        del value
        return parse_json(clean, name)
    return Parsed(value)


def _parse_leniently(data: bytes, name: str, cause: Exception) -> Parsed:
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
    return Parsed(value, non_finite, changes)


def _take_out_surrogates(root: Any) -> tuple[Any, int]:
    """The value without lone surrogates, in place as far as it is no text, and how many there were."""
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
"""A time that exists, in UTC with six digits, not at the end of a month."""


def utc(value: object) -> str | None:
    """An ISO time with any offset as `2024-01-01T00:00:00.123456Z`; `None` when it is no time.

    Always with six digits, so that such texts sort as the times they are.

    Times without an offset are taken as UTC, as Inspect does when it reads them.
    """
    if type(value) is not str:
        return None
    # What every current log has; all else goes through datetime.
    if _usual(value):
        return value[:-6] + "Z"
    time = parse_time(value)
    return None if time is None else time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(value: object) -> datetime | None:
    """An ISO time as an aware `datetime` in UTC; `None` when it is no time."""
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
    """Seconds from one ISO time to another, never negative; `None` when either is unknown."""
    begin, finish = parse_time(start), parse_time(end)
    if begin is None or finish is None:
        return None
    return max(0.0, (finish - begin).total_seconds())


def running_time(start: object, end: object, first_start: object, last_end: object) -> float:
    """Seconds that a run took; 0 when nothing tells.

    Inspect writes whole seconds, so a quick run begins and ends at the same time: then it took what its
    samples did.

    Args:
        start: ISO time at which the run began.
        end: when it ended.
        first_start: when its first sample began; it may be of an earlier run, from which it was taken over.
        last_end: when its last sample ended.
    """
    between = seconds_between(start, end)
    if between:
        return between
    begun, began = parse_time(start), parse_time(first_start)
    if begun is not None and began is not None and began < begun:
        first_start = start
    return seconds_between(first_start, last_end) or 0.0


def unix_seconds(value: object) -> int | None:
    """An ISO time as whole Unix seconds; `None` when it is no time."""
    time = parse_time(value)
    return None if time is None else int(time.timestamp())
