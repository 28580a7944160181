"""Perturbations that keep the meaning of an answer."""

from __future__ import annotations

import re

from aigo_bridge.probing.perturbation import Answer, Inapplicable, Perturbation, unchanged
from aigo_bridge.probing.stated import abstains, digits_of, is_technical

BLANK = Inapplicable("the answer is blank")
TECHNICAL = Inapplicable("the answer is code, JSON or a formula")
UNSTATED = Inapplicable("no single answer is stated")

BEFORE = "Let me think about this for a moment."
AFTER = "I hope that this helps. Let me know if anything is unclear!"

ARABIC_INDIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def _outer_blanks(answer: Answer) -> str | Inapplicable:
    return f"\n  {answer.text}  \n" if answer.text.strip() else BLANK


def _inner_blanks(answer: Answer) -> str | Inapplicable:
    if is_technical(answer.text):
        return TECHNICAL
    return re.sub(r"(?<=\S) (?=\S)", "  ", answer.text)


def _upper(answer: Answer) -> str | Inapplicable:
    return TECHNICAL if is_technical(answer.text) else answer.text.upper()


def _lower(answer: Answer) -> str | Inapplicable:
    return TECHNICAL if is_technical(answer.text) else answer.text.lower()


def _full_stop(answer: Answer) -> str | Inapplicable:
    if is_technical(answer.text):
        return TECHNICAL
    if answer.text.endswith(".") and not answer.text.endswith(".."):
        return answer.text[:-1]
    return f"{answer.text}." if answer.text[-1:].isalnum() else Inapplicable("it ends with another sign")


def _quoted(answer: Answer) -> str | Inapplicable:
    return _wrapped_in(answer, '"')


def _bold(answer: Answer) -> str | Inapplicable:
    return _wrapped_in(answer, "**")


def _backticks(answer: Answer) -> str | Inapplicable:
    return _wrapped_in(answer, "`")


def _wrapped_in(answer: Answer, sign: str) -> str | Inapplicable:
    place = answer.stated
    if place is None:
        return UNSTATED
    text = answer.text
    if text[: place.start].endswith(sign) or text[place.end :].startswith(sign):
        return Inapplicable("it stands between these signs already")
    return f"{text[: place.start]}{sign}{place.text}{sign}{text[place.end :]}"


def _fenced(answer: Answer) -> str | Inapplicable:
    if not answer.text.strip():
        return BLANK
    if "```" in answer.text:
        return TECHNICAL
    return f"```\n{answer.text}\n```"


def _sentence(answer: Answer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.is_marked:
        return Inapplicable("the answer is no short text by itself")
    return f"The answer is {place.text}."


def _verbose(answer: Answer) -> str | Inapplicable:
    if is_technical(answer.text):
        return TECHNICAL
    if abstains(answer.text):
        return Inapplicable("it gives no answer")
    return f"{BEFORE}\n\n{answer.text}\n\n{AFTER}"


def _grouped(answer: Answer) -> str | Inapplicable:
    place = answer.stated
    span = None if place is None or place.kind != "number" else digits_of(place.text)
    if place is None or span is None:
        return Inapplicable("the answer is no number")
    digits = place.text[slice(*span)]
    whole, point, fraction = digits.partition(".")
    plain = whole.replace(",", "")
    if len(plain) < 4:
        return Inapplicable("the number has fewer than four digits")
    changed = (plain if "," in whole else f"{int(plain):,}") + point + fraction
    start = place.start + span[0]
    return f"{answer.text[:start]}{changed}{answer.text[start + len(digits) :]}"


def _other_digits(answer: Answer) -> str | Inapplicable:
    place = answer.stated
    if place is None or place.kind != "number":
        return Inapplicable("the answer is no number")
    return answer.text[: place.start] + place.text.translate(ARABIC_INDIC) + answer.text[place.end :]


SAME = (
    Perturbation("unchanged", "nothing: a control", "same", unchanged),
    Perturbation("outer-blanks", "blanks and empty lines around it", "same", _outer_blanks),
    Perturbation("inner-blanks", "two blanks for each between words", "same", _inner_blanks),
    Perturbation("upper-case", "CAPITALS", "same", _upper),
    Perturbation("lower-case", "small letters", "same", _lower),
    Perturbation("full-stop", "a full stop at its end, or none", "same", _full_stop),
    Perturbation("quoted", 'the stated answer in "quotes"', "same", _quoted),
    Perturbation("bold", "the stated answer in **bold**", "same", _bold),
    Perturbation("backticks", "the stated answer in `backticks`", "same", _backticks),
    Perturbation("fenced", "all of it in a code fence", "same", _fenced),
    Perturbation("sentence", "a bare answer as `The answer is X.`", "same", _sentence),
    Perturbation("verbose", "a polite sentence before and behind it", "same", _verbose),
    Perturbation("grouped-digits", "1,234 for 1234, or the other way round", "same", _grouped),
    Perturbation("other-digits", "the number in Arabic-Indic digits", "told", _other_digits),
)
"""The control comes first: a scorer that changes its mind there has none."""
