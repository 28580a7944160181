"""Values of a log → JSON text, for all the values a log can hold.

`orjson` refuses integers beyond 64 bits, nesting deeper than 254 and keys that are no text, and writes NaN as null
without a word. Such values are rare, so they are made acceptable only after it has refused (or when the reader has
seen a NaN), and every change is stated.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

MAX_DEPTH = 200
"""Deepest nesting of a value that is written as it is: `orjson` and readers in other languages stop at about 250."""


def dumps(value: Any) -> bytes:
    """Compact JSON; what is nested deeper than `MAX_DEPTH` becomes its JSON text. NaN becomes null."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(
            shallow(value, MAX_DEPTH),
            ensure_ascii=False,
            separators=(",", ":"),
            default=_plain,
            allow_nan=False,
        ).encode("utf-8", "backslashreplace")


def json_text(value: Any) -> str:
    """Compact JSON of a value, as text."""
    return dumps(value).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, orjson.Fragment):
        return json.loads(orjson.dumps(value))
    if isinstance(value, (set, tuple, frozenset)):
        return list(value)
    return str(value)


def shallow(value: Any, depth: int) -> Any:
    """A copy of `value` nested at most `depth` deep: what lies deeper becomes its JSON text; NaN becomes null."""
    if isinstance(value, dict):
        if depth <= 0:
            return _deep_text(value)
        return {str(key): shallow(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        if depth <= 0:
            return _deep_text(value)
        return [shallow(item, depth - 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, orjson.Fragment):
        return shallow(json.loads(orjson.dumps(value)), depth)
    return value


def _deep_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "(nested too deeply to be written)"


def without_non_finite(value: Any) -> tuple[Any, int]:
    """`value` with NaN and infinities as the texts `"NaN"`, `"Infinity"`, `"-Infinity"`, and how many there were."""
    count = 0

    def walk(node: Any) -> Any:
        nonlocal count
        if isinstance(node, dict):
            return {key: walk(item) for key, item in node.items()}
        if isinstance(node, list):
            return [walk(item) for item in node]
        if isinstance(node, float) and not math.isfinite(node):
            count += 1
            return non_finite_text(node)
        return node

    return walk(value), count


def non_finite_text(value: float) -> str:
    """How JavaScript, and so most JSON of engines, spells a number that is not finite."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
