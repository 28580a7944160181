"""What identifies an object is written even when its author left it to the default."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, cast, get_args

from pydantic import BaseModel

T = TypeVar("T")

_LEAVES = frozenset({str, int, float, bool, type(None)})


def make_explicit(value: T) -> T:
    """Let `type`, `role` and `id` count as set in a model and in all models below it; hands back the model.

    Dumps leave out what was not set. An item built in Python without `type` or `role` would be read back as
    another kind of item, and an event would get another identifier. Do this before evidence is stored.
    """
    waiting: list[object] = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, list):
            parts = here
        elif isinstance(here, dict):
            parts = list(here.values())
        elif (found := _fields(cast("Any", type(here)))) is not None:
            identifying, holding = found
            cast("BaseModel", here).__pydantic_fields_set__.update(identifying)
            members = here.__dict__
            parts = [members.get(name) for name in holding]
        else:
            continue
        waiting.extend([part for part in parts if type(part) not in _LEAVES])
    return value


@cache
def _fields(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of a model's identifying fields, and of those that may hold models; `None` for what is no model.

    Plain data (a row, an event's details) is not searched: what stands in it identifies nothing.
    """
    if not issubclass(kind, BaseModel):
        return None
    fields = kind.model_fields
    identifying = tuple(name for name in ("type", "role", "id") if name in fields)
    return identifying, tuple(name for name, field in fields.items() if _holds_models(field.annotation))


def _holds_models(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(map(_holds_models, get_args(getattr(annotation, "__value__", annotation))))
