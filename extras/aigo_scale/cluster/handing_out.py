"""Pieces handed out to workers one at a time, so that a slow one holds nobody; lost ones go elsewhere."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.errors import EngineError

T = TypeVar("T")
"""What became of a piece."""

MOST_LOSSES = 10
"""Workers that one piece may cost: with one more it is the piece's own doing (memory, say)."""

LOOK_SECONDS = 0.5
"""Between two looks at how far all are."""


@dataclass
class HandingOut(Generic[T]):
    """Pieces on their way.

    Args:
        start: starts a worker, an actor whose `run` carries out a piece.
        done: told what became of a piece; returns whether it is to be tried again.
        lost: told of a worker that is gone, and of its piece.
        look: called now and then.
        most: workers at a time.
    """

    start: Callable[[], Any]
    done: Callable[[T], bool]
    lost: Callable[[Any, int], None]
    look: Callable[[], None]
    most: int
    workers: set[Any] = field(default_factory=set)
    """Those that are there."""
    _idle: list[Any] = field(default_factory=list)
    _busy: dict[Any, tuple[Any, int]] = field(default_factory=dict)
    """What a worker promises → the worker, and its piece."""
    _losses: Counter[int] = field(default_factory=Counter)

    def run(self, pieces: Iterable[int]) -> None:
        """Hand out all pieces, and wait for them.

        Raises:
            EngineError: a piece costs every worker that takes it.
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
        ray.kill(worker)  # one that only cannot be reached would go on by itself
        self.lost(worker, piece)
        self._losses[piece] += 1
        if self._losses[piece] > MOST_LOSSES:
            raise EngineError(
                f"shard {piece} ended {MOST_LOSSES + 1} workers ({type(error).__name__}), "
                "perhaps by memory; use --piece-rows N for smaller shards",
                code=Code.FAILED_ENGINE,
            )
