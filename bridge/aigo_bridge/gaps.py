"""Gaps that every engine has: what a plan asks for that has no meaning, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.plan import TaskPlan


def contradictions(plan: TaskPlan) -> Sequence[Gap]:
    """Parts of a plan that contradict each other."""
    if plan.entity == "system":
        return []
    solver = plan.benchmark.solver
    if solver is None or solver.postprocessor is None:
        return []
    reason = "is called once with the rows of the data set, but the post-processor makes other rows, sample by sample"
    return [
        Gap(f"scorers[{number}] (python_all_samples)", reason, Fidelity.UNSUPPORTED, "use a python scorer")
        for number, scorer in enumerate(plan.benchmark.scorers)
        if scorer.type == "python_all_samples"
    ]
