"""Gaps that every engine has: what a plan asks for that has no meaning, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.plan import TaskPlan
from aigo_bridge.scoring.likelihoods import by_likelihood


def contradictions(plan: TaskPlan) -> Sequence[Gap]:
    """Parts of a plan that contradict each other."""
    if plan.entity == "system":
        return []
    found = [*_unasked_likelihoods(plan)]
    solver = plan.benchmark.solver
    if solver is None or solver.postprocessor is None:
        return found
    reason = "is called once with the rows of the data set, but the post-processor makes other rows, sample by sample"
    return found + [
        Gap(f"scorers[{number}] (python_all_samples)", reason, Fidelity.UNSUPPORTED, "use a python scorer")
        for number, scorer in enumerate(plan.benchmark.scorers)
        if scorer.type == "python_all_samples"
    ]


def likelihood_gaps(plan: TaskPlan) -> Sequence[Gap]:
    """What an engine cannot run whose models say texts, and not how likely given texts are.

    Outputs that are scored again hold the likelihoods, so then there is no gap.
    """
    if plan.entity == "system" or not plan.calls_model:
        return []
    reason = "compares log-likelihoods of given texts, which this engine's models do not tell"
    return [
        Gap(part, reason, Fidelity.UNSUPPORTED, "--engine lighteval --model transformers/PATH")
        for part in _compared_by_likelihood(plan)
    ]


def _unasked_likelihoods(plan: TaskPlan) -> Sequence[Gap]:
    """Likelihoods follow one prompt, so there has to be exactly one, known from the row."""
    solver = plan.benchmark.solver
    if solver is None or not plan.calls_model:
        return []
    if solver.type != "single_turn_solver":
        reason = f"compares log-likelihoods of what follows one prompt, and {solver.type!r} has not one"
    elif solver.postprocessor is not None:
        reason = "compares log-likelihoods of what follows a prompt, and rows of a post-processor have none"
    else:
        return []
    return [
        Gap(part, reason, Fidelity.UNSUPPORTED, "use a single_turn_solver without a post-processor")
        for part in _compared_by_likelihood(plan)
    ]


def _compared_by_likelihood(plan: TaskPlan) -> Sequence[str]:
    return [
        f"scorers[{number}] (string_equals_mcqa, loglikelihood)"
        for number, scorer in enumerate(plan.benchmark.scorers)
        if by_likelihood([scorer])
    ]
