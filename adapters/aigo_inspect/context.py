"""How much of the models' input is written: everything, only what is new in each call, or nothing.

A model call's `input_context` repeats the conversation so far, so writing it in full makes a file quadratic in the
number of turns (300 MB of log become 1.5 GB). `full` is the default and what AI GO expects. With `delta` a call keeps
only what its context has beyond an earlier call of the same span, and says so in its metadata
(`aigo_bridge.results.contexts` has the format, and makes the contexts whole again). With `none` the context is empty
and the metadata has `{"context": {"left_out": 13}}`, the number of items.
"""

from __future__ import annotations

from typing import Any, Literal

from .content import Item
from .ordering import Event

ContextChoice = Literal["full", "delta", "none"]


class ContextDelta:
    """Finds, call by call in trace order, what a context adds to the one before it in the same span."""

    def __init__(self) -> None:
        self._last: dict[str | None, tuple[str, list[Item]]] = {}

    def shorten(self, event: Event) -> tuple[list[Item], dict[str, Any] | None]:
        """The items to write for a model call, and the note that goes with them (`None`: these are all)."""
        context: list[Item] = event["input_context"]
        span = event.get("span_id")
        before = self._last.get(span)
        self._last[span] = (event["id"], context)
        if before is None:
            return context, None
        first = common_start(before[1], context)
        if not first:
            return context, None
        return context[first:], {"of": before[0], "first": first}


def common_start(one: list[Any], other: list[Any]) -> int:
    """Length of the longest common prefix; fast when one list starts with the whole other."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:
        return shorter
    for index in range(shorter):
        if one[index] is not other[index] and one[index] != other[index]:
            return index
    return shorter
