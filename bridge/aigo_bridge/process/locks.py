"""Locks of files, and signals that are held back: what Unix has for them, and what is done without.

Without `flock` (Windows) nobody can tell whether a draft is still somebody's: none is swept away. Without
masks of signals none is held back: an ended process may leave a draft.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    fcntl = None

STOPPING = frozenset(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""What stops a command; it reaches all processes of a terminal's group."""

FOLDER = getattr(os, "O_DIRECTORY", 0)
"""Flag of a folder that is opened."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Flag of what is opened and is no link."""
CLOSED_IN_CHILDREN = getattr(os, "O_CLOEXEC", 0)
NOT_WAITING = getattr(os, "O_NONBLOCK", 0)


def has_locks() -> bool:
    """Whether there are locks that the system gives back when their process ends."""
    return fcntl is not None


def lock(descriptor: int, *, wait: bool) -> None:
    """Lock a file or a folder for as long as its descriptor is open.

    Raises:
        BlockingIOError: another holds the lock, and it is not waited for.
        OSError: there are no locks here.
    """
    if fcntl is None:
        raise OSError(errno.ENOLCK, "this system has no locks that end with their process")
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def lock_if_possible(descriptor: int) -> None:
    """As `lock`, not waiting; where there are no locks, nobody is kept out.

    Raises:
        BlockingIOError: another holds the lock.
    """
    if has_locks():
        lock(descriptor, wait=False)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Have what stops this process wait until the end of the block, where that can be done."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
