"""Conversion of log values to display texts. Numbers keep all digits of the result."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

Json = dict[str, Any]


def number_text(value: float) -> str:
    """Return a number as written in its result log.

    Raises:
        TypeError: the value is not a number.
    """
    if not isinstance(value, int) and math.isfinite(value):
        return orjson.dumps(value).decode()
    return json.dumps(value)  # Integers of any size, NaN


def duration_text(seconds: float | None) -> str | None:
    """Return a duration for display: `0.61 s`, `12.3 s`, `3 min 20 s`; `None` if unknown."""
    if seconds is None or not math.isfinite(seconds):
        return None
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def value_text(value: Any, length: int) -> str:
    """Return a value as text, other values as JSON, truncated to a number of characters."""
    if isinstance(value, str):
        return short_text(value, length) or ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number_text(value)
    return short_text(json.dumps(value, ensure_ascii=False), length) or ""


MOST_MEMBERS = 100
"""Maximum number of members of an object or list to show."""
_DEEPEST = 12


def tree(value: Any, length: int, depth: int = 0) -> Any:
    """Return a value for a nested table. Long texts and lists are truncated; numbers become texts with all
    digits.

    Args:
        value: the value.
        length: maximum number of characters of a text.
        depth: number of lists and objects around the value.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, (dict, list, tuple)) and depth < _DEEPEST:
        left = len(value) - MOST_MEMBERS
        if isinstance(value, dict):
            shown = list(value.items())[:MOST_MEMBERS]
            members = {str(key): tree(item, length, depth + 1) for key, item in shown}
            return {**members, "…": f"{left} more"} if left > 0 else members
        items = [tree(item, length, depth + 1) for item in value[:MOST_MEMBERS]]
        return [*items, f"… {left} more"] if left > 0 else items
    return value_text(value, length)


def short_text(text: str | None, length: int) -> str | None:
    """Return a text, truncated to a number of characters."""
    if text is None or len(text) <= length:
        return text
    return f"{text[: length - 1]}…"


def member(value: Any, *names: str) -> Any:
    """Return the value at a path of names; `None` if it does not exist."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def mappings(values: Any) -> Iterator[Json]:
    """Yield the mappings in a list; nothing for other values."""
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, dict)):
        yield from (value for value in values if isinstance(value, dict))


def json_line(value: Any) -> bytes:
    """Convert a value to one line of JSON, with exact numbers, NaN and lone surrogates."""
    try:
        data = orjson.dumps(value)
    except TypeError:  # Integers beyond 64 bits, lone surrogates, deep nesting
        data = b"null"
    if b"null" not in data:
        return data
    text = json.dumps(value, separators=(",", ":"), default=str)
    # NaN, which orjson converts to null.
    unusual = data == b"null" or "NaN" in text or "Infinity" in text
    return text.encode("ascii") if unusual else data
