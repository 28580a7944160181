"""The six post-process rules, which change an answer before it is scored.

Deterministic and stateless. This module stands alone: its source is also the beginning of the scorer that converted tasks carry.
"""

from __future__ import annotations

import re

_LETTER = re.compile("[A-E]")
_CLOSING_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_LINE_END = re.compile("\r\n|\r|\n")


def post_process(rule: str, text: str) -> str:
    """Apply one rule to a text.

    Raises:
        ValueError: there is no such rule.
    """
    if rule == "none":
        return text
    if rule == "strip_whitespace":
        return text.strip()
    if rule == "lower":
        return text.lower()
    if rule == "extract_letter":
        return extract_letter(text)
    if rule == "extract_code_block":
        return extract_code_block(text)
    if rule == "extract_first_line":
        return extract_first_line(text)
    raise ValueError(f"unknown post-process rule {rule!r}")


def extract_letter(text: str) -> str:
    """Return the first of the letters A to E anywhere in the text, or `""` if there is none.

    Letters inside words count, as the rule says: `The answer is B` gives `B`, and `Answer: B` gives `A`.
    Prompts should ask for the letter alone.
    """
    found = _LETTER.search(text)
    return found.group() if found else ""


def extract_code_block(text: str) -> str:
    """Return the first block in triple backticks, without its language and its last line end.

    Return `""` if there is no block, or if it is not closed, because a truncated program is another program.
    The block can also be in one line (three backticks, code, three backticks).
    """
    start = text.find("```")
    if start < 0:
        return ""
    after = start + 3
    line_end = text.find("\n", after)
    closing_in_line = text.find("```", after, line_end if line_end >= 0 else len(text))
    if closing_in_line >= 0:
        return text[after:closing_in_line]
    if line_end < 0:
        return ""
    closing = _CLOSING_FENCE.search(text, line_end + 1)
    if closing is None:
        return ""
    body = text[line_end + 1 : closing.start()]
    return body.removesuffix("\n").removesuffix("\r")


def extract_first_line(text: str) -> str:
    """Return the first line that is not blank, without surrounding whitespace; `""` if all lines are blank."""
    for line in _LINE_END.split(text):
        if stripped := line.strip():
            return stripped
    return ""
