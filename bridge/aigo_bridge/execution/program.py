"""The sample program: solve, then score. Engines host it; it is the same code on each of them.

This module has the one boundary where a sample's failure is contained, whatever it is: it becomes a record
with a stage and a message, and the other samples and scorers go on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aigo_bridge.dtypes import (
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
    TaskResultError,
    TaskResultErrorStage,
)
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.models.protocol import Model, Models
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.redaction.secrets import redact, redact_value
from aigo_bridge.scoring import CompiledScorer, compile_scorers
from aigo_bridge.scoring.judges import JudgeError
from aigo_bridge.scoring.scorer import CodeRunner, Score
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving import Postprocessor, Solver, compile_solver
from aigo_bridge.solving.solver import AgentRunner

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """Why one sample could not be solved, or could not be scored by one scorer."""

    stage: Stage
    kind: str
    """Name of the kind of error, e.g. `TemplateError`; the exception's class where nothing better is
    known."""
    message: str
    hint: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """What is worth keeping beside the message, e.g. a judge's calls."""

    def to_json(self) -> dict[str, Any]:
        """As kept in native logs."""
        return {"stage": self.stage, "kind": self.kind, "message": self.message, "hint": self.hint}

    @staticmethod
    def from_json(raw: Mapping[str, Any], details: Mapping[str, Any] | None = None) -> Failure:
        """Back from a native log, which keeps the details elsewhere."""
        return Failure(raw["stage"], raw["kind"], raw["message"], raw.get("hint"), details or {})

    def to_error(self, where: str | None = None) -> TaskResultError:
        """As evidence; `where` names the scorer."""
        fields: dict[str, Any] = {
            "error_type": self.kind,
            "message": f"{where}: {self.message}" if where else self.message,
            "stage": TaskResultErrorStage(self.stage),
        }
        if self.hint is not None:
            fields["hint"] = self.hint
        return TaskResultError(**fields)


@dataclass(frozen=True)
class Row:
    """What is scored: a sample with the solver's output, or a row that the post-processor made of them."""

    sample: Sample
    output: SolverOutput | None
    """`None` in tasks without a solver."""


@dataclass(frozen=True)
class Solution:
    """A solved sample."""

    output: SolverOutput
    """What the solver made of it."""
    rows: tuple[Row, ...]
    """What is scored: the sample itself, or the post-processor's rows, of which there may be none."""
    absent: bool = False
    """Whether there never was such a trial: a stored row that the post-processor made in other trials only.
    It is in no evidence."""


@dataclass(frozen=True)
class SampleProgram:
    """A plan compiled: templates parsed, scorers ready, the snippet worker at hand."""

    plan: TaskPlan
    solver: Solver | None
    postprocessor: Postprocessor | None
    scorers: tuple[CompiledScorer, ...]
    host: SnippetHost
    samples: Mapping[str, Sample]
    """Sample id as text → sample."""

    def sample(self, sample_id: str | int) -> Sample:
        """The planned sample with that id."""
        return self.samples[str(sample_id)]

    async def solve(
        self, sample: Sample, model: Model, models: Models, *, let_through: tuple[type[Exception], ...] = ()
    ) -> Solution | Failure:
        """Solve one sample; exceptions in `let_through` (an engine's limits) are not contained."""
        return await contained(self._solved(sample, model, models), "solver", let_through)

    async def _solved(self, sample: Sample, model: Model, models: Models) -> Solution:
        assert self.solver is not None
        return await self.postprocessed(sample, await self.solver(sample.data, model, models))

    async def postprocessed(self, sample: Sample, output: SolverOutput) -> Solution:
        """A solver's output with what is scored of it: the post-processor's rows where the plan has one.

        Raises:
            SampleError: the post-processor failed.
        """
        if self.postprocessor is None:
            return Solution(output, (Row(sample, output),))
        rows = await self.postprocessor(sample.id, sample.data, self._as_told(output))
        return Solution(output, tuple(Row(Sample(row.id, row.data), row.output) for row in rows))

    async def score(
        self,
        scorer: CompiledScorer,
        row: Row,
        models: Models,
        *,
        let_through: tuple[type[Exception], ...] = (),
    ) -> Score | Failure:
        """Score one row with one scorer."""
        output = row.output
        if output is not None and scorer.spec.snippet is not None:
            output = self._as_told(output)
        return await contained(scorer.score(row.sample, output, models), "score", let_through)

    def _as_told(self, output: SolverOutput) -> SolverOutput:
        """What author's code is given: in the older message format a conversation as chat, without a trace.

        Templates and evidence keep the trace, which has both forms: nothing that happened is lost to a matter
        of format.
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
    """Compile a plan; nothing is run yet.

    Args:
        plan: what is to run.
        host: where the author's code runs; `None`: a worker of the program's own.
        code_runner: where code runs that a model wrote; `None`: nowhere, and plans that need it are refused.
        agent_runner: lets agents work; `None`: nobody does, and their samples fail.

    Raises:
        UnsupportedPlanError: something that a scorer needs is not there.
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
        else Postprocessor(
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
) -> T | Failure:
    """The boundary: a failed sample is a result, not an exception. Cancellation passes."""
    try:
        return await work
    except SampleError as error:
        details = {"judge_calls": error.calls} if isinstance(error, JudgeError) and error.calls else {}
        return Failure(
            error.stage,
            error.kind,
            redact(error.message),
            error.hint and redact(error.hint),
            redact_value(details),
        )
    except let_through:
        raise
    except Exception as error:  # noqa: BLE001  # the one place where a sample's failure is contained
        message = str(error) or type(error).__name__
        return Failure(stage, type(error).__name__, redact(message))
