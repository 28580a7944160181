"""Solvers: from one sample to the trace of what was said, through the Model protocol."""

from aigo_bridge.solving.grouped import GroupedSolver, compile_grouped_solver
from aigo_bridge.solving.postprocessing import (
    PostprocessedRow,
    Postprocessor,
    compile_postprocessor,
)
from aigo_bridge.solving.program import Solver, compile_solver

__all__ = [
    "GroupedSolver",
    "PostprocessedRow",
    "Postprocessor",
    "Solver",
    "compile_grouped_solver",
    "compile_postprocessor",
    "compile_solver",
]
