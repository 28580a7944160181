"""How an author's function wants to be called, told from its code without running it."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

OLD_SCORES = ("sample", "model_input", "model_output")
"""Parameters of `compute_scores` in older snippets."""

OLD_METRICS = "aggregate"
"""What `compute_metrics` was called in older snippets; it got the scores of the samples as plain mappings."""


@lru_cache(maxsize=512)
def positional_parameters(source: str) -> dict[str, tuple[str, ...]]:
    """The functions that a module defines at its top level, with the positional parameters that have no default; none if it is not Python.

    The older parameters of `compute_scores` count also with a default: nothing else could be meant for them.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an author's invalid escape is no concern of ours
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            given = statement.args
            names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
            required = tuple(names[: len(names) - len(given.defaults)])
            all_old = tuple(names[: len(OLD_SCORES)]) == OLD_SCORES and len(required) <= len(OLD_SCORES)
            found[statement.name] = OLD_SCORES if all_old else required
    return found


def has_old_scores(source: str) -> bool:
    """Whether `compute_scores` takes what the model was given and what it gave, one by one.

    It is known by the very names: three parameters that are called otherwise might mean anything.
    """
    return positional_parameters(source).get("compute_scores") == OLD_SCORES


def metrics_function(source: str) -> str:
    """The function that computes metrics: `compute_metrics`, in older snippets `aggregate`."""
    defined = positional_parameters(source)
    return OLD_METRICS if OLD_METRICS in defined and "compute_metrics" not in defined else "compute_metrics"
