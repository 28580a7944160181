"""What a `.json` log that is no valid JSON still has: every sound member of its top level, every sound
sample.

The document is walked once. Where a value is broken, the walk goes on at the next place that can only be the
beginning of a member or of a sample: Inspect writes `id`, `epoch` and `input` first into each sample, and
inside a text no quote stands without a backslash. So a broken sample costs itself, and each byte is looked at
a few times at most.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Span = tuple[int, int]
"""Where a value begins and ends, in bytes."""

# Possessive, so that a long text costs no memory for going back.
TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_ID = rb'\s*+"id"\s*+:\s*+(' + TEXT + rb'|-?\d++)\s*+,\s*+"epoch"\s*+:\s*+(\d++)'
IDENTITY = rb"\{" + _ID
"""The beginning of a sample: its id, its epoch."""
# The value of a key is no sample.
_SAMPLE = re.compile(rb"\{(?<!:\{)(?<!:\s\{)" + _ID + rb'\s*+,\s*+"input"\s*+:', re.DOTALL)
_LINE = re.compile(r'\n  (?="\w+": )', re.ASCII)
"""Where a member of the top level begins for certain, in Inspect's layout: no text holds a raw line break."""
_OWN_LINES = ('\n  "eval": ', '\n  "status": ')
_KNOWN = re.compile(
    r',\s*(?="(?:eval"\s*:\s*\{\s*"(?:eval_set_id|eval_id|run_id|task|created)"'
    r'|plan"\s*:\s*\{\s*"name"|results"\s*:\s*\{\s*"(?:total_samples|scorer|scores)"'
    r'|stats"\s*:\s*\{\s*"started_at"|error"\s*:\s*\{\s*"message"|samples"\s*:\s*\[\s*\{\s*"id"))',
    re.ASCII,
)
"""Where one begins in any other layout, as far as what is first in it tells."""
_FIELDS = {"id", "epoch", "input", "target"}
"""What every sample has."""
_BROKEN = object()
_BLANK = re.compile(r"[\s,]*", re.ASCII)
_NAME = re.compile(r'"(\w+)"\s*:\s*', re.ASCII)
_MOST_MEMBERS = 100
"""Top-level members that are looked at; a log has about a dozen."""
_NEAR_END = 12
"""An error this near to the end of a piece may be due to the cut: the longest words are `-Infinity` and an
escape.
"""

# Only the ends of values are wanted, and an integer may have more digits than Python converts.
_DECODER = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)


@dataclass
class Pieces:
    """Where the parts of a broken document stand."""

    members: list[tuple[str, Span]] = field(default_factory=list)
    """Name and value of the top level's members, `samples` left out; broken values too, as far as they reach.
    """
    samples: list[Span] = field(default_factory=list)
    """Elements of `samples`; broken ones too."""


@dataclass
class Whole:
    """Where the parts of a sound document stand."""

    members: list[Span] = field(default_factory=list)
    """Names and values of the top level, without a list of samples."""
    samples: list[tuple[Span, Any]] = field(default_factory=list)
    """Elements of `samples`, each with its `id` and `epoch` as a pair, or `None` where it is no object."""


_PLAIN = json.JSONDecoder(strict=False)
_COLON = re.compile(r"\s*:\s*", re.ASCII)
_SPACE = re.compile(r"\s*", re.ASCII)


def whole(data: bytes, most: Callable[[int, int], None]) -> Whole | None:
    """The parts of a document, one value in memory at a time; `None` when it is no JSON (where NaN is
    allowed).

    Args:
        data: the document.
        most: told how many samples there are in how many bytes, every few thousand; may raise what ends the
            search.
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
    """Where the value behind the one that ends at `at` begins, or the bracket is."""
    at = _end(_SPACE, text, at)
    if text[at] == ",":
        at = _end(_SPACE, text, at + 1)
        if text[at] == close:
            raise ValueError("a comma in front of a closing bracket")
    elif text[at] != close:
        raise ValueError("neither a comma nor a closing bracket")
    return at


def pieces(data: bytes, most_broken: int) -> Pieces:
    """The parts of a document that cannot be parsed as a whole.

    Args:
        data: the document.
        most_broken: samples that may be broken before the rest is given up, which is then one more broken
            sample.
    """
    # One character per byte: brackets, quotes and digits are ASCII, and nothing else is looked at here.
    text = data.decode("latin-1")
    samples = _Samples(text, [match.start() for match in _SAMPLE.finditer(data)], most_broken)
    lines = (
        [match.start() for match in _LINE.finditer(text)] if any(sign in text for sign in _OWN_LINES) else []
    )
    document = Pieces()
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
    """Where the value at `at` ends; that of a broken one is where the next member begins for certain."""
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
    """Walks along the elements of `samples`."""

    def __init__(self, text: str, anchors: list[int], most_broken: int):
        self.anchors = anchors
        """Where a sample begins for certain, if not inside another one."""
        self._text = text
        self._most_broken = most_broken
        self._piece = ""
        self._base = 0

    def walk(self, at: int) -> tuple[list[Span], int]:
        """The elements from `at` on, and where the list ends."""
        spans: list[Span] = []
        broken = 0
        searching = False
        while (at := _end(_BLANK, self._text, at)) < len(self._text):
            if self._text[at] in "]}" and not searching and self._next(at) == len(self._text):
                return spans, at + 1
            end, value = self._element(at)
            if isinstance(value, list) and self._next(at) < end:
                # One bracket too many in front of samples.
                end, value = self._next(at), _BROKEN
            if searching and not (isinstance(value, dict) and value.keys() >= _FIELDS):
                # Not a sample of its own, but something in the broken one.
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
        """Where the element at `begin` ends, and its value; a broken one ends where the next may begin."""
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
                # Only pieces are parsed, never the rest of the document: an error counts the lines in front
                # of it.
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
