"""Work done by several processes: none of them outlives the work, or this process."""

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
from typing import Any, Self, TypeVar

from aigo_bridge.process.locks import STOPPING, signals_held_back

T = TypeVar("T")

_LONGEST_FOLDER = 64
"""Bytes of a name to which a fork server's socket can be added: all of it may have 107 on Linux, 103 on
macOS.
"""


def each_in_processes(
    work: Callable[..., T], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[T | MemoryError]:
    """Results of calls, in order; a call whose process is ended from outside, as systems do that run out of
    memory, gives a `MemoryError`.

    Args:
        work: a function of a module.
        arguments: of each call.
        jobs: processes.
    """
    if not may_start_processes():
        yield from (work(*call_arguments) for call_arguments in arguments)
        return
    with running(work, arguments, jobs) as results:
        for call_arguments, result in zip(arguments, results, strict=True):
            try:
                value: T | MemoryError = result.result()
            except BrokenProcessPool:
                # One has been ended, and all the others with it: whose fault it is shows alone.
                value = _alone(work, call_arguments)
            yield value


def _alone(work: Callable[..., T], arguments: tuple[Any, ...]) -> T | MemoryError:
    with running(work, [arguments], 1) as (result,):
        try:
            return result.result()
        except BrokenProcessPool:
            return MemoryError("a process was ended from outside")


class Worker:
    """Another process, for work on strangers' data that may end it: begun when it is first needed, and anew
    when it was ended.
    """

    def __init__(self) -> None:
        self._executors = ExitStack()
        self._submit: Callable[..., Future[Any]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._executors.close()

    def stop(self) -> None:
        """End the process at once, whatever it does."""
        with suppress(KeyboardInterrupt):
            self._executors.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    def call(self, work: Callable[..., T], *arguments: Any) -> T:
        """The result of a call.

        Raises:
            BrokenProcessPool: it has ended the process.
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
    """Return whether this process may start others; a process of a pool may not."""
    return not current_process().daemon


@contextmanager
def running(
    work: Callable[..., T], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[list[Future[T]]]:
    """Call a function in other processes while the block does its own work; all of them end with the block.

    Args:
        work: a function of a module.
        arguments: of each call.
        jobs: number of processes.

    Yields:
        The results to come, in order. The `BrokenProcessPool` of one means that a process was killed.
    """
    with _executor(jobs) as submit:
        yield [submit(work, *call_arguments) for call_arguments in arguments]


@contextmanager
def _executor(jobs: int) -> Iterator[Callable[..., Future[Any]]]:
    """Submits calls to processes, which end with the block; at once when it is left by an exception."""
    earlier = set(active_children())
    with ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_prepare) as executor:

        def submit(work: Callable[..., Any], *arguments: Any) -> Future[Any]:
            # Held back until they can say so: it is this process that ends the others.
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
    """How processes are started: a fork is ready at once, but safe only where no thread can hold a lock."""
    if sys.platform == "linux" and threading.active_count() == 1:
        return get_context("fork")
    # A fork server listens at a socket below the folder of temporary files, and sockets have short names.
    short = len(os.fsencode(tempfile.gettempdir())) < _LONGEST_FOLDER
    return get_context("forkserver" if short and "forkserver" in get_all_start_methods() else "spawn")


# In a process of the pool


def _prepare() -> None:
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    # A fork has the wakeup descriptor of its parent, which counts signals there.
    signal.set_wakeup_fd(-1)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end(*_: object) -> None:
    # A group of processes is told by whoever stops it and by this process's parent: what is being cleared
    # away since the first time is not to be interrupted by the second.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _call(work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    try:
        return work(*arguments)
    except SystemExit:
        # Told to end: all that was begun is cleared away by now, and nothing else is to be begun.
        os._exit(1)
