"""One-line summaries of errors: the first meaningful line.

Libraries start an error with a count (`1 validation error for GenerateConfig`), a heading, a ruler, an empty
line or a whole traceback. The helpful line follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_VALIDATION = re.compile(r"\b\d+ validation errors? for (\S.*)$")
_DETAILS = re.compile(r"\s*\[type=\w+(?:, input_value=(?P<value>.*), input_type=\w+)?\]$")
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:: .*)?$")
_HEADING = re.compile(
    r"^\W*(?:an? )?(?:fatal |unexpected )?(?:error|exception|warning|failed|failure)\W*$", re.IGNORECASE
)
_OPAQUE = re.compile(r"<\w[\w.]* at 0x[0-9a-fA-F]+")
_LONGEST_VALUE = 60
"""Maximum displayed characters of an invalid value."""


def summary_of(error: BaseException) -> str:
    """Return the first meaningful line of an exception, otherwise the name of its type."""
    if isinstance(error, BaseExceptionGroup):
        more = f" (and {len(error.exceptions) - 1} more)" if len(error.exceptions) > 1 else ""
        return named_summary_of(error.exceptions[0]) + more
    text = str(error)
    if _OPAQUE.search(text) and error.__cause__ is not None:
        return named_summary_of(error.__cause__)
    return summary(text) or type(error).__name__


def named_summary_of(error: BaseException) -> str:
    """Return the type of an exception and its first meaningful line."""
    if isinstance(error, BaseExceptionGroup):
        return summary_of(error)
    name, text = type(error).__name__, summary_of(error)
    return text if text == name or text.startswith(f"{name}: ") else f"{name}: {text}"


def summary(text: str) -> str:
    """Return the first meaningful line of a text, otherwise an empty text."""
    lines = [line.rstrip() for line in text.splitlines() if _says_something(line)]
    if not lines:
        return text.strip().partition("\n")[0]
    first, rest = lines[0].strip(), lines[1:]
    if first.endswith(_TRACEBACK) and (raised := _raised(rest)):
        return first.removesuffix(_TRACEBACK) + raised
    if (match := _VALIDATION.search(first)) and rest:
        return first[: match.start()] + _invalid(match[1], rest)
    if first.endswith(":") and rest:
        return f"{first} {summary(chr(10).join(rest))}"
    return first


def _says_something(line: str) -> bool:
    return any(map(str.isalnum, line)) and _HEADING.match(line.strip()) is None


def _raised(lines: Sequence[str]) -> str | None:
    """Return the exception at the end of a traceback in one line; `None` if the traceback is truncated."""
    for number in reversed(range(len(lines))):
        if _RAISED.match(lines[number]):
            return summary("\n".join(lines[number:]))
    return None


def _invalid(title: str, lines: Sequence[str]) -> str:
    """Return the first error in pydantic's list: field, problem, and the value if it is short."""
    field = "" if lines[0].startswith(" ") else f"{lines[0]}: "
    problem, *rest = (lines[1:] if field else lines) or [""]
    details = _DETAILS.search(problem)
    value = details["value"] if details is not None else None
    found = f", found {value}" if value is not None and len(value) <= _LONGEST_VALUE else ""
    others = sum(not line.startswith(" ") for line in rest) if field else 0
    more = f" (and {others} more)" if others else ""
    return f"{title}: {field}{_DETAILS.sub('', problem).strip()}{found}{more}"


def short(value: object) -> str:
    """Return a short text of a value for a message."""
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:79] + "…"
