"""Canonical JSON (RFC 8785): a unique text for each JSON value, so that equal values have equal checksums.

The text has no whitespace. Keys are sorted by UTF-16 code units; numbers and texts are formatted as in
ECMAScript. Numbers are IEEE doubles, so `1.0` and `1` have the same text, and integers beyond 2**53 - 1 are
invalid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson

MOST_INTEGER = 2**53 - 1
"""Largest absolute integer with a canonical text."""

_MOST_DIGITS = 21
"""Maximum digits before the decimal point without an exponent in ECMAScript."""
_MOST_ZEROS = 6
"""Maximum zeros after the decimal point without an exponent."""
_LEAST_PLAIN, _MOST_PLAIN = 1e-3, 1e15
_PLAIN = (str, bool, type(None))


def canonical_json(value: Any) -> bytes:
    """Return the canonical text of plain JSON types (dict, list or tuple, str, int, float, bool, None) in
    UTF-8.

    Raises:
        ValueError: the value has no canonical text: NaN, infinity, an integer beyond 2**53 - 1, a lone
            surrogate, a key that is not a text, another type, or too deep nesting. The message contains the
            position as a JSON Pointer.
    """
    try:
        try:
            text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        except (TypeError, ValueError):
            pass  # Lone surrogates and circular references: the slower code below reports their position.
        else:
            if _is_simple(value):
                return text
        return "".join(_parts(value, "")).encode("utf-8")
    except RecursionError:
        raise ValueError("values are nested too deeply for canonical JSON") from None


def canonical_digest(value: Any) -> str:
    """Return the SHA-256 checksum of a value's canonical JSON, in hexadecimal.

    Raises:
        ValueError: as `canonical_json`.
    """
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _is_simple(value: Any) -> bool:
    """Return whether orjson's output for a value is canonical. Orjson formats some numbers differently,
    sorts keys by bytes (a different order only beyond the basic plane), and accepts more types.
    """
    # No generators and no recursion: a recorded run calls this for every model call.
    parts = [value]
    for part in parts:
        kind = type(part)
        if kind is dict:
            for key, inner in part.items():
                if type(key) is not str or not key.isascii():
                    return False
                if type(inner) is not str:
                    parts.append(inner)
        elif kind is list or kind is tuple:
            parts += part
        elif kind is int:
            if not -MOST_INTEGER <= part <= MOST_INTEGER:
                return False
        elif kind is float:
            # Both formats have a decimal point and the fewest digits.
            if not _LEAST_PLAIN <= abs(part) < _MOST_PLAIN or part.is_integer():
                return False
        elif kind not in _PLAIN:
            return False
    return True


def _parts(value: Any, place: str) -> Iterator[str]:
    match value:
        case None | bool():
            yield json.dumps(value)
        case str():
            yield _text(value, place)
        case int():
            if abs(value) > MOST_INTEGER:
                raise _unfit(place, f"the integer {value} is beyond 2**53 - 1")
            yield str(int(value))
        case float():
            yield _number(value, place)
        case list() | tuple():
            yield "["
            for number, part in enumerate(value):
                yield "," if number else ""
                yield from _parts(part, f"{place}/{number}")
            yield "]"
        case dict():
            yield "{"
            for number, (key, part) in enumerate(_ordered(value, place)):
                inner = f"{place}/{key.replace('~', '~0').replace('/', '~1')}"
                yield f"{',' if number else ''}{_text(key, inner)}:"
                yield from _parts(part, inner)
            yield "}"
        case _:
            raise _unfit(place, f"a value of type {type(value).__name__} is not JSON")


def _ordered(value: dict[Any, Any], place: str) -> list[tuple[str, Any]]:
    for key in value:
        if not isinstance(key, str):
            raise _unfit(place, f"the key {key!r} is not text")
    return sorted(value.items(), key=lambda item: item[0].encode("utf-16-be", "surrogatepass"))


def _text(value: str, place: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _unfit(place, "the text has half a surrogate pair") from None
    return json.dumps(value, ensure_ascii=False)


def _number(value: float, place: str) -> str:
    """Return a number as ECMAScript's `Number::toString`: the fewest digits that give the same double."""
    if value != value or value in (float("inf"), float("-inf")):
        raise _unfit(place, f"{value} is not JSON")
    if value == 0:
        return "0"
    sign, figures, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    digits = "".join(map(str, figures))
    assert isinstance(exponent, int)
    point = len(digits) + exponent
    if len(digits) <= point <= _MOST_DIGITS:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= _MOST_DIGITS:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -_MOST_ZEROS < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{rest}e{point - 1:+d}"
    return f"-{text}" if sign else text


def _unfit(place: str, problem: str) -> ValueError:
    where = f" (at {place})" if place else ""
    return ValueError(f"{problem}, so canonical JSON cannot represent the value{where}")
