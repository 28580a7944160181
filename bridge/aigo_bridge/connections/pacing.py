"""Requests per minute: when the next request may start."""

from __future__ import annotations

import threading
import time
from collections import deque

WINDOW = 60.0
"""Seconds in which at most so many requests start."""


class Pace:
    """At most so many starts in any window of a minute, whichever event loops and threads they come from.

    A start is reserved at once and waited for by the caller; one that is given up is not given back, so the limit
    is never exceeded.
    """

    def __init__(self, per_minute: int):
        self.per_minute = per_minute
        self._lock = threading.Lock()
        self._starts: deque[float] = deque(maxlen=per_minute)

    def reserve(self, now: float | None = None) -> float:
        """Seconds to wait before the next request may start.

        Args:
            now: monotonic time in seconds; `None`: read from the clock.
        """
        now = time.monotonic() if now is None else now
        with self._lock:
            full = len(self._starts) == self.per_minute
            start = max(now, self._starts[0] + WINDOW) if full else now
            self._starts.append(start)
        return start - now


_PACES: dict[str, Pace] = {}
_LOCK = threading.Lock()


def shared_pace(name: str, per_minute: int) -> Pace:
    """The pace of one endpoint: the same for everybody in this process who names it with the same limit."""
    with _LOCK:
        pace = _PACES.get(name)
        if pace is None or pace.per_minute != per_minute:
            pace = _PACES[name] = Pace(per_minute)
        return pace
