"""Answers are scored as the harness scores them; each expectation was read off its own code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aigo_formats.lm_eval.tasks.scorers import snippet

FIRST = {"function": "take_first"}


def score(answer: str, row: dict[str, Any], **settings: Any) -> float:
    settings = {"target": "{{a}}", "choices": None, "filters": [FIRST], "metrics": [{}], **settings}
    settings["metrics"] = [{"metric": "exact_match", **metric} for metric in settings["metrics"]]
    names: dict[str, Any] = {}
    exec(compile(snippet(settings), "scorer", "exec", dont_inherit=True), names)  # our own code
    message = SimpleNamespace(content=answer)
    output = SimpleNamespace(output=SimpleNamespace(choices=[SimpleNamespace(message=message)]))
    scores: dict[str, float] = names["compute_scores"](row, output)["scores"]
    return scores["exact_match"]


REGEX = {"function": "regex", "regex_pattern": "(-?[$0-9.,]{2,})|(-?[0-9]+)", "group_select": -1}


@pytest.mark.parametrize(
    ("answer", "row", "settings", "expected"),
    [
        ("yes", {"a": "yes"}, {}, 1.0),
        (" yes", {"a": "yes"}, {}, 0.0),
        (" yes", {"a": "yes"}, {"filters": [{"function": "remove_whitespace"}, FIRST]}, 1.0),
        ("Yes!", {"a": "yes"}, {"metrics": [{"ignore_case": True, "ignore_punctuation": True}]}, 1.0),
        ("Yes!", {"a": "yes"}, {"metrics": [{"ignore_case": True}]}, 0.0),
        ("a1", {"a": "a2"}, {"metrics": [{"ignore_numbers": True}]}, 1.0),
        # Patterns are taken out of both.
        ("1,000", {"a": "sum\n#### 1000."}, {"metrics": [{"regexes_to_ignore": [",", "(?s).*#### ", r"\.$"]}]}, 1.0),
        # The last match, and of several groups the one that is not empty.
        ("first 12, then 7", {"a": "7"}, {"filters": [REGEX, FIRST]}, 1.0),
        ("no number", {"a": "[invalid]"}, {"filters": [REGEX, FIRST]}, 1.0),
        # A column by its name; a number becomes a text where the answer is one.
        ("3", {"a": 3}, {"target": "a"}, 1.0),
        # A text that is a list is several targets.
        ("b", {"a": ["a", "b"]}, {}, 1.0),
        ("b", {"a": ["a", "b"]}, {"target": "a"}, 1.0),
        ("c", {"a": ["a", "b"]}, {}, 0.0),
        ("[no list", {"a": "[no list"}, {}, 1.0),
        # Choices beside a generated answer are counted.
        (" no", {"a": 0}, {"choices": [" no", " yes"]}, 1.0),
        (" no", {"a": 0}, {"target": "a", "choices": {"x": " no", "y": " yes"}}, 1.0),
        ("q", {"a": 1, "c": ["p", "q"]}, {"choices": "c"}, 1.0),
        # Filters may make numbers of answers.
        (
            "POSITIVE",
            {"a": 1},
            {"target": "a", "filters": [{"function": "lowercase"}, {"function": "map", "mapping_dict": {"positive": 1}}]},
            1.0,
        ),
        ("é", {"a": "É"}, {"filters": [{"function": "uppercase"}, FIRST]}, 1.0),
        ("", {"a": ""}, {}, 1.0),
    ],
)  # fmt: skip
def test_an_answer_has_the_score_of_the_harness(
    answer: str, row: dict[str, Any], settings: dict[str, Any], expected: float
) -> None:
    assert score(answer, row, **settings) == expected


def test_a_target_of_a_missing_column_is_an_error() -> None:
    with pytest.raises(Exception, match="'a' is undefined"):
        score("x", {"b": 1})


def test_a_target_that_reaches_for_python_is_an_error() -> None:
    with pytest.raises(Exception, match="unsafe"):
        score("x", {"a": 1}, target="{{ ''.__class__.__mro__ }}")
