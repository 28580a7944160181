"""Fast reading and writing of JSON for all values that a log can contain.

`orjson` refuses integers beyond 64 bits, nesting deeper than 254 and keys that are not texts, and silently
writes NaN as null. Such values are rare. They are converted only after `orjson` refused them, or if the
reader has found a NaN, and every change is reported.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

import msgspec
import orjson
from pydantic_core import from_json

# orjson is not faster and silently reads integers beyond 64 bits as floats.
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def read_json(text: str | bytes | bytearray | msgspec.Raw) -> Any:
    """Read one JSON document.

    The result equals that of `json.loads`: integers of any size, `NaN` and `Infinity`, lone surrogates, the
    last of two equal keys.

    Raises:
        json.JSONDecodeError: The text is not JSON.
        UnicodeDecodeError: Bytes that are not in a Unicode encoding.
        RecursionError: The text is nested too deeply.
    """
    try:
        return read_common_json(text)
    except (ValueError, TypeError):
        # The fast parsers refuse more than the standard library does: lone surrogates (as escapes or, with a
        # TypeError, in the text itself), deep nesting, UTF-16. If all parsers refuse, callers expect the
        # standard error.
        return _read_leniently(bytes(text) if isinstance(text, msgspec.Raw) else text)


def _read_leniently(text: str | bytes | bytearray) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError as error:
        # Python's limit on the digits of an integer does not raise a syntax error; callers treat it like one.
        raise json.JSONDecodeError("An integer of more digits than can be read", "", 0) from error


def read_json_once(text: str | bytes) -> Any:
    """Read one JSON document and refuse duplicate keys, because their meaning is ambiguous.

    Raises:
        ValueError: The text is not JSON, or has a key twice.
        RecursionError: The text is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise ValueError(f"the key {twice!r} occurs twice")
    return value


def read_common_json(text: str | bytes | bytearray | msgspec.Raw) -> Any:
    """Read a common JSON document at the speed of msgspec.

    Raises:
        ValueError: The text is not JSON, or is JSON that only `read_json` reads.
    """
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # NaN, which from_json reads.
        return from_json(bytes(text) if isinstance(text, msgspec.Raw) else text)


MAX_DEPTH = 200
"""Maximum nesting that is written unchanged: `orjson` and parsers of other languages stop at about 250."""


def dumps(value: Any) -> bytes:
    """Return compact JSON. Values nested deeper than `MAX_DEPTH` become their JSON text; NaN becomes null."""
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
    """Return compact JSON as text."""
    return dumps(value).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, orjson.Fragment):
        return json.loads(orjson.dumps(value))
    if isinstance(value, (set, tuple, frozenset)):
        return list(value)
    return str(value)


def shallow(value: Any, depth: int) -> Any:
    """Return a copy with at most `depth` levels: deeper values become JSON text, NaN becomes null."""
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


DEEPEST = 200
"""Maximum levels of a header. Real headers have fewer, and later code is recursive."""

TOO_DEEP = "(nested too deeply to be read)"


def without_depths(value: Any, deepest: int = DEEPEST) -> int:
    """Replace values that are nested too deeply by a text, in place; return the number of replacements."""
    level = [value]
    for _ in range(deepest):
        level = [part for node in level for part in _parts(node) if isinstance(part, dict | list)]
        if not level:
            return 0
    for node in level:
        for key in node if isinstance(node, dict) else range(len(node)):
            node[key] = TOO_DEEP
    return len(level)


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def without_non_finite(value: Any) -> tuple[Any, int]:
    """Return `value` with non-finite numbers as `"NaN"`, `"Infinity"`, `"-Infinity"`, and their number."""
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


def finite_number(value: Any) -> float | int | None:
    """Return a finite number for evidence; `None` for any other value."""
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


def non_finite_text(value: float) -> str:
    """Return the spelling of a number that is not finite in JavaScript and in most engines' JSON."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


_KEY = re.compile(r"[A-Za-z0-9_\-]{1,250}")


def key_of(name: object) -> str:
    """Return a key for a name: the name itself if it is a valid key, otherwise its letters and digits and a
    short hash.

    Equal names always have equal keys; different names have different keys.
    """
    text = str(name)
    if _KEY.fullmatch(text):
        return text
    # Imported late: most names are valid keys, and hashlib loads slowly.
    import hashlib

    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', text).strip('-')[:200] or 'x'}-{digest}"


def sha256_of(content: Any) -> str:
    """Return the SHA-256 checksum of a value as JSON with sorted keys."""
    import hashlib

    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
