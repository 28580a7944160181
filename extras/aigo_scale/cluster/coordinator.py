"""Coordinator of all workers: it limits concurrent model calls and collects the workers' progress.

It is a Ray actor on the driver's node and ends with the driver. The class itself is plain asyncio.
"""

from __future__ import annotations

from aigo_bridge.engine.protocol import Progress
from aigo_bridge.models.connections.connection import shared_pace
from aigo_bridge.models.gate import ModelSlots
from aigo_scale.cluster.pieces import ShardProgress

MOST_EVENTS = 1_000
"""Maximum number of failures and retries that are kept until the driver asks for them."""


class Coordinator:
    """Shared limits, pauses and progress.

    Args:
        most: maximum concurrent calls of a model in the whole cluster; `None`: no limit.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._places: dict[str, ModelSlots] = {}
        self._told: dict[str, ShardProgress] = {}
        self._events: list[Progress] = []

    async def take(self, holder: str, token: str, model: str, most: int | None) -> None:
        """Wait for a free slot of a model. See `ModelSlots.take`."""
        await self._of(model, most).take(holder, token)

    async def free(self, model: str, token: str) -> None:
        """Release a slot of a model."""
        self._of(model, None).free(token)

    async def pause(self, model: str, seconds: float) -> None:
        """Stop all calls of a model for a number of seconds."""
        self._of(model, None).pause(seconds)

    async def reserve(self, name: str, per_minute: int) -> float:
        """Return the seconds until a request may start."""
        return shared_pace(name, per_minute).reserve()

    async def forget(self, holder: str) -> None:
        """Release all slots of a lost worker."""
        self._told.pop(holder, None)
        for places in self._places.values():
            places.forget(holder)

    async def tell(self, holder: str, told: ShardProgress, events: list[Progress]) -> None:
        """Record the progress of a worker."""
        self._told[holder] = told
        self._events = [*self._events, *events][-MOST_EVENTS:]

    async def news(self) -> tuple[list[ShardProgress], list[Progress]]:
        """Return the progress of all workers, and the events since the last call."""
        events, self._events = self._events, []
        return list(self._told.values()), events

    async def peaks(self) -> dict[str, int]:
        """Return the highest number of concurrent calls by model."""
        return {model: places.peak for model, places in self._places.items()}

    def _of(self, model: str, most: int | None) -> ModelSlots:
        places = self._places.get(model)
        if places is None:
            places = self._places[model] = ModelSlots(None)
        limits = [limit for limit in (self._most, most, places.most) if limit is not None]
        places.most = min(limits, default=None)
        return places
