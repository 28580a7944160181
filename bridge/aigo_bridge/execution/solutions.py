"""Outcome of solving and scoring one sample. Logs are read with these classes, without the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.dtypes import SolverOutput, TaskResultError, TaskResultErrorStage
from aigo_bridge.errors import Stage
from aigo_bridge.plan.plan import Sample


@dataclass(frozen=True)
class SampleFailure:
    """Reason why a sample could not be solved, or could not be scored by one scorer."""

    stage: Stage
    kind: str
    """Kind of error, for example `TemplateError`, or the class of the exception."""
    message: str
    hint: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """Additional details, for example a judge's calls."""

    def to_json(self) -> dict[str, Any]:
        """Return the failure in the form of native logs."""
        return {"stage": self.stage, "kind": self.kind, "message": self.message, "hint": self.hint}

    @staticmethod
    def from_json(raw: Mapping[str, Any], details: Mapping[str, Any] | None = None) -> SampleFailure:
        """Create a failure from a native log, which stores the details separately."""
        return SampleFailure(raw["stage"], raw["kind"], raw["message"], raw.get("hint"), details or {})

    def to_error(self, where: str | None = None) -> TaskResultError:
        """Return the failure as evidence; `where` names the scorer."""
        fields: dict[str, Any] = {
            "error_type": self.kind,
            "message": f"{where}: {self.message}" if where else self.message,
            "stage": TaskResultErrorStage(self.stage),
        }
        if self.hint is not None:
            fields["hint"] = self.hint
        return TaskResultError(**fields)


@dataclass(frozen=True)
class ScorerRow:
    """Input of the scorers: a sample with the solver output, or a row that the post-processor created."""

    sample: Sample
    output: SolverOutput | None
    """Output of the solver; `None` in tasks without a solver."""


@dataclass(frozen=True)
class Solution:
    """Solved sample."""

    output: SolverOutput
    """Output of the solver."""
    rows: tuple[ScorerRow, ...]
    """Rows to score: the sample itself, or the post-processor's rows, which may be empty."""
    absent: bool = False
    """Whether the trial never existed: a stored row that the post-processor created only in other trials. It
    is not part of the evidence.
    """
