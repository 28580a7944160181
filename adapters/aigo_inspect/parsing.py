"""JSON text as Inspect writes it → Python values, exactly.

Inspect's JSON is not quite JSON: scores may be the bare constants `NaN` and `Infinity`, and texts may hold lone
surrogates. `orjson` is by far the fastest parser but refuses both, and it silently turns integers beyond 64 bits
into floats. So `orjson` goes first and the slower, exact parsers take what it cannot do.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson
from pydantic_core import SchemaValidator

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.redaction import NO_REDACTION, Redaction

# The Rust regular expressions of pydantic search several GB per second; Python's own would take longer than parsing.
_LONG_INTEGER = SchemaValidator({"type": "str", "pattern": r"[:,\[]\s*-?[0-9]{19}"})
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
        EvidenceError: it is no JSON, or nested too deeply; the message has the byte offset where that is known.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        clean = redaction.apply(data)
        return _parse_leniently(data, name, error) if clean is data else parse_json(clean, name)
    # Looked for afterwards: what orjson accepts is UTF-8, and checking that alone takes longer than the search.
    if redaction.suspects(data) and (clean := redaction.apply(data)) is not data:
        return parse_json(clean, name)
    # Most long integers stand in texts or fit into 64 bits; only for others is the exact parser worth its time.
    if _LONG_INTEGER.isinstance_python(data) and _has_big_number(value):
        return _parse_leniently(data, name, None)
    return Parsed(value)


def _has_big_number(value: Any) -> bool:
    stack = [value]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is dict:
            stack.extend(node.values())
        elif kind is list:
            stack.extend(node)
        elif kind is float and abs(node) >= 2**63:
            return True
    return False


def _parse_leniently(data: bytes, name: str, cause: orjson.JSONDecodeError | None) -> Parsed:
    changes: Counter[str] = Counter()
    non_finite = False

    def constant(text: str) -> float:
        nonlocal non_finite
        non_finite = True
        return float(text)

    def number(text: str) -> float:
        nonlocal non_finite
        found = float(text)
        non_finite = non_finite or math.isinf(found)
        return found

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", errors="replace")
        changes["bytes that are not UTF-8 replaced by U+FFFD"] += 1
    try:
        value = json.loads(text, parse_constant=constant, parse_float=number, strict=False)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise EvidenceError(f"{name} is not valid JSON at byte {offset}: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise EvidenceError(f"{name} cannot be read: {reason}") from (cause or error)
    if re.search(_SURROGATE_ESCAPE, data):
        value, count = _without_surrogates(value)
        if count:
            changes["lone surrogates written as escapes"] += count
    return Parsed(value, non_finite, changes)


def _without_surrogates(value: Any) -> tuple[Any, int]:
    count = 0

    def clean(text: str) -> str:
        nonlocal count
        cleaned, found = re.subn(_LONE_SURROGATE, lambda match: f"\\u{ord(match[0]):04x}", text)
        count += found
        return cleaned

    def walk(node: Any) -> Any:
        if isinstance(node, str):
            return node if node.isascii() else clean(node)
        if isinstance(node, list):
            return [walk(item) for item in node]
        if isinstance(node, dict):
            return {walk(key): walk(item) for key, item in node.items()}
        return node

    return walk(value), count
