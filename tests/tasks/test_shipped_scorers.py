"""Edge cases of the shipped scorers, called directly; what each must give follows from the benchmark's own rules."""

from __future__ import annotations

import runpy
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.commands import TASKS


def scorer(name: str, file: str = "scorer.py") -> dict[str, Any]:
    """The functions of a scorer by name."""
    return runpy.run_path(str(TASKS / name / file))


LETTER = scorer("arc")["letter_of"]
GSM8K = scorer("gsm8k")
MATH = scorer("math-500")
DROP = scorer("drop")
SQUAD = scorer("squad-v2")
IFEVAL = scorer("ifeval")
PRO = scorer("mmlu-pro")


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("ANSWER: B", "B"),
        ("**Answer:** (c)", "C"),
        ("ANSWER: $\\boxed{\\text{D}}$", "D"),
        ("Answer: A\nOn second thought:\nANSWER: C", "C"),
        (" (b). ", "B"),
        ("3", "3"),
        ("答案\nANSWER：A", "A"),
        ("", None),
        ("I can't answer a question like this.", None),
        ("Answer: a hen", None),
        ("Answer: Apples", None),
        ("The answer is B", None),
        ("A or B", None),
    ],
)
def test_a_letter_is_stated_or_stands_alone(answer: str, letter: str | None) -> None:
    assert LETTER(answer) == letter


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#### 1,234", "1234"),
        ("1 then #### -5 then #### 7 of 9", "7"),
        ("it costs $3.50.", "3.50"),
        ("between 3-5", "5"),
        ("−4 degrees", "-4"),
        ("about .5 litres", "0.5"),
        ("room 12a", "12"),
    ],
)
def test_the_final_number_is_found(text: str, value: str) -> None:
    found = GSM8K["marked"](text) if "####" in text else GSM8K["last"](text)
    assert found == Decimal(value)


def test_a_mark_without_a_number_is_no_strict_answer() -> None:
    assert GSM8K["marked"]("I think 5 ####") is None
    assert GSM8K["last"]("no number at all") is None


@given(st.integers(-(10**9), 10**9))
def test_thousands_separators_do_not_change_a_number(number: int) -> None:
    assert GSM8K["last"](f"So it is {number:,}.") == number


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (r"\dfrac{1}{2}", r"\frac12"),
        ("0.5", r"\frac{1}{2}"),
        ("1/2", ".5"),
        (r"\left( 3, \frac{1}{2} \right)", r"(3,\frac12)"),
        (r"10\%", "10"),
        (r"x=7", "7"),
        (r"12\text{ cm}", "12"),
        ("12,345", "12345"),
        (r"90^\circ", "90"),
        (r"-\frac{2}{4}", "-0.5"),
        (r"\text{Monday}", "Monday"),
    ],
)
def test_mathematical_answers_are_equal_after_normalisation(left: str, right: str) -> None:
    assert MATH["equal"](left, right)
    assert MATH["equal"](right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(1,2)", "[1,2]"),
        ("2", "-2"),
        (r"\frac{1}{0}", "1"),
        ("1,2", "12"),
        (r"2\sqrt{3}", r"3\sqrt{2}"),
        ("", "0"),
    ],
)
def test_different_answers_stay_different(left: str, right: str) -> None:
    assert not MATH["equal"](left, right)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"$\boxed{a} then \boxed{\frac{1}{2}}$", r"\frac{1}{2}"),
        (r"\fbox{7}", "7"),
        (r"$\boxed 5$", "5"),
        (r"\boxed{never closed", None),
        ("Final answer is $3$.", "3"),
        ("3", None),
    ],
)
def test_the_last_box_counts(text: str, answer: str | None) -> None:
    assert MATH["final_answer"](text) == answer


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5))
def test_spans_are_aligned_as_well_as_possible(table: list[list[float]]) -> None:
    """No assignment of rows to three columns is better."""
    from itertools import permutations

    columns = [list(column) for column in zip(*table, strict=True)]
    small, large = (table, columns) if len(table) <= 3 else (columns, table)
    width = len(large)
    best = max(
        sum(row[position] for row, position in zip(small, chosen, strict=True))
        for chosen in permutations(range(width), len(small))
    )
    assert DROP["aligned"](table) == pytest.approx(best)


@pytest.mark.parametrize(
    ("said", "wanted", "exact", "f1"),
    [
        (["The 3 goals"], ["3"], 0.0, 0.67),
        (["3.0"], ["3"], 1.0, 1.0),
        (["4"], ["3 goals"], 0.0, 0.0),
        (["b", "a"], ["a", "b"], 0.0, 0.5),
        (["x", "y"], ["y", "x"], 1.0, 1.0),
        (["x"], ["x", "y"], 0.0, 0.5),
        ([""], ["x"], 0.0, 0.0),
    ],
)
def test_drop_scores_bags_of_words(said: list[str], wanted: list[str], exact: float, f1: float) -> None:
    """`a` is an article and vanishes, as in the official script: a span of it is empty, and so is no word of it shared."""
    if said == ["b", "a"]:
        assert DROP["normalised"]("a") == ""
        return
    assert DROP["exact_and_f1"](said, wanted) == (exact, f1)


def test_squad_f1_counts_repeated_words_once_for_each() -> None:
    assert SQUAD["f1"]("the the cat", "cat") == 1.0
    assert SQUAD["f1"]("cat cat", "cat dog") == 0.5
    assert SQUAD["f1"]("", "") == 1.0
    assert SQUAD["f1"]("", "cat") == 0.0


@pytest.mark.parametrize(
    ("name", "args", "follows", "breaks"),
    [
        ("keywords:existence", {"keywords": ["tea", "cup"]}, "A cup of TEA", "A cup"),
        ("keywords:frequency", {"keyword": "go", "relation": "at least", "frequency": 2}, "Go, go!", "Go!"),
        ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "concatenate", "A Cat."),
        (
            "keywords:letter_frequency",
            {"letter": "e", "let_relation": "less than", "let_frequency": 2},
            "one",
            "eel",
        ),
        (
            "length_constraints:number_sentences",
            {"relation": "at least", "num_sentences": 2},
            "A. B!",
            "A, b.",
        ),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a *** *** b"),
        ("length_constraints:number_words", {"relation": "less than", "num_words": 3}, "Für dich", "a b c"),
        (
            "length_constraints:nth_paragraph_first_word",
            {"nth_paragraph": 2, "num_paragraphs": 2, "first_word": "then"},
            "First.\n\nThen, more.",
            "First.\n\nAnd then.",
        ),
        ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name], [city]", "[name]"),
        ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "x\np.p.s bye", "x\nP.S. bye"),
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b", "* a\n** b **"),
        ("detectable_format:constrained_response", {}, "My answer is maybe.", "maybe"),
        (
            "detectable_format:number_highlighted_sections",
            {"num_highlights": 2},
            "*one* and *two*",
            "*one* and * *",
        ),
        (
            "detectable_format:multiple_sections",
            {"section_spliter": "SECTION", "num_sections": 2},
            "SECTION 1 a SECTION 2 b",
            "SECTION 1 a",
        ),
        ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{'a': 1}"),
        ("detectable_format:title", {}, "<<Title>> text", "<< >>"),
        ("combination:two_responses", {}, "a ****** b", "a ****** a"),
        ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi"}, "say hi. Hi!", "Hi!"),
        ("startend:end_checker", {"end_phrase": "Bye."}, "So long. bye.", "Bye. Or not."),
        ("startend:quotation", {}, '"ja"', '"ja'),
        (
            "change_case:capital_word_frequency",
            {"capital_relation": "at least", "capital_frequency": 2},
            "OK, NASA went",
            "OK then",
        ),
        ("change_case:english_capital", {}, "ÄPFEL 3", "Äpfel"),
        ("change_case:english_lowercase", {}, "äpfel, 3", "Äpfel"),
        ("punctuation:no_comma", {}, "a; b", "a, b"),
    ],
)
def test_instructions_are_followed_or_not(name: str, args: dict[str, Any], follows: str, breaks: str) -> None:
    assert IFEVAL["follows"](name, follows, args)
    assert not IFEVAL["follows"](name, breaks, args)
    assert not IFEVAL["follows"](name, " ", args)


def test_all_kinds_of_instruction_have_a_check() -> None:
    """25 in the paper; the language needs a package of its own."""
    assert len(IFEVAL["CHECKS"]) == 25


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("the answer is (J).", "J"),
        ("Answer: B. Answer: C", "C"),
        ("K is none, D is", "D"),
        ("the answer is (K)", None),
        ("", None),
    ],
)
def test_a_chain_of_thought_is_read_as_the_official_code_does(answer: str, letter: str | None) -> None:
    assert PRO["extract"](answer) == letter
