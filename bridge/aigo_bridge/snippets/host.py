"""Runner's side of snippets: sends calls to worker processes and stops unneeded ones.

A snippet is part of a task file, which may come from anywhere. Therefore snippets never run in the runner's
process (see `process`) and are killed when they exceed their time. Results are JSON, never pickle.

Each call has its own worker while it runs (`Pool`), and a thread of the runner communicates with it
(`channel`). A worker takes about 20 MB, and its start a quarter of a second of processor time. Therefore a
call waits briefly for a busy worker before another one is started. Thousands of quick calls share one worker,
and a slow call does not delay others. `in_process` is for debugging only.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import anyio
import anyio.lowlevel
import anyio.to_thread

from aigo_bridge.codes import Code
from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets.channel import Callback, Callbacks, Channel
from aigo_bridge.snippets.process import choose, chosen
from aigo_bridge.snippets.protocol import Failure, encode, line
from aigo_bridge.snippets.snippet import Snippet, SnippetLimits

MOST_WORKERS = max(4, min(os.cpu_count() or 1, 16))
"""Maximum number of workers of all hosts that work at the same time: the number of processors, at least 4
(snippets also wait), at most 16. Each host may have one.
"""

MOST_STARTING = os.cpu_count() or 1
"""Maximum number of workers that start at the same time. More than the number of processors would slow
down each other and the runner.
"""

MOST_WAITING = 64
"""Maximum number of concurrent calls with callbacks, whose waiting workers do not count as working."""

PATIENCE = 0.25
"""Seconds that a call waits for a busy worker before another one is started."""

QUICK = 0.05
"""Maximum seconds of a call with callbacks during which no further worker is started for similar calls,
because starting costs more than waiting.
"""

State = Literal["starting", "working", "waiting"]
"""State of a call's worker; `waiting`: it waits for a callback."""


class SnippetCall:
    """One call that any thread may stop. Thread-safe."""

    def __init__(self, label: str, *, calls_back: bool = False):
        self.label = label
        self.calls_back = calls_back
        self._lock = threading.Lock()
        self._worker: Channel | None = None
        self.stopped = False
        """Whether the result is no longer needed."""
        self.state: State = "working"
        """State of its worker; guarded by the pool."""
        self.began = 0.0
        """Time when it got its worker; guarded by the pool."""

    def stop(self) -> None:
        """Kill the worker of this call, or prevent its start; return immediately."""
        with self._lock:
            self.stopped = True
            if self._worker is not None:
                self._worker.kill()

    def begin(self, worker: Channel) -> None:
        """Set the worker that stopping this call kills."""
        with self._lock:
            self._worker = worker
            if self.stopped:
                worker.kill()

    def finish(self) -> bool:
        """Unset the worker; return whether it was not killed."""
        with self._lock:
            self._worker = None
            return not self.stopped


class Pool:
    """Workers of one host. Thread-safe."""

    _pools: ClassVar[weakref.WeakSet[Pool]] = weakref.WeakSet()
    """All pools of this process."""
    _listing: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        with self._listing:
            self._pools.add(self)
        # Re-entrant, because garbage collection within may close the pool's owner.
        self._changed = threading.Condition(threading.RLock())
        self._free: list[Channel] = []
        self._jobs: set[SnippetCall] = set()
        self._size = 0
        """Number of workers, including free and starting ones."""
        self._generation = 0

    @contextmanager
    def worker(self, job: SnippetCall, limits: SnippetLimits) -> Iterator[Channel]:
        """Yield a worker for one job; a worker that does not survive the job is removed from the pool.

        Raises:
            SnippetError: no process can be started, or the job was stopped while it waited.
        """
        worker, generation = self._take(job, limits)
        sound = False
        try:
            job.begin(worker)
            yield worker
            sound = True
        except SnippetError as error:
            if job.stopped:
                raise SnippetError(
                    f"{job.label}: was stopped, as its worker was closed", code=Code.STOPPED_SNIPPET
                ) from error
            raise
        finally:
            is_kept = job.finish() and sound
            with self._changed:
                self._jobs.discard(job)
                is_kept = is_kept and generation == self._generation
                if is_kept:
                    self._free.append(worker)
                elif generation == self._generation:
                    self._size -= 1
                self._changed.notify()
            if not is_kept:
                worker.end()

    def close(self) -> None:
        """End all workers immediately, including busy ones; a later call starts new workers."""
        with self._changed:
            self._generation += 1
            free, self._free, self._size = self._free, [], 0
            for job in self._jobs:
                job.stop()
            self._changed.notify_all()
        for worker in free:
            worker.end()

    def mark(self, job: SnippetCall, state: State) -> None:
        """Set the state of a job's worker."""
        with self._changed:
            job.state = state
            self._changed.notify_all()

    def wake(self) -> None:
        """Wake waiting jobs so that they notice that they were stopped."""
        with self._changed:
            self._changed.notify_all()

    def busy(self) -> int:
        """Return the number of starting or working workers."""
        return sum(job.state != "waiting" for job in tuple(self._jobs))

    def release(self) -> bool:
        """Stop one idle worker; return whether there was one."""
        with self._changed:
            worker = self._free.pop(0) if self._free else None
            self._size -= worker is not None
        if worker is not None:
            worker.end()
        return worker is not None

    def _make_room(self) -> None:
        """Stop idle workers of other hosts if the total is too high."""
        others = self._others()
        surplus = self._size + sum(pool._size for pool in others)  # noqa: SLF001  # of the same class - MOST_WORKERS
        for pool in others:
            while surplus > 0 and pool.release():
                surplus -= 1

    def _others(self) -> list[Pool]:
        with self._listing:
            return [pool for pool in self._pools if pool is not self]

    def _has_room(self, job: SnippetCall) -> bool:
        """Return whether another worker is worth its start; the lock must be held."""
        states = [neighbour.state for neighbour in self._jobs]
        others = sum(pool.busy() for pool in self._others())
        if (
            self._size - states.count("waiting") + others >= MOST_WORKERS
            or states.count("starting") >= MOST_STARTING
        ):
            return False
        recent = time.monotonic() - QUICK
        return not job.calls_back or not any(
            neighbour.calls_back and neighbour.began > recent for neighbour in self._jobs
        )

    def _take(self, job: SnippetCall, limits: SnippetLimits) -> tuple[Channel, int]:
        since = time.monotonic()
        dead: list[Channel] = []
        try:
            with self._changed:
                while True:
                    if job.stopped:
                        raise SnippetError(
                            f"{job.label}: was stopped before it began", code=Code.STOPPED_SNIPPET
                        )
                    while self._free:
                        worker = self._free.pop()
                        if worker.usable:
                            job.began = time.monotonic()
                            self._jobs.add(job)
                            return worker, self._generation
                        dead.append(worker)
                        self._size -= 1
                    patience = PATIENCE - (time.monotonic() - since)
                    has_room = self._has_room(job)
                    if self._size == 0 or (has_room and patience <= 0):
                        self._size += 1
                        generation = self._generation
                        job.state, job.began = "starting", time.monotonic()
                        self._jobs.add(job)
                        break
                    self._changed.wait(max(patience, 0.01) if has_room or job.calls_back else None)
        finally:
            for worker in dead:
                worker.end()
        self._make_room()
        try:
            return Channel(limits), generation
        except OSError as error:
            with self._changed:
                self._jobs.discard(job)
                if generation == self._generation:
                    self._size -= 1
                self._changed.notify()
            raise SnippetError(
                f"{job.label}: cannot start a process for it: {error}", code=Code.FAILED_SNIPPET
            ) from error


def run_in_process(enabled: bool = True) -> None:
    """Let new hosts run snippets in this process: for debugging, never for untrusted tasks."""
    choose("in-process" if enabled else None)


class SnippetHost:
    """Host of worker processes, which start on first use and again after a crash or kill.

    The functions may be sync or async. A cancelled call returns immediately, and its snippet is stopped.
    Thread-safe. `close` stops the workers, and so does garbage collection of the host.
    """

    def __init__(self, limits: SnippetLimits | None = None, *, in_process: bool | None = None):
        """Create a host without workers. With `in_process`, snippets run in this process, for breakpoints of
        a debugger. They are not isolated then: they see the keys, can hang or end the process, and have no
        limits. `None`: as `run_in_process` said.
        """
        self.limits = limits or SnippetLimits()
        self.in_process = (chosen() == "in-process") if in_process is None else in_process
        self._numbers = itertools.count()
        self._pool = Pool()
        self._turns: anyio.lowlevel.RunVar[tuple[anyio.CapacityLimiter, anyio.CapacityLimiter]]
        self._turns = anyio.lowlevel.RunVar("turns")
        self._functions: dict[Snippet, Any] = {}
        weakref.finalize(self, self._pool.close)

    async def call(
        self, snippet: Snippet, *args: Any, callbacks: Mapping[str, Callback] | None = None, **kwargs: Any
    ) -> Any:
        """Call the snippet's function with JSON-like arguments (or AI GO types) and return its JSON-like
        result.

        When it is cancelled, its worker is killed.

        Args:
            snippet: the code and its function.
            args: positional arguments; `Remote` and `InOut` have a meaning in calls with callbacks.
            callbacks: async functions of the runner that the snippet may call, by name, as methods of a
                `Remote`. They get JSON and return JSON or AI GO types. A `BridgeError` that one raises is
                told to the snippet; any other exception ends the call and comes out of it. Waiting for them
                does not count as the snippet's time.
            kwargs: keyword arguments.

        Raises:
            SnippetError: the snippet does not compile, raised, returned something that is not JSON, took too
                long,
                or took its process down; its cause is the callback's error when the snippet let one pass.
        """
        if self.in_process:
            from aigo_bridge.snippets.in_process import call_here

            return await call_here(self._functions, snippet, args, kwargs, callbacks)
        if callbacks is None:
            return await self._in_thread(snippet, args, kwargs, None)
        failure: Exception | None = None
        value = None
        async with anyio.create_task_group() as group:
            answering = Callbacks(callbacks, group)
            try:
                value = await self._in_thread(snippet, args, kwargs, answering)
            except Exception as error:  # noqa: BLE001  # raised below, not in a group
                failure = error
            group.cancel_scope.cancel()
        if answering.fatal is not None:
            raise answering.fatal
        if failure is not None:
            raise failure
        return value

    def call_blocking(self, snippet: Snippet, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Make a call like `call` from a thread that may block; `KeyboardInterrupt` also stops it."""
        if self.in_process:
            # In a separate thread, because this one may run an event loop.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(anyio.run, lambda: self.call(snippet, *args, **kwargs)).result()
        return self._work(SnippetCall(snippet.where), snippet, args, kwargs, None)

    def close(self) -> None:
        """Stop the worker processes and their calls; the next call starts a new worker."""
        self._pool.close()

    async def _in_thread(
        self, snippet: Snippet, args: tuple[Any, ...], kwargs: Mapping[str, Any], callbacks: Callbacks | None
    ) -> Any:
        job = SnippetCall(snippet.where, calls_back=callbacks is not None)
        try:
            return await anyio.to_thread.run_sync(
                lambda: self._work(job, snippet, args, kwargs, callbacks),
                abandon_on_cancel=True,
                limiter=self._limiters()[callbacks is not None],
            )
        except anyio.get_cancelled_exc_class():
            job.stop()
            self._pool.wake()
            raise

    def _limiters(self) -> tuple[anyio.CapacityLimiter, anyio.CapacityLimiter]:
        """Return as many threads as there are workers, for plain calls and for calls with callbacks. Calls
        wait for their turn without a thread.
        """
        try:
            return self._turns.get()
        except LookupError:
            limiters = anyio.CapacityLimiter(MOST_WORKERS), anyio.CapacityLimiter(MOST_WAITING)
            self._turns.set(limiters)
            return limiters

    def _work(
        self,
        job: SnippetCall,
        snippet: Snippet,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        callbacks: Callbacks | None,
    ) -> Any:
        number = next(self._numbers)
        try:
            content = {
                "source": snippet.source,
                "function": snippet.function,
                "label": snippet.label,
                "origin": snippet.origin,
                "first_line": snippet.first_line,
                "args": [encode(value) for value in args],
                "kwargs": {name: encode(value) for name, value in kwargs.items()},
                "callbacks": None if callbacks is None else callbacks.names,
            }
            request = line("start", number, content)
        except (TypeError, ValueError, RecursionError) as error:
            raise SnippetError(
                snippet.told(f"its input cannot be sent as JSON: {error}"), code=Code.FAILED_SNIPPET
            ) from error
        with self._pool.worker(job, self.limits) as worker:
            end = worker.exchange(
                number,
                request,
                snippet.where,
                self.limits.seconds,
                callbacks,
                lambda state: self._pool.mark(job, state),
            )
        if isinstance(end, Failure):
            cause = None if callbacks is None or end.question is None else callbacks.errors.get(end.question)
            raise SnippetError(snippet.told(end.problem), code=Code.FAILED_SNIPPET) from cause
        return end.value
