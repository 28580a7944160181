"""What the trials of a run came to so far, for people who watch."""

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


def test_at_the_start_nothing_is_known() -> None:
    assert totals() == ProgressTotals()
    assert totals(Spent(), Spent()) == ProgressTotals()


def test_scores_are_means_of_the_numbers_there_are() -> None:
    """What a scorer failed on, left out or gave as a text is not in its mean: unscored is not zero."""
    found = totals(
        spent(("a", {"x": True, "label": "good"})),
        spent(("a", {"x": 0.5, "y": 3})),
        spent(("a", FAILED)),
        spent(("a", {"x": None, "y": math.nan})),
        spent(("a", {"x": math.inf})),
    )

    assert found.scores == {"x": 0.75, "y": 3.0}


def test_scorers_and_tasks_are_named_where_there_are_several() -> None:
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


def test_rows_of_a_post_processor_count_each() -> None:
    assert totals(spent(("a", {"x": 1}), ("a", {"x": 1}), ("a", {"x": 0}))).scores == {
        "x": pytest.approx(2 / 3)
    }


def test_unknown_counts_are_not_zero() -> None:
    assert totals(Spent(tokens=5), Spent(), Spent(tokens=7)) == ProgressTotals(tokens=12)
    assert totals(Spent(tokens=5, cost=0.5), Spent(cost=0.25)).cost == 0.75


def test_calls_that_are_made_again_are_counted() -> None:
    told: list[Progress] = []
    counter = ProgressCounter(told.append, 2)
    counter.retrying(Retry("m", 1, 2.0, "busy"))
    counter.finished("a", 0, None)

    assert [state.totals.retries for state in told] == [0, 1, 1]
