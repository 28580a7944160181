"""Recovery of a `.json` log that is not valid JSON: all valid top-level members and all valid samples.

The document is scanned once. After a broken value, the scan continues at the next certain start of a member
or sample. This works because Inspect writes `id`, `epoch` and `input` first in each sample, and quotes inside
a text are always escaped. Only broken samples are lost, and each byte is read only a few times.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Span = tuple[int, int]
"""Start and end of a value, in bytes."""

# Possessive quantifiers, so that a long text needs no memory for backtracking.
TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_ID = rb'\s*+"id"\s*+:\s*+(' + TEXT + rb'|-?\d++)\s*+,\s*+"epoch"\s*+:\s*+(\d++)'
IDENTITY = rb"\{" + _ID
"""Start of a sample: its id and epoch."""
# An object after a key is not a sample.
_SAMPLE = re.compile(rb"\{(?<!:\{)(?<!:\s\{)" + _ID + rb'\s*+,\s*+"input"\s*+:', re.DOTALL)
_LINE = re.compile(r'\n  (?="\w+": )', re.ASCII)
"""Certain start of a top-level member in Inspect's layout, because a text cannot contain a raw line break."""
_OWN_LINES = ('\n  "eval": ', '\n  "status": ')
_KNOWN = re.compile(
    r',\s*(?="(?:eval"\s*:\s*\{\s*"(?:eval_set_id|eval_id|run_id|task|created)"'
    r'|plan"\s*:\s*\{\s*"name"|results"\s*:\s*\{\s*"(?:total_samples|scorer|scores)"'
    r'|stats"\s*:\s*\{\s*"started_at"|error"\s*:\s*\{\s*"message"|samples"\s*:\s*\[\s*\{\s*"id"))',
    re.ASCII,
)
"""Start of a top-level member in another layout, recognized by its first field."""
_FIELDS = {"id", "epoch", "input", "target"}
"""Fields of every sample."""
_BROKEN = object()
_BLANK = re.compile(r"[\s,]*", re.ASCII)
_NAME = re.compile(r'"(\w+)"\s*:\s*', re.ASCII)
_MOST_MEMBERS = 100
"""Maximum number of top-level members to read. A log has about a dozen."""
_NEAR_END = 12
"""Maximum distance from the end of a piece, in characters, at which an error may be caused by the cut. The
longest tokens are `-Infinity` and an escape."""

# Only the ends of values are needed, and an integer may have more digits than Python converts.
_DECODER = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)


@dataclass
class DocumentParts:
    """Positions of the parts of a broken document."""

    members: list[tuple[str, Span]] = field(default_factory=list)
    """Name and span of the top-level members without `samples`. Broken values are included as far as they
    reach."""
    samples: list[Span] = field(default_factory=list)
    """Spans of the elements of `samples`, including broken ones."""


@dataclass
class Whole:
    """Positions of the parts of a valid document."""

    members: list[Span] = field(default_factory=list)
    """Spans of the top-level members, except a list of samples."""
    samples: list[tuple[Span, Any]] = field(default_factory=list)
    """Elements of `samples`: the span, and `id` and `epoch` as a pair. The pair is `None` if the element is
    not an object."""


_PLAIN = json.JSONDecoder(strict=False)
_COLON = re.compile(r"\s*:\s*", re.ASCII)
_SPACE = re.compile(r"\s*", re.ASCII)


def whole(data: bytes, most: Callable[[int, int], None]) -> Whole | None:
    """Return the parts of a document, with only one value in memory at a time; `None` if it is not JSON (NaN
    is allowed).

    Args:
        data: the document.
        most: called every few thousand samples with the number of samples and bytes. It may raise an
            exception to stop.
    """
    text = data.decode("latin-1")
    document = Whole()
    try:
        at = _end(_SPACE, text, 0)
        if text[at] != "{":
            return None
        at = _end(_SPACE, text, at + 1)
        while text[at] != "}":
            begin = at
            name, at = _PLAIN.raw_decode(text, at)
            colon = _COLON.match(text, at)
            if colon is None or not isinstance(name, str):
                return None
            if name == "samples" and text[colon.end()] == "[":
                document.samples, at = _elements(text, colon.end() + 1, most)
            else:
                at = _PLAIN.raw_decode(text, colon.end())[1]
                document.members.append((begin, at))
            at = _next(text, at, "}")
        return document if _end(_SPACE, text, at + 1) == len(text) else None
    except (ValueError, IndexError, RecursionError):
        return None


def _elements(text: str, at: int, most: Callable[[int, int], None]) -> tuple[list[tuple[Span, Any]], int]:
    elements: list[tuple[Span, Any]] = []
    begin = at
    at = _end(_SPACE, text, at)
    while text[at] != "]":
        value, end = _PLAIN.raw_decode(text, at)
        if not text[at:end].isascii():
            value = _PLAIN.decode(text[at:end].encode("latin-1").decode(errors="replace"))
        elements.append(
            ((at, end), (value.get("id", ""), value.get("epoch")) if type(value) is dict else None)
        )
        del value
        if len(elements) % 10_000 == 1:
            most(len(elements), end - begin)
        at = _next(text, end, "]")
    return elements, at + 1


def _next(text: str, at: int, close: str) -> int:
    """Return the start of the next value after `at`, or the position of the closing bracket."""
    at = _end(_SPACE, text, at)
    if text[at] == ",":
        at = _end(_SPACE, text, at + 1)
        if text[at] == close:
            raise ValueError("a comma before a closing bracket")
    elif text[at] != close:
        raise ValueError("neither a comma nor a closing bracket")
    return at


def pieces(data: bytes, most_broken: int) -> DocumentParts:
    """Return the parts of a document that cannot be parsed as a whole.

    Args:
        data: the document.
        most_broken: maximum number of broken samples. After that, the rest of the document counts as one
            broken sample.
    """
    # One character per byte. Only ASCII characters (brackets, quotes, digits) matter here.
    text = data.decode("latin-1")
    samples = _Samples(text, [match.start() for match in _SAMPLE.finditer(data)], most_broken)
    lines = (
        [match.start() for match in _LINE.finditer(text)] if any(sign in text for sign in _OWN_LINES) else []
    )
    document = DocumentParts()
    at = _end(_BLANK, text, text.find("{") + 1)
    for _ in range(_MOST_MEMBERS):
        if at >= len(text) or text[at] == "}":
            break
        name = _NAME.match(text, at)
        if name and name[1] == "samples" and text[name.end() : name.end() + 1] == "[":
            document.samples, at = samples.walk(name.end() + 1)
        else:
            end = _member_end(text, at if name is None else name.end(), lines)
            if name:
                document.members.append((name[1], (name.end(), end)))
            at = end
        at = _end(_BLANK, text, at)
    if not document.samples and samples.anchors:
        document.samples, _ = samples.walk(samples.anchors[0])
    return document


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _member_end(text: str, at: int, lines: list[int]) -> int:
    """Return the end of the value at `at`. A broken value ends at the next certain start of a member."""
    position = bisect_left(lines, at)
    limit = lines[position] if position < len(lines) else len(text)
    piece, base = (text[at:limit], at) if lines else (text, 0)
    try:
        return base + int(_DECODER.raw_decode(piece, at - base)[1])
    except (ValueError, RecursionError) as error:
        if lines:
            return limit
        behind = error.pos if isinstance(error, json.JSONDecodeError) else at
        member = _KNOWN.search(text, max(behind, at))
        return member.start() if member else len(text)


class _Samples:
    """Scanner for the elements of `samples`."""

    def __init__(self, text: str, anchors: list[int], most_broken: int):
        self.anchors = anchors
        """Certain starts of a sample, unless inside another sample."""
        self._text = text
        self._most_broken = most_broken
        self._piece = ""
        self._base = 0

    def walk(self, at: int) -> tuple[list[Span], int]:
        """Return the elements from `at` on, and the end of the list."""
        spans: list[Span] = []
        broken = 0
        searching = False
        while (at := _end(_BLANK, self._text, at)) < len(self._text):
            if self._text[at] in "]}" and not searching and self._next(at) == len(self._text):
                return spans, at + 1
            end, value = self._element(at)
            if isinstance(value, list) and self._next(at) < end:
                # An extra bracket before the samples.
                end, value = self._next(at), _BROKEN
            if searching and not (isinstance(value, dict) and value.keys() >= _FIELDS):
                # Part of the broken sample, not another sample.
                at = self._next(end)
                spans[-1] = (spans[-1][0], at)
            else:
                spans.append((at, end))
                searching = value is _BROKEN
                at = end
            broken += not isinstance(value, dict)
            if broken > self._most_broken:
                spans.append((at, len(self._text)))
                break
        return spans, len(self._text)

    def _element(self, begin: int) -> tuple[int, Any]:
        """Return the end and the value of the element at `begin`. A broken element ends at the next possible
        start.
        """
        anchor = bisect_left(self.anchors, begin + 1)
        if not self._base <= begin < self._base + len(self._piece):
            self._cut(begin, anchor)
        step = 1
        while True:
            try:
                value, end = _DECODER.raw_decode(self._piece, begin - self._base)
            except RecursionError:
                return self._next(begin + 1), _BROKEN
            except ValueError as error:
                # Only pieces are parsed, because a JSON error counts all lines before it.
                position = error.pos if isinstance(error, json.JSONDecodeError) else 0
                cut_short = position >= len(self._piece) - _NEAR_END or "Unterminated" in str(error)
                if cut_short and self._base + len(self._piece) < len(self._text):
                    self._cut(begin, anchor + step)
                    step *= 2
                    continue
                return self._next(max(begin + 1, self._base + (0 if cut_short else position))), _BROKEN
            return self._base + end, value

    def _cut(self, begin: int, anchor: int) -> None:
        end = self.anchors[anchor] if anchor < len(self.anchors) else len(self._text)
        self._piece, self._base = self._text[begin:end], begin

    def _next(self, at: int) -> int:
        position = bisect_left(self.anchors, at)
        return self.anchors[position] if position < len(self.anchors) else len(self._text)
