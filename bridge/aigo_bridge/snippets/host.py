"""The side of the runner: starts the worker process, sends calls, enforces the limits.

A snippet comes with a task file, and task files travel. So a snippet never runs in the runner's process (`process` says what it
has there), and it is killed when it overruns its time. What comes back is JSON, never a pickle.

Plain calls take turns in one worker. Calls that call back wait for somebody else most of their time: those share a second
worker, on its event loop (`conversing`).
"""

from __future__ import annotations

import itertools
import json
import os
import select
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any

import anyio.to_thread

from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets.conversing import Callback, Conversations
from aigo_bridge.snippets.encoding import encode
from aigo_bridge.snippets.process import WorkerProcess, ready
from aigo_bridge.snippets.snippet import Snippet, SnippetLimits

MAX_REPLY_BYTES = 512 * 1024 * 1024
"""Largest answer that is accepted from a worker."""


class SnippetHost:
    """Worker processes, started when first needed and again after a crash or a kill.

    Plain calls are taken one at a time, calls with callbacks many at a time; the functions are sync or async. Thread-safe.
    `close` ends the workers; a host that is garbage collected ends them too.
    """

    def __init__(self, limits: SnippetLimits | None = None):
        self.limits = limits or SnippetLimits()
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._numbers = itertools.count()
        self._conversations = Conversations()
        weakref.finalize(self, self._conversations.close)

    async def call(
        self, snippet: Snippet, *args: Any, callbacks: Mapping[str, Callback] | None = None, **kwargs: Any
    ) -> Any:
        """Call the snippet's function with JSON-like arguments (or AI GO types) and return its JSON-like result.

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
        if callbacks is not None:
            return await self._conversations.call(snippet, args, kwargs, callbacks, self.limits)
        return await anyio.to_thread.run_sync(
            lambda: self.call_blocking(snippet, args, kwargs), abandon_on_cancel=True
        )

    def call_blocking(self, snippet: Snippet, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """As `call`, from a thread that may wait."""
        number = next(self._numbers)
        try:
            request = {
                "id": number,
                "source": snippet.source,
                "function": snippet.function,
                "label": snippet.label,
                "args": [encode(value) for value in args],
                "kwargs": {name: encode(value) for name, value in kwargs.items()},
            }
            line = json.dumps(request).encode() + b"\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise SnippetError(f"{snippet.label}: its input cannot be sent as JSON: {error}") from error
        with self._lock:
            if self._worker is None or not self._worker.usable:
                if self._worker is not None:
                    self._worker.end()
                self._worker = _started(self.limits, snippet.label)
            reply = self._worker.exchange(number, line, snippet.label)
        if "error" in reply:
            raise SnippetError(f"{snippet.label}: {reply['error']}")
        return reply["value"]

    def close(self) -> None:
        """End the worker processes; the next call would start another."""
        self._conversations.close()
        with self._lock:
            if self._worker is not None:
                self._worker.end()
                self._worker = None


def _started(limits: SnippetLimits, label: str) -> _Worker:
    try:
        return _Worker(limits)
    except OSError as error:
        raise SnippetError(f"{label}: cannot start a process for it: {error}") from error


class _Worker(WorkerProcess):
    """A worker that takes one call at a time."""

    def __init__(self, limits: SnippetLimits):
        super().__init__("aigo_bridge.snippets.worker", limits.memory_bytes)
        self.limits = limits

    @property
    def usable(self) -> bool:
        """Whether the process lives and has said nothing unasked (what it says next would be taken for an answer)."""
        return self.process.poll() is None and not ready(self.answers, select.POLLIN, 0)

    def exchange(self, number: int, request: bytes, label: str) -> dict[str, Any]:
        """Send one request and wait for its reply; a worker that fails to give one is killed."""
        deadline = time.monotonic() + self.limits.seconds
        try:
            self._send(request, deadline)
            reply = _answer_to(number, self._receive(deadline))
        except TooLargeReplyError as error:
            self.end()
            raise SnippetError(f"{label}: returned more than {MAX_REPLY_BYTES:,} bytes of JSON") from error
        except TimeoutError as error:
            self.end()
            raise SnippetError(
                f"{label}: took longer than {self.limits.seconds:g} s and was stopped"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            self.end()
            raise SnippetError(
                f"{label}: wrote something else than its answer into the pipe for answers"
            ) from error
        except (OSError, EOFError) as error:
            cause = self.cause_of_end()
            self.end()
            raise SnippetError(f"{label}: its process ended without an answer ({cause})") from error
        return reply

    def _send(self, data: bytes, deadline: float) -> None:
        """Write all of `data` without ever blocking for longer than the deadline."""
        descriptor = self.requests
        os.set_blocking(descriptor, False)
        view = memoryview(data)
        while view:
            if not ready(descriptor, select.POLLOUT, _remaining(deadline)):
                raise TimeoutError
            view = view[os.write(descriptor, view) :]

    def _receive(self, deadline: float) -> bytes:
        descriptor = self.answers
        parts: list[bytes] = []
        size = 0
        while True:
            # In slices: the end of the pipe does not show as long as a child of the snippet holds it open.
            while not ready(descriptor, select.POLLIN, min(_remaining(deadline), 0.2)):
                if self.process.poll() is not None and not ready(descriptor, select.POLLIN, 0):
                    raise EOFError
                if not _remaining(deadline):
                    raise TimeoutError
            part = os.read(descriptor, 1 << 20)
            if not part:
                raise EOFError
            parts.append(part)
            size += len(part)
            if size > MAX_REPLY_BYTES:
                raise TooLargeReplyError
            if part.endswith(b"\n"):
                return b"".join(parts)


def _answer_to(number: int, line: bytes) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(line)
    if reply["id"] != number:
        raise ValueError("an answer to another request")
    return reply


class TooLargeReplyError(Exception):
    """A worker's answer is longer than `MAX_REPLY_BYTES`."""


def _remaining(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
