"""What a text states as its answer: the place behind a mark (`ANSWER: B`, `#### 7`), or a short text itself.

Perturbations that keep or change the meaning of an answer have to know where it stands. Where that is not
certain, none is found, and what needs it is not tried.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["letter", "number", "option", "words", "formula"]
"""`option`: a letter or digit with the text of that option, `B) Oslo`."""

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
"""Words that a text without a mark may have to be an answer itself."""
MOST_STATED = 80
"""Characters of an answer behind a mark."""


@dataclass(frozen=True)
class Stated:
    """The answer in a text."""

    start: int
    end: int
    text: str
    """From `start` to `end`, without signs around it."""
    kind: Kind
    is_marked: bool
    """Whether a mark such as `ANSWER:` stands before it."""


def stated(text: str) -> Stated | None:
    """The last answer that a text states; `None`: none that is certain."""
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
        return Stated(start + inner, start + inner + 1, core[inner], "letter", is_marked)
    if _NUMBER.fullmatch(core):
        return Stated(start, end, core, "number", is_marked)
    if not is_marked and (len(core.split()) > MOST_WORDS or _SENTENCE.match(core)):
        return None
    if _OPTION.fullmatch(core):
        return Stated(start, end, core, "option", is_marked)
    if not is_marked and _SEVERAL.search(core):
        return None
    return Stated(start, end, core, "formula" if _FORMULA.search(core) else "words", is_marked)


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
    """The letter or digit in front of an option's text; `None`: there is none."""
    match = _OPTION.fullmatch(text)
    return None if match is None else match.group(1)


def digits_of(text: str) -> tuple[int, int] | None:
    """Where the number stands in an answer that is one; `None`: there is none."""
    match = _DIGITS.search(text)
    return None if match is None else match.span()


def abstains(text: str) -> bool:
    """Whether a text gives no answer: it is blank, or says that it will not or cannot."""
    return not text.strip() or _ABSTAINS.search(text) is not None


def is_technical(text: str) -> bool:
    """Whether a text is code, JSON or a formula, of which case, blanks and signs may be part of the
    meaning.
    """
    if "```" in text or re.search(r"[\\{}<>]|\$.+\$|^\s{2,}\S", text, re.MULTILINE):
        return True
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
