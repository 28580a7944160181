"""Edge cases of shipped scorers, called directly; expected values follow from the benchmark rules."""

from __future__ import annotations

import ast
import runpy
from typing import Any

import pytest
from tests.support.commands import TASKS


def scorer(name: str, file: str = "scorer.py") -> dict[str, Any]:
    """Return the functions of a scorer by name."""
    return runpy.run_path(str(TASKS / name / file))


LETTER = scorer("arc")["letter_of"]
MATH = scorer("math-500")
SQUAD = scorer("squad-v2")
IFEVAL = scorer("ifeval")
PRO = scorer("mmlu-pro")


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("ANSWER: B", "B"),
        ("**Answer:** (c)", None),
        ("Answer: (c)", "C"),
        ("ANSWER: A\nOn second thought:\nANSWER: C", "C"),
        ("ANSWER: A. On second thought: ANSWER: C", "A"),
        ("So it is **ANSWER: D**", "D"),
        ("ANSWER: A,", "A"),
        ("ANSWER: A, B", None),
        ("ANSWER: E", None),
        ("ANSWER: 3", None),
        ("答案\nANSWER：A", None),
        ("", None),
        ("B", None),
        ("Answer: Apples", None),
        ("The answer is B", None),
    ],
)
def test_a_letter_is_recognized_after_its_mark(answer: str, letter: str | None) -> None:
    """Like Inspect; `test_published_choices.py` compares both."""
    assert LETTER(answer, 4) == letter


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
        (r"12,\!345", "12,345"),
        (r"90^\circ", "90"),
    ],
)
def test_math_answers_are_equal_after_normalisation(left: str, right: str) -> None:
    assert MATH["same_text"](left, right)
    assert MATH["same_text"](right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(1,2)", "[1,2]"),
        ("2", "-2"),
        ("5.0", "5"),
        ("12,345", "12345"),
        ("1+x", "x+1"),
        (r"\text{Monday}", "Monday"),
        ("a/b", r"\frac{a}{b}"),
        (r"\frac", r"\frac "),
        (r"2\sqrt{3}", r"3\sqrt{2}"),
        ("", "0"),
    ],
)
def test_different_math_answers_are_unequal(left: str, right: str) -> None:
    """Even if a computer algebra system would call them equal."""
    assert not MATH["same_text"](left, right)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"$\boxed{a} then \boxed{\frac{1}{2}}$", r"\frac{1}{2}"),
        (r"\fbox{7}", "7"),
        (r"$\boxed 5$", "5"),
        (r"\boxed{never closed", None),
        ("3", None),
    ],
)
def test_last_boxed_answer_is_used(text: str, answer: str | None) -> None:
    assert MATH["boxed"](text) == answer


def test_squad_f1_counts_each_repeated_word() -> None:
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
        ("change_case:english_capital", {}, "THE WEATHER IS FINE TODAY", "DAS WETTER IST HEUTE SCHÖN"),
        ("change_case:english_lowercase", {}, "the weather is fine today", "das wetter ist heute schön"),
        ("punctuation:no_comma", {}, "a; b", "a, b"),
    ],
)
def test_instruction_checks_return_the_expected_result(
    name: str, args: dict[str, Any], follows: str, breaks: str
) -> None:
    assert IFEVAL["follows"](name, follows, args)
    assert not IFEVAL["follows"](name, breaks, args)
    assert not IFEVAL["follows"](name, " ", args)


def test_all_kinds_of_instruction_have_a_check() -> None:
    """25 in the paper; the language check needs a separate package."""
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
def test_chain_of_thought_answer_is_extracted_like_the_official_code(answer: str, letter: str | None) -> None:
    assert PRO["extract"](answer) == letter


SHARED = ("letter_of", "UNWRAPPED", "ON_A_LINE", "ANYWHERE", "LETTERS", "block", "END", "FENCED", "LIGHTEVAL")


@pytest.mark.parametrize("name", SHARED)
def test_shared_task_code_is_identical(name: str) -> None:
    """Task folders are copied alone, so shared code has several copies, which must be equal."""
    texts = [
        ast.dump(node)
        for path in sorted(TASKS.glob("*/*.py"))
        for node in ast.parse(path.read_text("utf-8")).body
        if name
        in (getattr(node, "name", None), *(getattr(each, "id", "") for each in getattr(node, "targets", ())))
    ]
    assert len(texts) > 1
    assert len(set(texts)) == 1
