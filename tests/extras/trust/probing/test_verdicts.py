"""Verdicts on the scores of changed answers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.spec.scorers import (
    BleuScorer,
    LabelerViaModelScorer,
    PythonScorer,
    StringEqualsMCQAScorer,
    StringEqualsScorer,
)
from aigo_trust.probing.readers import Reader
from aigo_trust.probing.verdicts import AnswerVerdict, answer_verdict, changed

PYTHON = Reader(0, "p", PythonScorer(type="python", compute_scores_snippet=""), "is_correct", None)
EXACT = Reader(0, "e", StringEqualsScorer(type="string_equals", ground_truth="x"), "is_correct", None)
OWN_VALUE = Reader(
    0, "v", StringEqualsScorer(type="string_equals", ground_truth="x", value="y"), "is_correct", None
)
FIRST = Reader(
    0,
    "f",
    StringEqualsMCQAScorer(type="string_equals_mcqa", ground_truth_choice="A", choices=("A", "B")),
    "is_correct",
    None,
)
BLEU = Reader(0, "b", BleuScorer(type="bleu", ground_truth="x"), "bleu_score", None)
LABELS = LabelerViaModelScorer(
    type="labeler_via_model", model_key="m", user_prompt="", valid_labels=("good", "bad")
)
LABELLER = Reader(0, "l", LABELS, "label", None)
WEIGHED = Reader(0, "w", LABELS, "label", {"good": 1.0, "bad": 0.0})


def verdict(
    expectation: Any, reader: Reader, before: Any, after: Any, tolerance: float = 0.0
) -> AnswerVerdict:
    scores = before if isinstance(before, dict) else {"is_correct": before}
    outcome = after if isinstance(after, dict) else {"is_correct": after}
    return answer_verdict(expectation, reader, scores, Score(outcome), tolerance=tolerance)


@pytest.mark.parametrize(
    ("expectation", "before", "after", "expected"),
    [
        ("same", 1.0, 1.0, "passed"),
        ("same", True, 1.0, "passed"),
        ("same", 1.0, 0.0, "failed"),
        ("same", 0.0, 1.0, "failed"),
        ("worse", 1.0, 0.0, "passed"),
        ("worse", 0.6, 0.5, "passed"),
        ("worse", 1.0, 1.0, "failed"),
        ("worse", 0.5, 0.6, "failed"),
        ("not better", 0.5, 0.5, "passed"),
        ("not better", 0.5, 0.0, "passed"),
        ("not better", 0.0, 0.1, "failed"),
        ("told", 1.0, 0.0, "told"),
        ("told", 1.0, 1.0, "told"),
    ],
)
def test_score_changes_are_compared_with_the_expectation(
    expectation: str, before: float, after: float, expected: str
) -> None:
    assert verdict(expectation, PYTHON, before, after).verdict == expected


def test_verdict_reasons_contain_scores_and_values() -> None:
    both = {"is_correct": True, "f1": 0.123456}
    assert verdict("same", PYTHON, both, {"is_correct": False, "f1": 0.5}).reason == (
        "is_correct True → False, f1 0.1235 → 0.5"
    )
    assert verdict("worse", PYTHON, 1.0, 1.0).reason == "is_correct stays 1"
    assert verdict("worse", PYTHON, 0.5, 1.0).reason == "is_correct rises to 1"
    assert verdict("told", PYTHON, 1.0, 1.0).reason is None
    assert verdict("same", PYTHON, {"kind": "x" * 50}, {"kind": None}).reason == f"kind {'x' * 39}… → None"


def test_added_or_removed_score_is_a_change() -> None:
    assert changed({"a": 1, "b": 2}, {"a": 1, "c": 2}) == ("b", "c")
    assert changed({"a": math.nan}, {"a": math.nan}) == ()
    assert changed({"a": math.nan}, {"a": 1.0}) == ("a",)
    assert changed({"a": [1]}, {"a": [1]}) == ()
    assert changed({"a": "x"}, {"a": "y"}, 9.0) == ("a",)


def test_tolerance_applies_to_numeric_scores() -> None:
    assert verdict("same", PYTHON, 0.75, 0.5, 0.25).verdict == "passed"
    assert verdict("same", PYTHON, 0.75, 0.4, 0.25).verdict == "failed"
    assert verdict("worse", PYTHON, 0.75, 0.5, 0.25).verdict == "failed"
    assert verdict("not better", PYTHON, 0.5, 0.75, 0.25).verdict == "passed"


def test_documented_strictness_explains_matching_failures() -> None:
    assert verdict("same", EXACT, 1.0, 0.0) == AnswerVerdict("explained", "is_correct 1 → 0")
    assert verdict("worse", EXACT, 1.0, 1.0).verdict == "failed"
    assert verdict("same", OWN_VALUE, 1.0, 0.0).verdict == "failed"
    assert verdict("same", FIRST, 1.0, 0.0).verdict == "explained"
    assert verdict("worse", FIRST, 1.0, 1.0).verdict == "explained"
    assert verdict("same", BLEU, {"bleu_score": 1.0}, {"bleu_score": 0.5}).verdict == "explained"
    assert "character for character" in str(EXACT.explains("same"))
    assert PYTHON.explains("same") is EXACT.explains("worse") is None


def test_labels_are_only_ranked_by_their_weights() -> None:
    good, bad = {"label": "good"}, {"label": "bad"}
    assert verdict("same", LABELLER, good, bad).verdict == "failed"
    assert verdict("worse", LABELLER, good, good) == AnswerVerdict(
        "told", "nothing changes; it is unknown which scores are better"
    )
    assert verdict("worse", WEIGHED, good, good).verdict == "failed"
    assert verdict("worse", WEIGHED, good, bad).verdict == "passed"
    assert verdict("not better", WEIGHED, bad, good).verdict == "failed"


def test_scorer_error_on_an_equivalent_answer_is_a_failure() -> None:
    failure = SampleFailure("score", "SnippetError", "no number")
    assert answer_verdict("same", PYTHON, {"x": 1}, failure) == AnswerVerdict(
        "failed", "the scorer fails: no number"
    )
    for expectation in ("worse", "not better", "told"):
        assert answer_verdict(expectation, PYTHON, {"x": 1}, failure).verdict == "told"
