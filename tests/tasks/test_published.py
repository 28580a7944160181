"""The machinery that compares shipped tasks with published definitions."""

from __future__ import annotations

from tests.tasks.published import differences, fuzzed, varied


def test_answers_are_many_different_and_the_same_each_time() -> None:
    answers = varied("B", "C")

    assert len(answers) == len(set(answers)) > 100
    assert {"", "B", " B", "**B**", "(B)", "Answer: B", "ANSWER: b", "Ｂ", "The answer is C"} <= set(answers)
    assert "３６" in varied("36", "12")
    assert [*fuzzed("B", "C", 50)] == [*fuzzed("B", "C", 50)] != [*fuzzed("B", "C", 50, seed=1)]
    assert len(set(fuzzed("B", "C", 300))) > 250


def test_a_difference_names_answer_scores_and_row() -> None:
    lines = differences(
        [{"n": 1}], lambda row: ["B", "b"], lambda row, answer: answer == "B", lambda row, answer: True
    )

    assert lines == ["'b': shipped False, published True; row {'n': 1}"]
