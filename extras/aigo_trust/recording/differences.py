"""Differences between a recorded request and a request of another run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from aigo_bridge.text.plurals import plural

MOST_DIFFERENCES = 3
"""Maximum number of differences to show."""
_AROUND = 16
"""Number of characters to show on each side of the first difference between two texts."""
_LONGEST = 60
"""Maximum number of characters to show of any other value."""


def request_differences(
    recorded: Any, asked: Any, names: tuple[str, str] = ("recorded", "asked")
) -> list[str]:
    """Return the first few differences between two JSON values, one line each.

    Args:
        recorded: one value.
        asked: the other value.
        names: names of the two in the lines.
    """
    lines = list(_differences(recorded, asked, "", names))
    more = len(lines) - MOST_DIFFERENCES
    return lines[:MOST_DIFFERENCES] + ([f"and {more} more differences"] if more > 0 else [])


def _differences(recorded: Any, asked: Any, place: str, names: tuple[str, str]) -> Iterator[str]:
    def line(left: str, right: str, at: str = place) -> str:
        return f"{at}: {names[0]} {left}, {names[1]} {right}"

    if isinstance(recorded, dict) and isinstance(asked, dict):
        for key in [*recorded, *(key for key in asked if key not in recorded)]:
            inner = f"{place}/{key}"
            if key not in asked:
                yield line(_shown(recorded[key]), "nothing", inner)
            elif key not in recorded:
                yield line("nothing", _shown(asked[key]), inner)
            else:
                yield from _differences(recorded[key], asked[key], inner, names)
    elif isinstance(recorded, list) and isinstance(asked, list):
        for number, (left, right) in enumerate(zip(recorded, asked, strict=False)):
            yield from _differences(left, right, f"{place}/{number}", names)
        if len(recorded) != len(asked):
            yield line(*(plural(len(side), "entry", "entries") for side in (recorded, asked)))
    elif isinstance(recorded, str) and isinstance(asked, str):
        if recorded != asked:
            yield line(*map(repr, _around(recorded, asked)))
    elif recorded != asked or isinstance(recorded, bool) is not isinstance(asked, bool):
        yield line(_shown(recorded), _shown(asked))


def _around(left: str, right: str) -> tuple[str, str]:
    """Return an excerpt of both texts around the first character that differs."""
    same = next(
        (at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )
    start = max(0, same - _AROUND)

    def part(text: str) -> str:
        end = same + _AROUND
        return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"

    return part(left), part(right)


def _shown(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
