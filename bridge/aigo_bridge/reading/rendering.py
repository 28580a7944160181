"""Issues as text for people, JSON for programs, or annotations for GitHub."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable
from typing import Literal

from aigo_bridge.errors import Issue, dotted

Format = Literal["rich", "json", "github"]

LONGEST_LINE = 160
"""Characters of a source line that are shown; the rest is cut around the column."""

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def render_issues(issues: Iterable[Issue], format: Format = "rich", *, colour: bool = False) -> str:  # noqa: A002  # the option's name
    """All issues in one text, ending with a line feed; empty when there are none.

    Args:
        issues: in the order in which they are to be shown.
        format: `rich`: each with its line and a caret; `json`: one array of objects; `github`: one
            workflow command per line.
        colour: whether the `rich` form is for a terminal. Control characters that stand in a file are
            never passed on, in any form.
    """
    issues = list(issues)
    if format == "json":
        return json.dumps([as_json(issue) for issue in issues], indent=2, ensure_ascii=False) + "\n"
    if format == "github":
        return "".join(_github(issue) + "\n" for issue in issues)
    text = "\n".join(_plain(issue, colour) for issue in issues)
    return text + summary(issues) + "\n" if issues else ""


def summary(issues: Iterable[Issue]) -> str:
    """`2 errors, 1 warning`."""
    issues = list(issues)
    counts = [(kind, sum(issue.severity == kind for issue in issues)) for kind in ("error", "warning")]
    return ", ".join(f"{count} {kind}{'s' if count != 1 else ''}" for kind, count in counts if count)


def as_json(issue: Issue) -> dict[str, object]:
    """One issue for programs; every key is always there."""
    return {
        "severity": issue.severity,
        "message": issue.message,
        "file": issue.file,
        "line": issue.line,
        "column": issue.column,
        "path": list(issue.path),
        "hint": issue.hint,
        "source_line": issue.source_line,
    }


def visible(text: str) -> str:
    """Text that cannot steer a terminal: control and direction characters escaped, tabs as a space."""
    if text.isprintable():
        return text
    return "".join(
        " "
        if letter == "\t"
        else letter
        if _is_harmless(letter)
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _plain(issue: Issue, colour: bool) -> str:
    paint, bold, dim, reset = (_COLOURS[issue.severity], _BOLD, _DIM, _RESET) if colour else ("", "", "", "")
    # A line says where; without one the path inside the document does, as in a result log.
    inside = dotted(issue.path) if issue.line is None else ""
    where = ": ".join(part for part in (issue.place, inside) if part)
    head = f"{bold}{visible(where)}{reset}: " if where else ""
    rows = [f"{head}{paint}{issue.severity}{reset}: {visible(issue.message)}"]
    if issue.source_line is not None and issue.line is not None:
        number = str(issue.line)
        line, at = _window(issue.source_line, (issue.column or 1) - 1)
        before = visible(line[:at])
        rows.append(f"{dim}{number} |{reset} {before}{visible(line[at:])}")
        if issue.column is not None:
            rows.append(f"{dim}{' ' * len(number)} |{reset} {' ' * _width(before)}{paint}^{reset}")
    if issue.hint:
        rows.append(f"  hint: {visible(issue.hint)}")
    return "\n".join(rows) + "\n"


def _window(line: str, at: int) -> tuple[str, int]:
    """The part of a long line around a position, and the position in it."""
    if len(line) <= LONGEST_LINE:
        return line, min(at, len(line))
    start = max(0, min(at - LONGEST_LINE // 2, len(line) - LONGEST_LINE))
    part = line[start : start + LONGEST_LINE]
    opening, closing = "…" if start else "", "…" if start + LONGEST_LINE < len(line) else ""
    return opening + part + closing, at - start + len(opening)


def _width(text: str) -> int:
    """Columns that text takes on a terminal: wide letters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _github(issue: Issue) -> str:
    message = issue.message + (f" ({issue.hint})" if issue.hint else "")
    properties = [
        f"{name}={_escaped(visible(str(value)), also=':,')}"
        for name, value in (
            ("file", _repository_path(issue.file)),
            ("line", issue.line),
            ("col", issue.column),
        )
        if value is not None
    ]
    return f"::{issue.severity} {','.join(properties)}::{_escaped(visible(message))}"


def _repository_path(file: str | None) -> str | None:
    return file.replace(os.sep, "/") if file is not None else None


def _escaped(text: str, also: str = "") -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for sign in also:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
