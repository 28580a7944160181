"""A log in Inspect's `.json` format: one document, cut into its samples.

Inspect writes these files with an indentation of two, so a sample begins at a line of four blanks and a brace: such
files are cut by searching those lines, and only one sample at a time becomes Python objects. Files in another
layout are parsed as a whole; a file that ends too early is cut by counting brackets.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from typing import Any

import orjson

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import Bounds, TooLargeError
from aigo_bridge.importing.damage import Damage
from aigo_bridge.importing.redaction import Redaction

from .parsing import Parsed, parse_json
from .sources import Source

_SAMPLES = re.compile(rb'\n  "samples": \[\r?\n')
_NEXT = re.compile(rb"\n    \},\r?\n    \{(?=\r?\n)")
_END = re.compile(rb"\n    \}\r?\n  \]")
# Possessive, so that a long text costs no memory for going back.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(_TEXT + rb"|[{}\[\]]", re.DOTALL)
_TOP_TOKEN = re.compile(_TEXT + rb"|[{}\[\],]", re.DOTALL)
_MOST_CUTS = 50
"""How many places are tried, from the end, to close a document that breaks off."""
_SAMPLES_KEY = re.compile(rb'"samples"\s*:\s*\[')
_IDENTITY = re.compile(rb'\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,\s*"epoch"\s*:\s*(\d+)')


class JsonLog:
    """The header and the undecoded samples of a `.json` log."""

    def __init__(self, source: Source, bounds: Bounds, redaction: Redaction):
        if source.size > bounds.member_bytes:
            raise TooLargeError(
                f"{source.name!r} is {source.size:,} bytes, the bound is {bounds.member_bytes:,}"
            )
        self.damage: list[Damage] = []
        data = redaction.apply(source.read_at(0, source.size))
        bounds.check_document(source.name, data)
        self._data = data
        self._spans: list[tuple[int, int]] = []
        self._values: list[Any] | None = None
        self._non_finite = False
        self.changes: Counter[str] = Counter()
        """What parsing the document as a whole had to change."""
        header = self._cut(data)
        if header is None:
            header = self._parse_whole(data)
        if not isinstance(header, dict) or not ("eval" in header or "status" in header):
            raise EvidenceError(f"{source.name!r} is JSON, but not an Inspect log: it has no 'eval'")
        self.reductions: Any = header.pop("reductions", None)
        header.pop("samples", None)
        self.header: dict[str, Any] = header

    def __len__(self) -> int:
        return len(self._spans) if self._values is None else len(self._values)

    def _cut(self, data: bytes) -> Any:
        """Find the samples of a file that is laid out as Inspect does; `None` when it is not."""
        start = _SAMPLES.search(data)
        if start is None:
            return None
        end = _END.search(data, start.end() - 1)
        if end is None:
            return None
        inner_end = end.start() + len(b"\n    }")
        at = start.end()
        spans = []
        for match in _NEXT.finditer(data, at, inner_end):
            spans.append((at, match.start() + len(b"\n    }")))
            at = match.end() - 1
        spans.append((at, inner_end))
        try:
            header = parse_json(
                data[: start.end()] + data[end.end() - 1 :], "the log without its samples"
            ).value
        except EvidenceError:
            return None
        self._spans = spans
        return header

    def _parse_whole(self, data: bytes) -> Any:
        try:
            parsed = parse_json(data, "the log")
        except EvidenceError as error:
            return self._salvage(data, error)
        document, self._non_finite = parsed.value, parsed.non_finite
        self.changes = parsed.changes
        if isinstance(document, dict):
            samples = document.pop("samples", None)
            self._values = samples if isinstance(samples, list) else []
            self._data = b""
        return document

    def _salvage(self, data: bytes, error: EvidenceError) -> Any:
        """What a cut-off document still has: the keys in front of the samples, and every whole sample."""
        start = _SAMPLES_KEY.search(data)
        head = data[: start.start()] if start else data
        header = _closed_prefix(head)
        if header is None or "eval" not in header:
            raise error
        self.damage.append(Damage("", None, str(error)))
        header["status"] = "started"
        if start:
            depth = 0
            begin = 0
            for token in _TOKEN.finditer(data, start.end()):
                sign = token[0][:1]
                if sign in b"{[":
                    if depth == 0:
                        begin = token.start()
                    depth += 1
                elif sign in b"}]":
                    depth -= 1
                    if depth < 0:
                        break
                    if depth == 0 and data[begin : begin + 1] == b"{":
                        self._spans.append((begin, token.end()))
        return header

    def size(self, index: int) -> int:
        """Bytes of a sample's JSON; 0 when the document was parsed as a whole."""
        if self._values is not None:
            return 0
        begin, end = self._spans[index]
        return end - begin

    def identity(self, index: int) -> tuple[str, int]:
        """Id (as text) and epoch of a sample, as far as they can be seen without parsing it; else `("", 0)`."""
        if self._values is not None:
            value = self._values[index]
            if isinstance(value, dict) and isinstance(value.get("epoch"), int):
                return str(value.get("id", "")), value["epoch"]
            return "", 0
        begin, end = self._spans[index]
        match = _IDENTITY.match(self._data, begin, end)
        if match is None:
            return "", 0
        try:
            return str(orjson.loads(match[1])), int(match[2])
        except orjson.JSONDecodeError:
            return "", 0

    def sample(self, index: int) -> Parsed:
        """One sample; raises `EvidenceError` when it is malformed."""
        if self._values is not None:
            # Parsed with the whole document, which also knows what had to be changed.
            return Parsed(copy.deepcopy(self._values[index]), self._non_finite)
        begin, end = self._spans[index]
        return parse_json(self._data[begin:end], f"samples[{index}]")


def _closed_prefix(head: bytes) -> dict[str, Any] | None:
    """Parse an object that breaks off, up to its last whole member."""
    depth = 0
    cuts = []
    for token in _TOP_TOKEN.finditer(head):
        sign = token[0][:1]
        if sign in b"{[":
            depth += 1
        elif sign in b"}]":
            depth -= 1
        elif sign == b"," and depth == 1:
            cuts.append(token.start())
    for cut in reversed(cuts[-_MOST_CUTS:]):
        try:
            value = parse_json(head[:cut] + b"}", "the start of the log").value
        except EvidenceError:
            continue
        return value if isinstance(value, dict) else None
    return None
