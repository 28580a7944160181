"""Signals that stop this process: whether one came, and work that they must not leave half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPPING = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""Signals that stop a command; they reach all processes in the process group of a terminal."""

STOPPED_BY: list[int] = []
"""The signal that stopped the command; empty before a signal arrives, and outside commands."""

COUNTING_THREAD = "signals"
"""Name of the thread that counts signals. It takes no locks, so a fork is safe while it runs."""

_ACCEPTED: list[int] = []


def is_stopped() -> bool:
    """Return whether a signal stopped the command before it finished."""
    return bool(STOPPED_BY) and not _ACCEPTED


def accept_interrupt() -> None:
    """Treat SIGINT as the normal end of this command, as servers do."""
    _ACCEPTED.append(signal.SIGINT)


def stop_here() -> None:
    """Stop if a signal arrived that other code has caught, as some libraries do during import.

    Raises:
        KeyboardInterrupt: a signal arrived.
    """
    if is_stopped():
        raise KeyboardInterrupt


class _Deferral:
    """Handler that keeps a signal for later. A second signal is handled immediately."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]):
        self.handler = handler
        self._came: list[tuple[int, FrameType | None]] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))
        if len(self._came) > 1:
            self.handler(number, frame)

    def deliver(self) -> None:
        """Handle the signal that came, if any."""
        if self._came:
            signal_and_frame, self._came = self._came[0], []
            self.handler(*signal_and_frame)


@contextmanager
def finishing() -> Iterator[None]:
    """Defer a signal until the work of this block is done, so that evidence is written completely.

    A second signal ends the work immediately. Other threads are never interrupted.

    Raises:
        KeyboardInterrupt: after the block, if a signal arrived.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    deferral = _Deferral(handler)
    signal.signal(signal.SIGINT, deferral)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    deferral.deliver()


@contextmanager
def interruptible() -> Iterator[None]:
    """Allow signals in a part of a block of `finishing`, also one that arrived before this part.

    Raises:
        KeyboardInterrupt: a signal arrived.
    """
    deferral = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not isinstance(deferral, _Deferral):
        yield
        return
    signal.signal(signal.SIGINT, deferral.handler)
    try:
        deferral.deliver()
        yield
    finally:
        signal.signal(signal.SIGINT, deferral)
