"""JSON text as Inspect writes it → Python values, exactly.

Inspect's JSON is not quite JSON: scores may be the bare constants `NaN` and `Infinity`, and texts may hold lone
surrogates. `msgspec` is among the fastest parsers and needs no memory but for what it makes, but it refuses both. So it goes
first, and the slower parser of the standard library takes what it cannot do.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

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
        EvidenceError: it is no JSON, or nested too deeply; the message has the byte offset where that is known.
    """
    try:
        value = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        clean = redaction.apply(data)
        return _parse_leniently(data, name, error) if clean is data else parse_json(clean, name)
    # Looked for afterwards: what the parser accepts is UTF-8, and checking that alone takes longer than the search.
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
        raise EvidenceError(f"{name} cannot be read: {reason}") from cause
    if re.search(_SURROGATE_ESCAPE, data):
        del text
        value, count = _take_out_surrogates(value)
        if count:
            changes["lone surrogates written as escapes"] += count
    return Parsed(value, non_finite, changes)


def _take_out_surrogates(root: Any) -> tuple[Any, int]:
    """The value without lone surrogates, changed in place as far as it is no text, and how many there were."""
    count = 0

    def clean(text: str) -> str:
        nonlocal count
        if text.isascii():
            return text
        cleaned, found = re.subn(_LONE_SURROGATE, lambda match: f"\\u{ord(match[0]):04x}", text)
        count += found
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
