"""Distribution of shards to workers, one at a time. A slow worker does not delay others, and lost shards are
retried.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.errors import EngineError

T = TypeVar("T")
"""Result of a shard."""

MOST_LOSSES = 10
"""Maximum number of workers that one shard may crash. Beyond that, the shard itself is the cause, for example
by its memory."""

LOOK_SECONDS = 0.5
"""Seconds between two progress updates."""


@dataclass
class HandingOut(Generic[T]):
    """Shards that are distributed to workers.

    Args:
        start: function that starts a worker, an actor with a `run` method for a shard.
        done: callback for a shard's result. It returns whether to retry the shard.
        lost: callback for a lost worker and its shard.
        look: callback that is called regularly.
        most: maximum number of workers.
    """

    start: Callable[[], Any]
    done: Callable[[T], bool]
    lost: Callable[[Any, int], None]
    look: Callable[[], None]
    most: int
    workers: set[Any] = field(default_factory=set)
    """Running workers."""
    _idle: list[Any] = field(default_factory=list)
    _busy: dict[Any, tuple[Any, int]] = field(default_factory=dict)
    """Worker and shard by the pending Ray result."""
    _losses: Counter[int] = field(default_factory=Counter)

    def run(self, pieces: Iterable[int]) -> None:
        """Run all shards and wait for them.

        Raises:
            EngineError: a shard crashes every worker that runs it.
        """
        import ray

        queue = deque(pieces)
        while queue or self._busy:
            while queue and len(self._busy) < self.most:
                worker, piece = self._worker(), queue.popleft()
                self._busy[worker.run.remote(piece)] = (worker, piece)
            ended, _ = ray.wait(list(self._busy), timeout=LOOK_SECONDS)
            for promise in ended:
                worker, piece = self._busy.pop(promise)
                if self._is_again(promise, worker, piece):
                    queue.append(piece)
            self.look()

    def _worker(self) -> Any:
        if self._idle:
            return self._idle.pop()
        worker = self.start()
        self.workers.add(worker)
        return worker

    def _is_again(self, promise: Any, worker: Any, piece: int) -> bool:
        import ray
        from ray.exceptions import RayError

        try:
            result: T = ray.get(promise)
        except RayError as error:
            self._lose(worker, piece, error)
            return True
        self._idle.append(worker)
        return self.done(result)

    def _lose(self, worker: Any, piece: int, error: Exception) -> None:
        import ray

        self.workers.discard(worker)
        ray.kill(worker)  # an unreachable worker would otherwise continue
        self.lost(worker, piece)
        self._losses[piece] += 1
        if self._losses[piece] > MOST_LOSSES:
            raise EngineError(
                f"shard {piece} ended {MOST_LOSSES + 1} workers ({type(error).__name__}), "
                "perhaps because memory ran out; use --piece-rows N for smaller shards",
                code=Code.FAILED_ENGINE,
            )
