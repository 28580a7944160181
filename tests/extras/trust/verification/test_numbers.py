"""Equality of JSON values."""

from __future__ import annotations

import pytest

from aigo_trust.verification.numbers import same


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (None, 0, False),
        ("1", 1, False),
        ({"a": [1, 2]}, {"a": [1, 2.0]}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1], [1, 1], False),
        (0.1 + 0.2, 0.3, False),
    ],
)
def test_json_values_are_compared_for_equality(one: object, other: object, *, equal: bool) -> None:
    assert same(one, other) is equal
