"""What the calls of models wait at where many processes share a model's connections and its rate.

Engines go through it with every call that is really made. Without a gate, which is as usual, their own limits
are all there are, and nothing is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from aigo_bridge.models.connections.connection import shared_pace


@dataclass(frozen=True)
class WaitingCall:
    """A model call whose answer has not arrived."""

    model: str
    sample: str | None
    """Id of the sample that it is made for; `None`: not known."""
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has been waiting."""
        return time.monotonic() - self.started


_WAITING: dict[int, WaitingCall] = {}


@contextmanager
def waiting(model: str, sample: str | None = None) -> Iterator[None]:
    """List a model call among those that wait for an answer, in this block."""
    call = WaitingCall(model, sample)
    _WAITING[id(call)] = call
    try:
        yield
    finally:
        del _WAITING[id(call)]


def waiting_calls() -> list[WaitingCall]:
    """Return the model calls of this process that wait for an answer, the longest first."""
    return sorted(_WAITING.values(), key=lambda call: call.started)


class Gate(Protocol):
    """Source of knowledge about the other processes."""

    async def enter(self, model: str, most: int | None) -> object:
        """Wait for a place, and for the end of a pause; what is returned is given to `leave`.

        Args:
            model: what shares the places.
            most: the model's own limit of calls at a time; `None`: it has none.
        """
        ...

    def leave(self, model: str, place: object) -> None:
        """Give a place back."""
        ...

    def pause(self, model: str, seconds: float) -> None:
        """Have nobody call a model for so long: it has said so (`Retry-After`)."""
        ...

    async def reserve(self, name: str, per_minute: int) -> float:
        """Seconds to wait before the next request to an endpoint may start."""
        ...


_GATES: list[Gate] = []


@contextmanager
def gated(gate: Gate) -> Iterator[None]:
    """In this block all calls of this process go through a gate."""
    _GATES.append(gate)
    try:
        yield
    finally:
        _GATES.remove(gate)


@asynccontextmanager
async def passing(model: str, most: int | None = None) -> AsyncIterator[None]:
    """In this block one call is made; see `Gate.enter`."""
    if not _GATES:
        yield
        return
    gate = _GATES[-1]
    place = await gate.enter(model, most)
    try:
        yield
    finally:
        gate.leave(model, place)


def is_gated() -> bool:
    """Whether calls of this process go through a gate."""
    return bool(_GATES)


def paused(model: str, seconds: float | None) -> None:
    """A model has asked to be left alone for so long; `None`: it has not said how long."""
    if _GATES and seconds is not None and seconds > 0:
        _GATES[-1].pause(model, seconds)


async def pace(name: str, per_minute: int) -> float:
    """Seconds to wait before the next request to an endpoint may start, that has a rate in a minute."""
    return await _GATES[-1].reserve(name, per_minute) if _GATES else shared_pace(name, per_minute).reserve()


class ModelSlots:
    """The places of one model, given in the order in which they are asked for; used from one event loop."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self._held: dict[str, str] = {}
        """Token of a place → who has it."""
        self._waiting: dict[str, tuple[str, asyncio.Future[None]]] = {}
        self._until = 0.0
        self.peak = 0
        """Places that were taken at a time, at most."""

    async def take(self, holder: str, token: str) -> None:
        """Wait for a place.

        Args:
            holder: who asks; what it has is free when it is gone.
            token: names the place; what has been given back before it is given is not waited for.
        """
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[token] = (holder, waiting)
        self._give()
        await waiting

    def free(self, token: str) -> None:
        """Give a place back, or do not wait for it any more."""
        self._held.pop(token, None)
        _, waiting = self._waiting.pop(token, (None, None))
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        self._give()

    def forget(self, holder: str) -> None:
        """Somebody is gone: its places are free."""
        held = {**self._held, **{token: who for token, (who, _) in self._waiting.items()}}
        for token in [token for token, who in held.items() if who == holder]:
            self.free(token)

    def pause(self, seconds: float) -> None:
        """Give no places for so long."""
        self._until = max(self._until, time.monotonic() + seconds)

    def _give(self) -> None:
        seconds = self._until - time.monotonic()
        if seconds > 0:
            if self._waiting:
                asyncio.get_running_loop().call_later(seconds + 0.001, self._give)
            return
        while self._waiting and (self.most is None or len(self._held) < self.most):
            token = next(iter(self._waiting))
            holder, waiting = self._waiting.pop(token)
            self._held[token] = holder
            self.peak = max(self.peak, len(self._held))
            if not waiting.done():
                waiting.set_result(None)
