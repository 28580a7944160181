"""What passes between the runner and a worker: one JSON list a line, values with the AI GO types among them
named.

The runner sends `["start", call, request]`, and `["reply", question, value]` or `["fail", question, text]`
for each question. The worker says `["ready"]` once, then for one call at a time any number of questions and
drops, and last a value or an error. Whatever else stands in its pipe was put there by a snippet: it is
refused, and never half believed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

LARGEST_REPLY = 64 << 20
"""Bytes of the longest line that is accepted from a worker: reading one takes some three times as much
memory."""

MOST_VALUES = 4_000_000
"""Values in one line at most: a JSON text of empty lists would take thirty times its size."""

LARGEST_NUMBER = 1 << 53
"""Numbers of calls and questions are smaller."""


# Values


@dataclass(frozen=True)
class Remote:
    """An argument that becomes an object with the call's callbacks as its async methods."""

    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Plain attributes of the object, as JSON."""


@dataclass(frozen=True)
class InOut:
    """An argument that is the result, as the function left it, when the function returns nothing."""

    value: Any


def encode(value: Any) -> Any:
    """A value as JSON; AI GO types are sent as (type name, JSON) and are those types again in the worker."""
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
    """Back from `encode`, in the worker; `Remote` and `InOut` are the business of the one who calls."""
    if "__aigo_type__" in value:
        from aigo_bridge import dtypes

        kind = value["__aigo_type__"]
        return getattr(dtypes, kind).model_validate(value["value"])
    if "__aigo_list__" in value:
        return [decode(item) for item in value["__aigo_list__"]]
    return value["__value__"]


def plain(value: Any) -> Any:
    """What JSON has no form for, as JSON: AI GO types, members of enumerations, NumPy scalars and arrays.

    For `json.dumps(default=)`.

    Raises:
        TypeError: it is something else.
    """
    if hasattr(value, "model_dump"):
        from aigo_bridge.dtypes import make_explicit

        # Without `type` and `role` an item made by a snippet would read back as something else.
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
    """A line that no worker writes of its own accord."""


class TooLargeReplyError(Exception):
    """A line is longer than `LARGEST_REPLY`, or has more than `MOST_VALUES` values."""

    def __init__(self, bound: str):
        super().__init__(
            f"returned more than {bound} of JSON; return only the required data, such as "
            "counts or the samples that differ"
        )

    @classmethod
    def of_bytes(cls) -> TooLargeReplyError:
        """It is too long."""
        return cls(f"{LARGEST_REPLY:,} bytes")


@dataclass(frozen=True)
class Ready:
    """The worker takes calls."""


@dataclass(frozen=True)
class Value:
    """A call's result."""

    call: int
    value: Any


@dataclass(frozen=True)
class Failure:
    """A call raised, and the question whose failure it let pass, if it did."""

    call: int
    problem: str
    question: int | None


@dataclass(frozen=True)
class Question:
    """A call calls back."""

    call: int
    number: int
    name: str
    args: list[Any]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Drop:
    """A call does not wait for an answer any more."""

    call: int
    number: int


Line = Ready | Value | Failure | Question | Drop


def line(*message: Any) -> bytes:
    """A message of the runner as it stands in the pipe."""
    return json.dumps(message).encode() + b"\n"


def read_line(text: bytes) -> Line:
    """A line of a worker.

    Raises:
        LineError: it is not one.
        TooLargeReplyError: it holds more than is accepted.
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
    raise LineError("no line of a worker")


def _json(text: bytes) -> Any:
    if len(text) > LARGEST_REPLY:
        raise TooLargeReplyError.of_bytes()
    # Also those in texts, which are few beside those between values.
    if text.count(b",") + text.count(b"[") + text.count(b"{") > MOST_VALUES:
        raise TooLargeReplyError(f"{MOST_VALUES:,} values")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LineError("no JSON that can be read") from error


def _number(value: object) -> int:
    """A whole number: not `1e999`, `true`, `1.0`, nor one with a thousand digits."""
    if type(value) is not int or not 0 <= value < LARGEST_NUMBER:
        raise LineError("no number of a call")
    return value
