"""Checksums of every part of a sample or of the rest of a result, in document order.

The parts locate a modification of a result. SHA-256 already detects the modification itself, so 32 bits are
enough here. The checksum of a part also covers its path: a renamed key is a different part.
"""

from __future__ import annotations

import base64
import difflib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType
from pydantic import BaseModel
from zlib_ng.zlib_ng import crc32

from aigo_bridge.dtypes import SampleEvidence, SampleTrialEvidence, SolverData, SolverTrace, Trace
from aigo_bridge.text.json_text import dumps
from aigo_trust.provenance.texts import items_of, members_of

Place = tuple[str | int, ...]
Text = bytes | memoryview | Raw

_OPENED = frozenset({"trials", "scores", "values", "solver", "output", "trace", "sample", "data"})
"""Sample fields whose parts have separate checksums. Every other field has one checksum."""


class ResultPart(NamedTuple):
    """Part of a sample or of a frame."""

    path: Place
    checksum: int


class ChangedPart(NamedTuple):
    """Part that differs from its recorded checksum."""

    path: Place
    kind: Literal["altered", "added", "removed"]
    """Kind of the difference. `removed` is reported at the part before the missing content."""


def sample_parts(text: Text) -> list[ResultPart]:
    """Return the parts of a sample.

    Raises:
        ValueError: the text is not a JSON object.
    """
    return scanned(text)[2]


def scanned(text: Text) -> tuple[str, Text | None, list[ResultPart]]:
    """Return the ID, the dataset values and the parts of a sample.

    The ID is JSON text (`3`, `"a"`, `null`). The dataset values are JSON text, or `None` if missing. Parts
    are sorted by path.

    Raises:
        ValueError: the text is not a JSON object.
    """
    parts: list[ResultPart] = []
    row: Text | None
    try:
        sample = _SAMPLE.decode(text)
    except msgspec.MsgspecError:
        _walk_members(text, (), 0, parts)
        members = members_of(text)
        name, row = members.get("sample_id"), _row(members)
    else:
        _walk_struct(sample, (), 0, parts)
        trial = sample.trials[0] if sample.trials else None
        rows = [None if trial is None else trial.sample, sample.sample]
        name, row = sample.sample_id, next((item for item in rows if _is_there(item)), None)
    parts.sort(key=_order)
    return "null" if name is None else bytes(name).decode("utf-8", "replace"), row, parts


def _order(part: ResultPart) -> tuple[str, ...]:
    return tuple(map(str, part.path))


def _is_there(text: Text | None) -> bool:
    return text is not None and bytes(memoryview(text)[:4]) != b"null"


def _row(members: Mapping[str, Text]) -> Text | None:
    trials = members.get("trials")
    first = []
    if trials is not None and bytes(memoryview(trials)[:1]) == b"[":
        first = [members_of(item).get("sample") for item in items_of(trials)[:1]]
    return next((item for item in (*first, members.get("sample")) if _is_there(item)), None)


def _struct(name: str, model: type[BaseModel], **opened: Any) -> Any:
    """Return a struct type with the model's fields. All fields are raw text except the opened ones."""
    fields = [
        (field, opened[field] | None | UnsetType, UNSET) if field in opened else (field, Raw, None)
        for field in model.model_fields
    ]
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True)


_OUTPUT = _struct("_Output", SolverTrace, trace=_struct("_Trace", Trace))
_TRIAL = _struct("_Trial", SampleTrialEvidence, solver=_struct("_Solver", SolverData, output=_OUTPUT))
_SAMPLE: Any = msgspec.json.Decoder(_struct("_Sample", SampleEvidence, trials=list[_TRIAL]))  # type: ignore[valid-type]  # created above
"""Decoder that reads a large sample in one pass."""


def _checksum_of(name: str, checksum: int) -> int:
    return crc32(name.encode("utf-8", "surrogatepass"), checksum + 1)


def _walk_struct(sample: Any, path: Place, checksum: int, parts: list[ResultPart]) -> None:
    """Add the parts of an object that was decoded in one pass, like `_walk_members`."""
    for name in sample.__struct_fields__:
        value = getattr(sample, name)
        if value is None and name not in _OPENED:
            continue  # the field is missing
        if value is UNSET or (value is None and name in ("sample", "scores")):
            continue
        inner, place = _checksum_of(name, checksum), (*path, name)
        if isinstance(value, Raw):
            if name in _OPENED:
                _walk(value, place, inner, parts)
            else:
                parts.append(ResultPart(place, crc32(value, inner)))
        elif value is None:
            parts.append(ResultPart(place, crc32(b"null", inner)))
        elif isinstance(value, list):
            if not value:
                parts.append(ResultPart(place, crc32(b"[]", inner)))
            for number, item in enumerate(value):
                _walk_struct(item, (*place, number), inner + 2 + number, parts)
        else:
            _walk_struct(value, place, inner, parts)


def _walk_members(text: Text, path: Place, checksum: int, parts: list[ResultPart]) -> None:
    """Add the parts of an object. `checksum` is the checksum of its path."""
    all_opened = bool(path) and path[-1] in ("values", "data")
    for name, part in members_of(text).items():
        inner = _checksum_of(name, checksum)
        if name in _OPENED or all_opened:
            _walk(part, (*path, name), inner, parts)
        else:
            parts.append(ResultPart((*path, name), crc32(part, inner)))


def _walk(text: Text, path: Place, checksum: int, parts: list[ResultPart]) -> None:
    beginning = bytes(memoryview(text)[:2])
    if beginning[:1] == b"{" and beginning != b"{}" and path[-1] in _OPENED:
        _walk_members(text, path, checksum, parts)
    elif beginning[:1] == b"[" and beginning != b"[]" and path[-1] in ("trials", "scores"):
        for number, item in enumerate(items_of(text)):
            inner = checksum + 2 + number
            if bytes(memoryview(item)[:1]) == b"{":
                _walk_members(item, (*path, number), inner, parts)
            else:
                parts.append(ResultPart((*path, number), crc32(item, inner)))
    else:
        parts.append(ResultPart(path, crc32(text, checksum)))


def frame_parts(frame: Mapping[str, Any]) -> list[ResultPart]:
    """Return every leaf value of a frame as a part."""
    return [
        ResultPart(path, crc32(dumps(value), crc32(repr(path).encode("utf-8", "backslashreplace"))))
        for path, value in _leaves((), frame)
    ]


def _leaves(path: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _leaves((*path, name), item)
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves((*path, number), item)
    else:
        yield path, value


def packed(parts: Sequence[ResultPart]) -> str:
    """Return the checksums of parts as one text."""
    return base64.b64encode(struct.pack(f">{len(parts)}I", *(part.checksum for part in parts))).decode()


def unpacked(text: str) -> list[int]:
    """Return the checksums in a text from `packed`.

    Raises:
        ValueError: the text is not a list of checksums.
    """
    try:
        content = base64.b64decode(text, validate=True)
        return list(struct.unpack(f">{len(content) // 4}I", content))
    except (ValueError, struct.error, TypeError) as error:
        raise ValueError(f"found no checksums: {error}") from error


def differences(parts: Sequence[ResultPart], checksums: Sequence[int]) -> list[ChangedPart]:
    """Return the parts that differ from the recorded `checksums`."""
    now = [part.checksum for part in parts]
    if len(now) == len(checksums):
        return [
            ChangedPart(part.path, "altered")
            for part, checksum in zip(parts, checksums, strict=True)
            if part.checksum != checksum
        ]
    changes: list[ChangedPart] = []
    matcher = difflib.SequenceMatcher(None, list(checksums), now, autojunk=False)
    for kind, _, _, begin, end in matcher.get_opcodes():
        if kind == "delete":
            changes.append(ChangedPart(parts[begin - 1].path if begin else (), "removed"))
        elif kind != "equal":
            changes += [
                ChangedPart(part.path, "added" if kind == "insert" else "altered")
                for part in parts[begin:end]
            ]
    return changes
