"""Document after reading: its specification, its data, and the file, line and column of every value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from yaml.nodes import Node, ScalarNode

from aigo_bridge.access.grants import VariableUse
from aigo_bridge.errors import Issue
from aigo_bridge.reading.nodes import IncludedNode, VariableNode, child

LONGEST_LINE = 10_000
"""Maximum number of characters in a line that is kept for display. Longer lines are not readable."""


@dataclass(frozen=True)
class SourcePosition:
    """Position in a file."""

    file: str
    """File name as the user gave it."""
    line: int
    """Line number, from 1."""
    column: int
    """Column in characters, from 1."""
    source_line: str | None
    """Text of the line; `None` if the text of the file is not available, or the line is too long."""


def locate(
    root: Node,
    texts: Mapping[str, str],
    path: tuple[str | int, ...],
    *,
    line: int | None = None,
    column: int | None = None,
    key: bool = False,
) -> SourcePosition:
    """Return the position of a value (or of its key, with `key`), or a position inside a text value.

    For an invalid path, return the position of its last existing part.
    """
    node, key_node = root, None
    for part in path:
        entry = child(node, part)
        if entry is None:
            key_node = None
            break
        key_node, node = entry
    if line is not None and isinstance(node, ScalarNode):
        return _inside(node, texts, line, column)
    mark = (key_node if key and key_node is not None else node).start_mark
    return place_at(mark.name, mark.line + 1, mark.column + 1, texts)


def place_at(file: str, line: int, column: int, texts: Mapping[str, str]) -> SourcePosition:
    """Return a position with the text of its line."""
    lines = _lines(texts[file]) if file in texts else ()
    text = lines[line - 1] if 0 < line <= len(lines) else None
    return SourcePosition(file, line, column, text if text is None or len(text) <= LONGEST_LINE else None)


@lru_cache(maxsize=4)
def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n"))


def _inside(node: ScalarNode, texts: Mapping[str, str], line: int, column: int | None) -> SourcePosition:
    """Return the position of a line and column; without a column, of the first visible character."""
    if isinstance(node, IncludedNode):
        text = texts.get(node.file, "")
        indent = len(text) - len(text.lstrip()) - (text[: len(text) - len(text.lstrip())].rfind("\n") + 1)
        return place_at(
            node.file, node.skipped_lines + line, (column or 1) + (indent if line == 1 else 0), texts
        )
    source = texts.get(node.start_mark.name)
    if source is None:
        return place_at(node.start_mark.name, node.start_mark.line + 1, node.start_mark.column + 1, texts)
    rows = node.value.split("\n")
    row = rows[min(line, len(rows)) - 1]
    column = column or len(row) - len(row.lstrip()) + 1
    preceding = "\n".join(rows[: line - 1]) + row[: column - 1]
    stands_on_ink = column <= len(row) and not row[column - 1].isspace()
    at = _source_offset(source, node, len(_INK.findall(preceding)), stands_on_ink)
    return place_at(
        node.start_mark.name, source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at), texts
    )


_INK = re.compile(r"\S")
_PIECES = {
    '"': re.compile(r"\\(?:x..|u....|U.{8}|[\s\S])|[\s\S]"),
    "'": re.compile(r"''|[\s\S]"),
}
_BLANK_ESCAPES = frozenset(
    {"\\n", "\\t", "\\r", "\\ ", "\\\n", "\\_", "\\N", "\\L", "\\P", "\\x20", "\\u0020"}
)


def _source_offset(source: str, node: ScalarNode, ink: int, stands_on_ink: bool) -> int:
    """Return the offset in the file of the ink-th visible character of a scalar, or of the end of the
    previous one.

    YAML moves, folds and escapes whitespace, so only visible characters are counted. YAML keeps their
    order.
    """
    start, end = _offset(source, node.start_mark), _offset(source, node.end_mark)
    if node.style in {"|", ">"}:
        start = source.find("\n", start) + 1 or end
    elif node.style in {"'", '"'}:
        start, end = start + 1, end - 1
    pieces = _PIECES.get(node.style or "", re.compile(r"[\s\S]"))
    end_of_ink = start
    for match in pieces.finditer(source, start, max(start, end)):
        piece = match[0]
        if piece.isspace() or piece in _BLANK_ESCAPES:
            continue
        if ink == 0:
            return match.start() if stands_on_ink else end_of_ink
        ink -= 1
        end_of_ink = match.end()
    return end_of_ink


def _offset(source: str, mark: object) -> int:
    line: int = mark.line  # type: ignore[attr-defined]  # marks of the C parser are untyped
    column: int = mark.column  # type: ignore[attr-defined]  # as above
    at = 0
    for _ in range(line):
        at = source.find("\n", at) + 1
    return at + column


Dialect = Literal["default", "aigo-3.17"]
"""Rules for reading: `default` accepts all AI GO syntax, including deprecated syntax; `aigo-3.17` accepts the
syntax of that release's loader.
"""

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class Document(Generic[T]):
    """Content of a file and of the files that it refers to."""

    spec: T
    """Valid specification."""
    data: Any
    """JSON-like tree from which `spec` was created, with resolved references and converted deprecated
    syntax.
    """
    file: Path
    """Path of the file."""
    root: Path
    """Folder that must contain all included files."""
    issues: tuple[Issue, ...] = ()
    """Warnings. Errors are raised."""
    dialect: Dialect = "default"
    """Rules by which the file was read."""
    variables: tuple[VariableUse, ...] = ()
    """Environment variables in the document, with their positions."""
    node: Node = field(repr=False, compare=False, kw_only=True)
    """Nodes with the positions of `data`."""
    texts: Mapping[str, str] = field(repr=False, compare=False, kw_only=True)
    """Text of every file that was read, by the file name in positions."""

    def locate(
        self,
        path: tuple[str | int, ...],
        *,
        line: int | None = None,
        column: int | None = None,
        key: bool = False,
    ) -> SourcePosition:
        """Return the position of the value at a path of `data`; with `line` (and `column`), a position in its
        text.

        The text may come from an included file, whose position is then returned. With `key`, the position
        of the value's key is returned. For an invalid path, the last existing part is used.
        """
        return locate(self.node, self.texts, path, line=line, column=column, key=key)

    def folder(self, path: tuple[str | int, ...] = ()) -> Path:
        """Return the folder of the file that contains a value. Relative paths in the value start there."""
        return Path(self.locate(path).file).parent

    def is_hidden(self, path: tuple[str | int, ...]) -> bool:
        """Return whether a value comes from an environment variable, so that messages must not show it."""
        node = self.node
        for part in path:
            if (entry := child(node, part)) is None:
                return False
            node = entry[1]
        return isinstance(node, VariableNode) and node.is_expanded

    def place(self, issue: Issue) -> Issue:
        """Return the issue with the position of its `path`; `line` and `column` are relative to its text."""
        place = self.locate(issue.path, line=issue.line, column=issue.column)
        return replace(
            issue, file=place.file, line=place.line, column=place.column, source_line=place.source_line
        )

    def part(self, path: tuple[str | int, ...], spec: S) -> Document[S]:
        """Return a part as a document, e.g. a task of a run file. Warnings stay with the whole."""
        node, data = self.node, self.data
        for part in path:
            entry = child(node, part)
            if entry is None:
                raise KeyError(path)
            node, data = entry[1], data[part]
        file = Path(self.locate(path).file)
        return Document(spec, data, file, self.root, (), self.dialect, node=node, texts=self.texts)


def snippet_place(document: Document[Any], path: tuple[str | int, ...], code: str) -> tuple[str, int] | None:
    """Return the file and first line (from 1) of the code at a path, or `None` if its lines do not match a
    file.

    They do not match for texts with escaped or folded line ends, or if a config value added lines. The
    file name is relative to the document's folder; for a file in another folder, only its name is
    returned. Evidence therefore does not reveal paths of the machine.

    Args:
        document: the document.
        path: path in its data.
        code: text at that path with its config bound, as it runs.
    """
    written = text_at(document.data, path)
    if written is None or code.count("\n") != written.count("\n") or document.is_hidden(path):
        return None
    place = document.locate(path, line=1)
    lines = written.split("\n")
    file_lines = _lines(document.texts.get(place.file, ""))[place.line - 1 :][: len(lines)]
    if len(lines) > len(file_lines) or not all(map(_holds, file_lines, lines)):
        return None
    return _short(place.file, document.file.parent), place.line


def _holds(line: str, code: str) -> bool:
    return code.strip() in line


def text_at(data: Any, path: tuple[str | int, ...]) -> str | None:
    """Return the text at a path; `None` if a config value replaces a whole part of the document."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data if isinstance(data, str) else None


def _short(file: str, folder: Path) -> str:
    relative = Path(os.path.relpath(file, folder))
    return relative.name if relative.parts[0] == ".." else relative.as_posix()
