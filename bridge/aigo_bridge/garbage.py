"""How often Python looks for unreachable cycles while samples run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def fewer_collections(young: int, middle: int, old: int) -> Iterator[None]:
    """Inside, no generation is looked at more often than these thresholds say; set for the whole process.

    A run keeps hundreds of thousands of objects alive (modules, rows, samples under way), and looking through all of them again and
    again, for next to nothing, takes a good part of its time. Cycles that die young are still found.

    Args:
        young: new objects before the youngest are looked at.
        middle: how often that is done before those that survived are.
        old: how often that is done before all are.
    """
    before = gc.get_threshold()
    gc.set_threshold(*map(max, before, (young, middle, old)))
    try:
        yield
    finally:
        gc.set_threshold(*before)
