"""Reader for logs in Inspect's `.json` format: one document, split into samples that are parsed one at a
time.

A log in Inspect's own layout is split by lines and stays on disk. Inspect indents by two spaces, and JSON
texts cannot contain raw line breaks. The start of a line therefore determines its role, even in a broken
document. Other documents are read as a whole, but not parsed as a whole. Broken documents are handled by
`json_salvage`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct

from aigo_bridge.access.bounds import Bounds, LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import NO_REDACTION
from aigo_inspect.logs.json_salvage import IDENTITY, Span, pieces, whole
from aigo_inspect.logs.parsing import ParsedDocument, parse_json
from aigo_inspect.logs.shapes import STATUS_UNKNOWN
from aigo_inspect.logs.sources import ByteSource, BytesSource, local_path

_IDENTITY = re.compile(rb"\s*+" + IDENTITY, re.DOTALL)
_HEAD = 4096
"""Number of bytes that contain a sample's id and epoch, unless the id is longer."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Identity(Struct, gc=False):
    """Id and epoch of a sample. Other fields are ignored."""

    id: Any = ""
    epoch: Any = None


class JsonLog:
    """Header and undecoded samples of a `.json` log.

    Raises:
        EvidenceError: the file is not a log, or cannot be read at all.
        TooLargeError: the log exceeds the bounds.
    """

    def __init__(self, source: ByteSource, bounds: Bounds, redaction: Redactor):
        if source.size > bounds.member_bytes:
            raise LogTooLargeError(
                f"{source.name!r} has {source.size:,} bytes,"
                f" the bound 'member_bytes' is {bounds.member_bytes:,}"
            )
        self.damage: list[Damage] = []
        # A remote log is downloaded once, not sample by sample.
        local = local_path(source.name) is not None
        self._source = source if local else BytesSource(source.read_at(0, source.size), source.name)
        self._bounds = bounds
        self._redaction = redaction
        """Redactor for the samples, which are unchanged unless the log is broken."""
        self._spans: list[Span] = []
        self._raws: list[Raw] | None = None
        """Samples without known spans."""
        self._identities: list[tuple[str, int]] | None = None
        """Id and epoch of each sample, if found without parsing the sample."""
        self.changes: Counter[str] = Counter()
        """Changes made while parsing the header."""
        header = self._cut()
        if header is None:
            header = self._take_apart()
        self.reductions: Any = header.pop("reductions", None) if isinstance(header, dict) else None
        self.header: dict[str, Any] = self._checked(source.name, header)
        self._check_samples(len(self), source.size)

    def __len__(self) -> int:
        return len(self._spans) if self._raws is None else len(self._raws)

    def _check_samples(self, count: int, size: int) -> None:
        self._bounds.check_count("samples", count, size, "the log")

    # Finding the samples

    def _cut(self) -> Any:
        """Find the samples of a log in Inspect's layout, and return its header; `None` for other layouts."""
        source = self._source
        rows = find_rows(source, self._bounds)
        if rows is None:
            return None
        if rows.end is None:
            self.damage.append(Damage("", source.size, "the log ends in the middle of its samples"))
        self._spans = rows.spans
        rest = b"]}" if rows.end is None else source.read_at(rows.end, source.size - rows.end)
        header = source.read_at(0, rows.begin) + rest
        name = "the log without its samples"
        self._bounds.check_document(name, header)
        header = self._redaction.json(header)
        parsed = self._parsed(header, name)
        if parsed is None:
            return self._mend(header, self._spans)
        self.changes += parsed.changes
        return parsed.value

    def _take_apart(self) -> Any:
        """Find the samples of a document in another layout, and return its header."""
        source = self._source
        data = source.read_at(0, source.size).removeprefix(_BYTE_ORDER_MARK)
        members = self._members(data)
        if members is None:
            self._bounds.check_document(source.name, data)
            data = self._redaction.json(data)
            self._redaction = NO_REDACTION
            self._source = BytesSource(data, source.name)
            members = self._walked(data)
        if members is None:
            parsed = self._parsed(data, "the log")
            return self._mend(data) if parsed is None else parsed.value
        header = b"{%b}" % b",".join(members)
        name = "the log without its samples"
        self._bounds.check_document(name, header)
        clean = self._redaction.json(header)
        parsed = self._parsed(clean, name)
        if parsed is None:
            return self._mend(clean, self._spans)
        self.changes += parsed.changes
        if (samples := parsed.value.pop("samples", None)) is not None:
            self.damage.append(Damage("samples", None, f"expected a list of samples, found {_kind(samples)}"))
        return parsed.value

    def _members(self, data: bytes) -> list[bytes] | None:
        """Return the top-level members without the samples; `None` if the document is not valid JSON or has
        another structure.
        """
        try:
            members = msgspec.json.decode(data, type=dict[str, Raw])
            samples = members.pop("samples", Raw(b"[]"))
            identities = msgspec.json.decode(samples, type=list[_Identity])
            self._check_samples(len(identities), len(data))
            self._raws = msgspec.json.decode(samples, type=list[Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        self._identities = [_identity(sample.id, sample.epoch) for sample in identities]
        return [b"%b:%b" % (msgspec.json.encode(name), text) for name, text in members.items()]

    def _walked(self, data: bytes) -> list[bytes] | None:
        """Return the same members as `_members`, but accept NaN and invalid entries in the samples."""
        document = whole(data, self._check_samples)
        if document is None:
            return None
        self._spans = [span for span, _ in document.samples]
        self._identities = [("", 0) if pair is None else _identity(*pair) for _, pair in document.samples]
        return [data[begin:end] for begin, end in document.members]

    def _parsed(self, data: bytes, name: str, member: str = "") -> ParsedDocument | None:
        """Parse the log or a member. If it is broken, note the damage and return `None`, because the
        exception would keep a copy of the data.
        """
        try:
            return parse_json(data, name)
        except EvidenceError as error:
            self.damage.append(Damage(member, None, str(error)))
            return None

    def _mend(self, data: bytes, spans: list[Span] | None = None) -> dict[str, Any]:
        """Return the header of a broken document with all valid members. Also find its samples unless `spans`
        are given.
        """
        document = pieces(data, self._bounds.damaged)
        if spans is None:
            self._spans = document.samples
        header: dict[str, Any] = {}
        for name, (begin, end) in document.members:
            if (parsed := self._parsed(data[begin:end], name, name)) is not None:
                header[name] = parsed.value
                self.changes += parsed.changes
        header.setdefault("status", STATUS_UNKNOWN)
        return header

    def _checked(self, name: str, header: Any) -> dict[str, Any]:
        """Return the header with an `eval`, which is empty if only samples are left."""
        if not isinstance(header, dict):
            raise EvidenceError(
                f"{name!r} is JSON, but not an Inspect log: expected an object, found {_kind(header)}",
                code=Code.NOT_A_LOG,
            )
        header.pop("samples", None)
        if isinstance(header.get("eval"), dict):
            return header
        if not len(self):
            problem = f"its 'eval' is {_kind(header['eval'])}" if "eval" in header else "'eval' is missing"
            raise EvidenceError(
                f"{name!r} is JSON, but not an Inspect log: {problem}" + self._reason(), code=Code.NOT_A_LOG
            )
        if "eval" in header or not any(item.member == "eval" for item in self.damage):
            reason = "'eval' is missing from the log or unusable; only data from its samples is available"
            self.damage.append(Damage("eval", None, reason))
        return {"eval": {}, **{key: value for key, value in header.items() if key != "eval"}}

    def _reason(self) -> str:
        return f" ({self.damage[0].reason})" if self.damage else ""

    # Single samples

    def size(self, index: int) -> int:
        """Return the size of a sample's JSON in bytes."""
        if self._raws is not None:
            return len(memoryview(self._raws[index]))
        begin, end = self._spans[index]
        return end - begin

    def identity(self, index: int) -> tuple[str, int]:
        """Return the id (as text, not redacted) and epoch of a sample; `("", 0)` if they are not visible."""
        if self._identities is not None:
            return self._identities[index]
        begin, end = self._spans[index]
        head = self._source.read_at(begin, min(_HEAD, end - begin))
        match = _IDENTITY.match(head)
        if match is None and len(head) == _HEAD and b'"id"' in head[:64]:
            match = _IDENTITY.match(self._source.read_at(begin, end - begin))
        if match is None:
            return "", 0
        try:
            return str(orjson.loads(match[1])), int(match[2])
        except ValueError:
            # Invalid JSON, or an epoch with more digits than Python converts.
            return "", 0

    def sample(self, index: int) -> ParsedDocument:
        """Return one sample. Raise `EvidenceError` if it is malformed or exceeds the bounds."""
        name = f"samples[{index}]"
        if self._raws is not None:
            data = bytes(self._raws[index])
        else:
            begin, end = self._spans[index]
            data = self._source.read_at(begin, end - begin)
        self._bounds.check_document(name, data)
        return parse_json(data, name, self._redaction)


def _identity(sample_id: Any, epoch: Any) -> tuple[str, int]:
    return (str(sample_id), epoch) if isinstance(epoch, int) else ("", 0)


def _kind(value: Any) -> str:
    """Return the name of a value's type in JSON."""
    kinds = {type(None): "null", dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return kinds.get(type(value), "a number")


# Rows


_LINE = re.compile(rb'\n    ([^ \r\n])|\n  "samples": (\[)(?=\r?\n)|\n  (\])(?=,?\r?\n)')
_LONGEST = 32
"""Maximum length of a match including its lookahead, in bytes."""
_WINDOW = 16 << 20
_BETWEEN = b", \r\n"


@dataclass
class SampleList:
    """List of samples of a log in Inspect's layout."""

    begin: int
    """Offset after the opening bracket, in bytes."""
    end: int | None = None
    """Offset of the closing bracket; `None` if the log is truncated."""
    spans: list[Span] = field(default_factory=list)
    """Spans of the elements. Data between two elements is also an element: the rest of a broken one."""


def find_rows(source: ByteSource, bounds: Bounds) -> SampleList | None:
    """Return the samples of a log in Inspect's layout; `None` for other layouts.

    Raises:
        EvidenceError: the log cannot be read.
        TooLargeError: the number of small elements exceeds the bounds.
    """
    rows: SampleList | None = None
    start: int | None = None
    opened = b""
    close: int | None = None

    def finish(limit: int) -> None:
        if rows is not None and start is not None:
            rows.spans += _row(source, start, opened, close, limit)

    for at, groups in _lines(source):
        sign, begins, ends = groups
        if begins:
            if rows is not None:
                continue
            rows = SampleList(at + 1)
        elif rows is None:
            continue
        elif ends:
            finish(at)
            rows.end = at
            return rows
        elif sign == b"}":
            close = at if close is None else close
        elif sign != b"]":
            finish(at)
            start, opened, close = at, sign, None
            if len(rows.spans) % 10_000 == 1:
                bounds.check_count("samples", len(rows.spans), at - rows.begin, "the log")
    finish(source.size)
    return rows


def _lines(source: ByteSource) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """Yield the position and the start of each relevant line."""
    base = 0
    while base < source.size:
        window = source.read_at(base, _WINDOW + _LONGEST)
        if not window:
            return
        for match in _LINE.finditer(window):
            if match.start() >= _WINDOW:
                break
            yield base + match.end() - 1, match.groups(b"")
        base += _WINDOW


def _row(source: ByteSource, start: int, opened: bytes, close: int | None, limit: int) -> Iterator[Span]:
    at = start
    if opened == b"{":
        if close is None:
            at = start + len(source.read_at(start, limit - start).rstrip(_BETWEEN))
        else:
            at = close + 1
        yield start, at
    remainder = source.read_at(at, limit - at)
    if remainder.strip(_BETWEEN):
        yield at, at + len(remainder.rstrip(_BETWEEN))
