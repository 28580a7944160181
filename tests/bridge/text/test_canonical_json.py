"""Canonical JSON follows RFC 8785: its examples, and properties of any value."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.text.canonical_json import MOST_INTEGER, canonical_digest, canonical_json

NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}
"""Bits of a double → its text: appendix B of the RFC."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MOST_INTEGER, MOST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_are_written_as_in_the_rfc(bits: str, text: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(value) == text.encode()


def test_example_of_the_rfc_is_reproduced() -> None:
    value = json.loads(
        r"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
             "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"""
    )
    assert canonical_json(value) == (
        b'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        b'"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16() -> None:
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    keys = list(json.loads(canonical_json(value)))
    assert keys == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_fast_and_slow_path_write_the_same_control_characters() -> None:
    text = "".join(map(chr, range(0x100))) + "\u2028\u2029\U0001f600"
    quick, other = canonical_json([text]), canonical_json([text, 0.5])
    assert other == quick[:-1] + b",0.5]"
    assert b'"\\u0000\\u0001' in quick
    assert b"\\b\\t\\n\\u000b\\f\\r" in quick
    assert b"\x7f" in quick


@given(JSON)
def test_canonical_json_depends_only_on_the_value(value: object) -> None:
    text = canonical_json(value)
    again = json.loads(text, parse_int=float)
    assert again == value
    assert canonical_json(again) == text
    assert canonical_json(_turned(value)) == text
    assert canonical_digest(value) == hashlib.sha256(text).hexdigest()


def _turned(value: object) -> object:
    """Return the same value with reversed keys, and integers as floats."""
    if isinstance(value, dict):
        return {key: _turned(part) for key, part in reversed(value.items())}
    if isinstance(value, list):
        return tuple(map(_turned, value))
    return float(value) if type(value) is int else value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"a": [0, math.nan]}, "nan is not JSON, so canonical JSON cannot represent the value (at /a/1)"),
        (math.inf, "inf is not JSON"),
        ({"seed": 2**53}, "the integer 9007199254740992 is beyond 2**53 - 1"),
        ({"a/b": "\ud800"}, "half a surrogate pair, so canonical JSON cannot represent the value (at /a~1b)"),
        ({1: 2}, "the key 1 is not text"),
        ({"a": {3}}, "a value of type set is not JSON"),
    ],
)
def test_value_without_canonical_json_is_reported_with_its_path(value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        canonical_json(value)


def test_endlessly_nested_value_is_rejected() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(ValueError, match="nested too deeply"):
        canonical_json(value)
