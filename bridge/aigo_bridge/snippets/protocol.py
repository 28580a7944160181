"""Messages between the runner and a worker: one JSON list per line; AI GO types in values are marked with
their names.

The runner sends `["start", call, request]`, and `["reply", question, value]` or `["fail", question, text]`
for each question. The worker sends `["ready"]` once. Then, for one call at a time, it sends any number of
questions and drops, and finally a value or an error. A snippet may write other data to the pipe; such data is
refused completely.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

LARGEST_REPLY = 64 << 20
"""Maximum bytes of a line from a worker; reading takes about three times as much memory."""

MOST_VALUES = 4_000_000
"""Maximum values in one line; a JSON text of empty lists would take thirty times its size in memory."""

LARGEST_NUMBER = 1 << 53
"""Upper limit of call and question numbers."""


# Values


@dataclass(frozen=True)
class Remote:
    """Argument that becomes an object with the call's callbacks as async methods."""

    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Plain attributes of the object as JSON."""


@dataclass(frozen=True)
class InOut:
    """Argument whose final state is the result if the function returns `None`."""

    value: Any


def encode(value: Any) -> Any:
    """Return a value as JSON; AI GO types are sent as (type name, JSON) and restored in the worker."""
    if isinstance(value, Remote):
        return {"__aigo_remote__": dict(value.attributes)}
    if isinstance(value, InOut):
        return {"__aigo_inout__": encode(value.value)}
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return {"__aigo_type__": type(value).__name__, "value": dump(mode="json", exclude_unset=False)}
    if isinstance(value, list | tuple) and any(hasattr(item, "model_dump") for item in value):
        return {"__aigo_list__": [encode(item) for item in value]}
    return {"__value__": value}


def decode(value: dict[str, Any]) -> Any:
    """Reverse `encode` in the worker; the caller handles `Remote` and `InOut`."""
    if "__aigo_type__" in value:
        from aigo_bridge import dtypes

        kind = value["__aigo_type__"]
        return getattr(dtypes, kind).model_validate(value["value"])
    if "__aigo_list__" in value:
        return [decode(item) for item in value["__aigo_list__"]]
    return value["__value__"]


def plain(value: Any) -> Any:
    """Return a JSON value for types that JSON lacks: AI GO types, enumeration members, NumPy scalars and
    arrays.

    For `json.dumps(default=)`.

    Raises:
        TypeError: the type is not supported.
    """
    if hasattr(value, "model_dump"):
        from aigo_bridge.dtypes import make_explicit

        # Without `type` and `role`, an item from a snippet would be parsed as another type.
        return make_explicit(value).model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    for method in ("tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    raise TypeError(f"returned a {type(value).__name__}, which is not JSON: {value!r:.80}")


# Lines


class LineError(ValueError):
    """Line that no intact worker writes."""


class TooLargeReplyError(Exception):
    """Line that is longer than `LARGEST_REPLY` or has more than `MOST_VALUES` values."""

    def __init__(self, bound: str):
        super().__init__(
            f"returned more than {bound} of JSON; return only the required data, such as "
            "counts or the samples that differ"
        )

    @classmethod
    def of_bytes(cls) -> TooLargeReplyError:
        """Return the error of a line that is too long."""
        return cls(f"{LARGEST_REPLY:,} bytes")


@dataclass(frozen=True)
class Ready:
    """Message: the worker accepts calls."""


@dataclass(frozen=True)
class Value:
    """Message with the result of a call."""

    call: int
    value: Any


@dataclass(frozen=True)
class Failure:
    """Message of a failed call, with the question whose failure it did not catch, if any."""

    call: int
    problem: str
    question: int | None


@dataclass(frozen=True)
class Question:
    """Message of a callback."""

    call: int
    number: int
    name: str
    args: list[Any]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Drop:
    """Message of a call that no longer waits for an answer."""

    call: int
    number: int


Line = Ready | Value | Failure | Question | Drop


def line(*message: Any) -> bytes:
    """Return a message of the runner as a line."""
    return json.dumps(message).encode() + b"\n"


def read_line(text: bytes) -> Line:
    """Parse a line of a worker.

    Raises:
        LineError: the line is invalid.
        TooLargeReplyError: the line is too large.
    """
    match _json(text):
        case ["ready"]:
            return Ready()
        case ["value", call, value]:
            return Value(_number(call), value)
        case ["error", call, str(problem), question]:
            return Failure(_number(call), problem, None if question is None else _number(question))
        case ["call", call, number, str(name), list(args), dict(kwargs)]:
            return Question(_number(call), _number(number), name, args, kwargs)
        case ["drop", call, number]:
            return Drop(_number(call), _number(number))
    raise LineError("not a line of a worker")


def _json(text: bytes) -> Any:
    if len(text) > LARGEST_REPLY:
        raise TooLargeReplyError.of_bytes()
    # This also counts characters in texts, which are few compared with those between values.
    if text.count(b",") + text.count(b"[") + text.count(b"{") > MOST_VALUES:
        raise TooLargeReplyError(f"{MOST_VALUES:,} values")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LineError("not readable JSON") from error


def _number(value: object) -> int:
    """Return an integer; refuse `1e999`, `true`, `1.0` and numbers with a thousand digits."""
    if type(value) is not int or not 0 <= value < LARGEST_NUMBER:
        raise LineError("not a call number")
    return value
