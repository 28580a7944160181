"""The side of the runner: sends calls to worker processes, and stops those that nobody waits for.

A snippet comes with a task file, and task files travel. So a snippet never runs in the runner's process (`process` says what it
has there), and it is killed when it overruns its time. What comes back is JSON, never a pickle.

Plain calls each have a worker to themselves while they run (`pool`). Calls that call back wait for somebody else most of their
time: those share a worker of their own, on its event loop (`conversing`). `in_process` is for debugging alone.
"""

from __future__ import annotations

import itertools
import json
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets.conversing import Callback, Conversations
from aigo_bridge.snippets.encoding import encode
from aigo_bridge.snippets.pool import MOST_WORKERS, Job, Pool
from aigo_bridge.snippets.snippet import Snippet, SnippetLimits

_DEFAULT = {"in_process": False}


def run_in_process(enabled: bool = True) -> None:
    """Let hosts that are made from now on run snippets in this process: for debugging, never for strangers' tasks."""
    _DEFAULT["in_process"] = enabled


class SnippetHost:
    """Worker processes, started when first needed and again after a crash or a kill.

    The functions are sync or async. A cancelled call returns at once, and its snippet is stopped. Thread-safe.
    `close` ends the workers; a host that is garbage collected ends them too.
    """

    def __init__(self, limits: SnippetLimits | None = None, *, in_process: bool | None = None):
        """Args:
        limits: what one call may use.
        in_process: run snippets in this process, so that a debugger's breakpoints work. Nothing is isolated then: they
            see the keys, can hang or end the process, and have no limits. `None`: as `run_in_process` said.
        """
        self.limits = limits or SnippetLimits()
        self.in_process = _DEFAULT["in_process"] if in_process is None else in_process
        self._numbers = itertools.count()
        self._pool = Pool()
        self._conversations = Conversations()
        self._turns: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("turns")
        self._functions: dict[Snippet, Any] = {}
        weakref.finalize(self, self._conversations.close)
        weakref.finalize(self, self._pool.close)

    async def call(
        self, snippet: Snippet, *args: Any, callbacks: Mapping[str, Callback] | None = None, **kwargs: Any
    ) -> Any:
        """Call the snippet's function with JSON-like arguments (or AI GO types) and return its JSON-like result.

        When it is cancelled, the snippet is stopped: the worker of a plain call is killed; a call with callbacks is cancelled in
        its worker, and that is killed if it keeps the others from running.

        Args:
            snippet: the code and its function.
            args: positional arguments; `Remote` and `InOut` have a meaning in calls with callbacks.
            callbacks: async functions of the runner that the snippet may call, by name, as methods of a `Remote`. They get
                JSON and return JSON or AI GO types. A `BridgeError` that one raises is told to the snippet; any other
                exception ends the call and comes out of it. Waiting for them does not count as the snippet's time.
            kwargs: keyword arguments.

        Raises:
            SnippetError: the snippet does not compile, raised, returned something that is not JSON, took too long,
                or took its process down; its cause is the callback's error when the snippet let one pass.
        """
        if self.in_process:
            from aigo_bridge.snippets.in_process import call_here

            return await call_here(self._functions, snippet, args, kwargs, callbacks)
        if callbacks is not None:
            return await self._conversations.call(snippet, args, kwargs, callbacks, self.limits)
        job = Job(snippet.where)
        try:
            return await anyio.to_thread.run_sync(
                lambda: self._work(job, snippet, args, kwargs),
                abandon_on_cancel=True,
                limiter=self._limiter(),
            )
        except anyio.get_cancelled_exc_class():
            job.stop()
            self._pool.wake()
            raise

    def call_blocking(self, snippet: Snippet, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """As `call`, from a thread that may wait; an exception such as `KeyboardInterrupt` stops the snippet, too."""
        if self.in_process:
            # In a thread of its own, as an event loop may be running in this one.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(anyio.run, lambda: self.call(snippet, *args, **kwargs)).result()
        return self._work(Job(snippet.where), snippet, args, kwargs)

    def close(self) -> None:
        """End the worker processes, and with them calls in progress; the next call would start another."""
        self._conversations.close()
        self._pool.close()

    def _limiter(self) -> anyio.CapacityLimiter:
        """As many threads as there are workers: calls wait for their turn without one."""
        try:
            return self._turns.get()
        except LookupError:
            limiter = anyio.CapacityLimiter(MOST_WORKERS)
            self._turns.set(limiter)
            return limiter

    def _work(self, job: Job, snippet: Snippet, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        number = next(self._numbers)
        try:
            request = {
                "id": number,
                "source": snippet.source,
                "function": snippet.function,
                "label": snippet.label,
                "origin": snippet.origin,
                "first_line": snippet.first_line,
                "args": [encode(value) for value in args],
                "kwargs": {name: encode(value) for name, value in kwargs.items()},
            }
            line = json.dumps(request).encode() + b"\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise SnippetError(snippet.told(f"its input cannot be sent as JSON: {error}")) from error
        with self._pool.worker(job, self.limits) as worker:
            reply = worker.exchange(number, line, snippet.where, self.limits.seconds)
        if "error" in reply:
            raise SnippetError(snippet.told(reply["error"]))
        return reply["value"]
