"""Objects made of values that need no check: our own, made of texts that were checked already.

A run makes a dozen of them for every sample, and checking them again costs more than all else that is done for a short question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def maker(kind: type[M]) -> Callable[[dict[str, Any]], M]:
    """What makes objects of a class from their fields, which become the object's own.

    The object is the one that the constructor makes of the same fields, as long as these are valid and are what the constructor would keep:
    members of enums instead of their texts, objects instead of dictionaries, required fields all there, defaults that are lists or
    dictionaries as well. Nothing of that is checked. Unknown fields may not be given.
    """
    fields = {
        name: None if field.is_required() else field.default for name, field in kind.model_fields.items()
    }
    is_open = kind.model_config.get("extra") == "allow"
    new, put = object.__new__, object.__setattr__

    def make(given: dict[str, Any]) -> M:
        made = new(kind)
        # In the order of the class, which is the order in dumps.
        put(made, "__dict__", {**fields, **given})
        put(made, "__pydantic_fields_set__", set(given))
        put(made, "__pydantic_extra__", {} if is_open else None)
        put(made, "__pydantic_private__", None)
        return made

    return make
