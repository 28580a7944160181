"""Numbers in the terminal have the same format as in the pages (`frontend/src/format.ts`, tested in `tests/browser/`)."""

from __future__ import annotations

import pytest

from aigo_bridge.text.numbers import (
    short_number,
    shown_change,
    shown_change_range,
    shown_error,
    shown_number,
    shown_range,
)

PROPORTION = (0.0, 1.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2 / 3, "0.6667"),
        (13 / 3, "4.333"),
        (-1234.56, "-1,235"),
        (98765.4, "98,770"),
        (12345678, "12,345,678"),
        (1.0, "1"),
        (0, "0"),
        (-0.0, "0"),
        (0.00012345, "0.0001234"),
        (0.0000123456, "1.235e-5"),
        (1e20, "1e+20"),
        (0.99996, "1"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_have_at_most_four_significant_digits(value: float, text: str) -> None:
    assert short_number(value) == text


def test_only_declared_proportions_are_percentages() -> None:
    assert shown_number(2 / 3, PROPORTION) == "66.67 %"
    assert [shown_number(2 / 3), shown_number(2 / 3, (0.0, 5.0)), shown_number(None)] == [
        "0.6667",
        "0.6667",
        "–",
    ]
    assert shown_range(0.20766, 0.93851, PROPORTION) == "20.77 to 93.85 %"
    assert shown_range(1, 4.5) == "1 to 4.5"


def test_differences_have_signs_and_half_widths_have_plus_minus() -> None:
    assert shown_change(0.25, PROPORTION) == "+25 pp"
    assert shown_change(-3) == "-3"
    assert shown_change_range(-0.0105, 0.1408, PROPORTION) == "-1.05 to +14.08 pp"
    assert shown_error(0.2722, PROPORTION) == "27.22 pp"
    assert [shown_error(0.5), shown_error(None)] == ["0.5", "–"]
