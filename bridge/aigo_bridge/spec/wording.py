"""Texts about fields for the reference tables and editors: value, default and meaning."""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from aigo_bridge.spec.schema import description

_BASIC = {str: "text", int: "integer", float: "number", bool: "boolean", Any: "anything", object: "anything"}

TAGS = ("type", "function")
"""Fields that select a class."""

ModelWords = Callable[[type[BaseModel]], str]
"""Function that returns the text for a class: a link or a name."""


def tag_of_model(model: type[BaseModel]) -> str | None:
    """Return the value that selects this class, e.g. its `type`; `None` if there is none."""
    for name in TAGS:
        if name in model.model_fields:
            values = get_args(model.model_fields[name].annotation)
            if len(values) == 1:
                return str(values[0])
    return None


def value_words(annotation: Any, words: ModelWords, *, bound: bool = False, with_null: bool = False) -> str:
    """Return a short text for the allowed values.

    Args:
        annotation: of a field.
        words: for a class of mappings.
        bound: whether text stands for any value until parameters are put in, and is not named.
        with_null: whether null is named.
    """

    def inner(part: Any, bound: bool = False) -> str:
        return value_words(part, words, bound=bound, with_null=with_null)

    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _BASIC:
        return _BASIC[annotation]
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (Union, types.UnionType):
        parts = [part for part in arguments if part is not type(None) and not (bound and part is str)]
        null = ["null"] if with_null and type(None) in arguments else []
        return " or ".join(dict.fromkeys([inner(part) for part in parts or [str]] + null))
    if origin in (tuple, list):
        return f"list of {inner(arguments[0])}"
    if origin is dict:
        return "mapping"
    if hasattr(annotation, "__metadata__"):
        return inner(arguments[0], bound=any(_is_bound(part) for part in annotation.__metadata__))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return words(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    return str(getattr(annotation, "__name__", annotation)).lower()


def field_words(info: FieldInfo, words: ModelWords, *, with_null: bool = False) -> str:
    """Return a short text for the allowed values of a field."""
    bound = any(_is_bound(part) for part in info.metadata)
    return value_words(info.annotation, words, bound=bound, with_null=with_null)


def default_words(info: FieldInfo) -> str:
    """Return the default of a field as it would be written; empty if there is none."""
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True)
    if value is None:
        return ""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def meaning(model: type[BaseModel], name: str) -> str:
    """Return the meaning of a field in one line."""
    text = re.sub(r"\s+", " ", description(model, name) or "").strip()
    text = re.sub(r"(^|\. )`None`: ", r"\1Default: ", text)
    return text.replace("`None`", "default")


def model_meaning(model: type[BaseModel]) -> str:
    """Return the docstring of a class; empty if only its base class has one."""
    return re.sub(r"\s+", " ", inspect.cleandoc(model.__dict__.get("__doc__") or "")).strip()


def _is_bound(metadata: Any) -> bool:
    return type(metadata).__name__ == "_UntilBound"
