"""Grades of Inspect as numbers: the letters, words and numeric strings that its metrics count.

The mapping is Inspect's `value_to_float`. Scores of other tools are not graded: their `C` is a label.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""

WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Words that count in any case."""


def is_missing(value: object) -> bool:
    """Return whether a score counts as missing: null or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_graded(config: Mapping[str, Any] | None) -> bool:
    """Return whether the scores of a result are Inspect's, by the result's `specification.config`."""
    return isinstance((config or {}).get("inspect"), dict)


def is_grade(value: object) -> bool:
    """Return whether a value is one of the letters or words."""
    return isinstance(value, str) and (value in GRADES or value.lower() in WORDS)


def plain_number(value: object) -> float | None:
    """Return the nearest finite double of a number; booleans count as 0 and 1, anything else is `None`."""
    if not isinstance(value, (int, float)):
        return None
    try:
        double = float(value)
    except OverflowError:
        return None
    return double if math.isfinite(double) else None


def graded_number(value: object) -> float | None:
    """Return a score as the number that Inspect's metrics count; `None` if Inspect warns and counts 0."""
    if not isinstance(value, str):
        return plain_number(value)
    if value in GRADES:
        return GRADES[value]
    if (word := value.lower()) in WORDS:
        return WORDS[word]
    try:
        return plain_number(float(value))
    except ValueError:
        return None


def score_number(value: object, *, graded: bool) -> float | None:
    """Return a score as a number.

    Args:
        value: the score.
        graded: whether the score is Inspect's (`is_graded`).
    """
    return graded_number(value) if graded else plain_number(value)
