"""Functions that compare shipped tasks with published definitions."""

from __future__ import annotations

import pytest
from tests.tasks.published import NoAnswerError, differences, fuzzed, varied
from tests.tasks.references import within


def test_generated_answers_are_varied_and_deterministic() -> None:
    answers = varied("B", "C")

    assert len(answers) == len(set(answers)) > 100
    assert {"", "B", " B", "**B**", "(B)", "Answer: B", "ANSWER: b", "Ｂ", "The answer is C"} <= set(answers)
    assert "３６" in varied("36", "12")
    assert [*fuzzed("B", "C", 50)] == [*fuzzed("B", "C", 50)] != [*fuzzed("B", "C", 50, seed=1)]
    assert len(set(fuzzed("B", "C", 300))) > 250


def test_difference_is_reported_with_answer_scores_and_row() -> None:
    lines = differences(
        [{"n": 1}], lambda row: ["B", "b"], lambda row, answer: answer == "B", lambda row, answer: True
    )

    assert lines == ["'b': shipped False, published True; row {'n': 1}"]


def test_reference_without_a_score_in_time_is_not_compared() -> None:
    def endless(*_: object) -> bool:
        try:
            while True:
                pass
        except Exception:  # noqa: BLE001  # as references do; that time is up goes through
            return False

    def rarely(row: dict[str, int], answer: str) -> bool:
        if row["n"] == 0:
            raise NoAnswerError
        return True

    rows = [{"n": number} for number in range(200)]
    with pytest.raises(NoAnswerError):
        within(0.1)(endless)()
    assert differences(rows, lambda row: ["B"], lambda row, answer: True, rarely) == []
    assert differences(rows[:5], lambda row: ["B"], lambda row, answer: True, rarely) == [
        "the reference gave no score for 1 of 5 answers"
    ]
