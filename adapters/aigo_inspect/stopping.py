"""`--fail-on-error` in Inspect: when the tolerance is spent, no further sample is begun.

By Inspect's own early stopping: samples in flight end as they do, the log has the status `error` and the reason, and a run that is resumed
begins the others. Inspect's `fail_on_error` would throw away those in flight, and knows nothing of scorers that failed.
"""

from __future__ import annotations

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSpec
from inspect_ai.scorer import SampleScore
from inspect_ai.util import EarlyStop, EarlyStopping
from pydantic import JsonValue

from aigo_bridge.errors import EngineError
from aigo_bridge.tolerance import Tolerance


class StoppedError(EngineError):
    """More samples have failed than may."""

    def __repr__(self) -> str:
        # Inspect logs this as the run's error.
        return str(self)


class ToleranceStopping:
    """Begins no sample when the tolerance of its task is spent.

    Args:
        tolerance: told of failures by whoever counts them.
        other: the task's own early stopping, which is asked as before.
    """

    def __init__(self, tolerance: Tolerance, other: EarlyStopping | None = None):
        self._tolerance = tolerance
        self._other = other
        self._stopped = False

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Say who stops samples."""
        self._tolerance.num_trials = epochs
        if self._other is not None:
            return await self._other.start_task(task, samples, epochs)
        return "aigo_bridge_fail_on_error"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:  # noqa: A002  # the signature that Inspect calls
        """Whether a trial is not begun."""
        if self._tolerance.is_spent:
            self._stopped = True
            return EarlyStop(id=id, epoch=epoch, reason=self._tolerance.reason)
        return None if self._other is None else await self._other.schedule_sample(id, epoch)

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:  # noqa: A002  # as above
        """Pass it on."""
        if self._other is not None:
            await self._other.complete_sample(id, epoch, scores)

    async def complete_task(self) -> dict[str, JsonValue]:
        """What the log says of it.

        Raises:
            StoppedError: samples were not begun: the task as a whole has failed.
        """
        said = {} if self._other is None else await self._other.complete_task()
        if self._stopped:
            raise StoppedError(self._tolerance.reason)
        return said
