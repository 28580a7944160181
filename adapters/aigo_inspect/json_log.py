"""A log in Inspect's `.json` format: one document, cut into its samples.

Inspect writes these files with an indentation of two, so a sample begins on a line of four blanks and a brace: such
files are cut by searching those lines, and only one sample at a time becomes Python objects. Files in another
layout are parsed as a whole; one that is broken is walked by `json_salvage`.
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

from .json_salvage import IDENTITY, pieces, rows
from .legacy import STATUS_UNKNOWN
from .parsing import Parsed, parse_json
from .sources import Source

_SAMPLES = re.compile(rb'\n  "samples": \[(?=\r?\n)')
_SAMPLES_END = re.compile(rb"\n  \](?=,?\r?\n)")
_IDENTITY = re.compile(rb"\s*+" + IDENTITY, re.DOTALL)


class JsonLog:
    """The header and the undecoded samples of a `.json` log.

    Raises:
        EvidenceError: it is no log, or nothing of it can be read.
        TooLargeError: it asks for more than the bounds allow.
    """

    def __init__(self, source: Source, bounds: Bounds, redaction: Redaction):
        if source.size > bounds.member_bytes:
            raise TooLargeError(
                f"{source.name!r} is {source.size:,} bytes, the bound 'member_bytes' is {bounds.member_bytes:,}"
            )
        self.damage: list[Damage] = []
        data = source.read_at(0, source.size)
        bounds.check_document(source.name, data)
        self._data = redaction.apply(data)
        self._bounds = bounds
        self._spans: list[tuple[int, int]] = []
        self._values: list[Any] | None = None
        self._non_finite = False
        self.changes: Counter[str] = Counter()
        """What parsing the document as a whole had to change."""
        header = self._cut()
        if header is None:
            header = self._parse_whole()
        self.reductions: Any = header.pop("reductions", None) if isinstance(header, dict) else None
        self.header: dict[str, Any] = self._checked(source.name, header)
        bounds.check_count("samples", len(self), len(data), "the log")

    def __len__(self) -> int:
        return len(self._spans) if self._values is None else len(self._values)

    def _cut(self) -> Any:
        """Find the samples of a file that is laid out as Inspect does; `None` when it is not."""
        data = self._data
        start = _SAMPLES.search(data)
        if start is None:
            return None
        end = _SAMPLES_END.search(data, start.end())
        if end is None:
            self.damage.append(Damage("", len(data), "the log is cut off among its samples"))
        self._spans = list(rows(data, start.end(), len(data) if end is None else end.start()))
        header = data[: start.end()] + (b"]}" if end is None else data[end.end() - 1 :])
        parsed = self._parsed(header, "the log without its samples")
        if parsed is None:
            return self._mend(header, self._spans)
        self.changes += parsed.changes
        return parsed.value

    def _parse_whole(self) -> Any:
        parsed = self._parsed(self._data, "the log")
        if parsed is None:
            return self._mend(self._data)
        document, self._non_finite = parsed.value, parsed.non_finite
        self.changes = parsed.changes
        if isinstance(document, dict):
            samples = document.pop("samples", None)
            if samples is not None and not isinstance(samples, list):
                self.damage.append(
                    Damage("samples", None, f"expected a list of samples, found {_kind(samples)}")
                )
            self._values = samples if isinstance(samples, list) else []
            self._data = b""
        return document

    def _parsed(self, data: bytes, name: str, member: str = "") -> Parsed | None:
        """The log, or a member of it; `None`, and damage, when it is broken. The error itself would keep a copy of it alive."""
        try:
            return parse_json(data, name)
        except EvidenceError as error:
            self.damage.append(Damage(member, None, str(error)))
            return None

    def _mend(self, data: bytes, spans: list[tuple[int, int]] | None = None) -> dict[str, Any]:
        """The header of a broken document: every member that is sound; and its samples, unless they are known."""
        found = pieces(data, self._bounds.damaged)
        self._spans = found.samples if spans is None else spans
        header: dict[str, Any] = {}
        for name, (begin, end) in found.members:
            if (parsed := self._parsed(data[begin:end], name, name)) is not None:
                header[name] = parsed.value
                self.changes += parsed.changes
        header.setdefault("status", STATUS_UNKNOWN)
        return header

    def _checked(self, name: str, header: Any) -> dict[str, Any]:
        """A header with an `eval`, made up where only the samples are left."""
        if not isinstance(header, dict):
            raise EvidenceError(
                f"{name!r} is JSON, but not an Inspect log: expected an object, found {_kind(header)}"
            )
        header.pop("samples", None)
        if isinstance(header.get("eval"), dict):
            return header
        if not len(self):
            problem = f"its 'eval' is {_kind(header['eval'])}" if "eval" in header else "it has no 'eval'"
            raise EvidenceError(f"{name!r} is JSON, but not an Inspect log: {problem}" + self._reason())
        if "eval" in header or not any(item.member == "eval" for item in self.damage):
            reason = "the log has no usable 'eval'; what is known comes from its samples"
            self.damage.append(Damage("eval", None, reason))
        return {"eval": {}, **{key: value for key, value in header.items() if key != "eval"}}

    def _reason(self) -> str:
        return f" ({self.damage[0].reason})" if self.damage else ""

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
        except ValueError:
            # No JSON after all, or an epoch of more digits than Python converts.
            return "", 0

    def sample(self, index: int) -> Parsed:
        """One sample; raises `EvidenceError` when it is malformed."""
        if self._values is not None:
            # Parsed with the whole document, which also knows what had to be changed.
            return Parsed(copy.deepcopy(self._values[index]), self._non_finite)
        begin, end = self._spans[index]
        return parse_json(self._data[begin:end], f"samples[{index}]")


def _kind(value: Any) -> str:
    """What a value is called in JSON."""
    kinds = {type(None): "null", dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return kinds.get(type(value), "a number")
