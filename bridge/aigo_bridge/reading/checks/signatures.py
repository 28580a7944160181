"""Whether an author's function can be called as it will be called; told from its text, nothing is run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aigo_bridge.errors import Issue
from aigo_bridge.reading.checks.trees import Path
from aigo_bridge.snippets.signatures import OLD_SCORES

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Call:
    """How a function is called: its arguments by position."""

    arguments: tuple[str, ...]
    other: tuple[tuple[str, ...], ...] = ()
    """Longer forms that are served as well, when the function takes them."""
    named: tuple[str, ...] = ()
    """Arguments that it is given by name, when it asks for them."""
    old: tuple[str, ...] | None = None
    """Arguments of an older form, known by these very names."""
    hint: str | None = None
    """What explains the call."""


_CALLS = {
    "compute_metrics_snippet": Call(("scores",)),
    "postprocess_snippet": Call(("sample", "solver_output")),
    "run_solver_snippet": Call(("sample", "model", "trace")),
    "compute_evidence_snippet": Call(()),
    "synthesize_snippet": Call(("source",)),
    "run_inference_snippet": Call(
        ("body", "environment"), other=(("body", "environment", "sample"),), named=("sample",)
    ),
}
_OF_A_MODEL = Call(("sample", "solver_output"), old=OLD_SCORES)
_OF_A_DATA_SET = Call(
    ("sample",), hint="without a solver there is no output: the scorer sees the sample alone"
)
_OF_ALL_SAMPLES = Call(("samples",), hint="it is called once, with the list of all samples")


def call_of(field: str, part: Mapping[str, Any], *, solved: bool) -> Call | None:
    """How the function in a field is called; `None` for fields without one.

    Args:
        field: name of the field.
        part: what the field belongs to, e.g. a scorer.
        solved: whether the task has a solver.
    """
    if field != "compute_scores_snippet":
        return _CALLS.get(field)
    if part.get("type") == "python_all_samples":
        return _OF_ALL_SAMPLES
    return _OF_A_MODEL if solved else _OF_A_DATA_SET


def check_signature(text: str, path: Path, function: str, call: Call) -> Iterator[Issue]:
    """The function's parameters, where its text shows them: decorators and objects that are called may take anything."""
    found = _definitions(text, function)
    if not found or any(_fits(node, call) for node in found):
        swapped = [node for node in found if _is_swapped(node, call)]
        for node in swapped[:1]:
            yield _issue(node, path, function, call, "the arguments are given by their places", "warning")
        return
    yield _issue(found[-1], path, function, call, call.hint, "error")


def _issue(
    node: _Function | ast.Lambda, path: Path, function: str, call: Call, hint: str | None, severity: Any
) -> Issue:
    message = f"found {function}({ast.unparse(node.args)}), expected {function}({', '.join(call.arguments)})"
    place = (node.lineno, node.col_offset + 1)
    return Issue(message, line=place[0], column=place[1], path=path, hint=hint, severity=severity)


@lru_cache(maxsize=512)
def _definitions(text: str, function: str) -> tuple[_Function | ast.Lambda, ...]:
    """Every definition of a function at a module's top level; none when something else has its name, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = ast.parse(text).body
    found: list[_Function | ast.Lambda] = []
    for node in _statements(body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == function:
                if node.decorator_list:
                    return ()
                found.append(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == function:
                if not isinstance(value, ast.Lambda):
                    return ()
                found.append(value)
            case ast.ClassDef(name=name) if name == function:
                return ()
            case ast.Import() | ast.ImportFrom():
                if function in {alias.asname or alias.name for alias in node.names}:
                    return ()
    return tuple(found)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for branch in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, branch, []))
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _fits(node: _Function | ast.Lambda, call: Call) -> bool:
    names = _positional(node)
    parameters = node.args
    if call.old is not None and names[: len(names) - len(parameters.defaults)] == call.old:
        return True
    for name, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        if default is None and name.arg not in call.named:
            return False
    least = len(names) - len(parameters.defaults)
    most = len(names) if parameters.vararg is None else float("inf")
    return any(least <= len(given) <= most for given in (call.arguments, *call.other))


def _is_swapped(node: _Function | ast.Lambda, call: Call) -> bool:
    """Whether the usual names stand in another order: nobody means that."""
    names = _positional(node)[: len(call.arguments)]
    return names != call.arguments and set(names) == set(call.arguments)


def _positional(node: _Function | ast.Lambda) -> tuple[str, ...]:
    return tuple(each.arg for each in (*node.args.posonlyargs, *node.args.args))
