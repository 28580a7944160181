"""Parallel work in several processes, which never outlive the work or this process."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import (
    active_children,
    current_process,
    get_all_start_methods,
    get_context,
    parent_process,
)
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, Self, TypeVar

from aigo_bridge.process.locks import signals_held_back
from aigo_bridge.process.signals import COUNTING_THREAD, STOPPING

T = TypeVar("T")

_LONGEST_FOLDER = 64
"""Maximum bytes of a folder name that leaves space for a fork server's socket: the full path may have 107
bytes on Linux, 103 on macOS.
"""


def each_in_processes(
    work: Callable[..., T], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[T | MemoryError]:
    """Yield the results of calls in order. If the system kills a process, for example because memory runs
    out, its call gives a `MemoryError`.

    Args:
        work: function at the top level of a module.
        arguments: arguments of each call.
        jobs: number of processes.
    """
    if not may_start_processes():
        yield from (work(*call_arguments) for call_arguments in arguments)
        return
    with running(work, arguments, jobs) as results:
        for call_arguments, result in zip(arguments, results, strict=True):
            try:
                value: T | MemoryError = result.result()
            except BrokenProcessPool:
                # One process was killed, and all others with it. Repeat each call alone to find the cause.
                value = _alone(work, call_arguments)
            yield value


def _alone(work: Callable[..., T], arguments: tuple[Any, ...]) -> T | MemoryError:
    with running(work, [arguments], 1) as (result,):
        try:
            return result.result()
        except BrokenProcessPool:
            return MemoryError("a process was ended from outside")


class Worker:
    """Process for work on untrusted data that may kill it. It starts at the first call, and again after it
    was killed.
    """

    def __init__(self) -> None:
        self._executors = ExitStack()
        self._submit: Callable[..., Future[Any]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._executors.close()

    def stop(self) -> None:
        """Kill the process immediately."""
        with suppress(KeyboardInterrupt):
            self._executors.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    def call(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a call.

        Raises:
            BrokenProcessPool: the call has killed the process.
        """
        if not may_start_processes():
            return work(*arguments)
        if self._submit is None:
            self._submit = self._executors.enter_context(_executor(1))
        try:
            result: T = self._submit(work, *arguments).result()
        except BrokenProcessPool:
            self._submit = None
            raise
        return result


def may_start_processes() -> bool:
    """Return whether this process may start other processes; a pool process may not."""
    return not current_process().daemon


@contextmanager
def running(
    work: Callable[..., T], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[list[Future[T]]]:
    """Call a function in other processes during the block; all processes end with the block.

    Args:
        work: function at the top level of a module.
        arguments: arguments of each call.
        jobs: number of processes.

    Yields:
        Futures of the results, in order. A `BrokenProcessPool` error means that a process was killed.
    """
    with _executor(jobs) as submit:
        yield [submit(work, *call_arguments) for call_arguments in arguments]


@contextmanager
def _executor(jobs: int) -> Iterator[Callable[..., Future[Any]]]:
    """Yield a function that submits calls to processes, which end with the block or on an exception."""
    earlier = set(active_children())
    with ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_prepare) as executor:

        def submit(work: Callable[..., Any], *arguments: Any) -> Future[Any]:
            # Defer signals until the processes are ready, because this process has to end them.
            with signals_held_back():
                return executor.submit(_call, work, arguments)

        try:
            yield submit
        except BaseException:
            for process in set(active_children()) - earlier:
                process.terminate()
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def _context() -> BaseContext:
    """Return how processes start. A fork is fastest, but only safe if no other thread holds a lock."""
    if sys.platform == "linux" and _is_fork_safe():
        return get_context("fork")
    # A fork server listens on a socket below the temporary folder, and socket paths are short.
    short = len(os.fsencode(tempfile.gettempdir())) < _LONGEST_FOLDER
    return get_context("forkserver" if short and "forkserver" in get_all_start_methods() else "spawn")


def _is_fork_safe() -> bool:
    others = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    # Python does not list the threads of libraries.
    all_threads = list(Path("/proc/self/task").iterdir())
    return not others or (others == [COUNTING_THREAD] and len(all_threads) == 2)


# Within a pool process


def _prepare() -> None:
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    sys.unraisablehook = _end_anyway
    # A fork inherits the wakeup descriptor of its parent, which counts signals with it.
    signal.set_wakeup_fd(-1)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end(*_: object) -> None:
    # A process may get the signal twice: through its process group and from its parent. The second one must
    # not interrupt the cleanup that the first one started.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def _end_anyway(problem: sys.UnraisableHookArgs) -> None:
    # Python drops an exit that `_end` raises during a callback, such as one of the garbage collector.
    if isinstance(problem.exc_value, SystemExit):
        os._exit(1)
    sys.__unraisablehook__(problem)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _call(work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    with suppress(SystemExit):
        return work(*arguments)
    # The process was asked to end, and no new work may start. Drafts are removed with the frames of the
    # exception, even if it was raised while a block was being entered.
    os._exit(1)
