"""Which parts of a task plain lighteval code carries out exactly, and why the others cannot be given to it.

Exact means: lighteval asks its models the same questions, and from the same answers come the same scores of every sample and the same
metrics. What fails differs: a failed call ends lighteval's run, and with some backends it is an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.exporting.comparisons import (
    METRICS,
    SCORES,
    actions_part,
    metrics_of,
    part,
    scorer_parts,
    trials_part,
    unsupported,
    value_name,
)
from aigo_bridge.jsonl_spec import METRIC_NAMES
from aigo_bridge.plan import TaskPlan
from aigo_lighteval.exporting.questions import shared_question
from aigo_lighteval.golds import is_of_records
from aigo_lighteval.translate import sampling_methods

_AUTHORS_CODE = "the author's code, which gets AI GO's objects and runs in aigo-bridge's worker process"
_JUDGE = "lighteval's judge asks otherwise, reads replies otherwise, and ends the run where one fails"
_SCORERS = {
    "python": _AUTHORS_CODE,
    "python_all_samples": _AUTHORS_CODE,
    "labeler_via_model": "lighteval has no metric that gives a judge's label",
    "rag_checker": "its claims are extracted and checked by several calls of a judge, as aigo-bridge makes them",
    "function_call_coverage": "it compares calls of a trace, which lighteval has not",
    "code_exec": "it runs code that a model wrote, and lighteval has no sandbox",
}
_JUDGES = ("model_as_a_judge_classifier", "model_as_a_judge_scorer")


def parts_of(plan: TaskPlan) -> list[Gap]:
    """Every part of a task with its fidelity in plain lighteval code."""
    if plan.entity == "system":
        return [unsupported("definition (system_task)", "it has no rows, and lighteval nothing to ask")]
    definition = plan.benchmark
    solver = definition.solver
    name = "solver" if solver is None else f"solver ({solver.type})"
    _, problems = shared_question(plan)
    parts = [part(name, "; ".join(problems) or None)]
    if solver is not None and solver.postprocessor is not None:
        parts.append(unsupported("solver.postprocessor", _AUTHORS_CODE))
    for number, scorer in enumerate(definition.scorers):
        parts += _scorer_parts(plan, scorer, f"scorers[{number}]")
    if not definition.scorers:
        parts.append(unsupported("scorers", "there are none, and lighteval asks only what a metric needs"))
    elif len(sampling_methods(plan)) > 1:
        parts.append(unsupported("scorers", "lighteval cannot save answers and likelihoods of one task"))
    trials = trials_part(plan)
    if trials is not None and plan.num_trials > 1 and any(map(is_of_records, definition.scorers)):
        trials = unsupported("trials", "the scores of task records have no native form over trials")
    return parts + [found for found in (trials, actions_part(plan)) if found is not None]


def _scorer_parts(plan: TaskPlan, scorer: Any, where: str) -> Iterator[Gap]:
    name = f"{where} ({scorer.type})"
    if is_of_records(scorer):
        yield part(name, None)
        yield from _record_metrics(scorer, where)
    elif getattr(scorer, "length_normalisation", "none") == "pmi":
        yield unsupported(name, "lighteval 0.13 asks no model the unconditioned query")
    elif getattr(scorer, "length_normalisation", "none") == "tokens":
        yield Gap(name, "lighteval's backends count padding with a text's tokens", Fidelity.APPROXIMATE)
    elif scorer.type in SCORES:
        yield from scorer_parts(plan, scorer, where)
    elif scorer.type in _JUDGES:
        yield Gap(name, _JUDGE, Fidelity.APPROXIMATE)
    else:
        yield unsupported(name, _SCORERS.get(scorer.type, "it has no native form"))


def _record_metrics(scorer: Any, where: str) -> Iterator[Gap]:
    names: list[str | None] = []
    for number, metric in enumerate(metrics_of(scorer)):
        name = f"{where}.metrics[{number}] ({metric.type})"
        if metric.type not in METRICS or metric.field not in METRIC_NAMES:
            yield unsupported(name, "it has no native form")
            continue
        given = value_name(metric)
        twice = given is not None and given in names
        names.append(given)
        yield part(name, f"two metrics are called {given!r}" if twice else None)
