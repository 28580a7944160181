"""The talk of the two processes: one asks, the other answers, and may ask back before it does.

A frame is four bytes of length and a list as JSON:

    ["ask", shared, operation, operands]    expects one of the next two
    ["value", shared, form]
    ["error", shared, form]
    ["print", text]                         what was printed; no answer
    ["gave up", reason]                     nothing will follow

`shared` is what has changed since the last frame: changes in containers, containers and objects that are not
needed any more.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from aigo_bridge.sandbox.judging.mirrors import Mirrors

LARGEST_FRAME = 16 << 20
"""Bytes of JSON in one message."""


DEEPEST = 8_000
"""Limit of recursion while values are written and read; some four frames for each level of a list."""


class ClosedError(Exception):
    """The other process is gone."""


class TooLargeError(Exception):
    """A message is longer than `LARGEST_FRAME`."""


class Link:
    """Frames over a socket."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, message: list[Any]) -> None:
        """Send a frame.

        Raises:
            TooLargeError: nothing has been sent.
            ClosedError: nobody reads it.
        """
        content = json.dumps(message, allow_nan=False).encode()
        if len(content) > LARGEST_FRAME:
            raise TooLargeError
        view = memoryview(len(content).to_bytes(4, "big") + content)
        try:
            with self._lock:
                while view:
                    view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise ClosedError from error

    def receive(self) -> list[Any]:
        """Wait for a frame.

        Raises:
            ClosedError, TooLargeError, ValueError: there is none, or it is not a list as JSON.
        """
        size = int.from_bytes(self._exactly(4), "big")
        if size > LARGEST_FRAME:
            raise TooLargeError
        message = json.loads(self._exactly(size), parse_constant=_no_number)
        if not isinstance(message, list):
            raise ValueError("a frame is no list")  # noqa: TRY004  # as other broken frames
        return message

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                part = os.read(self._descriptor, min(size, 1 << 20))
            except OSError as error:
                raise ClosedError from error
            if not part:
                raise ClosedError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class End:
    """One process's end of the talk. Subclasses say what they do when asked, and what broken frames mean."""

    def __init__(self, link: Link, values: Mirrors):
        self.link = link
        self.values = values
        self.dropped: list[int] = []
        """Objects of the other side that nobody holds here any more."""
        self._lock = threading.RLock()
        self._reading = False

    def ask(self, operation: str, *operands: Any) -> Any:
        """Have something done by the other side; what it raises is raised here."""
        with self._lock:
            self.link.send(
                ["ask", self._news(), operation, [self.values.encode(operand) for operand in operands]]
            )
            while True:
                kind, value = self.hear()
                if kind == "value":
                    return value
                if kind == "error":
                    raise value
                self.answer(*value)

    def hear(self) -> tuple[str, Any]:
        """The next frame but those of what was printed: its kind and its content, read."""
        while True:
            kind, *content = self.link.receive()
            if kind in ("print", "gave up"):
                self.hear_of(kind, *content)
            elif kind == "ask":
                shared, operation, forms = content
                return kind, (operation, self._read(shared, ["tuple", forms]))
            else:
                shared, form = content
                value = self._read(shared, form)
                if kind not in ("value", "error") or (
                    kind == "error" and not isinstance(value, BaseException)
                ):
                    raise ValueError("a frame of no known kind")
                return kind, value

    def answer(self, operation: str, operands: tuple[Any, ...]) -> None:
        """Do what the other side asks, and send what comes of it."""
        kind, value = "value", None
        try:
            value = self.perform(operation, operands)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is for the one who asked
            kind, value = "error", error
        with self._lock:
            self.link.send([kind, self._news(), self.values.encode(value)])

    def perform(self, operation: str, operands: tuple[Any, ...]) -> Any:
        """What this side does for the other."""
        raise NotImplementedError

    def hear_of(self, kind: str, text: str) -> None:
        """The other side has printed something, or ends and says why."""
        raise ValueError("a frame of no known kind")

    def releases(self) -> list[int]:
        """Containers that both had and this side has let go."""
        return []

    def _news(self) -> list[Any]:
        if self._reading:
            return [[], [], []]  # half of what was received is not in its place yet
        dropped, self.dropped = self.dropped, []
        changes = self.values.changes()
        return [changes, self.releases(), self.values.let_go(dropped)]

    def _read(self, shared: list[Any], form: Any) -> Any:
        self._reading, was_reading = True, self._reading
        try:
            changes, released, dropped = shared
            self.values.apply(changes)
            for number in released:
                self.values.release(number)
            self.values.forget(dropped)
            return self.values.decode(form)
        finally:
            self._reading = was_reading


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
