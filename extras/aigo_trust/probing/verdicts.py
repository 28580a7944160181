"""Verdicts: comparison of a changed answer's scores with the expected effect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.scoring.scorer import Score
from aigo_trust.probing.perturbation import Expectation
from aigo_trust.probing.readers import Reader

Verdict = Literal["passed", "failed", "explained", "told"]
"""Verdict on a changed answer.

- `passed`: the scores are as expected.
- `failed`: the scores are not as expected.
- `explained`: the scores are not as expected, but the scorer's documentation announces this strictness.
- `told`: both outcomes are defensible, or the correct outcome is unknown.
"""


@dataclass(frozen=True)
class AnswerVerdict:
    """Verdict on one changed answer."""

    verdict: Verdict
    reason: str | None = None
    """Description of the unexpected behaviour; `None` if missing."""


def answer_verdict(
    expectation: Expectation,
    reader: Reader,
    before: Mapping[str, Any],
    after: Score | SampleFailure,
    *,
    tolerance: float = 0.0,
) -> AnswerVerdict:
    """Return the verdict on one changed answer.

    Args:
        expectation: expected effect of the change.
        reader: scorer that was probed.
        before: scores of the stored answer. For a changed order, the scores expected in that order.
        after: outcome of the changed answer.
        tolerance: maximum difference between scores that count as equal.
    """
    if isinstance(after, SampleFailure):
        reason = f"the scorer fails: {after.message:.200}"
        return AnswerVerdict("failed" if expectation == "same" else "told", reason)
    names = changed(before, after.values, tolerance)
    if expectation == "told":
        return AnswerVerdict("told", _named(names, before, after.values) if names else None)
    if expectation == "same":
        return _result(reader, expectation, _named(names, before, after.values) if names else None)
    good, now = reader.merit(before), reader.merit(after.values)
    if good is None or now is None:
        difference = _named(names, before, after.values) if names else "nothing changes"
        return AnswerVerdict("told", f"{difference}; it is unknown which scores are better")
    if expectation == "worse":
        return _result(reader, expectation, None if now < good - tolerance else _kept(reader, good, now))
    return _result(
        reader, expectation, _named(names, before, after.values) if now > good + tolerance else None
    )


def _result(reader: Reader, expectation: Expectation, problem: str | None) -> AnswerVerdict:
    if problem is None:
        return AnswerVerdict("passed")
    explanation = reader.explains(expectation)
    return AnswerVerdict("failed", problem) if explanation is None else AnswerVerdict("explained", problem)


def _kept(reader: Reader, good: float, now: float) -> str:
    return f"{reader.main_shown} {'stays' if now == good else 'rises to'} {now:.4g}"


def changed(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float = 0.0) -> tuple[str, ...]:
    """Return the names of the scores that differ, including scores that exist on one side only."""
    names = dict.fromkeys([*before, *after])
    return tuple(
        name
        for name in names
        if name not in before or name not in after or not _same(before[name], after[name], tolerance)
    )


def _same(left: Any, right: Any, tolerance: float) -> bool:
    if isinstance(left, bool | int | float) and isinstance(right, bool | int | float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or abs(left - right) <= tolerance
    return bool(left == right)


def _named(names: tuple[str, ...], before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(before.get(name))} → {_shown(after.get(name))}" for name in names)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
