"""Detection of the final answer in a text."""

from __future__ import annotations

import pytest

from aigo_trust.probing.final_answer import abstains, digits_of, is_technical, stated


@pytest.mark.parametrize(
    ("text", "answer", "kind", "is_marked"),
    [
        ("B", "B", "letter", False),
        (" (c). ", "c", "letter", False),
        ("ANSWER: B", "B", "letter", True),
        ("Both look right.\n\n**Answer: (C)**", "C", "letter", True),
        ("ANSWER: A\nNo, wait.\nANSWER: C\n", "C", "letter", True),
        ("Then the final answer is: 1,250.", "1,250", "number", True),
        ("The answer is 12", "12", "number", True),
        ("4 · 3 = 12\n#### 14", "14", "number", True),
        (r"So $\boxed{60}$ it is.", "60", "number", True),
        ("44 yards", "44 yards", "number", False),
        ("-3.5%", "-3.5%", "number", False),
        ("Hedda Lund.", "Hedda Lund", "words", False),
        ('"Oslo"', "Oslo", "words", False),
        (r"ANSWER: $\frac{1}{2}$", r"$\frac{1}{2}$", "formula", True),
        ("ANSWER: C) Mitochondrion", "C) Mitochondrion", "option", True),
        ("(2) Omar", "(2) Omar", "option", False),
        ("Answer: the soup of brown shrimps", "the soup of brown shrimps", "words", True),
    ],
)
def test_stated_answer_is_found_with_its_position(text: str, answer: str, kind: str, is_marked: bool) -> None:
    found = stated(text)

    assert found is not None
    assert (found.text, found.kind, found.is_marked) == (answer, kind, is_marked)
    assert text[found.start : found.end] == answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "It was 1927.",
        "I cannot help with that.",
        "unanswerable",
        "Done: T-2-FRI. Anything else?",
        "They hunt at night.\nThey hoot.",
        "The lighthouse watches over the grey sea.",
        "ANSWER:",
        "ANSWER: " + "long " * 40,
    ],
)
def test_uncertain_answers_are_not_recognized(text: str) -> None:
    assert stated(text) is None


def test_number_is_found_among_symbols() -> None:
    assert digits_of("$1,250.00 or so") == (1, 9)
    assert digits_of("none") is None


@pytest.mark.parametrize(
    "text", ["", " ", "I don't know.", "I can't help with shooting anyone.", "No comment, please."]
)
def test_refusal_is_recognized_as_an_abstention(text: str) -> None:
    assert abstains(text)


@pytest.mark.parametrize("text", ["B", "Canberra", "It is not known who built it, but Lund paid."])
def test_answer_is_not_recognized_as_an_abstention(text: str) -> None:
    assert not abstains(text)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}', "[1, 2]", "```\nx\n```", "def f():\n    return 1", "$5x$", r"\frac{1}{2}", "<<title>>"],
)
def test_code_json_and_formulas_are_recognized_as_technical(text: str) -> None:
    assert is_technical(text)


@pytest.mark.parametrize("text", ["B", "12", "Paris.", "It costs $5.", "One\nTwo"])
def test_prose_is_not_recognized_as_technical(text: str) -> None:
    assert not is_technical(text)
