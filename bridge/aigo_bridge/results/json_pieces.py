"""Incremental reading of a JSON document in memory or in a mapped file. For a malformed document, all values
before the error are returned.

The caller names the containers to open. Everything below them is returned as whole values, one at a time.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from aigo_bridge.text.json_text import read_common_json, read_json

Path = tuple[str | int, ...]

_NEAR = 1 << 18
"""Bytes to search for the end of an element, if no earlier element was larger."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^,\]} \t\r\n]*")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# A lone quote begins a string that is not closed.
_STRUCTURE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
_FIRST_KEY = re.compile(rb'\{[ \t\r\n]*"[^"\\]*"')


class JsonSyntaxError(ValueError):
    """Invalid JSON; `offset` is the position in bytes from the start of the document."""

    def __init__(self, message: str, offset: int, path: Path):
        self.message = message
        self.offset = offset
        self.path = path
        super().__init__(f"{message} at byte {offset}")


class JsonPiece(NamedTuple):
    """Whole value of the document."""

    path: Path
    """Keys and list indices of the value."""
    offset: int
    """Bytes before the value."""
    value: Any
    """Value; an empty dictionary or list for an opened container, whose content follows."""
    opened: bool = False
    """Whether the content follows in separate pieces."""


def pieces(document: bytes | mmap.mmap, *, opened: Callable[[Path], bool]) -> Iterator[JsonPiece]:
    """Yield all pieces in document order.

    Args:
        document: JSON text.
        opened: returns whether to open a container; the elements of a list are treated equally.

    Raises:
        JsonSyntaxError: the document is truncated or malformed; all whole pieces before the error have
            been returned.
    """
    return _Cursor(document, opened).pieces()


class _Cursor:
    """Position in a document."""

    def __init__(self, document: bytes | mmap.mmap, opened: Callable[[Path], bool]):
        self._text = document
        self._opened = opened
        self._at = 0
        self._largest = 0

    def pieces(self) -> Iterator[JsonPiece]:
        if self._text[: len(_BYTE_ORDER_MARK)] == _BYTE_ORDER_MARK:
            self._at = len(_BYTE_ORDER_MARK)
        yield from self._value(())
        if self._peek() is not None:
            raise self._error("found more after the end of the document", ())

    def _error(self, message: str, path: Path, *, offset: int | None = None) -> JsonSyntaxError:
        return JsonSyntaxError(message, self._at if offset is None else offset, path)

    def _peek(self) -> int | None:
        """Return the next byte that is not whitespace; `None` at the end."""
        space = _SPACE.match(self._text, self._at)
        assert space is not None
        self._at = space.end()
        return self._text[self._at] if self._at < len(self._text) else None

    def _value(self, path: Path) -> Iterator[JsonPiece]:
        sign = self._peek()
        offset = self._at
        if sign == ord("{") and self._opened(path):
            yield JsonPiece(path, offset, {}, opened=True)
            self._at += 1
            yield from self._members(path)
        elif sign == ord("[") and self._opened(path):
            yield JsonPiece(path, offset, [], opened=True)
            self._at += 1
            yield from self._elements(path)
        else:
            yield JsonPiece(path, offset, self._parsed(path))

    def _members(self, path: Path) -> Iterator[JsonPiece]:
        if self._peek() == ord("}"):
            self._at += 1
            return
        while True:
            if self._peek() != ord('"'):
                raise self._unexpected("a key", path)
            key = self._parsed(path)
            if self._peek() != ord(":"):
                raise self._unexpected("`:` after a key", path)
            self._at += 1
            yield from self._value((*path, key))
            if self._ends(ord("}"), path, "`,` or `}`"):
                return

    def _elements(self, path: Path) -> Iterator[JsonPiece]:
        if self._peek() == ord("]"):
            self._at += 1
            return
        index = 0
        separator: bytes | None = None
        opened = self._opened((*path, 0))
        while True:
            place = (*path, index)
            if opened:
                yield from self._value(place)
            else:
                self._peek()
                start = self._at
                key = None
                value = None if separator is None else self._guessed(separator)
                if value is None:
                    key = _FIRST_KEY.match(self._text, self._at)
                    value = self._parsed(place)
                yield JsonPiece(place, start, value)
                # Elements of a list usually have the same layout. The text between two elements, up to the
                # first key of the second, probably also separates the next two.
                if key is not None:
                    separator = self._separator(key.group())
            index += 1
            if self._ends(ord("]"), path, "`,` or `]`"):
                return

    def _ends(self, bracket: int, path: Path, expected: str) -> bool:
        """Return whether a container ends here; otherwise skip the comma."""
        sign = self._peek()
        if sign not in (bracket, ord(",")):
            raise self._unexpected(expected, path)
        self._at += 1
        return sign == bracket

    def _separator(self, first_key: bytes) -> bytes | None:
        end = self._text.find(first_key, self._at, self._at + len(first_key) + 200)
        return b"}" + self._text[self._at : end] + first_key if end >= 0 else None

    def _guessed(self, separator: bytes) -> Any:
        """Return the next value, an object, if it ends at the next separator; otherwise `None`.

        A part of an object's text is never a valid object, so a guess that parses is correct.
        """
        end = self._text.find(separator, self._at, self._at + _NEAR + self._largest + self._largest // 4)
        if end < 0:
            return None
        try:
            value = read_common_json(self._text[self._at : end + 1])
        except ValueError:
            return None
        self._largest = max(self._largest, end + 1 - self._at)
        self._at = end + 1
        return value

    def _parsed(self, path: Path) -> Any:
        """Return the next value."""
        end = self._end(path)
        start, text = self._at, self._text[self._at : end]
        self._at = end
        self._largest = max(self._largest, len(text))
        try:
            return read_json(text)
        except json.JSONDecodeError as error:
            in_bytes = len(error.doc[: error.pos].encode("utf-8", "surrogatepass"))
            raise self._error(_lowered(error.msg), path, offset=start + in_bytes) from error
        except UnicodeDecodeError as error:
            raise self._error("found bytes that are not UTF-8", path, offset=start + error.start) from error
        except RecursionError as error:
            raise self._error("found a value that is nested too deeply", path, offset=start) from error

    def _end(self, path: Path) -> int:
        """Return the position after the last bracket, quote or character of the next value."""
        sign = self._peek()
        if sign is None:
            raise self._error("the document is cut off: expected a value", path)
        if sign in b"{[":
            return self._end_of_container(path)
        match = (_STRING if sign == ord('"') else _SCALAR).match(self._text, self._at)
        if match is None:
            raise self._cut_off(path)
        if match.end() == self._at:
            raise self._unexpected("a value", path)
        return match.end()

    def _end_of_container(self, path: Path) -> int:
        depth = 0
        for token in _STRUCTURE.finditer(self._text, self._at):
            sign = self._text[token.start()]
            if sign == ord('"'):
                if token.end() - token.start() == 1:
                    break
                continue
            depth += 1 if sign in b"{[" else -1
            if depth == 0:
                return token.end()
        raise self._cut_off(path)

    def _cut_off(self, path: Path) -> JsonSyntaxError:
        return self._error("the document is cut off", path, offset=len(self._text))

    def _unexpected(self, expected: str, path: Path) -> JsonSyntaxError:
        sign = self._peek()
        if sign is None:
            return self._error(f"the document is cut off: expected {expected}", path)
        return self._error(f"found {chr(sign)!r}, expected {expected}", path)


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
