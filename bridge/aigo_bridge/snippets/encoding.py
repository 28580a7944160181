"""Values on their way into a worker process: JSON, with the AI GO types among them named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


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
    """A value as JSON; AI GO types are sent as (type name, JSON) and become those types again in the worker."""
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
    """What JSON has no form for, as JSON: AI GO types, members of enumerations, NumPy scalars and arrays; for `json.dumps(default=)`.

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
