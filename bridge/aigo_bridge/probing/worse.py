"""Perturbations that make a right answer wrong, take it away, or leave half of it."""

from __future__ import annotations

import re

from aigo_bridge.probing.perturbation import Answer, Inapplicable, Perturbation
from aigo_bridge.probing.same import UNSTATED
from aigo_bridge.probing.stated import Stated, abstains, digits_of, option_of, stated

REFUSAL = "I'm sorry, but I can't help with that."

_WORD = re.compile(r"\w+")

ABSTAINS = Inapplicable("the stored answer gives none itself")


def _empty(answer: Answer) -> str | Inapplicable:
    return ABSTAINS if abstains(answer.text) else ""


def _refusal(answer: Answer) -> str | Inapplicable:
    return ABSTAINS if abstains(answer.text) else REFUSAL


def _replaced(answer: Answer, place: Stated, text: str) -> str:
    return answer.text[: place.start] + text + answer.text[place.end :]


def _next_number(text: str) -> str:
    """Another number: its last digit is one more, or one less behind a nine."""
    span = digits_of(text)
    assert span is not None
    last = span[1] - 1
    digit = int(text[last])
    return f"{text[:last]}{digit + 1 if digit < 9 else 8}{text[last + 1 :]}"


def _next_letter(letter: str) -> str:
    """A letter that every question with options has, in the same case."""
    other = "B" if letter.upper() == "A" else "A"
    return other if letter.isupper() else other.lower()


def _other_number(answer: Answer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.kind != "number":
        return Inapplicable("the answer is no number")
    span = digits_of(place.text)
    assert span is not None
    changed = _replaced(answer, place, _next_number(place.text))
    # Nowhere else either: a scorer may take the first one.
    number = re.escape(place.text[slice(*span)])
    return re.sub(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", lambda found: _next_number(found.group()), changed)


def _other_letter(answer: Answer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.kind != "letter":
        return Inapplicable("the answer is no letter")
    return _replaced(answer, place, _next_letter(place.text))


def _other_answer(answer: Answer) -> str | Inapplicable:
    if abstains(answer.text):
        return ABSTAINS
    other = _different(answer)
    return Inapplicable("no other sample has another answer") if other is None else other


def _hedged(answer: Answer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.kind in ("formula", "option"):
        return UNSTATED
    if place.kind == "letter":
        return _replaced(answer, place, f"{place.text} or {_next_letter(place.text)}")
    if place.kind == "number":
        return _replaced(answer, place, f"{place.text} or {_next_number(place.text)}")
    other = _different(answer, short=True)
    if other is None:
        return Inapplicable("no other sample has another short answer")
    return _replaced(answer, place, f"{place.text} or {other}")


def _different(answer: Answer, *, short: bool = False) -> str | None:
    """An answer of another sample that says something else; with `short`, what it states."""
    own = _said(answer.text)
    for other in answer.others:
        place = stated(other)
        said = _said(other)
        if abstains(other) or said in own or own in said:
            continue
        if not short:
            return other
        if place is not None and place.kind == "words":
            return place.text
    return None


def _said(text: str) -> str:
    """The words of what a text states, of an option its letter, with blanks around each."""
    place = stated(text)
    said = text if place is None else option_of(place.text) or place.text
    return f" {' '.join(_WORD.findall(said.casefold()))} "


def _cut_off(answer: Answer) -> str | Inapplicable:
    text = answer.text.strip()
    if len(text) < 2:
        return Inapplicable("there is nothing to cut off")
    return text[: len(text) // 2]


WORSE = (
    Perturbation("empty", "no text at all", "worse", _empty),
    Perturbation("refusal", "a refusal in its place", "worse", _refusal),
    Perturbation("other-number", "its number with another last digit", "worse", _other_number),
    Perturbation("other-letter", "another option's letter", "worse", _other_letter),
    Perturbation("other-answer", "the answer of another sample", "worse", _other_answer),
    Perturbation("hedged", "`X or Y`: itself, or another", "worse", _hedged),
    Perturbation("cut-off", "its first half", "told", _cut_off),
)
