"""Asking for likelihoods while a sample is solved, for scorers that compare them.

They stand in the raw outputs of the solver, in front of the answer; where no other scorer looks at an answer, none is generated.
"""

from __future__ import annotations

from typing import Any

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.models import Models
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.program import Failure, Row, SampleProgram, Solution
from aigo_bridge.scoring.likelihoods import (
    RAW_KEY,
    UNCONDITIONED_KEY,
    Choices,
    by_likelihood,
    is_weighed_alone,
    raw_output,
)
from aigo_bridge.solving.conversation import chat_request, empty_trace, input_item
from aigo_bridge.solving.inputs import compile_input, render
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.templates import SampleTemplate
from aigo_lighteval.models import HostedModel


class LikelihoodSolver:
    """A single-turn solver that asks how likely the choices of a sample are, and for an answer where one is looked at."""

    def __init__(self, plan: TaskPlan, solver: solver_spec.SingleTurnSolver):
        compared = by_likelihood(plan.benchmark.scorers)
        self._build = compile_input(solver.input_builder)
        self._choices = [Choices(scorer) for scorer in compared]
        self._weighed_alone = [Choices(scorer) for scorer in compared if is_weighed_alone(scorer)]
        query = getattr(solver.input_builder, "unconditioned_query", None)
        self._unconditioned = None if query is None else SampleTemplate(query)
        self.generates = len(compared) < len(plan.benchmark.scorers)
        """Whether an answer is generated as well."""

    async def solve(
        self, program: SampleProgram, sample: Sample, model: HostedModel, models: Models
    ) -> Solution | Failure:
        """What the solver makes of a sample; likelihoods first, as they are the cheaper of the two to fail.

        Raises:
            SampleError: the choices are not valid, or the model did not answer.
        """
        request = self._build(sample.data)
        asked = [tuple(choices.of(sample.data, "solver")[1]) for choices in self._choices]
        found = [raw_output(await model.likelihoods(request, each)) for each in dict.fromkeys(asked)]
        found += await self._alone(sample, model)
        if not self.generates:
            output = empty_trace()
            output.extend([input_item(message) for message in request.input.messages])
            output.raw_outputs.extend(found)
            return Solution(output, (Row(sample, output),))
        solved = await program.solve(sample, model, models)
        if isinstance(solved, Solution) and isinstance(solved.output, SolverTrace):
            solved.output.raw_outputs[:0] = found
        return solved

    async def _alone(self, sample: Sample, model: HostedModel) -> list[dict[str, Any]]:
        """The likelihoods behind the unconditioned query, where a scorer takes them from those behind the question."""
        if not self._weighed_alone:
            return []
        assert self._unconditioned is not None  # else the task is not valid
        request = chat_request([("user", render(self._unconditioned, sample.data))])
        asked = [tuple(choices.of(sample.data, "solver")[1]) for choices in self._weighed_alone]
        return [
            raw_output(await model.likelihoods(request, each), UNCONDITIONED_KEY)
            for each in dict.fromkeys(asked)
        ]


def likelihood_solver(plan: TaskPlan) -> LikelihoodSolver | None:
    """What asks for a plan's likelihoods; `None` where no scorer compares any, or the outputs are there already."""
    if plan.entity == "system" or not plan.calls_model or not by_likelihood(plan.benchmark.scorers):
        return None
    solver = plan.benchmark.solver
    assert isinstance(solver, solver_spec.SingleTurnSolver)  # else it is a gap
    return LikelihoodSolver(plan, solver)


def stored_likelihoods(solution: Solution | Failure | None, key: str = RAW_KEY) -> list[float]:
    """The first log-likelihoods that a solver has left under a key, in the order of the choices; none where it has not."""
    output = solution.output if isinstance(solution, Solution) else None
    for raw in output.raw_outputs if isinstance(output, SolverTrace) else ():
        if isinstance(raw, dict) and isinstance(raw.get(key), list):
            return [float(each["log_likelihood"]) for each in raw[key]]
    return []
