"""Lines that are no JSON: where reading stopped, and what to do about it."""

from __future__ import annotations

import json
import re

from aigo_bridge.jsonl_spec.records import RecordError, Rule

_HINTS = (
    (re.compile("property name"), "names stand in double quotes, and no comma behind the last field"),
    (re.compile("Unterminated string"), "close the quote; a line break inside a text is written \\n"),
    (re.compile("control character"), "a tab or line break inside a text is written \\t or \\n"),
    (re.compile("escape"), "a backslash inside a text is written \\\\"),
)
_PYTHON = re.compile(r"None\b|True\b|False\b|'")
_WRITTEN_AS = "JSON writes null, true and false, and texts in double quotes"


def broken_line(line: bytes, error: Exception) -> RecordError:
    """What is wrong with a line, given what its parser raised (`ValueError` or `RecursionError`)."""
    if isinstance(error, UnicodeDecodeError):
        column = len(line[: error.start].decode("utf-8", "replace")) + 1
        message = f"not JSON: byte {error.start + 1} is not UTF-8"
        return RecordError(Rule.JSON, "", message, "save the file as UTF-8", column=column)
    if isinstance(error, json.JSONDecodeError):
        text = error.doc.rstrip()
        at = min(error.pos, len(text))
        message = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        return RecordError(Rule.JSON, "", message, _hint(text, at, error.msg), column=at + 1)
    if isinstance(error, UnicodeEncodeError):
        hint = "write the character itself, or both halves of its escape"
        return RecordError(Rule.JSON, "", "not JSON: an escaped surrogate stands alone", hint)
    reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return RecordError(Rule.JSON, "", f"not JSON: {reason}")


def _hint(text: str, at: int, problem: str) -> str | None:
    if text.lstrip().startswith(("//", "#", "/*")):
        return "JSON has no comments; remove the line"
    if problem == "Extra data":
        behind = text[at:]
        if behind == ",":
            return "remove the comma: lines are no items of a list"
        return "one record a line: begin a new line here" if behind.startswith("{") else None
    if _PYTHON.match(text, at):
        return _WRITTEN_AS
    if at == len(text) and "Unterminated" not in problem:
        return "the line ends before the record does: a record is one line, whole"
    return next((hint for pattern, hint in _HINTS if pattern.search(problem)), None)
