"""Tolerant YAML outline: structure of a text that may be incomplete.

`reading` parses complete files, but a file is often invalid while it is edited. This parser reads keys,
lists, flow collections and scalars by their columns, and skips everything else. An open bracket in line 3
therefore does not hide line 300. Offsets count characters of the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

MOST_LEVELS = 100
"""Maximum nesting depth. Deeper levels count as text."""

_KEY = re.compile(
    r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*'|(?:[^\s\-?#"'\[\]{},&*!|>%@`]|[\-?](?=\S))[^\n]{0,500}?)"""
    r"""[ \t]{0,50}:(?=[ \t\n]|\Z)"""
)
_FLOW_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s,\[\]{}#"'][^,\[\]{}\n]{0,500}?)\s{0,50}:(?=[\s,\[\]{}]|\Z)"""
)
_FLOW_PLAIN = re.compile(r"(?:[^,\[\]{}\n#]|(?<!\s)#)*")
_PROPERTY = re.compile(r"[&!][^\s,\[\]{}]*[ \t]*")
_BLOCK = re.compile(r"[|>][0-9+\-]*[ \t]*(?:#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")


@dataclass(frozen=True, slots=True)
class Scalar:
    """Scalar text, or an empty position that needs a value."""

    start: int
    end: int
    text: str
    """Text without quotes. For a block scalar, its lines with their indentation."""
    style: Literal["", '"', "'", "|", ">"] = ""
    tag: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the value is missing."""
        return self.start == self.end


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """Entry of a mapping."""

    key: str
    start: int
    """Start of the key, including its quotes."""
    end: int
    value: Node | None
    """Value of the key; `None` for a word without a colon."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """Mapping with its entries in order. Duplicate keys are kept."""

    start: int
    end: int
    pairs: tuple[MappingEntry, ...]
    column: int
    """Column of the keys; -1 in a flow collection."""
    tag: str = ""

    def get(self, key: str) -> Node | None:
        """Return the value of a key; `None` if the key or its colon is missing."""
        return next((pair.value for pair in self.pairs if pair.key == key), None)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Sequence with its items in order."""

    start: int
    end: int
    items: tuple[Node, ...]
    column: int
    tag: str = ""


Node = Scalar | Mapping | Sequence
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """Node or key at an offset."""

    path: Path
    """Path of the value. For a key, path of its mapping."""
    node: Node
    """Value, or mapping that contains the key."""
    pair: MappingEntry | None = None
    """Entry whose key is at the offset; `None` inside a value."""


def outline(text: str) -> Node:
    """Return the structure of a text, or an empty scalar for an empty text."""
    return _Reader(text).document()


def spot_at(node: Node, offset: int, path: Path = ()) -> Spot:
    """Return the innermost node or key that contains an offset or ends at it."""
    if isinstance(node, Mapping):
        for pair in node.pairs:
            if pair.start <= offset <= pair.end:
                return Spot(path, node, pair)
            if pair.value is not None and pair.value.start <= offset <= pair.value.end:
                return spot_at(pair.value, offset, (*path, pair.key))
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            if item.start <= offset <= item.end:
                return spot_at(item, offset, (*path, index))
    return Spot(path, node)


def node_at(node: Node | None, path: Path) -> Node | None:
    """Return the node at a path; `None` if missing."""
    for part in path:
        if isinstance(node, Mapping) and isinstance(part, str):
            node = node.get(part)
        elif isinstance(node, Sequence) and isinstance(part, int) and 0 <= part < len(node.items):
            node = node.items[part]
        else:
            return None
    return node


def data_of(node: Node | None) -> object:
    """Return the tree as plain mappings, lists and texts."""
    if isinstance(node, Mapping):
        return {pair.key: data_of(pair.value) for pair in reversed(node.pairs)}
    if isinstance(node, Sequence):
        return [data_of(item) for item in node.items]
    return None if node is None or (node.is_empty and not node.style) else node.text


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    column: int
    """Column of the line's content; -1 for an empty line or a comment."""


class _Reader:
    """Parser that reads a text once from its first line to its last."""

    def __init__(self, text: str):
        self._text = text
        self._lines: list[_Line] = []
        start = 0
        for line in text.split("\n"):
            column = len(line) - len(line.lstrip(" "))
            is_blank = column == len(line) or line[column] in "#\r\t" or line.startswith(("---", "...", "%"))
            self._lines.append(_Line(start, start + len(line), -1 if is_blank else column))
            start += len(line) + 1
        self._at = 0
        """Index of the next line to read."""
        self._levels = 0

    def document(self) -> Node:
        self._skip_blank()
        if self._at >= len(self._lines):
            return Scalar(0, 0, "")
        nodes: list[Node] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            nodes.append(self._block(line.start + line.column, line.column))
            self._skip_blank()
        if len(nodes) == 1:
            return nodes[0]
        # Lines further left than the first line have the wrong indentation. Continue with their keys.
        pairs = tuple(pair for node in nodes if isinstance(node, Mapping) for pair in node.pairs)
        return Mapping(nodes[0].start, nodes[-1].end, pairs, 0) if pairs else nodes[0]

    def _skip_blank(self) -> None:
        while self._at < len(self._lines) and self._lines[self._at].column < 0:
            self._at += 1

    def _next_column(self) -> int:
        """Return the column of the next line that is not blank; -1 at the end."""
        self._skip_blank()
        return self._lines[self._at].column if self._at < len(self._lines) else -1

    def _block(self, offset: int, column: int) -> Node:
        """Parse the node that begins at an offset of the current line and continues in lines of the same
        column.
        """
        self._levels += 1
        try:
            line = self._lines[self._at]
            if self._levels > MOST_LEVELS:
                self._at += 1
                return Scalar(offset, line.end, self._text[offset : line.end])
            if self._is_item(offset):
                return self._sequence(offset, column)
            if self._text[offset] not in "{[" and (self._key(offset) or self._key_follows(column)):
                return self._mapping(offset, column)
            return self._value(offset, column - 1)
        finally:
            self._levels -= 1

    def _is_item(self, offset: int) -> bool:
        return self._text[offset : offset + 2] in {"- ", "-\n", "-\r", "-"}

    def _key(self, offset: int) -> re.Match[str] | None:
        return _KEY.match(self._text, offset, self._lines[self._at].end)

    def _key_follows(self, column: int) -> bool:
        """Return whether the line is a word without a colon, followed by a line with a key in the same
        column.
        """
        number = self._at + 1
        while number < len(self._lines) and self._lines[number].column < 0:
            number += 1
        if number == len(self._lines) or self._lines[number].column != column:
            return False
        line = self._lines[number]
        return _KEY.match(self._text, line.start + column, line.end) is not None

    def _sequence(self, start: int, column: int) -> Sequence:
        items: list[Node] = []
        offset = start
        while True:
            number, line = self._at, self._lines[self._at]
            inner = offset + 1
            while inner < line.end and self._text[inner] == " ":
                inner += 1
            if _is_comment(self._text[offset + 1 : line.end]):
                self._at += 1
                next_column = self._next_column()
                if next_column > column:
                    inner = self._lines[self._at].start + next_column
                    items.append(self._block(inner, next_column))
                else:
                    items.append(Scalar(min(offset + 2, line.end), line.end, ""))
                    items[-1] = _empty(min(offset + 2, line.end))
            else:
                items.append(self._block(inner, inner - line.start))
            if self._at == number:
                self._at += 1
            next_column = self._next_column()
            if next_column > column:
                self._at += 1  # line outside any node
                next_column = self._next_column()
            if next_column != column or not self._is_item(self._lines[self._at].start + column):
                break
            offset = self._lines[self._at].start + column
        return Sequence(start, max(items[-1].end, start), tuple(items), column)

    def _mapping(self, start: int, column: int) -> Mapping:
        pairs: list[MappingEntry] = []
        offset = start
        while True:
            match = self._key(offset)
            line = self._lines[self._at]
            if match is None:
                end = offset + len(_without_comment(self._text[offset : line.end]))
                pairs.append(MappingEntry(_unquoted(self._text[offset:end]), offset, end, None))
                self._at += 1
            else:
                key = _unquoted(match[1])
                value = self._value_of_key(match.end(), column)
                pairs.append(MappingEntry(key, offset, match.end(1), value))
            next_column = self._next_column()
            while next_column > column:
                self._at += 1  # deeper than all open nodes: skip the wrong indentation and continue
                next_column = self._next_column()
            if next_column != column:
                break
            offset = self._lines[self._at].start + column
            if self._is_item(offset):
                break
        final = pairs[-1]
        return Mapping(
            start, final.end if final.value is None else max(final.end, final.value.end), tuple(pairs), column
        )

    def _value_of_key(self, stop: int, column: int) -> Node:
        """Parse the value after a colon, in the same line or below."""
        line = self._lines[self._at]
        offset = stop
        while offset < line.end and self._text[offset] in " \t":
            offset += 1
        tag = ""
        while (match := _PROPERTY.match(self._text, offset, line.end)) is not None:
            tag = match[0].strip() if match[0].startswith("!") else tag
            offset = match.end()
        remainder = self._text[offset : line.end]
        if remainder.strip() and not remainder.startswith("#"):
            return self._value(offset, column, tag)
        self._at += 1
        place = min(stop + 1, line.end)
        next_column = self._next_column()
        below = self._lines[self._at] if next_column >= 0 else None
        if below is not None and tag != "!include":
            offset = below.start + next_column
            if next_column > column or (next_column == column and self._is_item(offset)):
                return self._block(offset, next_column)
        return _empty(max(place, line.end if tag else place), tag)

    def _value(self, offset: int, column: int, tag: str = "") -> Node:
        """Parse a value that begins in the current line, inside a node at a column."""
        line = self._lines[self._at]
        sign = self._text[offset]
        if sign in "|>" and _BLOCK.match(self._text, offset, line.end):
            return self._text_block(offset, column, tag)
        if sign in "{[":
            return _Flow(self._text, self._limit(column), self._levels).read(offset, self, tag)
        if sign in "\"'":
            return self._quoted(offset, column, tag)
        return self._plain(offset, column, tag)

    def _limit(self, column: int) -> int:
        """Return the end of a value inside a node at a column."""
        number = self._at + 1
        while number < len(self._lines) and not 0 <= self._lines[number].column <= column:
            number += 1
        return self._lines[number - 1].end

    def go_past(self, offset: int) -> None:
        """Continue in the line after the line with this offset."""
        while self._at < len(self._lines) and self._lines[self._at].start <= offset:
            self._at += 1

    def _text_block(self, offset: int, column: int, tag: str) -> Scalar:
        header = self._at
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            text = self._text[line.start : line.end]
            if text.strip() and len(text) - len(text.lstrip(" ")) <= column:
                break
            self._at += 1
        end = self._lines[self._at - 1].end
        inner = min(self._lines[header].end + 1, end)
        style: Literal["|", ">"] = "|" if self._text[offset] == "|" else ">"
        return Scalar(offset, end, self._text[inner:end], style, tag)

    def _quoted(self, offset: int, column: int, tag: str) -> Scalar:
        quote = self._text[offset]
        limit = self._limit(column)
        end = _end_of_quote(self._text, offset, limit)
        if end is None:  # not closed yet, so it ends with its line
            end = self._lines[self._at].end
            inner = self._text[offset + 1 : end]
        else:
            inner = self._text[offset + 1 : end - 1]
        self.go_past(end)
        return Scalar(offset, end, inner, '"' if quote == '"' else "'", tag)

    def _plain(self, offset: int, column: int, tag: str) -> Scalar:
        line = self._lines[self._at]
        end = offset + len(_without_comment(self._text[offset : line.end]))
        self._at += 1
        while self._at < len(self._lines) and self._lines[self._at].column > column:
            below = self._lines[self._at]
            end = below.start + len(_without_comment(self._text[below.start : below.end]))
            self._at += 1
        return Scalar(offset, end, self._text[offset:end], "", tag)


class _Flow:
    """Parser of a flow collection. An unclosed collection ends at a limit."""

    def __init__(self, text: str, limit: int, levels: int):
        self._text = text
        self._limit = limit
        self._levels = levels

    def read(self, offset: int, reader: _Reader, tag: str) -> Node:
        node, end = self._node(offset, tag)
        reader.go_past(max(end, offset))
        return node

    def _node(self, offset: int, tag: str = "") -> tuple[Node, int]:
        while (match := _PROPERTY.match(self._text, offset, self._limit)) is not None:
            tag = match[0].strip() if match[0].startswith("!") else tag
            offset = match.end()
        sign = self._text[offset] if offset < self._limit else ""
        if sign in {"{", "["} and self._levels < MOST_LEVELS:
            self._levels += 1
            try:
                return self._collection(offset, tag)
            finally:
                self._levels -= 1
        if sign and sign in "\"'":
            closed = _end_of_quote(self._text, offset, self._limit)
            line_end = self._text.find("\n", offset, self._limit)
            end = closed or (self._limit if line_end < 0 else line_end)
            inner = self._text[offset + 1 : end - 1 if closed else end]
            return Scalar(offset, end, inner, '"' if sign == '"' else "'", tag), end
        match = _FLOW_PLAIN.match(self._text, offset, self._limit)
        written = "" if match is None else match[0].rstrip()
        return Scalar(offset, offset + len(written), written, "", tag), offset + len(written)

    def _collection(self, start: int, tag: str) -> tuple[Node, int]:
        is_mapping = self._text[start] == "{"
        closing = "}" if is_mapping else "]"
        pairs: list[MappingEntry] = []
        items: list[Node] = []
        offset = start + 1
        while True:
            begin = offset
            offset = self._skip(offset)
            if offset >= self._limit or self._text[offset] in "}]":
                is_closed = offset < self._limit and self._text[offset] == closing
                end = offset + 1 if is_closed else offset
                if not is_closed and offset < self._limit:
                    offset += 1
                break
            if self._text[offset] == ",":
                offset += 1
                continue
            match = _FLOW_KEY.match(self._text, offset, self._limit)
            if match is not None and (is_mapping or "\n" not in match[0]):
                value, stop = self._node_after(match.end())
                pair = MappingEntry(_unquoted(match[1]), offset, match.end(1), value)
                if is_mapping:
                    pairs.append(pair)
                else:
                    items.append(Mapping(offset, value.end, (pair,), -1))
                offset = stop
            else:
                node, offset = self._node(offset)
                if is_mapping and isinstance(node, Scalar):
                    pairs.append(MappingEntry(node.text, node.start, node.end, None))
                elif not is_mapping:
                    items.append(node)
            if offset <= begin:
                offset = begin + 1
        if is_mapping:
            return Mapping(start, end, tuple(pairs), -1, tag), max(end, offset)
        return Sequence(start, end, tuple(items), -1, tag), max(end, offset)

    def _node_after(self, colon: int) -> tuple[Node, int]:
        offset = self._skip(colon)
        if offset >= self._limit or self._text[offset] in ",]}":
            place = min(colon + 1, offset)
            return _empty(place), offset
        return self._node(offset)

    def _skip(self, offset: int) -> int:
        while offset < self._limit:
            if self._text[offset] in " \t\r\n":
                offset += 1
            elif self._text[offset] == "#" and self._text[offset - 1] in " \t\n":
                end = self._text.find("\n", offset, self._limit)
                offset = self._limit if end < 0 else end
            else:
                break
        return offset


def _empty(offset: int, tag: str = "") -> Scalar:
    return Scalar(offset, offset, "", "", tag)


def _is_comment(text: str) -> bool:
    """Return whether the rest of a line is blank or a comment."""
    bare = text.strip()
    return not bare or bare.startswith("#")


def _without_comment(text: str) -> str:
    return _COMMENT.sub("", text, count=1).rstrip()


def _end_of_quote(text: str, offset: int, limit: int) -> int | None:
    """Return the offset after the closing quote; `None` if it is missing."""
    quote, at = text[offset], offset + 1
    while at < limit:
        if text[at] == "\\" and quote == '"':
            at += 2
        elif text[at] != quote:
            at += 1
        elif quote == "'" and text[at + 1 : at + 2] == "'":
            at += 2
        else:
            return at + 1
    return None


def _unquoted(text: str) -> str:
    """Return a key without quotes and escapes."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":
        return text
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    try:
        return str(json.loads(text)) if "\\" in text else text[1:-1]
    except ValueError:  # YAML has more escapes than JSON
        return text[1:-1]
