"""Facts about folders that are cached while many files are read.

Each of a thousand tasks in a folder needs the project of the folder, and the file that declares a key.
Without a snapshot, each task examines all its neighbors, and the time grows with the square of their number.
A snapshot is active for one call only, because files may change between calls.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar, Token
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar, cast

MOST_FACTS = 512
"""Maximum number of cached facts; the least recently used are dropped."""

P = ParamSpec("P")
T = TypeVar("T")

_ACTIVE: ContextVar[Snapshot | None] = ContextVar("active snapshot", default=None)


class Snapshot:
    """Cache of facts about folders for a `with` block; nested blocks share the outer snapshot."""

    def __init__(self) -> None:
        self._facts: OrderedDict[Hashable, Any] = OrderedDict()
        self._tokens: list[Token[Snapshot | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(_ACTIVE.set(_ACTIVE.get() or self))
        return self

    def __exit__(self, *_: object) -> None:
        _ACTIVE.reset(self._tokens.pop())

    def fact(self, key: Hashable, look: Callable[[], T]) -> T:
        """Return `look()`, which is only called the first time."""
        if key not in self._facts:
            self._facts[key] = look()
            if len(self._facts) > MOST_FACTS:
                self._facts.popitem(last=False)
        self._facts.move_to_end(key)
        return cast("T", self._facts[key])


def remembered(look: Callable[P, T]) -> Callable[P, T]:
    """Call a function once for the same arguments while a snapshot is active, otherwise each time."""

    @wraps(look)
    def once(*args: P.args, **kwargs: P.kwargs) -> T:
        snapshot = _ACTIVE.get()
        if snapshot is None:
            return look(*args, **kwargs)
        key = (look, args, tuple(kwargs.items()))
        return snapshot.fact(key, lambda: look(*args, **kwargs))

    return once
