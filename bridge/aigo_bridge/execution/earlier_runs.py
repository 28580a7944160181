"""Earlier runs in a folder: the contents of their native logs, and reasons why a run cannot be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from aigo_bridge.errors import EvidenceError
from aigo_bridge.plan.logged_plan import logged_plan, plan_differences
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.results.result_files import LoggedRun
from aigo_bridge.text.plurals import plural

F = TypeVar("F")
"""Finished trials of an earlier run, in the form that the adapter uses."""

_MOST_CHANGES = 5
"""Maximum number of changes of a task to name."""


@dataclass(frozen=True)
class EarlierRun:
    """Header of a native log that aigo-bridge wrote."""

    path: Path
    plan: Mapping[str, Any]
    """Header of the plan."""
    status: str
    models: Mapping[str, str | None]
    """AI GO model key (`""` for the evaluated model) → model name for the engine."""
    limits: tuple[Any, ...]
    """Limits on each sample: seconds, tokens, cost."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Dataset key → file that was given for it."""
    times: tuple[float, float] = (0.0, 0.0)
    """Start and end time, in Unix seconds."""

    def logged(self) -> LoggedRun:
        """Return the facts that determine the name of a result."""
        names = {key: name for key, name in self.models.items() if key and name is not None}
        task = str((self.plan.get("task") or {}).get("key"))
        return LoggedRun(self.path, task, self.times, names, self.datasets)


Count = Callable[[EarlierRun, TaskPlan], int]
"""Function that returns the number of finished trials of a run."""


@dataclass(frozen=True)
class EarlierLogs(Generic[F]):
    """Functions of an adapter that read its logs."""

    runs: Callable[[Path], Sequence[EarlierRun]]
    """Returns the runs by aigo-bridge in a folder, the newest first."""
    count: Count
    """Returns the number of finished trials of a run: solved, and scored by every scorer. Raises
    `EvidenceError` if the log cannot be read.
    """
    finished: Callable[[EarlierRun, TaskPlan], tuple[F, int]]
    """Returns the finished trials and their number. Raises `EvidenceError` if they cannot be reused."""


def restart_reason(
    plan: TaskPlan, models: Mapping[str, str], runs: Sequence[EarlierRun], count: Count
) -> str | None:
    """Return why the newest run of a task cannot be resumed, and the cost of starting again.

    Return `None` if this task has not been run before.
    """
    run = next((run for run in runs if _task_of(run.plan) == _task_of(plan.header())), None)
    if run is None:
        return None
    changes = [*_model_changes(run.models, models), *plan_differences(plan, logged_plan(run.plan))]
    try:
        num_finished = count(run, plan)
    except EvidenceError:
        num_finished = 0
    more = f"; and {len(changes) - _MOST_CHANGES} more" if len(changes) > _MOST_CHANGES else ""
    shown = "; ".join(changes[:_MOST_CHANGES]) or "the log was modified"
    total = len(plan.samples) * plan.num_trials
    return (
        f"--resume cannot continue {run.path.name}: all {plural(total, 'trial')} of {plan.name!r}"
        " are run and their"
        f" models are asked again, although that run finished {num_finished}. Changed since: {shown}{more}"
    )


def _task_of(header: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the task key of a plan, which stays the same if the task changes."""
    specification = header.get("specification") or {}
    names = [specification.get(name) for name in ("evaluation", "key", "run")]
    return (header["task"].get("key"), *names, header.get("shard"))


def _model_changes(earlier: Mapping[str, str | None], models: Mapping[str, str]) -> Iterator[str]:
    for key, name in models.items():
        if key not in earlier or earlier[key] != name:
            label = f"model {key!r}" if key else "the model"
            yield f"{label} was {earlier.get(key)!r}, now {name!r}"
