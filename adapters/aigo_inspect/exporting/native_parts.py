"""Which parts of a task plain Inspect code carries out exactly, and why the others cannot be given to it.

Exact means: the same model calls, and from the same answers the same scores of every sample and the same metrics. Prompts and expected
answers are rendered at the time of the export, so templates over the sample alone are no obstacle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.metrics import default_metrics
from aigo_bridge.metrics.trials import aggregated_name
from aigo_bridge.plan import TaskPlan
from aigo_inspect.exporting.native_samples import has_own_value, is_scripted, reads_sample_only
from aigo_inspect.exporting.native_values import answer_methods

SCORES = {"string_equals": "is_correct", "string_equals_mcqa": "is_correct", "bleu": "bleu_score"}
"""Scorers with a native form → the score that they give."""

METRICS = frozenset({"mean", "min", "max", "std_dev", "frequency"})
PASSES = frozenset({"pass@k", "pass^k"})

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
        return [_unsupported("definition (system_task)", _AUTHORS_CODE)]
    definition = plan.benchmark
    parts: list[Gap] = []
    solver = definition.solver
    if solver is not None:
        parts.append(_part(f"solver ({solver.type})", _solver_problem(plan)))
        if solver.postprocessor is not None:
            parts.append(_unsupported("solver.postprocessor", _AUTHORS_CODE))
    for number, scorer in enumerate(definition.scorers):
        parts += _scorer_parts(plan, scorer, f"scorers[{number}]")
    if definition.trials is not None:
        parts.append(_part("trials", _trials_problem(plan)))
    if definition.actions:
        late = [rule.key for rule in definition.actions if not reads_sample_only(rule.filter.expression)]
        parts.append(_part("actions", f"rule {late[0]!r} looks at what was said or scored" if late else None))
    return parts


def score_names(plan: TaskPlan, scorer: Any) -> list[str]:
    """Scores that metrics of a scorer can read: its own, and what trials make of it."""
    name = SCORES[scorer.type]
    trials = plan.benchmark.trials
    if plan.num_trials == 1 or trials is None:
        return [name]
    own = [entry for entry in trials.score_aggregators or () if entry.score_name == name]
    return [name, *(aggregated_name(entry) for entry in own)]


def metrics_of(scorer: Any) -> tuple[Any, ...]:
    """The metrics of a scorer with a native form, default ones included."""
    return tuple(default_metrics(scorer.type, []) if scorer.metrics is None else scorer.metrics)


def _part(name: str, problem: str | None) -> Gap:
    return Gap(name, problem or "", Fidelity.UNSUPPORTED if problem else Fidelity.EXACT)


def _unsupported(name: str, problem: str) -> Gap:
    return Gap(name, problem, Fidelity.UNSUPPORTED)


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
    name = f"{where} ({scorer.type})"
    if scorer.type not in SCORES:
        yield _inexact_scorer(plan, scorer.type, name)
        return
    fields = ("ground_truth", "ground_truth_choice", "value", "choices")
    texts = {field: text for field in fields if isinstance(text := getattr(scorer, field, None), str)}
    late = [
        field
        for field, text in texts.items()
        if not reads_sample_only(text)
        and (field != "value" or plan.entity != "model" or answer_methods(text) is None)
    ]
    yield _part(name, f"{late[0]} is a template over the model's answer" if late else None)
    known = score_names(plan, scorer)
    names: list[str] = []
    for number, metric in enumerate(metrics_of(scorer)):
        part = f"{where}.metrics[{number}] ({metric.type})"
        if metric.type not in METRICS:
            yield _unsupported(part, "it has no native form")
        elif metric.field not in known:
            yield _unsupported(part, f"it reads {metric.field!r}, the scorer gives {', '.join(known)}")
        else:
            given = value_name(metric)
            twice = given is not None and given in names
            names += [given] if given is not None else []
            yield _part(part, f"two metrics are called {given!r}" if twice else None)


def _inexact_scorer(plan: TaskPlan, kind: str, name: str) -> Gap:
    if kind in ("model_as_a_judge_classifier", "model_as_a_judge_scorer"):
        return Gap(name, _JUDGE, Fidelity.APPROXIMATE)
    if kind in ("python", "python_all_samples") and plan.entity == "dataset":
        return Gap(name, _IN_PROCESS, Fidelity.APPROXIMATE)
    return _unsupported(name, _SCORERS.get(kind, "it has no native form"))


def value_name(metric: Any) -> str | None:
    """The name of a metric's value; `None` for frequencies, which have one for each value that occurs."""
    if metric.type == "frequency":
        return None
    return str(metric.name or f"{metric.field}_{metric.type}")


def _trials_problem(plan: TaskPlan) -> str | None:
    trials = plan.benchmark.trials
    if trials is None or plan.num_trials == 1:
        return None
    names: set[str] = set(SCORES.values())
    for entry in trials.score_aggregators or ():
        if entry.aggregator.function in PASSES and entry.score_name == "bleu_score":
            return f"{entry.aggregator.function} of {entry.score_name!r}, which is neither passed nor failed"
        name = aggregated_name(entry)
        if name in names:
            return f"several aggregated scores are called {name!r}"
        names.add(name)
    return None
