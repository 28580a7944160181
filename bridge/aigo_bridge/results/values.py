"""Values of a log as the texts that a page shows: numbers digit for digit as they stand in the result."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

Json = dict[str, Any]


def number_text(value: float) -> str:
    """A number as its result log has it.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, int) and math.isfinite(value):
        return orjson.dumps(value).decode()
    return json.dumps(value)  # whole numbers of any size, NaN


def duration_text(seconds: float | None) -> str | None:
    """Return a time for people: `0.61 s`, `12.3 s`, `3 min 20 s`; `None`: not known."""
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
    """A value: a text as it is, all else as JSON, cut off behind a number of characters."""
    if isinstance(value, str):
        return short_text(value, length) or ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number_text(value)
    return short_text(json.dumps(value, ensure_ascii=False), length) or ""


MOST_MEMBERS = 100
"""Members of an object or list that are shown."""
_DEEPEST = 12


def tree(value: Any, length: int, depth: int = 0) -> Any:
    """Return a value for a nested table: long texts and lists are cut off, numbers are texts with all digits.

    Args:
        value: the value.
        length: characters of a text.
        depth: levels of lists and objects that the value is in.
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
    """A text, cut off behind a number of characters."""
    if text is None or len(text) <= length:
        return text
    return f"{text[: length - 1]}…"


def member(value: Any, *names: str) -> Any:
    """What stands under a path of names; `None` where it ends early."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def mappings(values: Any) -> Iterator[Json]:
    """The mappings in a list; nothing where there is no list."""
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, dict)):
        yield from (value for value in values if isinstance(value, dict))


def json_line(value: Any) -> bytes:
    """A value as one line of JSON with every number as it is; NaN and lone surrogates too."""
    try:
        data = orjson.dumps(value)
    except TypeError:  # whole numbers beyond 64 bits, lone surrogates, depth
        data = b"null"
    if b"null" not in data:
        return data
    text = json.dumps(value, separators=(",", ":"), default=str)
    # NaN, of which orjson makes null.
    unusual = data == b"null" or "NaN" in text or "Infinity" in text
    return text.encode("ascii") if unusual else data
