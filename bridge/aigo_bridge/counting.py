"""Tell whoever started a run how far it is: trials counted as they end, whatever engine runs them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from aigo_bridge.engine import Progress, Retry
from aigo_bridge.program import Failure
from aigo_bridge.tolerance import Tolerance


@dataclass
class _Counts:
    """Trials of a whole run, of one task or of several."""

    total: int
    done: int = 0
    failed: int = 0


class ProgressCounter:
    """Counts trials as they end; one per run, used from one event loop.

    Args:
        tell: told after each trial; `None`: nobody is.
        total: trials of the whole run.
        trials: whether samples have several trials, so that failures name theirs.
    """

    def __init__(self, tell: Callable[[Progress], None] | None, total: int, *, trials: bool = False):
        self._tell = tell
        self._counts = _Counts(total)
        self._trials = trials
        self._task: str | None = None
        self.tolerance = Tolerance()
        """Of a task: which of its samples have failed, and how many may."""
        self._say()

    def of_task(self, name: str, tolerance: Tolerance | None = None) -> ProgressCounter:
        """The same counter, which names one of the run's tasks beside its samples, and counts what fails in it."""
        part = object.__new__(ProgressCounter)
        part._tell, part._counts, part._trials, part._task = self._tell, self._counts, self._trials, name
        part.tolerance = tolerance or Tolerance()
        return part

    def retrying(self, retry: Retry) -> None:
        """A call of a model has failed, and will be made again."""
        self._say(retry=retry)

    def finished(self, sample_id: str | int, trial: int, failure: Failure | None) -> None:
        """One trial (numbered from 0) of a sample has ended, with a failure or without."""
        self._counts.done += 1
        self._counts.failed += failure is not None
        self.tolerance.note(sample_id, failed=failure is not None)
        self._say(sample_id, trial if self._trials else None, failure)

    def _say(
        self,
        sample_id: str | int | None = None,
        trial: int | None = None,
        failure: Failure | None = None,
        retry: Retry | None = None,
    ) -> None:
        if self._tell is None:
            return
        counts = self._counts
        # Whoever is told may be gone (a closed terminal): no reason to lose a sample that has been solved and scored.
        with contextlib.suppress(Exception):
            self._tell(
                Progress(
                    counts.done,
                    counts.total,
                    counts.failed,
                    sample_id,
                    None if failure is None else failure.message,
                    self._task,
                    self._trials,
                    trial,
                    retry,
                )
            )
