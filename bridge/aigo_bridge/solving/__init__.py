"""Solvers: create the trace of a sample's conversation through the Model protocol."""

from aigo_bridge.solving.python import PostprocessedRow, PythonPostprocessor
from aigo_bridge.solving.registry import compile_solver
from aigo_bridge.solving.solver import Solved, Solver

__all__ = ["PostprocessedRow", "PythonPostprocessor", "Solved", "Solver", "compile_solver"]
