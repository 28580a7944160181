"""Post-process rules and metrics. Expected values are computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aigo_bridge.jsonl_spec import METRIC_NAMES, POST_PROCESS_RULES, metric_score, post_process

FENCE = "```"


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("none", " A\n", " A\n"),
        ("strip_whitespace", "\u00a0 41\t\n", "41"),
        ("strip_whitespace", " \n", ""),
        ("lower", " NEIN ÄÖ", " nein äö"),
        ("extract_letter", "(C) because", "C"),
        ("extract_letter", "The answer is B", "B"),
        ("extract_letter", "Answer: B", "A"),
        ("extract_letter", "f, G and b", ""),
        ("extract_letter", "", ""),
        ("extract_code_block", f"Here:\n{FENCE}python\nx = 1\ny = 2\n{FENCE}\nDone", "x = 1\ny = 2"),
        ("extract_code_block", f"{FENCE}\na\n{FENCE}\n{FENCE}\nb\n{FENCE}", "a"),
        ("extract_code_block", f"{FENCE}\r\na\r\n{FENCE}", "a"),
        ("extract_code_block", f"{FENCE}print(1){FENCE}", "print(1)"),
        ("extract_code_block", f"{FENCE}py\ns = '{FENCE}'\n{FENCE}", f"s = '{FENCE}'"),
        ("extract_code_block", f"{FENCE}\n\n{FENCE}", ""),
        ("extract_code_block", f"{FENCE}\n{FENCE}", ""),
        ("extract_code_block", f"{FENCE}python\nx = 1", ""),
        ("extract_code_block", FENCE, ""),
        ("extract_code_block", "x = 1", ""),
        ("extract_first_line", "\n \nfirst\nsecond", "first"),
        ("extract_first_line", "\r\n  first \r\nsecond", "first"),
        ("extract_first_line", "one", "one"),
        ("extract_first_line", "\n \t\n", ""),
        ("extract_first_line", "", ""),
        ("extract_first_line", "a\u2028b\nc", "a\u2028b"),
    ],
)
def test_post_process_rule_returns_the_expected_text(rule: str, text: str, expected: str) -> None:
    assert post_process(rule, text) == expected


@settings(deadline=None)
@given(st.sampled_from(POST_PROCESS_RULES), st.text())
def test_post_process_rules_are_deterministic_and_idempotent(rule: str, text: str) -> None:
    once = post_process(rule, text)
    assert post_process(rule, text) == once
    if rule not in ("extract_code_block", "lower"):
        assert post_process(rule, once) == once


def test_unknown_post_process_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown post-process rule 'trim'"):
        post_process("trim", "a")


@pytest.mark.parametrize(
    ("metric", "prediction", "targets", "expected"),
    [
        ("exact_match", "41", ["40", "41"], 1.0),
        ("exact_match", "41 ", ["41"], 0.0),
        ("exact_match", "a", ["A"], 0.0),
        ("accuracy", "spam", ["ham", "spam"], 1.0),
        ("accuracy", "spam", ["ham"], 0.0),
        ("f1", "a b", ["x", "a b c d"], 2 / 3),  # 2 * 2 / (2 + 4)
        ("f1", "The, the cat!", ["the cat"], 0.8),  # 2 * 2 / (3 + 2)
        ("f1", "", ["a"], 0.0),
        ("f1", "!", ["?"], 0.0),
        ("f1", "!", ["!"], 1.0),
        ("f1", "ЗИМА близко", ["зима"], 2 / 3),
        ("rouge_l", "the cat", ["a dog", "the cat sat"], 0.8),  # P 1, R 2/3
        ("rouge_l", "c b a", ["a b c"], 1 / 3),
        ("rouge_l", "зима близко", ["зима близко"], 1.0),
        ("rouge_l", "", ["a"], 0.0),
        ("bleu_4", "the cat sat on the mat", ["the cat sat on the mat"], 1.0),
        ("bleu_4", "yes", ["yes"], 1.0),
        ("bleu_4", "", ["a"], 0.0),
        ("bleu_4", "x", ["a b c d"], 0.0),
        ("bleu_4", "a b c d", ["a b c e"], (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25),  # no 4-gram: 1 / 2
        ("bleu_4", "a b c d", ["a b", "c d", "a b c d"], 1.0),
    ],
)
def test_metric_score_has_the_expected_value(
    metric: str, prediction: str, targets: list[str], expected: float
) -> None:
    assert metric_score(metric, prediction, targets) == pytest.approx(expected, abs=1e-12)


SCORED = [name for name in METRIC_NAMES if name != "code_exec"]


@settings(deadline=None)
@given(
    st.sampled_from(SCORED),
    st.text(max_size=30),
    st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=3),
)
def test_scores_are_between_0_and_1(metric: str, prediction: str, targets: list[str]) -> None:
    assert 0.0 <= metric_score(metric, prediction, targets) <= 1.0


@settings(deadline=None)
@given(
    st.sampled_from(["exact_match", "accuracy", "f1", "rouge_l"]),
    st.text(max_size=30),
    st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=4),
)
def test_score_is_the_maximum_over_the_targets(metric: str, prediction: str, targets: list[str]) -> None:
    assert metric_score(metric, prediction, targets) == max(
        metric_score(metric, prediction, [target]) for target in targets
    )


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="abc 1.", max_size=20), min_size=1, max_size=3),
    st.text(alphabet="abc 1.", max_size=20),
)
def test_rouge_l_on_english_matches_the_reference_implementation(targets: list[str], prediction: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # it has no types

    scorer = RougeScorer(["rougeL"])
    expected = max(scorer.score(target, prediction)["rougeL"].fmeasure for target in targets)
    assert metric_score("rouge_l", prediction, targets) == expected


def test_metric_score_does_not_execute_code() -> None:
    with pytest.raises(NotImplementedError, match="only in a sandbox"):
        metric_score("code_exec", "print(1)", ["assert True"])


def test_unknown_metrics_and_missing_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown metric 'bleu'"):
        metric_score("bleu", "a", ["a"])
    with pytest.raises(ValueError, match="list of targets is empty"):
        metric_score("f1", "a", [])
