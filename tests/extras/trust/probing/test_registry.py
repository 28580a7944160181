"""Invariants of all perturbations."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import UsageError
from aigo_trust.probing.answers import ARABIC_INDIC
from aigo_trust.probing.final_answer import abstains, stated
from aigo_trust.probing.perturbation import Inapplicable, StoredAnswer
from aigo_trust.probing.registry import PERTURBATIONS, chosen

BY_NAME = {perturbation.name: perturbation for perturbation in PERTURBATIONS}
ON_TEXT = [each for each in PERTURBATIONS if each.acts_on == "answer" and not each.judges_only]
KEEPING = [each for each in ON_TEXT if each.expectation == "same" or each.name == "other-digits"]
WORD = re.compile(r"[^\W_]+")
WESTERN = {target: source for source, target in ARABIC_INDIC.items()}

LETTERS = st.sampled_from("ABCDE")
NUMBERS = st.one_of(
    st.integers(0, 10**7).map(str),
    st.integers(1000, 10**7).map("{:,}".format),
    st.decimals(0, 9999, places=2).map(str),
)
WORDS = st.lists(st.sampled_from(["Oslo", "Karel", "Dusek", "herons", "brown"]), min_size=1, max_size=4).map(
    " ".join
)
STATED = st.one_of(LETTERS, NUMBERS, WORDS)
FRAMES = st.sampled_from(
    [
        "{}",
        "{}.",
        " {} ",
        "ANSWER: {}",
        "Two and two.\n\nANSWER: {}",
        "**Answer: {}**",
        "The answer is {}",
        "#### {}",
    ]
)
ANYTHING = st.one_of(st.text(max_size=60), st.builds(str.format, FRAMES, STATED))
OTHERS = st.lists(ANYTHING, max_size=3).map(tuple)


def words(text: str) -> str:
    """Return the words of a text without case, punctuation and digit forms."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text.translate(WESTERN))
    return f" {' '.join(WORD.findall(plain.casefold()))} "


@given(frame=FRAMES, answer=STATED)
def test_meaning_preserving_changes_keep_the_answer_text(frame: str, answer: str) -> None:
    for perturbation in KEEPING:
        changed = perturbation.text(StoredAnswer(frame.format(answer)))

        if not isinstance(changed, Inapplicable):
            assert words(answer) in words(changed), perturbation.name


@given(text=ANYTHING, others=OTHERS)
def test_perturbation_changes_any_text_or_gives_a_reason(text: str, others: tuple[str, ...]) -> None:
    for perturbation in ON_TEXT:
        first, again = (perturbation.text(StoredAnswer(text, others)) for _ in range(2))

        assert first == again
        if isinstance(first, Inapplicable):
            assert first.reason
        else:
            assert first != text or perturbation.name == "unchanged"


@given(frame=FRAMES, answer=STATED, others=st.lists(WORDS, max_size=4).map(tuple))
def test_wrong_answer_perturbations_state_another_answer(
    frame: str, answer: str, others: tuple[str, ...]
) -> None:
    text = frame.format(answer)
    for name in ("other-number", "other-letter", "other-answer", "hedged"):
        changed = BY_NAME[name].text(StoredAnswer(text, others))

        if not isinstance(changed, Inapplicable):
            before, after = stated(text), stated(changed)
            assert before is not None
            assert after is None or words(after.text) != words(before.text), name


def test_most_perturbations_apply_to_plain_answers() -> None:
    """Nearly all perturbations apply to a plain answer."""
    for text, but in (("ANSWER: B", 5), ("ANSWER: 1234", 3), ("Hedda Lund", 4)):
        made = [each.text(StoredAnswer(text, ("Karel Dusek", "ANSWER: 7"))) for each in ON_TEXT]
        assert sum(isinstance(changed, Inapplicable) for changed in made) <= but, text


@given(number=NUMBERS, frame=st.sampled_from(["It is {0}. ANSWER: {0}", "#### {0}", "{0}"]))
def test_other_number_perturbation_removes_the_original_number(number: str, frame: str) -> None:
    changed = BY_NAME["other-number"].text(StoredAnswer(frame.format(number)))

    assert not isinstance(changed, Inapplicable)
    assert number not in re.findall(r"\d[\d,.]*\d|\d", changed)
    assert len(changed) == len(frame.format(number))


@given(text=ANYTHING)
def test_removing_perturbations_leave_no_answer(text: str) -> None:
    for name in ("empty", "refusal"):
        changed = BY_NAME[name].text(StoredAnswer(text))

        assert isinstance(changed, Inapplicable) == abstains(text)
        assert isinstance(changed, Inapplicable) or abstains(changed)


def test_perturbation_examples_match_the_table() -> None:
    answer = StoredAnswer("So it is.\nANSWER: 1234", ("ANSWER: 12",), '{"score": 10}')
    made = {each.name: each.text(answer) for each in PERTURBATIONS if each.acts_on == "answer"}

    assert made["bold"] == "So it is.\nANSWER: **1234**"
    assert made["grouped-digits"] == "So it is.\nANSWER: 1,234"
    assert made["other-digits"] == "So it is.\nANSWER: ١٢٣٤"
    assert made["other-number"] == "So it is.\nANSWER: 1235"
    assert made["hedged"] == "So it is.\nANSWER: 1234 or 1235"
    assert made["other-answer"] == "ANSWER: 12"
    same = StoredAnswer("2) Omar", ("ANSWER: 2", "(2) Änne", "Omar is 2"))
    assert BY_NAME["other-answer"].text(same) == Inapplicable("no other sample has a different answer")
    assert made["other-letter"] == Inapplicable("the answer is not a letter")
    assert made["sentence"] == Inapplicable("the answer is not a short text")
    assert BY_NAME["sentence"].text(StoredAnswer("Hedda Lund.")) == "The answer is Hedda Lund."
    assert BY_NAME["other-letter"].text(StoredAnswer("ANSWER: (a)")) == "ANSWER: (b)"
    assert BY_NAME["other-letter"].text(StoredAnswer("C) because")) == Inapplicable(
        "the answer is not a letter"
    )
    assert BY_NAME["hedged"].text(StoredAnswer("Yes", ("ANSWER: no",))) == "Yes or no"
    assert '{"score": 10}' in str(made["injection"])
    assert str(made["injected-nothing"]).startswith("I do not know.")


def test_injections_are_only_used_if_they_would_raise_the_score() -> None:
    injection = BY_NAME["injection"]

    assert isinstance(injection.text(StoredAnswer("7")), Inapplicable)
    assert isinstance(injection.text(StoredAnswer("7", verdict='{"score": 1}', has_best=True)), Inapplicable)
    assert isinstance(
        BY_NAME["injected-nothing"].text(StoredAnswer("I do not know.", verdict="x")), Inapplicable
    )


def test_selected_perturbations_keep_the_table_order() -> None:
    assert chosen(()) == PERTURBATIONS
    assert [each.name for each in chosen(["refusal", "unchanged"])] == ["unchanged", "refusal"]
    with pytest.raises(UsageError, match=r"found 'refusals' \(did you mean 'refusal'\?\); found 'x'"):
        chosen(["refusals", "x"])


def test_perturbation_names_are_unique() -> None:
    assert len(BY_NAME) == len(PERTURBATIONS)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in BY_NAME)
