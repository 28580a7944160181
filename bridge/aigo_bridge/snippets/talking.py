"""The runner's side of the pipe to a worker of calls that call back: one thread, one worker after another."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.snippets.process import WorkerProcess, ready
from aigo_bridge.snippets.snippet import SnippetLimits

LONGEST_LINE = 512 * 1024 * 1024
"""Bytes of the longest line that is accepted from a worker."""

MOST_STARTS = 4
"""Times that one call is started; a worker that keeps dying while nobody's step runs is everybody's failure."""

STARTUP = 60.0
"""Seconds that a worker may take to begin; no call is charged for them."""

GRACE = 2.0
"""Seconds that a step of a cancelled call may still hold up the others before its worker is killed."""

GLANCE = 0.2
"""Seconds after which the worker is looked at though it is silent: a child of it may hold its pipe open."""


@dataclass(eq=False)
class Conversation:
    """One call in progress; guarded by the lock of its `Board`."""

    number: int
    label: str
    request: bytes
    limits: SnippetLimits
    tell: Callable[[tuple[Any, ...]], None]
    """Hands a message to the coroutine that waits for the call."""
    spent: float = 0.0
    """Seconds of its own since its last start."""
    asking: set[int] = field(default_factory=set)
    """Callbacks that it waits for."""
    starts: int = 1
    left: bool = False
    """Nobody waits for it any more; its worker has been told to cancel it."""
    kept_up: float = 0.0
    """Seconds of its own since then."""
    entered: float = field(default_factory=time.monotonic)
    """When it was put on the board: time before that is nobody's, however long the worker had nothing to do."""


class Board:
    """What the coroutines of calls and the thread have in common; everything is guarded by `lock`."""

    def __init__(self) -> None:
        # Re-entrant: a garbage collection inside may close the board's owner.
        self.lock = threading.RLock()
        self.calls: dict[int, Conversation] = {}
        """Calls in progress, by number."""
        self.outgoing: list[bytes] = []
        """Lines that wait to be sent."""
        self.thread: threading.Thread | None = None
        self.closing = False
        self._bell: tuple[int, int] | None = None

    def start(self, limits: SnippetLimits) -> None:
        """Start the thread, which starts a worker and with it all calls."""
        self._bell = os.pipe()
        for end in self._bell:
            os.set_blocking(end, False)
        self.thread = threading.Thread(target=_Talk(self, limits).run, name="aigo-snippets", daemon=True)
        self.thread.start()

    def send(self, *message: Any) -> None:
        """Put a line among those to be sent."""
        self.outgoing.append(line(*message))
        self.ring()

    def ring(self) -> None:
        """Let the thread look at what has changed."""
        if self._bell is not None:
            try:
                os.write(self._bell[1], b"!")
            except BlockingIOError:
                return  # it has been rung often enough

    @property
    def bell(self) -> int:
        """Descriptor that can be read after `ring`."""
        assert self._bell is not None
        return self._bell[0]

    def end(self, call: Conversation, *message: Any) -> None:
        """Take a call off the board, with a last message."""
        del self.calls[call.number]
        call.tell(message)

    def finish(self, problem: str) -> None:
        """End what is left; the next call starts another thread."""
        for call in list(self.calls.values()):
            self.end(call, "broken", problem)
        assert self._bell is not None
        for descriptor in self._bell:
            os.close(descriptor)
        self._bell = self.thread = None
        self.outgoing = []
        self.closing = False


def line(*message: Any) -> bytes:
    """A message as it stands in the pipe."""
    return json.dumps(message).encode() + b"\n"


class WorkerFailedError(Exception):
    """The worker cannot go on: the number of the call to blame, if one is known, and what to tell it."""

    def __init__(self, blamed: int | None, message: str):
        super().__init__(message)
        self.blamed = blamed
        self.message = message


class _Talk:
    """What the thread does."""

    def __init__(self, board: Board, limits: SnippetLimits):
        self._board = board
        self._limits = limits
        self._begun = False
        """Whether the worker has said its first word."""
        self._running: int | None = None
        """The call whose step holds the worker's event loop."""
        self._stray = 0.0
        """Seconds that the worker's start has taken, or its running step if that belongs to a call that has ended."""
        self._since = 0.0
        self._received: list[bytes] = []
        self._size = 0
        """Bytes of the line that is being received."""
        self._unsent: deque[memoryview] = deque()

    def run(self) -> None:
        """Serve one worker after another, until there is no call left to restart or the owner closes."""
        board = self._board
        problem: str | None = None
        while problem is None:
            self._begun, self._stray = False, 0.0
            self._running, self._received, self._size = None, [], 0
            self._unsent.clear()
            try:
                worker = WorkerProcess("aigo_bridge.snippets.conversing_worker", self._limits.memory_bytes)
            except OSError as error:
                problem = f"cannot start a process for it: {error}"
                break
            with board.lock:
                board.outgoing = [call.request for call in board.calls.values()]
            self._since = time.monotonic()
            try:
                self._talk(worker)
            except (WorkerFailedError, OSError, ValueError) as failure:
                if not worker.end.alive:
                    # The interpreter is ending: it has ended the worker, and closed its pipes, under this thread.
                    problem = "was stopped, as the process that runs it is ending"
                    continue
                if not isinstance(failure, WorkerFailedError):
                    raise
                worker.end()
                with board.lock:
                    self._sort_out(failure)
                    if not board.calls:
                        board.finish("")
                        return
            else:
                worker.end()
                problem = "was stopped, as its worker was closed"
        with board.lock:
            board.finish(problem)

    def _sort_out(self, failure: WorkerFailedError) -> None:
        """End the call that is to blame and those that nobody waits for; let the others begin again."""
        for call in list(self._board.calls.values()):
            if call.left or call.number == failure.blamed or call.starts >= MOST_STARTS:
                self._board.end(call, "broken", failure.message)
            else:
                call.starts += 1
                call.spent = 0.0
                call.asking.clear()
                call.tell(("restarted", call.starts))

    def _talk(self, worker: WorkerProcess) -> None:
        """Talk to one worker until it fails or the owner closes."""
        board = self._board
        os.set_blocking(worker.requests, False)
        while True:
            with board.lock:
                if board.closing:
                    return
                self._count()
                patience = self._patience()
                self._unsent.extend(map(memoryview, board.outgoing))
                board.outgoing.clear()
            poll = select.poll()
            poll.register(worker.answers, select.POLLIN)
            poll.register(board.bell, select.POLLIN)
            if self._unsent:
                poll.register(worker.requests, select.POLLOUT)
            events = dict(poll.poll(None if patience is None else max(1.0, patience * 1000)))
            if board.bell in events:
                os.read(board.bell, 4096)
            if worker.requests in events:
                self._send(worker)
            if worker.answers in events:
                self._read(worker)
            elif worker.process.poll() is not None and not ready(worker.answers, select.POLLIN, 0):
                raise self._died(worker)

    def _send(self, worker: WorkerProcess) -> None:
        try:
            while self._unsent:
                rest = self._unsent[0][os.write(worker.requests, self._unsent[0]) :]
                if rest:
                    self._unsent[0] = rest
                else:
                    self._unsent.popleft()
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent.clear()  # the end of its answers will say why

    def _count(self) -> None:
        """Charge the time since the last look to those whose it is."""
        now = time.monotonic()
        passed, self._since = now - self._since, now
        if not self._begun or (self._running is not None and self._running not in self._board.calls):
            self._stray += passed
        for call in self._whose():
            own = min(passed, now - call.entered)
            call.spent += own
            if call.left:
                call.kept_up += own

    def _whose(self) -> list[Conversation]:
        calls = self._board.calls
        if not self._begun:
            return []
        if self._running is not None:
            return [calls[self._running]] if self._running in calls else []
        return [call for call in calls.values() if not call.asking]

    def _patience(self) -> float | None:
        """Seconds until somebody overruns or a glance at the worker is due; `None` without a call."""
        whose = self._whose()
        if whose:
            call = min(whose, key=_time_left)
            if _time_left(call) <= 0:
                problem = f"took longer than {call.limits.seconds:g} s and was stopped"
                raise WorkerFailedError(call.number, problem)
            if self._running is not None and call.left and call.kept_up > GRACE:
                raise WorkerFailedError(call.number, "was cancelled and did not stop")
            return min(GLANCE, _time_left(call))
        if not self._begun and self._stray > STARTUP:
            raise WorkerFailedError(None, f"its process did not start within {STARTUP:g} s")
        if self._begun and self._stray > self._limits.seconds:
            raise WorkerFailedError(None, "its worker was held up by what an earlier call had left running")
        return GLANCE if self._board.calls else None

    def _read(self, worker: WorkerProcess) -> None:
        part = os.read(worker.answers, 1 << 20)
        if not part:
            raise self._died(worker)
        *lines, rest = part.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._received, lines[0]])
            self._received = []
        if rest:
            self._received.append(rest)
        self._size = self._size + len(part) if not lines else len(rest)
        if self._size > LONGEST_LINE:
            raise WorkerFailedError(self._running, f"returned more than {LONGEST_LINE:,} bytes of JSON")
        for each in lines:
            try:
                message = json.loads(each)
                with self._board.lock:
                    self._heard(message)
            except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
                problem = "wrote something else than its answer into the pipe for answers"
                raise WorkerFailedError(self._running, problem) from error

    def _heard(self, message: list[Any]) -> None:
        """One message of the worker; one that is not in order is a ValueError (or another of the kind)."""
        kind = message[0]
        self._count()
        if kind == "ready" and not self._begun:
            self._begun, self._stray = True, 0.0
        elif kind == "rest" and self._running is not None:
            self._running = None
        elif kind == "run" and self._running is None:
            self._running = int(message[1])
            self._stray = 0.0
        elif message[1] != self._running:
            raise ValueError("a message out of turn")
        else:
            self._heard_of(self._board.calls.get(message[1]), kind, message[2:])

    def _heard_of(self, call: Conversation | None, kind: str, content: list[Any]) -> None:
        if kind not in ("value", "error", "call", "drop"):
            raise ValueError("a message of no known kind")
        if kind in ("value", "error"):
            if call is None:
                raise ValueError("a second answer")
            self._board.end(call, kind, *content)
        elif call is None or call.left:
            return  # tasks that a call has left behind
        elif kind == "call":
            call.asking.add(content[0])
            call.tell(("call", call.starts, *content))
        else:
            call.asking.discard(content[0])
            call.tell(("drop", call.starts, content[0]))

    def _died(self, worker: WorkerProcess) -> WorkerFailedError:
        cause = worker.cause_of_end()
        return WorkerFailedError(self._running, f"its process ended without an answer ({cause})")


def _time_left(call: Conversation) -> float:
    return call.limits.seconds - call.spent
