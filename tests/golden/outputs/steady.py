"""Replacement of random values in an output, by named rules for certain positions. All other bytes stay unchanged.

A rule only replaces values of the right form: an invalid time stays, and is a difference. Equal ids stay equal: the first one is
`<id 1>` everywhere.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import NamedTuple

from tests.golden.outputs.rules import RULES, TEXTS

Place = tuple[str, ...]

Change = tuple[int, int, str]
"""Start and end of a part of a text, and its replacement."""

ID = r"[2-9A-HJ-NP-Za-km-z]{22}|[0-9a-f]{22}|[0-9a-f]{32}"
"""Random ids, digest ids of logs written by this project, and UUIDs."""

_ID = re.compile(rf"(?<![0-9A-Za-z])(?:{ID})(?![0-9A-Za-z])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(\.\d+)?(Z|[+-]\d\d[:-]\d\d)?")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_DIGEST = re.compile(r"(?<![0-9a-f])([0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})(?![0-9a-f])")
_SOURCE = re.compile(r"[\w./<>-]+")
_FRAME = re.compile(r"^(?: *\| )? {2,}(?![ +|]).*\n", re.MULTILINE)
"""Line of a traceback that is indented more than its first line, also in exception groups."""
_VERSION = re.compile(r"\d+(\.\w+)+(\+\w+)?")

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^\s"{}\[\]:,]+|[{}\[\]:,])')

WIDE = 200
"""Longer lines of JSON are broken at their commas, with `FOLD` at the beginning of each continuation."""

FOLD = "⋯"


class Value(NamedTuple):
    """Value in a JSON text that is neither a list nor an object."""

    begin: int
    end: int
    place: Place


@dataclass
class Steady:
    """Normalizer that removes random values from the texts of one case."""

    names: Mapping[str, str]
    """Replacements for the whole text: folders, and file names with a time."""
    ran: bool = True
    """Whether the commands include a run; only runs have random values."""
    ids: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, text: str) -> str:
        """Return the text of a file or the output of a command (`stdout`, `stderr`) without random values."""
        for found, stands in self.names.items():
            text = text.replace(found, stands)
        text = "".join(self._json(name, line) for line in _documents(name, text))
        for rule in TEXTS:
            if fnmatch.fnmatch(name, rule.files):
                text = re.sub(rule.pattern, rule.stands, text, flags=re.MULTILINE)
        return text

    def value(self, kind: str, text: str) -> str:
        """Return a value as in the file, without random parts."""
        match kind:
            case "id":
                return _ID.sub(lambda found: self.id(found[0]), text)
            case "time":
                return _NUMBER.sub("<time>", text) if _NUMBER.fullmatch(text) else _TIME.sub("<time>", text)
            case "seconds":
                return "<seconds>" if _NUMBER.fullmatch(text.strip('"')) else text
            case "version":
                return _VERSION.sub("<version>", text)
            case "digest":
                return _DIGEST.sub("<digest>", text)
            case "source":
                return "<line>" if text.isdecimal() else _SOURCE.sub("<source>", text)
            case "traceback" if text.startswith('"'):
                return json.dumps(_FRAME.sub("", json.loads(text)), ensure_ascii=False)
            case "traceback":
                return text
        raise AssertionError(f"no such kind: {kind}")

    def id(self, found: str) -> str:
        """Return the name of an id; equal ids have equal names."""
        return self.ids.setdefault(found, f"<id {len(self.ids) + 1}>")

    def _json(self, name: str, text: str) -> str:
        try:
            json.loads(text)
        except ValueError:
            return text
        commas: list[int] = []
        values = list(_values(text, commas))
        changes: list[Change] = []
        if self.ran:
            changes = [(value.begin, value.end, self._changed(name, value, text)) for value in values]
            changes = _in_order(name, values, changes)
        if len(text) > WIDE:
            changes += [(at, at, f"\n{FOLD}") for at in commas if text[at] not in " \n"]
        parts = []
        done = 0
        for begin, end, stands in sorted(changes):
            parts += [text[done:begin], stands]
            done = end
        return "".join([*parts, text[done:]])

    def _changed(self, name: str, value: Value, text: str) -> str:
        found = text[value.begin : value.end]
        for kind in _kinds(name, value.place):
            if kind == "json" and found.startswith('"'):
                inner = json.loads(found)
                stands = self._within(name, value.place, inner)
                found = found if stands == inner else json.dumps(stands, ensure_ascii=False)
            elif kind not in ("json", "set"):
                found = self.value(kind, found)
        return found

    def _within(self, name: str, place: Place, text: str) -> str:
        """Return a text that is itself JSON."""
        try:
            json.loads(text)
        except ValueError:
            return text
        parts = []
        done = 0
        for value in _values(text, [], (*place, "@")):
            parts += [text[done : value.begin], self._changed(name, value, text)]
            done = value.end
        return "".join([*parts, text[done:]])


def _in_order(name: str, values: Sequence[Value], changes: Sequence[Change]) -> list[Change]:
    """Sort the members of unordered lists; the members of each list stay together."""
    found = list(changes)
    for place, group in groupby(range(len(values)), key=lambda at: values[at].place):
        if "set" in _kinds(name, place):
            members = list(group)
            texts = sorted(changes[at][2] for at in members)
            for at, text in zip(members, texts, strict=True):
                found[at] = (*changes[at][:2], text)
    return found


def _documents(name: str, text: str) -> list[str]:
    """Return the parts of a text that may be JSON documents: the whole text or its lines."""
    return text.splitlines(keepends=True) if name.endswith((".jsonl", ".parquet")) else [text]


@cache
def _kinds(name: str, place: Place) -> tuple[str, ...]:
    dotted = ".".join(place)
    return tuple(
        rule.kind
        for rule in RULES
        if fnmatch.fnmatch(name, rule.files) and any(_pattern(each).fullmatch(dotted) for each in rule.places)
    )


@cache
def _pattern(place: str) -> re.Pattern[str]:
    """Compile `a.**.b.*`: `**` matches any number of keys, `*` one key."""
    text = re.escape(place).replace(r"\*\*\.", r"(?:.+\.)?").replace(r"\*\*", ".*").replace(r"\*", r"[^.]+")
    return re.compile(text)


def _values(text: str, commas: list[int], root: Place = ()) -> Iterator[Value]:
    """Return the values of a JSON text with their positions, and the positions of commas.

    Indices are `0`, because rules ignore them.
    """
    stack: list[str] = list(root)
    kinds: list[bool] = []  # for each open bracket, whether it is an object
    key_next = False
    for found in _TOKEN.finditer(text):
        token = found[1]
        match token:
            case "{":
                kinds.append(True)
                stack.append("")
                key_next = True
            case "[":
                kinds.append(False)
                stack.append("0")
                key_next = False
            case "}" | "]":
                kinds.pop()
                stack.pop()
                key_next = False
            case ",":
                commas.append(found.end())
                key_next = kinds[-1]
            case ":":
                key_next = False
            case _ if key_next:
                stack[-1] = token[1:-1]
            case _:
                yield Value(found.start(1), found.end(1), tuple(stack))
