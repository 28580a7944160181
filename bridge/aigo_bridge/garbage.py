"""How often Python looks for unreachable cycles while samples run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_FULL_EVERY = 30
"""Collections of the middle generation between two of all objects; Python's own default is 10."""


@contextmanager
def rare_full_collections() -> Iterator[None]:
    """Let Python look through all objects less often.

    A run keeps hundreds of thousands of objects alive (modules, rows, samples under way), and looking through all of them again and
    again, for next to nothing, takes a tenth of its time. Garbage is still collected; up to some 200,000 containers of it wait.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, max(old, _FULL_EVERY))
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)
