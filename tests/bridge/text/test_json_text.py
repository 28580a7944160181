"""JSON text is read as the standard library reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.text.json_text import read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def outcome(read: Any, text: str | bytes) -> str:
    """Return the value with its types, or the error."""
    try:
        return repr(read(text))
    except json.JSONDecodeError:
        return "JSONDecodeError"
    except UnicodeDecodeError:
        return "UnicodeDecodeError"


@given(value=VALUES, ascii_only=st.booleans(), as_bytes=st.booleans(), data=st.data())
def test_valid_and_damaged_json_has_the_outcome_of_the_standard_library(
    value: Any, ascii_only: bool, as_bytes: bool, data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    if data.draw(st.booleans()):
        cut = data.draw(st.integers(0, len(text)))
        text = (
            text[:cut]
            + data.draw(st.sampled_from(["", ",", "]", '"', "0", "\x00", " ", "-", "e9", "\\u"]))
            + text[cut:]
        )
    given_text = text.encode("utf-8", "surrogatepass") if as_bytes else text

    assert outcome(read_json, given_text) == outcome(json.loads, given_text)


@pytest.mark.parametrize(
    "text",
    [
        str(2**63),
        str(2**64 - 1),
        str(2**64),
        str(-(2**63) - 1),
        str(10**40),
        f'{{"a": [{10**19}]}}',
        "0.1234567890123456789012345",
        "1e999",
        "-0",
        "-0.0",
        "[NaN, Infinity, -Infinity]",
        '{"a": 1, "a": 2}',
        '"\\ud800"',
        "[" * 400 + "]" * 400,
        "01",
        "+1",
        "nan",
        "'a'",
        "\ufeff1",
    ],
)
def test_unusual_json_has_the_outcome_of_the_standard_library(text: str) -> None:
    assert outcome(read_json, text) == outcome(json.loads, text)
    assert outcome(read_json, text.encode()) == outcome(json.loads, text.encode())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_other_encodings_have_the_outcome_of_the_standard_library(encoding: str) -> None:
    text = '{"é": 1}'.encode(encoding)
    assert outcome(read_json, text) == outcome(json.loads, text)


@pytest.mark.parametrize("text", ["9" * 5000, b"[1, -" + b"9" * 5000 + b"]"])
def test_integer_with_too_many_digits_is_a_json_error(text: str | bytes) -> None:
    with pytest.raises(json.JSONDecodeError, match="more digits than can be read"):
        read_json(text)
