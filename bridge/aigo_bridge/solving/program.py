"""From a solver's specification to the function that solves one sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from aigo_bridge.dtypes import GroupedSolverTrace, SolverTrace
from aigo_bridge.models import Model, Models
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.grouped import GroupedSingleTurn
from aigo_bridge.solving.python import PythonRun
from aigo_bridge.solving.recorded import PassThrough
from aigo_bridge.solving.single import SingleTurn
from aigo_bridge.solving.turns import MultiTurn
from aigo_bridge.spec.solvers import (
    GroupedSingleTurnSolver,
    MultiTurnSolver,
    PassThroughSolver,
    PythonSolver,
    SingleTurnSolver,
)
from aigo_bridge.spec.solvers import Solver as SolverSpec

Solved = SolverTrace | GroupedSolverTrace
"""What a solver makes of one sample: one conversation, or a group of them."""


class Solver(Protocol):
    """Solves samples; compiled once per run."""

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> Solved:
        """Solve one sample.

        Args:
            sample: column → value.
            model: the model under evaluation.
            models: other models, by the keys that the task uses.

        Raises:
            SampleError: the sample failed (stage `solver`).
        """
        ...


def compile_solver(
    spec: SolverSpec,
    host: SnippetHost | None = None,
    *,
    snippet_label: str = "run_solver_snippet",
    snippet_place: tuple[str, int] | None = None,
) -> Solver:
    """The solver that carries out `spec`; its post-processor is `compile_postprocessor`'s.

    Args:
        spec: the solver as written, with the task's parameters bound.
        host: runs the author's code of a python solver; `None`: a host of its own.
        snippet_label: names that code in errors.
        snippet_place: file and first line of that code, told in errors; `None`: not known.

    Raises:
        UnsupportedPlanError: the specification asks for something without a meaning.
    """
    match spec:
        case SingleTurnSolver():
            return SingleTurn(spec)
        case MultiTurnSolver():
            return MultiTurn(spec)
        case PassThroughSolver():
            return PassThrough(spec)
        case PythonSolver():
            return PythonRun(spec, host or SnippetHost(), snippet_label, snippet_place)
        case GroupedSingleTurnSolver():
            return GroupedSingleTurn(spec)
