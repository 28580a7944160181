"""Asking for likelihoods while a sample is solved, for scorers that compare them.

They stand in the raw outputs of the solver, in front of the answer; where no other scorer looks at an answer, none is generated.
"""

from __future__ import annotations

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.models import Models
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.program import Failure, Row, SampleProgram, Solution
from aigo_bridge.scoring.likelihoods import RAW_KEY, Choices, by_likelihood, raw_output
from aigo_bridge.solving.conversation import empty_trace, input_item
from aigo_bridge.solving.inputs import compile_input
from aigo_bridge.spec import solvers as solver_spec
from aigo_lighteval.models import HostedModel


class LikelihoodSolver:
    """A single-turn solver that asks how likely the choices of a sample are, and for an answer where one is looked at."""

    def __init__(self, plan: TaskPlan, solver: solver_spec.SingleTurnSolver):
        compared = by_likelihood(plan.benchmark.scorers)
        self._build = compile_input(solver.input_builder)
        self._choices = [Choices(scorer) for scorer in compared]
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
        if not self.generates:
            output = empty_trace()
            output.extend([input_item(message) for message in request.input.messages])
            output.raw_outputs.extend(found)
            return Solution(output, (Row(sample, output),))
        solved = await program.solve(sample, model, models)
        if isinstance(solved, Solution) and isinstance(solved.output, SolverTrace):
            solved.output.raw_outputs[:0] = found
        return solved


def likelihood_solver(plan: TaskPlan) -> LikelihoodSolver | None:
    """What asks for a plan's likelihoods; `None` where no scorer compares any, or the outputs are there already."""
    if plan.entity == "system" or not plan.calls_model or not by_likelihood(plan.benchmark.scorers):
        return None
    solver = plan.benchmark.solver
    assert isinstance(solver, solver_spec.SingleTurnSolver)  # else it is a gap
    return LikelihoodSolver(plan, solver)


def stored_likelihoods(solution: Solution | Failure | None) -> list[float]:
    """The first log-likelihoods that a solver has left, in the order of the choices; none where it has not."""
    output = solution.output if isinstance(solution, Solution) else None
    for raw in output.raw_outputs if isinstance(output, SolverTrace) else ():
        if isinstance(raw, dict) and isinstance(raw.get(RAW_KEY), list):
            return [float(each["log_likelihood"]) for each in raw[RAW_KEY]]
    return []
