"""What pydantic found wrong with a value, in one line for people."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

SHOWN = 3
"""Problems that are listed; the others are counted."""


def problems(error: ValidationError) -> str:
    """Places and reasons, without the labels that unions put into paths.

    Of a union, only the member that the value's `type` names is told about, where there is one: every other member has
    complaints, too, and none of them is the mistake.
    """
    found = error.errors(include_url=False, include_input=False)
    decided = [each for each in found if not any(_is_open_union(part) for part in each["loc"])] or found
    lines = list(dict.fromkeys(f"{_place(each['loc'])}{_reason(each['msg'])}" for each in decided))
    more = f"; and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "; ".join(lines[:SHOWN]) + more


def _place(location: Sequence[str | int]) -> str:
    parts: list[str] = []
    label_follows = False
    for part in location:
        if label_follows:
            label_follows = False
        elif isinstance(part, str) and ("union[" in part or part.startswith("function-")):
            label_follows = "union[" in part
        else:
            parts.append(str(part))
    return f"{'.'.join(parts)}: " if parts else ""


def _is_open_union(part: str | int) -> bool:
    return isinstance(part, str) and part.startswith("union[")


def _reason(message: str) -> str:
    return message[:1].lower() + message[1:]
