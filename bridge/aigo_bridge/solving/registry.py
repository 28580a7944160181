"""Types of solvers by name, and a task's solver made ready to run.

A new solver is a module that ends with its `SolverType`, and a row here.
"""

from __future__ import annotations

from typing import Any

from aigo_bridge import plugins
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.agent import AGENT
from aigo_bridge.solving.python import PYTHON
from aigo_bridge.solving.solver import AgentRunner, Place, Solver, SolverContext, SolverType
from aigo_bridge.solving.solvers import GROUPED_SINGLE_TURN, MULTI_TURN, PASS_THROUGH, SINGLE_TURN
from aigo_bridge.spec import task
from aigo_bridge.spec.solvers import SOLVERS, SolverSpec

SOLVER_TYPES: dict[type[SolverSpec], SolverType[Any]] = {}
"""Specification → the type of solver that it is of."""


def register(solver_type: SolverType[Any]) -> None:
    """Let tasks have solvers of a type."""
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
        PluginError: the plug-in that adds it cannot be loaded.
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
    """A task's solver; its post-processor is on its own (`python.Postprocessor`).

    Args:
        solver: as specified, config bound.
        host: runs the author's code; `None`: a host of its own.
        snippet_place: where that code stands; `None`: not known.
        agent_runner: lets agents work; `None`: nobody does.

    Raises:
        UnsupportedPlanError: the specification asks for something without a meaning.
    """
    context = SolverContext(host or SnippetHost(), snippet_place, agent_runner)
    compiled: Solver = solver_type(solver).compile(solver, context)
    return compiled
