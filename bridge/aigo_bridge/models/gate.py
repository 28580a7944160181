"""Limits for model calls when several processes share a model's connections and request rate.

Engines pass every real model call through the gate. Without a gate (the usual case), only the engine's own
limits apply.
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
    """Sample ID; `None` if unknown."""
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the call started."""
        return time.monotonic() - self.started


_WAITING: dict[int, WaitingCall] = {}


@contextmanager
def waiting(model: str, sample: str | None = None) -> Iterator[None]:
    """List a model call as waiting for an answer while this block runs."""
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
    """Connection limits that are shared with other processes."""

    async def enter(self, model: str, most: int | None) -> object:
        """Wait for a free place and for the end of any pause. Return the place, to be passed to `leave`.

        Args:
            model: name of the model that shares the places.
            most: the model's own limit of concurrent calls; `None`: no limit.
        """
        ...

    def leave(self, model: str, place: object) -> None:
        """Release a place."""
        ...

    def pause(self, model: str, seconds: float) -> None:
        """Stop all calls of a model for some seconds because the model asked for it (`Retry-After`)."""
        ...

    async def reserve(self, name: str, per_minute: int) -> float:
        """Return the number of seconds to wait before the next request to an endpoint may start."""
        ...


_GATES: list[Gate] = []


@contextmanager
def gated(gate: Gate) -> Iterator[None]:
    """Send all calls of this process through a gate while this block runs."""
    _GATES.append(gate)
    try:
        yield
    finally:
        _GATES.remove(gate)


@asynccontextmanager
async def passing(model: str, most: int | None = None) -> AsyncIterator[None]:
    """Make one model call through the gate in this block; see `Gate.enter`."""
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
    """Return whether calls of this process go through a gate."""
    return bool(_GATES)


def paused(model: str, seconds: float | None) -> None:
    """Pause a model that asked for it; `seconds` is `None` if the model named no time."""
    if _GATES and seconds is not None and seconds > 0:
        _GATES[-1].pause(model, seconds)


async def pace(name: str, per_minute: int) -> float:
    """Return the seconds to wait before the next request to an endpoint with a rate limit."""
    return await _GATES[-1].reserve(name, per_minute) if _GATES else shared_pace(name, per_minute).reserve()


class ModelSlots:
    """Places of one model, assigned in the order of requests. Use it from one event loop only."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self._held: dict[str, str] = {}
        """Token of a place → holder of the place."""
        self._waiting: dict[str, tuple[str, asyncio.Future[None]]] = {}
        self._until = 0.0
        self.peak = 0
        """Maximum number of places that were taken at the same time."""

    async def take(self, holder: str, token: str) -> None:
        """Wait for a place.

        Args:
            holder: holder of the place; when the holder leaves, the place becomes free.
            token: token of the place; `free` cancels a token that is still waiting.
        """
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[token] = (holder, waiting)
        self._give()
        await waiting

    def free(self, token: str) -> None:
        """Release a place, or stop waiting for it."""
        self._held.pop(token, None)
        _, waiting = self._waiting.pop(token, (None, None))
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        self._give()

    def forget(self, holder: str) -> None:
        """Free all places of a holder that has ended."""
        held = {**self._held, **{token: who for token, (who, _) in self._waiting.items()}}
        for token in [token for token, who in held.items() if who == holder]:
            self.free(token)

    def pause(self, seconds: float) -> None:
        """Assign no places for some seconds."""
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
