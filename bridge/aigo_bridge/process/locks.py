"""File locks and deferred signals, with fallbacks for systems without them.

Without `flock` (Windows), it is unknown whether a draft is still in use, so no draft is removed. Without
signal masks, signals are not deferred, and a killed process may leave a draft.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from aigo_bridge.process.signals import STOPPING

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    fcntl = None

FOLDER = getattr(os, "O_DIRECTORY", 0)
"""Flag for opening only folders."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Flag for refusing symbolic links."""
CLOSED_IN_CHILDREN = getattr(os, "O_CLOEXEC", 0)
NOT_WAITING = getattr(os, "O_NONBLOCK", 0)


def has_locks() -> bool:
    """Return whether the system has locks that are released when their process ends."""
    return fcntl is not None


def lock(descriptor: int, *, wait: bool) -> None:
    """Lock a file or folder as long as its descriptor is open.

    Raises:
        BlockingIOError: another process holds the lock, and `wait` is false.
        OSError: the system has no locks.
    """
    if fcntl is None:
        raise OSError(errno.ENOLCK, "this system does not support locks that end with their process")
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def lock_if_possible(descriptor: int) -> None:
    """Lock like `lock` without waiting; on systems without locks, do nothing.

    Raises:
        BlockingIOError: another process holds the lock.
    """
    if has_locks():
        lock(descriptor, wait=False)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Defer signals that stop this process until the end of the block, if the system supports it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
