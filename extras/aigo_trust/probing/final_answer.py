"""Answer that a text states: the part after a marker (`ANSWER: B`, `#### 7`), or a short text as a whole.

Perturbations need the exact position of the answer. If the position is uncertain, no answer is returned and
these perturbations are not applied.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["letter", "number", "option", "words", "formula"]
"""Kind of the answer. `option` is a letter or digit with the text of its option, such as `B) Oslo`."""

_MARK = re.compile(r"\banswer\b[*_]{0,3}\s*(?:is\b|:)\s*:?|####", re.IGNORECASE)
_BOX = re.compile(r"\\boxed\{([^{}\n]*)\}")
_AROUND = " \t*_`\"'“”"
_LETTER = re.compile(r"\(([A-Za-z])\)|([A-Za-z])")
_OPTION = re.compile(r"\(?(\w)[).:] ?\S.*")
_NUMBER = re.compile(r"[-+−]?[$€£]?\d+(?:,\d{3})*(?:\.\d+)?(?:%|(?: [^\W\d_]+){0,2})?")
_DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_FORMULA = re.compile(r"[\\$^{}=<>]|\d\s*[/*+]\s*\d")
_SENTENCE = re.compile(
    r"(?:i|it|its|he|she|they|we|you|this|that|there|these|those|here|because|so|in|on|at|both|i'm|it's)\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"[.?!:;,|] ")
_ABSTAINS = re.compile(
    r"\b(?:sorry|can(?:no|')t (?:help|answer|assist|say|do|comply|rhyme|tell)|not able to|unable to|decline"
    r"|i do(?:n't| not) know|don't know|not sure|rather not|no comment|unanswerable|won't|will not)\b",
    re.IGNORECASE,
)
MOST_WORDS = 4
"""Maximum number of words in a text without a marker that counts as an answer."""
MOST_STATED = 80
"""Maximum number of characters in an answer after a marker."""


@dataclass(frozen=True)
class FinalAnswer:
    """Answer in a text."""

    start: int
    end: int
    text: str
    """Text from `start` to `end` without surrounding punctuation."""
    kind: Kind
    is_marked: bool
    """Whether a marker such as `ANSWER:` precedes it."""


def stated(text: str) -> FinalAnswer | None:
    """Return the last answer that a text states; `None` if uncertain."""
    start, end, is_marked = _place(text)
    while start < end and text[start] in _AROUND:
        start += 1
    while start < end and (text[end - 1] in _AROUND or text[end - 1] in ".!,;"):
        end -= 1
    core = text[start:end]
    if not core or len(core) > MOST_STATED or "\n" in core or abstains(core):
        return None
    letter = _LETTER.fullmatch(core)
    if letter is not None:
        inner = letter.start(1) if letter.group(1) else letter.start(2)
        return FinalAnswer(start + inner, start + inner + 1, core[inner], "letter", is_marked)
    if _NUMBER.fullmatch(core):
        return FinalAnswer(start, end, core, "number", is_marked)
    if not is_marked and (len(core.split()) > MOST_WORDS or _SENTENCE.match(core)):
        return None
    if _OPTION.fullmatch(core):
        return FinalAnswer(start, end, core, "option", is_marked)
    if not is_marked and _SEVERAL.search(core):
        return None
    return FinalAnswer(start, end, core, "formula" if _FORMULA.search(core) else "words", is_marked)


def _place(text: str) -> tuple[int, int, bool]:
    boxes = list(_BOX.finditer(text))
    if boxes:
        return boxes[-1].start(1), boxes[-1].end(1), True
    marks = list(_MARK.finditer(text))
    if not marks:
        return 0, len(text.rstrip()), False
    start = marks[-1].end()
    line = text.find("\n", start)
    return start, len(text) if line < 0 else line, True


def option_of(text: str) -> str | None:
    """Return the letter or digit before an option's text; `None` if missing."""
    match = _OPTION.fullmatch(text)
    return None if match is None else match.group(1)


def digits_of(text: str) -> tuple[int, int] | None:
    """Return the position of the number in a numeric answer; `None` if missing."""
    match = _DIGITS.search(text)
    return None if match is None else match.span()


def abstains(text: str) -> bool:
    """Return whether a text is blank or refuses to answer."""
    return not text.strip() or _ABSTAINS.search(text) is not None


def is_technical(text: str) -> bool:
    """Return whether a text is code, JSON or a formula, where case, whitespace and punctuation may have a
    meaning.
    """
    if "```" in text or re.search(r"[\\{}<>]|\$.+\$|^\s{2,}\S", text, re.MULTILINE):
        return True
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
