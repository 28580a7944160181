"""Solvers: from one sample to the trace of what was said, through the Model protocol."""

from aigo_bridge.solving.postprocessing import PostprocessedRow, Postprocessor, compile_postprocessor
from aigo_bridge.solving.program import Solved, Solver, compile_solver

__all__ = [
    "PostprocessedRow",
    "Postprocessor",
    "Solved",
    "Solver",
    "compile_postprocessor",
    "compile_solver",
]
