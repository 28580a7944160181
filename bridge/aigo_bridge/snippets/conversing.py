"""Calls that call back: many at a time in one worker process, each waiting for its own models.

One thread of the runner talks to the worker (`talking`). It counts each call's own time: while a step of a call holds the
worker's event loop, the time is that call's; while nobody does, it is everybody's who is not waiting for a callback. The
call that overruns, or whose step the worker died in, fails alone. The others are started again in a new worker and get the
answers that they had got before (`answers`), so that no model is asked the same twice.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import sniffio

from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets.answers import Answers
from aigo_bridge.snippets.encoding import encode
from aigo_bridge.snippets.snippet import Snippet, SnippetLimits
from aigo_bridge.snippets.talking import Board, Conversation, line

Callback = Callable[..., Awaitable[Any]]
"""A function of the runner that a snippet may call: JSON in, JSON or an AI GO type out."""


class Conversations:
    """The worker for calls with callbacks, and the thread that talks to it. Thread-safe."""

    def __init__(self) -> None:
        self._board = Board()
        self._numbers = itertools.count()

    async def call(
        self,
        snippet: Snippet,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        callbacks: Mapping[str, Callback],
        limits: SnippetLimits,
    ) -> Any:
        """As `SnippetHost.call`, with callbacks."""
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
                "callbacks": list(callbacks),
            }
            request = line("start", number, content)
        except (TypeError, ValueError, RecursionError) as error:
            raise SnippetError(snippet.told(f"its input cannot be sent as JSON: {error}")) from error
        sending, receiving = anyio.create_memory_object_stream[tuple[Any, ...]](float("inf"))
        call = Conversation(number, snippet.where, request, limits, _teller(sending.send_nowait))
        async with sending, receiving:
            self._enter(call)
            try:
                async with anyio.create_task_group() as group:
                    answers = Answers(callbacks, group, lambda *reply: self._reply(call, *reply))
                    end: tuple[Any, ...] | None = None
                    async for message in receiving:
                        if message[0] in ("value", "error", "broken"):
                            end = message
                            break
                        answers.take(message)
                    group.cancel_scope.cancel()
            finally:
                self._leave(call)
        if answers.fatal is not None:
            raise answers.fatal
        # Without a message the group was cancelled from outside, and that has been raised.
        assert end is not None
        if end[0] == "value":
            return end[1]
        cause = answers.failure_of(end[2]) if end[0] == "error" else None
        raise SnippetError(snippet.told(end[1])) from cause

    def close(self) -> None:
        """End the worker; calls in progress fail, the next call would start another."""
        board = self._board
        with board.lock:
            thread = board.thread
            if thread is not None:
                board.closing = True
                board.ring()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # Called from the coroutines of calls

    def _enter(self, call: Conversation) -> None:
        board = self._board
        while True:
            with board.lock:
                closing = board.thread if board.closing else None
                if closing is None:
                    board.calls[call.number] = call
                    if board.thread is None:
                        board.start(call.limits)
                    else:
                        board.outgoing.append(call.request)
                        board.ring()
                    return
            closing.join()

    def _leave(self, call: Conversation) -> None:
        with self._board.lock:
            if call.number in self._board.calls:
                call.left = True
                call.asking.clear()
                self._board.send("cancel", call.number)

    def _reply(self, call: Conversation, start: int, number: int, kind: str, content: Any) -> None:
        with self._board.lock:
            if call.starts == start and number in call.asking:
                call.asking.discard(number)
                self._board.send(kind, number, content)


def _teller(receive: Callable[[tuple[Any, ...]], None]) -> Callable[[tuple[Any, ...]], None]:
    """From any thread into the running event loop, without waiting for it."""

    def delivered(message: tuple[Any, ...]) -> None:
        try:
            receive(message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # the caller has left

    if sniffio.current_async_library() == "trio":
        import trio

        token = trio.lowlevel.current_trio_token()

        def tell_trio(message: tuple[Any, ...]) -> None:
            try:
                token.run_sync_soon(delivered, message)
            except trio.RunFinishedError:
                return

        return tell_trio
    loop = asyncio.get_running_loop()

    def tell_asyncio(message: tuple[Any, ...]) -> None:
        try:
            loop.call_soon_threadsafe(delivered, message)
        except RuntimeError:  # the loop is closed, and with it the caller gone
            return

    return tell_asyncio
