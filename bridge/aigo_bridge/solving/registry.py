"""Solver types by name, and the compilation of a task's solver.

To add a solver, write a module that ends with its `SolverType`, and add a row here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aigo_bridge import plugins
from aigo_bridge.solving.agent import AGENT
from aigo_bridge.solving.python import PYTHON
from aigo_bridge.solving.solver import AgentRunner, Place, Solver, SolverContext, SolverType
from aigo_bridge.solving.solvers import GROUPED_SINGLE_TURN, MULTI_TURN, PASS_THROUGH, SINGLE_TURN
from aigo_bridge.spec import task
from aigo_bridge.spec.solvers import SOLVERS, SolverSpec

if TYPE_CHECKING:
    from aigo_bridge.snippets import SnippetHost

SOLVER_TYPES: dict[type[SolverSpec], SolverType[Any]] = {}
"""Specification class → solver type."""


def register(solver_type: SolverType[Any]) -> None:
    """Register a solver type for use in tasks."""
    spec = solver_type.spec
    SOLVER_TYPES[spec] = solver_type
    if spec.type_name() not in SOLVERS:
        SOLVERS[spec.type_name()] = spec
        task.rebuild()


for row in (SINGLE_TURN, GROUPED_SINGLE_TURN, MULTI_TURN, PASS_THROUGH, PYTHON, AGENT):
    register(row)


def solver_type(solver: SolverSpec) -> SolverType[Any]:
    """Return the type of a solver.

    Raises:
        PluginError: the plug-in that defines the type cannot be loaded.
    """
    if type(solver) not in SOLVER_TYPES:
        SOLVER_TYPES[type(solver)] = plugins.load("solvers", solver.type, SolverType)
    return SOLVER_TYPES[type(solver)]


def compile_solver(
    solver: SolverSpec,
    host: SnippetHost | None = None,
    *,
    snippet_place: Place | None = None,
    agent_runner: AgentRunner | None = None,
) -> Solver:
    """Compile a task's solver without its post-processor (see `python.Postprocessor`).

    Args:
        solver: solver with config bound.
        host: worker host for the author's code; `None`: a new host.
        snippet_place: position of that code; `None` if unknown.
        agent_runner: runner for agents; `None`: agents cannot run.

    Raises:
        UnsupportedPlanError: the specification contains something without a meaning.
    """
    if host is None:
        from aigo_bridge.snippets import SnippetHost

        host = SnippetHost()
    context = SolverContext(host, snippet_place, agent_runner)
    compiled: Solver = solver_type(solver).compile(solver, context)
    return compiled
