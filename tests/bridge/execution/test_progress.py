"""Intermediate totals of the trials of a run, for the progress display."""

from __future__ import annotations

import math
from typing import Any

import pytest

from aigo_bridge.engine.protocol import Progress, ProgressTotals, Retry
from aigo_bridge.execution.progress import ProgressCounter, Spent
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.scoring.scorer import Score

FAILED = SampleFailure("score", "X", "no")


def spent(*results: tuple[str, Any], **fields: Any) -> Spent:
    result = Spent(**fields)
    for scorer, values in results:
        result.note(scorer, values if isinstance(values, SampleFailure) else Score(values))
    return result


def totals(*trials: Spent, tasks: tuple[str, ...] = ("t",)) -> ProgressTotals:
    told: list[Progress] = []
    counter = ProgressCounter(told.append, len(trials))
    for number, trial in enumerate(trials):
        counter.of_task(tasks[number % len(tasks)]).finished(number, 0, None, trial)
    return told[-1].totals


def test_totals_are_empty_at_the_start() -> None:
    assert totals() == ProgressTotals()
    assert totals(Spent(), Spent()) == ProgressTotals()


def test_score_totals_are_means_of_numeric_scores() -> None:
    """Failed, missing and text scores are excluded from the mean: unscored is not zero."""
    found = totals(
        spent(("a", {"x": True, "label": "good"})),
        spent(("a", {"x": 0.5, "y": 3})),
        spent(("a", FAILED)),
        spent(("a", {"x": None, "y": math.nan})),
        spent(("a", {"x": math.inf})),
    )

    assert found.scores == {"x": 0.75, "y": 3.0}


def test_scorer_and_task_names_are_shown_if_there_are_several() -> None:
    two = spent(("a", {"x": 1}), ("b", {"x": 0}))

    assert totals(two).scores == {"a.x": 1.0, "b.x": 0.0}
    assert totals(two, spent(("a", {"x": 0}), ("b", {"x": 0})), tasks=("t", "u")).scores == {
        "t.a.x": 1.0,
        "t.b.x": 0.0,
        "u.a.x": 0.0,
        "u.b.x": 0.0,
    }
    assert totals(spent(("a", {"x": 1})), spent(("a", {"x": 0})), tasks=("t", "u")).scores == {
        "t.x": 1.0,
        "u.x": 0.0,
    }


def test_each_postprocessor_row_is_counted() -> None:
    assert totals(spent(("a", {"x": 1}), ("a", {"x": 1}), ("a", {"x": 0}))).scores == {
        "x": pytest.approx(2 / 3)
    }


def test_unknown_counts_are_not_zero() -> None:
    assert totals(Spent(tokens=5), Spent(), Spent(tokens=7)) == ProgressTotals(tokens=12)
    assert totals(Spent(tokens=5, cost=0.5), Spent(cost=0.25)).cost == 0.75


def test_retried_calls_are_counted() -> None:
    told: list[Progress] = []
    counter = ProgressCounter(told.append, 2)
    counter.retrying(Retry("m", 1, 2.0, "busy"))
    counter.finished("a", 0, None)

    assert [state.totals.retries for state in told] == [0, 1, 1]
