"""The final number of a solution, as Inspect's `match(numeric=True)` and as OpenAI's `grade-school-math` read it.

`is_correct`: of the words of the answer, without currency signs, commas, asterisks and underscores, the last that is a
number has the value of the key, to five significant digits. A number is what Python reads as one, and what people write
in other digits, with fractions (`2½`), exponents (`3²`) or Chinese numerals. `is_correct_official`: behind the first
`#### ` stands the key, character by character but for commas.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from typing import Any

OFFICIAL = re.compile(r"#### (-?[0-9.,]+)")
SIGNS = {**dict.fromkeys("-−﹣－负負", -1), **dict.fromkeys("+＋﹢正", 1)}
GROUPING = set(",，﹐、٬ \u00a0\u202f\u2009\u2007\u2008'’ʼ＇")
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
RAISED = re.compile("([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)$")

HAN_DIGITS = {
    character: value
    for value, characters in enumerate(["零〇○", "一壹幺", "二贰貳两兩", "三叁參", "四肆", "五伍", "六陆陸", "七柒", "八捌", "九玖"])
    for character in characters
}
HAN_TENS = {"廿": 20, "卅": 30, "卌": 40}
HAN_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
HAN_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}
HAN_POINTS = set("点點")
HAN = {*HAN_DIGITS, *HAN_TENS, *HAN_UNITS, *HAN_MYRIADS, *HAN_POINTS, *"负負"}


# --- numbers


def number(text: str) -> float | None:
    """The value of a text that is a number, perhaps with signs of a sentence around it; `None`: it is none."""
    text = text.strip("!?:;()[]{}'\"`")
    for read in (float, written):
        try:
            value = read(text)
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        if value is not None and math.isfinite(value):
            return value
    return None


def written(text: str) -> float | None:
    """The value in digits of any script, with a fraction, an exponent or Chinese numerals."""
    text, sign = text.strip(), 1
    while text and text[0] in SIGNS:
        sign, text = sign * SIGNS[text[0]], text[1:].lstrip()
    if len(text) == 1 and (single := unicodedata.numeric(text, None)) is not None:
        return sign * single
    base, exponent = raised(text)
    value = mixed(base)
    if value is None:
        return None
    power = (sign * value) ** exponent
    return None if isinstance(power, complex) else float(power)


def raised(text: str) -> tuple[str, int]:
    """Base and exponent."""
    end = len(text.rstrip("".join(GROUPING) + string.whitespace))
    found = RAISED.search(text[:end])
    if found is None or not text[: found.start()].strip():
        return text.strip(), 1
    return text[: found.start()].rstrip(), int(found.group().translate(SUPERSCRIPTS))


def mixed(text: str) -> float | None:
    """A number with at most one fraction such as ½ at its end."""
    fractions = [place for place, character in enumerate(text) if 0 < (unicodedata.numeric(character, 0) or 0) < 1]
    if not fractions:
        return plain(text)
    if len(fractions) > 1:
        return None
    head, tail = text[: fractions[0]].strip(), text[fractions[0] + 1 :]
    if any(not (character.isspace() or character in GROUPING) for character in tail):
        return None
    whole = plain(head) if head else 0.0
    return None if whole is None else whole + unicodedata.numeric(text[fractions[0]])


def plain(text: str) -> float | None:
    text = text.strip()
    if not text:
        return None
    value = chinese(text) if HAN & set(text) else None
    if value is None:
        value = in_digits(text)
    if value is None and len(text) == 1:
        value = unicodedata.numeric(text, None)
    return None if value is None else float(value)


def digit(character: str) -> str | None:
    value = unicodedata.decimal(character, None)
    value = unicodedata.digit(character, HAN_DIGITS.get(character)) if value is None else value
    return None if value is None else str(value)


def decimal_mark(text: str) -> str | None:
    """The later one of point and comma; a comma alone has one to three digits behind it."""
    if "." in text:
        return max(".,", key=text.rfind)
    behind = sum(digit(character) is not None for character in text.rpartition(",")[2])
    return "," if "," in text and 1 <= behind <= 3 else None


def in_digits(text: str) -> float | None:
    mark, written_out, is_sign_allowed = decimal_mark(text), "", False
    for character in text:
        if is_sign_allowed and character in SIGNS and character not in "正负負":
            written_out += "-" if SIGNS[character] < 0 else "+"
            is_sign_allowed = False
            continue
        is_sign_allowed = False
        if character in "eE" and "e" not in written_out:
            if not written_out:
                return None
            written_out, is_sign_allowed = written_out + "e", True
        elif character in {"٫", "．", mark}:
            if "." in written_out:
                return None
            written_out += "."
        elif character in GROUPING or character.isspace() or (mark and character in ".,"):
            continue
        elif (value := digit(character)) is not None:
            written_out += value
        else:
            return None
    return float(written_out) if any(character.isdigit() for character in written_out) else None


def chinese(text: str) -> float | None:
    point = next((mark for mark in "点點．." if mark in text), None)
    whole, _, fraction = text.partition(point) if point else (text, "", "")
    units = {*HAN_TENS, *HAN_UNITS, *HAN_MYRIADS}
    value = chinese_whole(whole) if units & set(whole) else row_of_digits(whole)
    digits = [digit(character) for character in fraction if not character.isspace()]
    if value is None or None in digits:
        return None
    place, part = 0.1, 0.0
    for each in digits:
        part, place = part + int(each or 0) * place, place / 10.0
    return float(value) + part


def row_of_digits(text: str) -> int | None:
    digits = [digit(character) for character in text if not character.isspace()]
    return None if None in digits else int("".join(filter(None, digits)) or 0)


def chinese_whole(text: str) -> int | None:
    """Sum of the sections before 万, 亿 and 兆 and the last one."""
    total = section = pending = 0
    for character in text:
        if character.isspace() or character in "零〇○":
            continue
        if character in HAN_TENS:
            section += HAN_TENS[character]
        elif (value := digit(character)) is not None:
            pending = int(value)
        elif character in HAN_UNITS:
            section, pending = section + (pending or 1) * HAN_UNITS[character], 0
        elif character in HAN_MYRIADS:
            total, section, pending = total + (section + pending) * HAN_MYRIADS[character], 0, 0
        else:
            return None
    return total + section + pending


# --- answers


def cleaned(text: str) -> str:
    """Without the marks that Inspect takes off numbers, and without points that are no decimal ones."""
    text = re.sub(r"\\([$,£€*_])", r"\1", text.strip().casefold())
    return re.sub(r"\.(?=\s|$|\D)", "", re.sub(r"[$,£€*_]", "", text))


def rounded(value: float) -> str:
    return format(value, ".5g")


def last_number(text: str) -> str | None:
    """The last word that is a number; `None`: there is none."""
    values = map(number, reversed(re.split(r"\s+", cleaned(text))))
    return next((rounded(value) for value in values if value is not None), None)


def is_match(answer: str, key: str) -> bool:
    value = number(cleaned(key))
    if value is not None:
        return last_number(answer) == rounded(value)
    surrounding = string.whitespace + string.punctuation
    return answer.strip().casefold().strip(surrounding).endswith(cleaned(key).strip(surrounding))


def official(text: str) -> str | None:
    found = OFFICIAL.search(text)
    return found.group(1).replace(",", "") if found else None


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = solver_output.output.choices[0].message.content
    key, truth = sample["answer"].split("####")[-1].strip(), official(sample["answer"])
    if truth is None:
        raise ValueError(f"the row's answer has no '#### <number>': {sample['answer']!r}")
    return {
        "scores": {"is_correct": is_match(answer, key), "is_correct_official": official(answer) == truth},
        "metadata": {"predicted": last_number(answer), "ground_truth": key},
    }
