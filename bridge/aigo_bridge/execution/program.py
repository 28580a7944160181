"""Sample program: solve, then score. Every engine runs the same code.

This module contains any failure of a sample. The failure becomes a record with a stage and a message, and
the other samples and scorers continue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from aigo_bridge.dtypes import (
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
)
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.execution.solutions import SampleFailure, ScorerRow, Solution
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.redaction.secrets import redact, redact_value
from aigo_bridge.scoring.judges import JudgeError
from aigo_bridge.scoring.registry import CompiledScorer, compile_scorers
from aigo_bridge.solving.python import PythonPostprocessor
from aigo_bridge.solving.registry import compile_solver

if TYPE_CHECKING:
    from aigo_bridge.models.protocol import Model, Models
    from aigo_bridge.scoring.scorer import CodeRunner, Score
    from aigo_bridge.snippets import SnippetHost
    from aigo_bridge.solving.solver import AgentRunner, Solver

T = TypeVar("T")


@dataclass(frozen=True)
class SampleProgram:
    """Compiled plan: parsed templates, prepared scorers and the snippet worker."""

    plan: TaskPlan
    solver: Solver | None
    postprocessor: PythonPostprocessor | None
    scorers: tuple[CompiledScorer, ...]
    host: SnippetHost
    samples: Mapping[str, Sample]
    """Sample id as text → sample."""

    def sample(self, sample_id: str | int) -> Sample:
        """Return the planned sample with an id."""
        return self.samples[str(sample_id)]

    async def solve(
        self, sample: Sample, model: Model, models: Models, *, let_through: tuple[type[Exception], ...] = ()
    ) -> Solution | SampleFailure:
        """Solve one sample. Exceptions in `let_through` (limits of an engine) are not contained."""
        return await contained(self._solved(sample, model, models), "solver", let_through)

    async def _solved(self, sample: Sample, model: Model, models: Models) -> Solution:
        assert self.solver is not None
        return await self.postprocessed(sample, await self.solver(sample.data, model, models))

    async def postprocessed(self, sample: Sample, output: SolverOutput) -> Solution:
        """Return a solver output with the rows to score: the post-processor's rows, if the plan has a
        post-processor.

        Raises:
            SampleError: the post-processor failed.
        """
        if self.postprocessor is None:
            return Solution(output, (ScorerRow(sample, output),))
        rows = await self.postprocessor(sample.id, sample.data, self._as_told(output))
        return Solution(output, tuple(ScorerRow(Sample(row.id, row.data), row.output) for row in rows))

    async def score(
        self,
        scorer: CompiledScorer,
        row: ScorerRow,
        models: Models,
        *,
        let_through: tuple[type[Exception], ...] = (),
    ) -> Score | SampleFailure:
        """Score one row with one scorer."""
        output = row.output
        if output is not None and scorer.spec.snippet is not None:
            output = self._as_told(output)
        return await contained(scorer.score(row.sample, output, models), "score", let_through)

    def _as_told(self, output: SolverOutput) -> SolverOutput:
        """Return the output in the form for author code: in the older message format, a chat without a trace.

        Templates and evidence keep the trace, which has both forms, so that the format does not lose
        events.
        """
        form = getattr(self.plan.benchmark.solver, "message_format", None)
        if form != "latticeflow" or not isinstance(output, SolverTrace):
            return output
        return SingleSolverOutput(
            messages=output.messages, output=output.output, direct_ios=output.direct_ios
        )


def compile_program(
    plan: TaskPlan,
    host: SnippetHost | None = None,
    code_runner: CodeRunner | None = None,
    agent_runner: AgentRunner | None = None,
) -> SampleProgram:
    """Compile a plan without running anything.

    Args:
        plan: plan to run.
        host: host for the author's code; `None` for a new worker.
        code_runner: runs code that a model wrote; `None` to refuse plans that need it.
        agent_runner: runs agents; `None` to let their samples fail.

    Raises:
        UnsupportedPlanError: a requirement of a scorer is missing.
    """
    host = host or snippet_host(plan)
    solver = plan.benchmark.solver
    postprocessor = None if solver is None else solver.postprocessor
    return SampleProgram(
        plan=plan,
        solver=None
        if solver is None
        else compile_solver(
            solver,
            host,
            snippet_place=plan.snippet_place("solver", solver.snippet or ""),
            agent_runner=agent_runner,
        ),
        postprocessor=None
        if postprocessor is None
        else PythonPostprocessor(
            postprocessor, host, plan.snippet_place("solver", "postprocessor", "postprocess_snippet")
        ),
        scorers=compile_scorers(
            plan.benchmark.scorers,
            samples=plan.samples if plan.every_sample is None else plan.every_sample,
            host=host,
            code_runner=code_runner,
            snippet_place=lambda number: plan.snippet_place("scorers", number, "compute_scores_snippet"),
        ),
        host=host,
        samples={str(sample.id): sample for sample in plan.samples},
    )


async def contained(
    work: Awaitable[T], stage: Stage, let_through: tuple[type[Exception], ...] = ()
) -> T | SampleFailure:
    """Return the result, or a `SampleFailure` instead of an exception. Cancellation is passed on."""
    try:
        return await work
    except SampleError as error:
        details = {"judge_calls": error.calls} if isinstance(error, JudgeError) and error.calls else {}
        return SampleFailure(
            error.stage,
            error.kind,
            redact(error.message),
            error.hint and redact(error.hint),
            redact_value(details),
        )
    except let_through:
        raise
    except Exception as error:  # noqa: BLE001  # failures of a sample are contained here
        message = str(error) or type(error).__name__
        return SampleFailure(stage, type(error).__name__, redact(message))
