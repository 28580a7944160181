"""Which parts of a task plain Inspect code carries out exactly, and why the others cannot be given to it.

Exact means: the same model calls, and from the same answers the same scores of every sample and the same metrics. Prompts and expected
answers are rendered at the time of the export, so templates over the sample alone are no obstacle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.exporting.comparisons import (
    SCORES,
    actions_part,
    has_own_value,
    part,
    reads_sample_only,
    scorer_parts,
    trials_part,
    unsupported,
)
from aigo_bridge.plan import TaskPlan
from aigo_inspect.exporting.native_samples import is_scripted

_AUTHORS_CODE = "the author's code, which gets AI GO's objects and runs in aigo-bridge's worker process"
_IN_PROCESS = "the author's code would run in Inspect's own process: no limits of time and memory, and its environment within reach"
_JUDGE = "Inspect's model-graded scorers are the nearest; they ask otherwise, read replies otherwise and do not ask again"
_SOLVERS = {
    "python": _AUTHORS_CODE,
    "grouped_single_turn_solver": "a group of answers has no form in Inspect",
}
_SCORERS = {
    "python": _AUTHORS_CODE,
    "python_all_samples": _AUTHORS_CODE,
    "labeler_via_model": "Inspect has no scorer that gives a judge's label",
    "rag_checker": "its claims are extracted and checked by several calls of a judge, as aigo-bridge makes them",
    "function_call_coverage": "it compares calls of a trace, which plain Inspect code has not",
}


def parts_of(plan: TaskPlan) -> list[Gap]:
    """Every part of a task with its fidelity in plain Inspect code."""
    if plan.entity == "system":
        return [unsupported("definition (system_task)", _AUTHORS_CODE)]
    definition = plan.benchmark
    parts: list[Gap] = []
    solver = definition.solver
    if solver is not None:
        parts.append(part(f"solver ({solver.type})", _solver_problem(plan)))
        if solver.postprocessor is not None:
            parts.append(unsupported("solver.postprocessor", _AUTHORS_CODE))
    for number, scorer in enumerate(definition.scorers):
        parts += _scorer_parts(plan, scorer, f"scorers[{number}]")
    parts += [found for found in (trials_part(plan), actions_part(plan)) if found is not None]
    return parts


# Solvers


def _solver_problem(plan: TaskPlan) -> str | None:
    solver: Any = plan.benchmark.solver
    if solver.type != "multi_turn_solver":
        return _SOLVERS.get(solver.type)
    if any(builder.type == "load_trace" for builder in solver.message_builders):
        return "a recorded trace in front of the conversation can hold more than messages"
    if not is_scripted(solver.message_builders):
        valued = {has_own_value(scorer) for scorer in plan.benchmark.scorers}
        if len(valued) == 2:
            return "a conversation that ends without an answer fails some of the scorers, and in Inspect the whole sample"
    late = next(_late_messages(solver.message_builders), None)
    return None if late is None else f"the message {late!r} is not a template over the sample alone"


def _late_messages(builders: Any) -> Iterator[str]:
    for builder in builders:
        if builder.type == "loop":
            yield from _late_messages(builder.message_builders)
        elif builder.type == "generate_message":
            yield from _late_messages(builder.extra_input_messages)
        elif builder.type == "chat_message" and not reads_sample_only(builder.content):
            yield builder.content


# Scorers


def _scorer_parts(plan: TaskPlan, scorer: Any, where: str) -> Iterator[Gap]:
    if getattr(scorer, "method", None) == "loglikelihood":
        yield unsupported(
            f"{where} ({scorer.type})", "Inspect's models do not tell how likely given texts are"
        )
    elif scorer.type in SCORES:
        yield from scorer_parts(plan, scorer, where)
    else:
        yield _inexact_scorer(plan, scorer.type, f"{where} ({scorer.type})")


def _inexact_scorer(plan: TaskPlan, kind: str, name: str) -> Gap:
    if kind in ("model_as_a_judge_classifier", "model_as_a_judge_scorer"):
        return Gap(name, _JUDGE, Fidelity.APPROXIMATE)
    if kind in ("python", "python_all_samples") and plan.entity == "dataset":
        return Gap(name, _IN_PROCESS, Fidelity.APPROXIMATE)
    return unsupported(name, _SCORERS.get(kind, "it has no native form"))
