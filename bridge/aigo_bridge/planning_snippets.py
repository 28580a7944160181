"""A task's snippets: which there are, where each stands, and what is wrong with those that config has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from aigo_bridge.errors import Issue
from aigo_bridge.reading import Document, snippet_place
from aigo_bridge.reading.checks.tasks import FUNCTIONS
from aigo_bridge.reading.checks.texts import check_snippet
from aigo_bridge.reading.code_places import text_at
from aigo_bridge.spec import BenchmarkDefinition, SystemDefinition, TaskSpec
from aigo_bridge.spec import scorers as scorer_spec
from aigo_bridge.spec.metrics import PythonMetric
from aigo_bridge.spec.solvers import PythonSolver

SpecPath = tuple[str | int, ...]


def snippet_places(
    document: Document[TaskSpec], definition: BenchmarkDefinition | SystemDefinition
) -> dict[str, tuple[str, int]]:
    """The places of a task's snippets, as `TaskPlan.snippet_places` keeps them.

    Args:
        document: the task as read.
        definition: its definition with config bound, which is what runs.
    """
    found: dict[str, tuple[str, int]] = {}
    for path, code in _snippets(definition):
        place = snippet_place(document, ("definition", *path), code)
        if place is not None:
            found[".".join(map(str, path))] = place
    return found


def snippet_issues(
    document: Document[TaskSpec], definition: BenchmarkDefinition | SystemDefinition
) -> list[Issue]:
    """What is wrong with code that config values were put into; as written it was checked when it was read."""
    issues: list[Issue] = []
    for path, code in _snippets(definition):
        if text_at(document.data, ("definition", *path)) == code:
            continue
        for issue in check_snippet(code, ("definition", *path), FUNCTIONS[str(path[-1])]):
            line = "" if issue.line is None else f", in line {issue.line} of the code"
            message = f"with this config{line}: {issue.message}"
            issues.append(replace(issue, message=message, line=None, column=None))
    return issues


def _snippets(definition: BenchmarkDefinition | SystemDefinition) -> Iterator[tuple[SpecPath, str]]:
    if isinstance(definition, SystemDefinition):
        yield ("compute_evidence_snippet",), definition.compute_evidence_snippet
        return
    solver = definition.solver
    if isinstance(solver, PythonSolver):
        yield ("solver", "run_solver_snippet"), solver.run_solver_snippet
    if solver is not None and solver.postprocessor is not None:
        yield ("solver", "postprocessor", "postprocess_snippet"), solver.postprocessor.postprocess_snippet
    for number, scorer in enumerate(definition.scorers):
        if isinstance(scorer, scorer_spec.PythonScorer | scorer_spec.PythonAllSamplesScorer):
            yield ("scorers", number, "compute_scores_snippet"), scorer.compute_scores_snippet
        for place, metric in enumerate(scorer.metrics or ()):
            if isinstance(metric, PythonMetric):
                path = ("scorers", number, "metrics", place, "compute_metrics_snippet")
                yield path, metric.compute_metrics_snippet
