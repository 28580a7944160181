"""Perturbations of answers: some keep the meaning, others make a correct answer wrong, remove it or truncate
it.
"""

from __future__ import annotations

import re

from aigo_trust.probing.final_answer import FinalAnswer, abstains, digits_of, is_technical, option_of, stated
from aigo_trust.probing.perturbation import Inapplicable, Perturbation, StoredAnswer, unchanged

# Perturbations that keep the meaning


BLANK = Inapplicable("the answer is blank")
TECHNICAL = Inapplicable("the answer is code, JSON or a formula")
UNSTATED = Inapplicable("no single answer is stated")

BEFORE = "Let me think about this for a moment."
AFTER = "I hope that this helps. Let me know if anything is unclear!"

ARABIC_INDIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def _outer_blanks(answer: StoredAnswer) -> str | Inapplicable:
    return f"\n  {answer.text}  \n" if answer.text.strip() else BLANK


def _inner_blanks(answer: StoredAnswer) -> str | Inapplicable:
    if is_technical(answer.text):
        return TECHNICAL
    return re.sub(r"(?<=\S) (?=\S)", "  ", answer.text)


def _upper(answer: StoredAnswer) -> str | Inapplicable:
    return TECHNICAL if is_technical(answer.text) else answer.text.upper()


def _lower(answer: StoredAnswer) -> str | Inapplicable:
    return TECHNICAL if is_technical(answer.text) else answer.text.lower()


def _full_stop(answer: StoredAnswer) -> str | Inapplicable:
    if is_technical(answer.text):
        return TECHNICAL
    if answer.text.endswith(".") and not answer.text.endswith(".."):
        return answer.text[:-1]
    return f"{answer.text}." if answer.text[-1:].isalnum() else Inapplicable("it ends with another character")


def _quoted(answer: StoredAnswer) -> str | Inapplicable:
    return _wrapped_in(answer, '"')


def _bold(answer: StoredAnswer) -> str | Inapplicable:
    return _wrapped_in(answer, "**")


def _backticks(answer: StoredAnswer) -> str | Inapplicable:
    return _wrapped_in(answer, "`")


def _wrapped_in(answer: StoredAnswer, sign: str) -> str | Inapplicable:
    place = answer.stated
    if place is None:
        return UNSTATED
    text = answer.text
    if text[: place.start].endswith(sign) or text[place.end :].startswith(sign):
        return Inapplicable("it is already between these characters")
    return f"{text[: place.start]}{sign}{place.text}{sign}{text[place.end :]}"


def _fenced(answer: StoredAnswer) -> str | Inapplicable:
    if not answer.text.strip():
        return BLANK
    if "```" in answer.text:
        return TECHNICAL
    return f"```\n{answer.text}\n```"


def _sentence(answer: StoredAnswer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.is_marked:
        return Inapplicable("the answer is not a short text")
    return f"The answer is {place.text}."


def _verbose(answer: StoredAnswer) -> str | Inapplicable:
    if is_technical(answer.text):
        return TECHNICAL
    if abstains(answer.text):
        return Inapplicable("it contains no answer")
    return f"{BEFORE}\n\n{answer.text}\n\n{AFTER}"


def _grouped(answer: StoredAnswer) -> str | Inapplicable:
    place = answer.stated
    span = None if place is None or place.kind != "number" else digits_of(place.text)
    if place is None or span is None:
        return Inapplicable("the answer is not a number")
    digits = place.text[slice(*span)]
    integer, point, fraction = digits.partition(".")
    plain = integer.replace(",", "")
    if len(plain) < 4:
        return Inapplicable("the number has fewer than four digits")
    changed = (plain if "," in integer else f"{int(plain):,}") + point + fraction
    start = place.start + span[0]
    return f"{answer.text[:start]}{changed}{answer.text[start + len(digits) :]}"


def _other_digits(answer: StoredAnswer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.kind != "number":
        return Inapplicable("the answer is not a number")
    return answer.text[: place.start] + place.text.translate(ARABIC_INDIC) + answer.text[place.end :]


SAME = (
    Perturbation("unchanged", "nothing (control)", "same", unchanged),
    Perturbation("outer-blanks", "spaces and empty lines before and after", "same", _outer_blanks),
    Perturbation("inner-blanks", "two spaces between words", "same", _inner_blanks),
    Perturbation("upper-case", "UPPERCASE", "same", _upper),
    Perturbation("lower-case", "lowercase", "same", _lower),
    Perturbation("full-stop", "a final full stop added or removed", "same", _full_stop),
    Perturbation("quoted", 'the stated answer in "quotes"', "same", _quoted),
    Perturbation("bold", "the stated answer in **bold**", "same", _bold),
    Perturbation("backticks", "the stated answer in `backticks`", "same", _backticks),
    Perturbation("fenced", "the whole answer in a code fence", "same", _fenced),
    Perturbation("sentence", "a bare answer as `The answer is X.`", "same", _sentence),
    Perturbation("verbose", "a polite sentence before and after", "same", _verbose),
    Perturbation("grouped-digits", "`1,234` for `1234`, or the reverse", "same", _grouped),
    Perturbation("other-digits", "the number in Arabic-Indic digits", "told", _other_digits),
)
"""Perturbations that keep the meaning. The control comes first: if a score changes there, the scorer is
unstable."""


# Perturbations that change the meaning


REFUSAL = "I'm sorry, but I can't help with that."

_WORD = re.compile(r"\w+")

ABSTAINS = Inapplicable("the stored answer is already a refusal")


def _empty(answer: StoredAnswer) -> str | Inapplicable:
    return ABSTAINS if abstains(answer.text) else ""


def _refusal(answer: StoredAnswer) -> str | Inapplicable:
    return ABSTAINS if abstains(answer.text) else REFUSAL


def _replaced(answer: StoredAnswer, place: FinalAnswer, text: str) -> str:
    return answer.text[: place.start] + text + answer.text[place.end :]


def _next_number(text: str) -> str:
    """Return a different number: the last digit plus one, or minus one for a nine."""
    span = digits_of(text)
    assert span is not None
    end = span[1] - 1
    digit = int(text[end])
    return f"{text[:end]}{digit + 1 if digit < 9 else 8}{text[end + 1 :]}"


def _next_letter(letter: str) -> str:
    """Return a different option letter in the same case. Every multiple-choice question has this letter."""
    option = "B" if letter.upper() == "A" else "A"
    return option if letter.isupper() else option.lower()


def _other_number(answer: StoredAnswer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.kind != "number":
        return Inapplicable("the answer is not a number")
    span = digits_of(place.text)
    assert span is not None
    changed = _replaced(answer, place, _next_number(place.text))
    # Replace it everywhere else as well, because a scorer may take the first match.
    number = re.escape(place.text[slice(*span)])
    return re.sub(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", lambda found: _next_number(found.group()), changed)


def _other_letter(answer: StoredAnswer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.kind != "letter":
        return Inapplicable("the answer is not a letter")
    return _replaced(answer, place, _next_letter(place.text))


def _other_answer(answer: StoredAnswer) -> str | Inapplicable:
    if abstains(answer.text):
        return ABSTAINS
    different = _different(answer)
    return Inapplicable("no other sample has a different answer") if different is None else different


def _hedged(answer: StoredAnswer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.kind in ("formula", "option"):
        return UNSTATED
    if place.kind == "letter":
        return _replaced(answer, place, f"{place.text} or {_next_letter(place.text)}")
    if place.kind == "number":
        return _replaced(answer, place, f"{place.text} or {_next_number(place.text)}")
    alternative = _different(answer, short=True)
    if alternative is None:
        return Inapplicable("no other sample has another short answer")
    return _replaced(answer, place, f"{place.text} or {alternative}")


def _different(answer: StoredAnswer, *, short: bool = False) -> str | None:
    """Return the answer of another sample with a different meaning; with `short`, only its stated answer."""
    words = _said(answer.text)
    for neighbour in answer.neighbours:
        place = stated(neighbour)
        neighbours_words = _said(neighbour)
        if abstains(neighbour) or neighbours_words in words or words in neighbours_words:
            continue
        if not short:
            return neighbour
        if place is not None and place.kind == "words":
            return place.text
    return None


def _said(text: str) -> str:
    """Return the words of a stated answer, or the letter of an option, surrounded by spaces."""
    place = stated(text)
    statement = text if place is None else option_of(place.text) or place.text
    return f" {' '.join(_WORD.findall(statement.casefold()))} "


def _cut_off(answer: StoredAnswer) -> str | Inapplicable:
    text = answer.text.strip()
    if len(text) < 2:
        return Inapplicable("the answer is too short to cut")
    return text[: len(text) // 2]


WORSE = (
    Perturbation("empty", "empty text", "worse", _empty),
    Perturbation("refusal", "a refusal instead of the answer", "worse", _refusal),
    Perturbation("other-number", "the number with another last digit", "worse", _other_number),
    Perturbation("other-letter", "another option's letter", "worse", _other_letter),
    Perturbation("other-answer", "the answer of another sample", "worse", _other_answer),
    Perturbation("hedged", "`X or Y`: the answer or another one", "worse", _hedged),
    Perturbation("cut-off", "the first half of the answer", "told", _cut_off),
)
