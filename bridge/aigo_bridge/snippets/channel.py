"""Runner's end of the pipes to a worker, which handles one call at a time, including its callbacks.

Every error affects only that one call. No message from a worker stops the runner's clock, except a question
that waits for the runner's answer.
"""

from __future__ import annotations

import inspect
import os
import select
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

import anyio
import anyio.from_thread
from anyio.abc import TaskGroup

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, SnippetError
from aigo_bridge.snippets import protocol
from aigo_bridge.snippets.process import MOST_PROCESSES, WorkerProcess, ready
from aigo_bridge.snippets.protocol import Failure, LineError, Question, Ready, Value, encode, line
from aigo_bridge.snippets.snippet import SnippetLimits

Callback = Callable[..., Awaitable[Any]]
"""Function of the runner that a snippet may call: JSON in, JSON or an AI GO type out."""

Post = Callable[[int, int, bytes], None]
"""Function that accepts an answer from any thread: number of the call, number of its question, and the
line to send.
"""


class Callbacks:
    """Questions of one call. Tasks run in `group`; `ask` and `drop` are called from the worker's thread."""

    def __init__(self, functions: Mapping[str, Callback], group: TaskGroup):
        self._functions = functions
        self._group = group
        self._scopes: dict[int, anyio.CancelScope] = {}
        self.names = list(functions)
        self.errors: dict[int, BridgeError] = {}
        """Question → error that answered it."""
        self.fatal: BaseException | None = None
        """Exception of a callback that must not reach the snippet; the group has been cancelled."""

    def ask(self, question: Question, post: Post) -> None:
        """Start answering a question; the answer is posted.

        Raises:
            RuntimeError: the event loop has ended.
        """
        anyio.from_thread.run_sync(self._start, question, post)

    def drop(self, number: int) -> None:
        """Stop answering a question.

        Raises:
            RuntimeError: the event loop has ended.
        """
        anyio.from_thread.run_sync(self._cancel, number)

    def _start(self, question: Question, post: Post) -> None:
        self._scopes[question.number] = anyio.CancelScope()
        self._group.start_soon(self._answer, question, post)

    def _cancel(self, number: int) -> None:
        if number in self._scopes:
            self._scopes[number].cancel()

    async def _answer(self, question: Question, post: Post) -> None:
        number, name = question.number, question.name
        function = self._functions[name]
        with self._scopes[number]:
            try:
                inspect.signature(function).bind(*question.args, **question.kwargs)
            except TypeError as error:
                post(question.call, number, line("fail", number, f"{name}: {error}"))
                return
            try:
                answer = line("reply", number, encode(await function(*question.args, **question.kwargs)))
            except BridgeError as error:
                self.errors[number] = error
                answer = line("fail", number, str(error))
            # An engine limit or a bug: the owner of the call must see the original exception.
            except Exception as error:  # noqa: BLE001
                self.fatal = self.fatal or error
                self._group.cancel_scope.cancel()
                return
            post(question.call, number, answer)


GLANCE = 0.2
"""Seconds between two checks of a worker: whether it has ended, and how many processes it has."""

WAITING_GLANCE = 0.5
"""Seconds between two checks while a call waits for a callback."""

STARTUP = 60.0
"""Maximum start time of a worker in seconds; it does not count for any call."""


class TooManyProcessesError(Exception):
    """Worker with more than `MOST_PROCESSES` processes."""


class NotStartedError(Exception):
    """Worker that did not start within `STARTUP` seconds."""


class Channel(WorkerProcess):
    """Worker process and its messages."""

    def __init__(self, limits: SnippetLimits):
        super().__init__(limits.memory_bytes, network=limits.network)
        self.prepare()

    def prepare(self) -> None:
        """Prepare the pipes for messages."""
        os.set_blocking(self.requests, False)
        self._begun = False
        self._received: list[bytes] = []
        self._size = 0
        """Bytes of the incomplete line."""
        self._unsent: deque[memoryview] = deque()
        self._answers: deque[tuple[int, int, bytes]] = deque()
        """Answers to questions, posted by callbacks."""
        self._bell = os.pipe()
        """Pipe that becomes readable after `post`."""
        for descriptor in self._bell:
            os.set_blocking(descriptor, False)
            # Close it only when no thread can post, because the system reuses descriptor numbers.
            weakref.finalize(self, os.close, descriptor).atexit = False

    @property
    def usable(self) -> bool:
        """Whether the process is alive and has sent nothing unexpected, which would be read as an answer."""
        return self.process.poll() is None and not self._unsent and not ready(self.answers, select.POLLIN, 0)

    def post(self, call: int, number: int, line: bytes) -> None:
        """Post the answer to a question, from any thread."""
        self._answers.append((call, number, line))
        with suppress(BlockingIOError):  # The pipe is full, so the reader will wake up.
            os.write(self._bell[1], b"!")

    def exchange(
        self,
        number: int,
        request: bytes,
        label: str,
        seconds: float,
        callbacks: Callbacks | None = None,
        mark: Callable[[Literal["working", "waiting"]], None] = lambda state: None,
    ) -> Value | Failure:
        """Send one call and wait for its end. After a failure, the worker cannot be reused.

        Args:
            number: number of the call.
            request: line that starts the call.
            label: name of the call in errors.
            seconds: maximum seconds of the call, without waiting for callbacks.
            callbacks: functions that the call may use.
            mark: function that is called when the worker starts, and when the call starts or stops
                waiting for callbacks.

        Raises:
            SnippetError: there was no answer in time, or an invalid one.
        """
        try:
            if not self._begun:
                self._begin()
                mark("working")
            return _Call(self, number, seconds, callbacks, mark).run(request)
        except protocol.TooLargeReplyError as error:
            raise SnippetError(f"{label}: {error}", code=Code.FAILED_SNIPPET) from error
        except TooManyProcessesError as error:
            raise SnippetError(
                f"{label}: started more than {MOST_PROCESSES} processes and was stopped",
                code=Code.STOPPED_SNIPPET,
            ) from error
        except NotStartedError as error:
            raise SnippetError(
                f"{label}: its process did not start within {STARTUP:g} s", code=Code.STOPPED_SNIPPET
            ) from error
        except TimeoutError as error:
            raise SnippetError(
                f"{label}: took longer than {seconds:g} s and was stopped", code=Code.STOPPED_SNIPPET
            ) from error
        except LineError as error:
            raise SnippetError(
                f"{label}: wrote other data than its answer into the pipe for answers",
                code=Code.FAILED_SNIPPET,
            ) from error
        except (OSError, EOFError, ValueError) as error:
            if not self.end.alive:
                # The interpreter is shutting down and has stopped the worker and closed its pipes.
                problem = "was stopped, as the process that runs it is ending"
                raise SnippetError(f"{label}: {problem}", code=Code.FAILED_SNIPPET) from error
            if isinstance(error, ValueError):
                raise
            cause = self.cause_of_end()
            raise SnippetError(
                f"{label}: its process ended without an answer ({cause})", code=Code.STOPPED_SNIPPET
            ) from error

    def _begin(self) -> None:
        deadline = time.monotonic() + STARTUP
        lines: list[bytes] = []
        while not lines:
            if time.monotonic() > deadline:
                raise NotStartedError
            if self.wait(GLANCE, None):
                lines = self.receive()
            else:
                self.look()
        if len(lines) > 1 or not isinstance(protocol.read_line(lines[0]), Ready):
            raise LineError("its first line is another")
        self._begun = True

    def wait(self, seconds: float, callbacks: Callbacks | None) -> bool:
        """Wait until the worker has sent data (returns true), can receive more, or an answer is posted."""
        poll = select.poll()
        poll.register(self.answers, select.POLLIN)
        if callbacks is not None:
            poll.register(self._bell[0], select.POLLIN)
        if self._unsent:
            poll.register(self.requests, select.POLLOUT)
        events = dict(poll.poll(max(1.0, seconds * 1000)))
        if self._bell[0] in events:
            os.read(self._bell[0], 4096)
        return self.answers in events

    def look(self) -> None:
        """Check whether the worker has ended or has too many processes. A child process may keep the pipe
        open after its end.
        """
        if self.process.poll() is not None and not ready(self.answers, select.POLLIN, 0):
            raise EOFError
        if self.multiplies():
            raise TooManyProcessesError

    def receive(self) -> list[bytes]:
        """Return the complete lines."""
        part = os.read(self.answers, 1 << 16)
        if not part:
            raise EOFError
        *lines, remainder = part.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._received, lines[0]])
            self._received, self._size = [], 0
        if remainder:
            self._received.append(remainder)
            self._size += len(remainder)
        if self._size > protocol.LARGEST_REPLY:
            raise protocol.TooLargeReplyError.of_bytes()
        return lines

    @property
    def is_quiet(self) -> bool:
        """Whether there is no incomplete line."""
        return not self._received

    def send(self, line: bytes | None = None) -> None:
        """Send a line and previous unsent data as far as the pipe accepts it."""
        if line is not None:
            self._unsent.append(memoryview(line))
        with suppress(BlockingIOError):
            while self._unsent:
                remainder = self._unsent[0][os.write(self.requests, self._unsent[0]) :]
                if remainder:
                    self._unsent[0] = remainder
                else:
                    self._unsent.popleft()

    def posted(self, call: int) -> list[tuple[int, bytes]]:
        """Return the posted answers for a call: the number of the question and the line."""
        answers = [self._answers.popleft() for _ in range(len(self._answers))]
        return [(number, line) for owner, number, line in answers if owner == call]


class _Call:
    """Call in progress."""

    def __init__(
        self,
        channel: Channel,
        number: int,
        seconds: float,
        callbacks: Callbacks | None,
        mark: Callable[[Literal["working", "waiting"]], None],
    ):
        self._channel = channel
        self._number = number
        self._left = seconds
        self._callbacks = callbacks
        self._mark = mark
        self._questions: set[int] = set()
        """All questions."""
        self._open: set[int] = set()
        """Unanswered questions; while there are any, the clock is stopped."""

    def run(self, request: bytes) -> Value | Failure:
        """Send the request and handle the call until it ends."""
        channel = self._channel
        channel.send(request)
        since = glanced = time.monotonic()
        while True:
            waiting = bool(self._open)
            patience = WAITING_GLANCE if waiting else GLANCE
            spoke = channel.wait(patience if waiting else min(patience, self._left), self._callbacks)
            now = time.monotonic()
            if not waiting:
                self._left -= now - since
            since = now
            if spoke:
                end = self._hear(channel.receive())
                if end is not None:
                    return end
            if now - glanced >= patience:
                glanced = now
                channel.look()
            if self._left <= 0:
                raise TimeoutError
            for number, answer in channel.posted(self._number) if waiting else ():
                if number in self._open:
                    self._close(number)
                    channel.send(answer)
            channel.send()

    def _hear(self, texts: list[bytes]) -> Value | Failure | None:
        """Handle messages from the worker; return its final message, if it arrived."""
        for text in texts:
            line = protocol.read_line(text)
            if isinstance(line, Ready) or line.call != self._number:
                raise LineError("a line out of turn")
            if isinstance(line, Value | Failure):
                if text is not texts[-1] or not self._channel.is_quiet:
                    raise LineError("it says more after its answer")
                return line
            if isinstance(line, Question):
                self._ask(line)
            elif line.number in self._open:
                assert self._callbacks is not None
                self._close(line.number)
                self._callbacks.drop(line.number)
        return None

    def _ask(self, question: Question) -> None:
        callbacks = self._callbacks
        if callbacks is None or question.number in self._questions or question.name not in callbacks.names:
            raise LineError("no question of its")
        if not self._open:
            self._mark("waiting")
        self._questions.add(question.number)
        self._open.add(question.number)
        callbacks.ask(question, self._channel.post)

    def _close(self, number: int) -> None:
        self._open.remove(number)
        if not self._open:
            self._mark("working")
