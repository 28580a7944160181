"""`TrialRecord`: what an engine's log says about one trial of one sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aigo_bridge.dtypes import ScoresData, SolverOutput, TaskResultError


@dataclass(frozen=True)
class TrialRecord:
    """One sample, solved and scored once."""

    sample_id: str | int
    index: int
    """Number of the trial, from 0."""
    data: Mapping[str, Any]
    """The sample's row."""
    solver: SolverOutput | None
    """What the solver made; `None` in tasks without a solver, and when nothing at all was made."""
    scores: tuple[ScoresData, ...]
    """One entry per scorer that gave a score, in the task's order."""
    errors: tuple[TaskResultError, ...] = ()
    """What failed, with its stage; a trial with a solver error has no scores."""
    source_id: str | int | None = None
    """For a row that the solver's post-processor made: the sample that was run; otherwise `None`."""
    without_rows: bool = False
    """Whether it is known that the post-processor made no row of this trial: there was nothing to score."""

    @property
    def planned_id(self) -> str | int:
        """The sample of the plan that was run."""
        return self.sample_id if self.source_id is None else self.source_id
