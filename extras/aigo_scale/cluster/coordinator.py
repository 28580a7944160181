"""The one that all workers know: it gives the places of models, and hears how far everybody is.

An actor of Ray, on the driver's node, that ends with the driver. By itself it is plain asyncio.
"""

from __future__ import annotations

from aigo_bridge.engine.protocol import Progress
from aigo_bridge.models.connections.connection import shared_pace
from aigo_bridge.models.gate import ModelSlots
from aigo_scale.cluster.pieces import Told

MOST_EVENTS = 1_000
"""Failures and retries that are kept until the driver asks for them."""


class Coordinator:
    """Places, pauses, and news.

    Args:
        most: calls of a model at a time, in the whole cluster; `None`: as many as the workers make.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._places: dict[str, ModelSlots] = {}
        self._told: dict[str, Told] = {}
        self._events: list[Progress] = []

    async def take(self, holder: str, token: str, model: str, most: int | None) -> None:
        """Wait for a place of a model; see `ModelSlots.take`."""
        await self._of(model, most).take(holder, token)

    async def free(self, model: str, token: str) -> None:
        """Give it back."""
        self._of(model, None).free(token)

    async def pause(self, model: str, seconds: float) -> None:
        """Nobody calls a model for so long."""
        self._of(model, None).pause(seconds)

    async def reserve(self, name: str, per_minute: int) -> float:
        """Seconds until a request may start."""
        return shared_pace(name, per_minute).reserve()

    async def forget(self, holder: str) -> None:
        """A worker is gone."""
        self._told.pop(holder, None)
        for places in self._places.values():
            places.forget(holder)

    async def tell(self, holder: str, told: Told, events: list[Progress]) -> None:
        """A worker says how far it is."""
        self._told[holder] = told
        self._events = [*self._events, *events][-MOST_EVENTS:]

    async def news(self) -> tuple[list[Told], list[Progress]]:
        """How far all workers are, and what happened since the last time."""
        events, self._events = self._events, []
        return list(self._told.values()), events

    async def peaks(self) -> dict[str, int]:
        """Model → its calls at a time, at most."""
        return {model: places.peak for model, places in self._places.items()}

    def _of(self, model: str, most: int | None) -> ModelSlots:
        places = self._places.get(model)
        if places is None:
            places = self._places[model] = ModelSlots(None)
        limits = [limit for limit in (self._most, most, places.most) if limit is not None]
        places.most = min(limits, default=None)
        return places
