"""How far a run of Inspect's own tasks is: an Inspect hook that counts trials as they end, while somebody wants to be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from inspect_ai.hooks import Hooks, SampleEnd, TaskStart, hooks

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.program import Failure
from aigo_bridge.secrets import redact
from aigo_bridge.tolerance import Tolerance

_counters: list[ProgressCounter] = []
"""Who is told now: one counter at most, since Inspect runs one `eval` at a time in a process."""
_tolerances: dict[str, Tolerance] = {}
"""Task that is counted → which of its samples have failed, and how many may."""


@contextmanager
def counted(counter: ProgressCounter, tolerances: Mapping[str, Tolerance]) -> Iterator[None]:
    """Count the trials of the `eval` in this block, and those that fail in the tolerance of their task, by its name."""
    _counters.append(counter)
    _tolerances.update(tolerances)
    try:
        yield
    finally:
        _counters.remove(counter)
        _tolerances.clear()


@hooks(name="aigo_bridge_progress", description="Progress of `aigo-bridge run inspect:…`")
class ProgressHook(Hooks):
    """Tells the counter of each trial that ends."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def enabled(self) -> bool:
        """Whether somebody wants to be told."""
        return bool(_counters)

    async def on_task_start(self, data: TaskStart) -> None:
        """Keep the task's name: later events have its id only."""
        self._names[data.eval_id] = data.spec.task

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Count one trial."""
        error = data.sample.error
        failure = None if error is None else Failure("solver", "SampleError", redact(error.message))
        name = self._names.get(data.eval_id, "")
        counter = _counters[-1].of_task(name, _tolerances.get(name))
        counter.finished(data.sample.id, data.sample.epoch - 1, failure)
