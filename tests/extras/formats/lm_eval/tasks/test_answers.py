"""Answer scores, compared with values derived from the harness's code."""

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
    exec(compile(snippet(settings), "scorer", "exec", dont_inherit=True), names)  # aigo-bridge's own code
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
        # Ignored patterns are removed from answer and target.
        ("1,000", {"a": "sum\n#### 1000."}, {"metrics": [{"regexes_to_ignore": [",", "(?s).*#### ", r"\.$"]}]}, 1.0),
        # The last match; of several groups, the one that is not empty.
        ("first 12, then 7", {"a": "7"}, {"filters": [REGEX, FIRST]}, 1.0),
        ("no number", {"a": "[invalid]"}, {"filters": [REGEX, FIRST]}, 1.0),
        # Column name as target; a number is compared as text with a text answer.
        ("3", {"a": 3}, {"target": "a"}, 1.0),
        # A list literal consists of several targets.
        ("b", {"a": ["a", "b"]}, {}, 1.0),
        ("b", {"a": ["a", "b"]}, {"target": "a"}, 1.0),
        ("c", {"a": ["a", "b"]}, {}, 0.0),
        ("[no list", {"a": "[no list"}, {}, 1.0),
        # Choices of a generated answer are counted.
        (" no", {"a": 0}, {"choices": [" no", " yes"]}, 1.0),
        (" no", {"a": 0}, {"target": "a", "choices": {"x": " no", "y": " yes"}}, 1.0),
        ("q", {"a": 1, "c": ["p", "q"]}, {"choices": "c"}, 1.0),
        # Filters may convert answers to numbers.
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
def test_answer_score_equals_the_harness_score(
    answer: str, row: dict[str, Any], settings: dict[str, Any], expected: float
) -> None:
    assert score(answer, row, **settings) == expected


def test_target_with_a_missing_column_is_rejected() -> None:
    with pytest.raises(Exception, match="'a' is undefined"):
        score("x", {"b": 1})


def test_target_with_unsafe_template_access_is_rejected() -> None:
    with pytest.raises(Exception, match="unsafe"):
        score("x", {"a": 1}, target="{{ ''.__class__.__mro__ }}")
