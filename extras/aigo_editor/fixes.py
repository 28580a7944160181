"""Quick fixes for issues, derived from their hints: `did you mean 'x'?`, `'x' is missing` …"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aigo_bridge.errors import Issue
from aigo_editor.outline import Mapping, Node, Scalar, node_at
from aigo_editor.positions import Lines, TextRange

_MEANT = re.compile(r"did you mean (?:'([^'\n]+)'|`([^`\n]+)`)\?")
_WRITE = re.compile(r"^write (?:'([^'\n]+)'|`([^`\n]+)`)$")
_QUOTED = re.compile(r"'([^'\n]+)'|`([^`\n]+)`|\"([^\"\n]+)\"")
_MARKER = re.compile(r"<<\s*(?:config|secrets)\.([\w\-]+)\s*>>")
_INCLUDE = re.compile(r"to insert the text of that file: (!include \S+)")
_LIKE = re.compile(r"'(\w+)' has a similar name")
_UNDEFINED = re.compile(r"the snippet does not define '(\w+)'")
_MISSING = re.compile(r"^'([\w$]+)' is missing")


@dataclass(frozen=True)
class Fix:
    """Change of one file."""

    title: str
    span: TextRange
    text: str


def fixes(issue: Issue, lines: Lines, root: Node) -> list[Fix]:
    """Return the fixes for an issue of a file, most likely first; empty if unknown.

    Args:
        issue: issue with a position in the file.
        lines: lines of the file.
        root: outline of the file.
    """
    if issue.line is None:
        return []
    return [
        *_meant(issue, lines),
        *_function(issue, lines),
        *_included(issue, lines),
        *_quoted(issue, lines),
        *_missing(issue, lines, root),
    ]


def _meant(issue: Issue, lines: Lines) -> Iterator[Fix]:
    """Yield a fix that replaces a word with the suggested word."""
    hint = issue.hint or ""
    match = _MEANT.search(hint) or _WRITE.search(hint)
    if match is None:
        return
    word = match[1] or match[2]
    marker = _MARKER.fullmatch(word)
    message = issue.message.partition(": found ")[2] or issue.message
    for wrong in (quoted[1] or quoted[2] or quoted[3] for quoted in _QUOTED.finditer(message)):
        right = marker[1] if marker is not None and "<<" not in wrong else word
        if "." in wrong and "." not in right:  # for `sample.nam`, the hint contains only the column name
            right = wrong.rpartition(".")[0] + "." + right
        span = _written(wrong, issue, lines)
        if span is not None and wrong != right:
            yield Fix(f"Replace {wrong!r} by {right!r}", span, right)
            return


def _written(word: str, issue: Issue, lines: Lines) -> TextRange | None:
    """Return the position of the word of an issue: its first whole-word match from the issue's column on."""
    assert issue.line is not None
    text = lines.line(issue.line - 1)
    pattern = re.compile(rf"(?<![\w$]){re.escape(word)}(?![\w$])")
    match = pattern.search(text, max((issue.column or 1) - 1, 0)) or pattern.search(text)
    if match is None:
        return None
    start = lines.starts[issue.line - 1]
    return TextRange(start + match.start(), start + match.end())


def _function(issue: Issue, lines: Lines) -> Iterator[Fix]:
    """Yield a fix that renames a snippet's function."""
    like, wanted = _LIKE.match(issue.hint or ""), _UNDEFINED.match(issue.message)
    if like is None or wanted is None or issue.line is None:
        return
    pattern = re.compile(rf"\bdef {re.escape(like[1])}\b")
    match = pattern.search(lines.text, lines.starts[min(issue.line - 1, len(lines.starts) - 1)])
    if match is not None:
        span = TextRange(match.start() + len("def "), match.end())
        yield Fix(f"Rename the function to {wanted[1]!r}", span, wanted[1])


def _included(issue: Issue, lines: Lines) -> Iterator[Fix]:
    match = _INCLUDE.search(issue.hint or "")
    if match is not None:
        path = match[1].partition(" ")[2]
        span = _scalar(path, issue, lines)
        if span is not None:
            yield Fix(f"Take the text of {path}", span, match[1])


def _quoted(issue: Issue, lines: Lines) -> Iterator[Fix]:
    if not (issue.hint or "").startswith("put it in quotes"):
        return
    span = lines.span_of(issue)
    written = lines.text[span.start : span.end]
    if written and written[0] not in "\"'{[":
        yield Fix("Put it in quotes", span, f'"{written}"')


def _scalar(text: str, issue: Issue, lines: Lines) -> TextRange | None:
    """Return the position of a scalar, including its quotes."""
    span = _written(text, issue, lines)
    if span is None:
        return None
    around = lines.text[span.start - 1 : span.start], lines.text[span.end : span.end + 1]
    return TextRange(span.start - 1, span.end + 1) if around in {('"', '"'), ("'", "'")} else span


def _missing(issue: Issue, lines: Lines, root: Node) -> Iterator[Fix]:
    """Yield a fix that inserts the missing key before the other keys of its mapping."""
    match = _MISSING.match(issue.message)
    if match is None:
        return
    key = match[1]
    path = issue.path[:-1] if issue.path and issue.path[-1] == key else issue.path
    node = node_at(root, path)
    if isinstance(node, Mapping) and node.pairs:
        offset = node.pairs[0].start
        if node.column < 0:
            yield Fix(f"Add {key!r}", TextRange(offset, offset), f"{key}: , ")
        else:
            indent = " " * node.column
            yield Fix(f"Add {key!r}", TextRange(offset, offset), f"{key}: \n{indent}")
    elif isinstance(node, Scalar) and node.is_empty and not path:
        yield Fix(f"Add {key!r}", TextRange(0, 0), f"{key}: \n")


def words_of(issue: Issue) -> str:
    """Return the text that an editor shows for an issue."""
    return f"{issue.message}\n{issue.hint}" if issue.hint else issue.message
