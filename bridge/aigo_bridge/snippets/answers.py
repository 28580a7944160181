"""What the runner answers to a snippet that calls back: one call's callbacks, run once each.

A call whose worker went down through somebody else's fault starts again and asks again. It gets what it was told before: the
n-th equal question is the same question.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from aigo_bridge.errors import BridgeError
from aigo_bridge.snippets.encoding import encode

Reply = Callable[[int, int, str, Any], None]
"""Sends an answer: which start of the call asked, the question's number, `reply` or `fail`, and its content."""


@dataclass(eq=False)
class _Question:
    """A question, from when it was first asked."""

    key: str
    start: int
    number: int
    answer: tuple[str, Any] | None = None
    """`reply` or `fail`, and its content; `None` while it is being answered."""
    error: BridgeError | None = None
    dropped: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Answers:
    """The questions of one call. Lives on one event loop; tasks run in `group`."""

    def __init__(
        self, callbacks: Mapping[str, Callable[..., Awaitable[Any]]], group: TaskGroup, reply: Reply
    ):
        self._callbacks = callbacks
        self._group = group
        self._reply = reply
        self._start = 1
        self._questions: list[_Question] = []
        self.fatal: BaseException | None = None
        """What a callback raised that is not for the snippet; the group has been cancelled."""

    def take(self, message: tuple[Any, ...]) -> None:
        """A message about callbacks: `call`, `drop` or `restarted`."""
        match message:
            case ("restarted", start):
                self._start = start
            case ("drop", start, number):
                for question in self._questions:
                    if (question.start, question.number) == (start, number):
                        question.dropped = True
                        question.scope.cancel()
            case ("call", start, number, name, args, kwargs):
                self._asked(start, number, name, args, kwargs)

    def failure_of(self, number: int | None) -> BridgeError | None:
        """The error that was told to the snippet in answer to a question."""
        for question in self._questions:
            if (question.start, question.number) == (self._start, number):
                return question.error
        return None

    def _asked(self, start: int, number: int, name: str, args: Any, kwargs: Any) -> None:
        if start != self._start:
            return
        key = json.dumps([name, args, kwargs])
        for question in self._questions:
            if question.key == key and question.start < start and not question.dropped:
                question.start, question.number = start, number
                self._tell(question)
                return
        question = _Question(key, start, number)
        self._questions.append(question)
        self._group.start_soon(self._work, question, name, args, kwargs)

    def _tell(self, question: _Question) -> None:
        if question.answer is not None:
            self._reply(question.start, question.number, *question.answer)

    async def _work(self, question: _Question, name: str, args: Any, kwargs: Any) -> None:
        with question.scope:
            try:
                answer = encode(await self._callbacks[name](*args, **kwargs))
                json.dumps(answer)
                question.answer = ("reply", answer)
            except BridgeError as error:
                question.error = error
                question.answer = ("fail", str(error))
            # A limit of the engine, or a defect: the call's owner has to see it, as it is.
            except Exception as error:  # noqa: BLE001
                self.fatal = self.fatal or error
                self._group.cancel_scope.cancel()
                return
            self._tell(question)
