"""Context of the cursor: a key, a value, a template expression, a parameter or a path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from aigo_editor.outline import (
    Mapping,
    MappingEntry,
    Node,
    Path,
    Scalar,
    Spot,
    data_of,
    node_at,
    outline,
    spot_at,
)
from aigo_editor.positions import START, TextRange

MARK = "\ue000"
"""Placeholder for the cursor while the surrounding text is parsed. This character is never typed."""

Subject = Literal[
    "key", "value", "item", "column", "variable", "filter", "parameter", "scores", "file", "nothing"
]

_WORD = re.compile(r"[\w$./\-]*\Z")
_COLUMN = re.compile(r"""\bsample(?:\.|\[\s*["'])(\w*)\Z""")
_IN_CODE = re.compile(r"""\bsample(?:\.data)?(?:\[|\.get\()\s*["'](\w*)\Z""")
_SCORES = re.compile(r"\bscores\.(?:([\w\-]+)\.)?(\w*)\Z")
_FILTER = re.compile(r"\|\s*(\w*)\Z")
_VARIABLE = re.compile(r"(?:^|[\s({\[,=~+*/<>!%-])(\w*)\Z")
_PARAMETER = re.compile(r"<<\s*(?:(config)\s*\.\s*)?([\w\-]*)\Z")


@dataclass(frozen=True)
class Context:
    """Element at the cursor, its location in the document and the part that is already written."""

    subject: Subject
    path: Path = ()
    """Path of the value. For a key, path of its mapping."""
    replaced: TextRange = START
    """Span that a completion replaces."""
    prefix: str = ""
    """Written part of the element."""
    data: object = None
    """Document content without the word at the cursor."""
    siblings: frozenset[str] = frozenset()
    """Keys that the mapping already has."""
    needs_colon: bool = True
    """Whether an inserted key needs a colon."""
    owner: str = ""
    """Owner of the element: `config` for a parameter, the scorer for a score."""


NOTHING = Context("nothing")


def context_at(text: str, offset: int) -> Context:
    """Return the context at an offset of a YAML text."""
    marked = text[:offset] + MARK + text[offset:]
    root = outline(marked)
    spot = spot_at(root, offset)
    data = _without_mark(data_of(root))
    if spot.pair is not None and MARK in marked[spot.pair.start : spot.pair.end]:
        return _of_key(root, spot, spot.pair, offset, data, marked)
    if not isinstance(spot.node, Scalar) or MARK not in spot.node.text:
        return NOTHING
    written = marked[spot.node.start : offset]
    inner = in_text(written, offset, spot.path, data)
    if inner is not None:
        return inner
    start = spot.node.start + (1 if spot.node.style in {'"', "'"} else 0)
    prefix = marked[start:offset]
    if spot.node.style in {"|", ">"} or "\n" in prefix:
        return NOTHING
    replaced = TextRange(start, offset)
    if spot.node.tag == "!include" or spot.path[-1:] == ("$ref",):
        return Context("file", spot.path, replaced, prefix, data)
    if spot.path and isinstance(spot.path[-1], int):
        return Context("item", spot.path, replaced, prefix, data)
    parent = node_at(root, spot.path[:-1]) if spot.path else None
    if _is_alone_in_line(marked, start) and (not spot.path or isinstance(parent, Mapping)):
        # Below its key or at the top of an empty file, the text starts a key of a mapping.
        return Context("key", spot.path, replaced, prefix, data)
    return Context("value", spot.path, replaced, prefix, data)


def in_text(written: str, offset: int, path: Path, data: object) -> Context | None:
    """Return the context inside a template, a snippet or a prompt file; `None` for plain text.

    Args:
        written: text before the cursor.
        offset: offset of the cursor in the document.
        path: path of the text.
        data: content of the document.
    """
    if (match := _PARAMETER.search(written)) is not None:
        replaced = TextRange(offset - len(match[2]), offset)
        return Context("parameter", path, replaced, match[2], data, owner=match[1] or "")
    expression = _open_expression(written)
    if expression is None:
        if (match := _IN_CODE.search(written)) is not None:
            return Context("column", path, TextRange(offset - len(match[1]), offset), match[1], data)
        return None
    for pattern, subject in (
        (_COLUMN, "column"),
        (_SCORES, "scores"),
        (_FILTER, "filter"),
        (_VARIABLE, "variable"),
    ):
        if (match := pattern.search(expression)) is not None:
            prefix = match[match.lastindex or 1] or ""
            owner = (match[1] or "") if subject == "scores" else ""
            replaced = TextRange(offset - len(prefix), offset)
            return Context(_SUBJECTS[subject], path, replaced, prefix, data, owner=owner)
    return NOTHING


def _open_expression(written: str) -> str | None:
    """Return the start of an unclosed Jinja expression or statement; `None` if missing."""
    opening = max(written.rfind("{{"), written.rfind("{%"))
    if opening < 0 or "}}" in written[opening:] or "%}" in written[opening:]:
        return None
    return written[opening:]


_SUBJECTS: dict[str, Subject] = {
    "column": "column",
    "scores": "scores",
    "filter": "filter",
    "variable": "variable",
}


def _of_key(root: Node, spot: Spot, pair: MappingEntry, offset: int, data: object, marked: str) -> Context:
    assert isinstance(spot.node, Mapping)
    siblings = frozenset(sibling.key for sibling in spot.node.pairs if sibling is not pair)
    prefix = marked[pair.start : offset]
    replaced = TextRange(pair.start, offset)
    return Context("key", spot.path, replaced, prefix, data, siblings, needs_colon=pair.value is None)


def _is_alone_in_line(text: str, offset: int) -> bool:
    return not text[text.rfind("\n", 0, offset) + 1 : offset].strip()


def _without_mark(data: object) -> object:
    if isinstance(data, dict):
        return {key: _without_mark(value) for key, value in data.items() if MARK not in key}
    if isinstance(data, list):
        return [_without_mark(item) for item in data]
    if isinstance(data, str) and MARK in data:
        return data.replace(MARK, "") or None
    return data
