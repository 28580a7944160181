"""Run of a plan inside lighteval: a model that runs the solver, and a metric that runs the scorers.

lighteval calls the model with all documents and the metric with all responses. Both are aigo-bridge classes
(see `pipeline`) that share one `PlanRun`. The `PlanRun` does the work in its own event loop and records every
failure in the sample that failed. It follows the plan's sample order because lighteval shuffles documents.

If scorers compare likelihoods, the solver asks for likelihoods first. They are stored in the solver's raw
outputs, before the answer. An answer is only generated if another scorer needs it.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import CancelledError, wait
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal
from anyio.lowlevel import checkpoint
from lighteval.models.model_output import ModelResponse

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.errors import Stage
from aigo_bridge.execution.checkpoint import asking
from aigo_bridge.execution.codec import Json, Replay, dump_result, load_solution
from aigo_bridge.execution.program import SampleProgram, contained
from aigo_bridge.execution.progress import ProgressCounter, Spent
from aigo_bridge.execution.solutions import SampleFailure, ScorerRow, Solution
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.scoring.likelihoods import (
    RAW_KEY,
    UNCONDITIONED_KEY,
    Choices,
    by_likelihood,
    raw_output,
)
from aigo_bridge.scoring.python import compute_evidence
from aigo_bridge.scoring.scorer import SYSTEM_SCORER
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.conversation import (
    chat_request,
    compile_input,
    empty_trace,
    input_item,
    last_text,
    render,
)
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.templates import SampleTemplate
from aigo_lighteval.documents.turns import storable
from aigo_lighteval.models.callers import SAMPLE_ROW
from aigo_lighteval.models.models import (
    ATTEMPT_SECONDS,
    RETRIES,
    CallLog,
    HostedModel,
    TaskModels,
)
from aigo_lighteval.running.evidence import (
    Trial,
    TrialStore,
    calls_of_scorers,
    calls_of_solver,
    json_text,
    solved_json,
)


class LikelihoodSolver:
    """Single-turn solver that asks for the likelihoods of choices. It also asks for an answer if a scorer
    needs one.
    """

    def __init__(self, plan: TaskPlan, solver: solver_spec.SingleTurnSolver):
        compared = by_likelihood(plan.benchmark.scorers)
        self._build = compile_input(solver.input_builder)
        self._choices = [Choices(scorer) for scorer in compared]
        self._weighed_alone = [Choices(scorer) for scorer in compared if scorer.weighs_unconditioned]
        query = getattr(solver.input_builder, "unconditioned_query", None)
        self._unconditioned = None if query is None else SampleTemplate(query)
        self.generates = len(compared) < len(plan.benchmark.scorers)
        """Whether the solver also generates an answer."""

    async def solve(
        self, program: SampleProgram, sample: Sample, model: HostedModel, models: TaskModels
    ) -> Solution | SampleFailure:
        """Solve one sample. Likelihoods come first because a failure there costs less than a generated
        answer.

        Raises:
            SampleError: the choices are not valid, or the model did not answer.
        """
        request = self._build(sample.data)
        texts = [tuple(choices.of(sample.data, "solver")[1]) for choices in self._choices]
        outputs = [
            raw_output(await model.likelihoods(request, choice_texts))
            for choice_texts in dict.fromkeys(texts)
        ]
        outputs += await self._alone(sample, model)
        if not self.generates:
            output = empty_trace()
            output.extend([input_item(message) for message in request.input.messages])
            output.raw_outputs.extend(outputs)
            return Solution(output, (ScorerRow(sample, output),))
        solved = await program.solve(sample, model, models)
        if isinstance(solved, Solution) and isinstance(solved.output, SolverTrace):
            solved.output.raw_outputs[:0] = outputs
        return solved

    async def _alone(self, sample: Sample, model: HostedModel) -> list[dict[str, Any]]:
        """Return the likelihoods after the unconditioned query, for scorers that subtract them."""
        if not self._weighed_alone:
            return []
        assert self._unconditioned is not None  # otherwise the task is not valid
        request = chat_request([("user", render(self._unconditioned, sample.data))])
        texts = [tuple(choices.of(sample.data, "solver")[1]) for choices in self._weighed_alone]
        return [
            raw_output(await model.likelihoods(request, choice_texts), UNCONDITIONED_KEY)
            for choice_texts in dict.fromkeys(texts)
        ]


def likelihood_solver(plan: TaskPlan) -> LikelihoodSolver | None:
    """Return the likelihood solver; `None` if no scorer compares likelihoods or the outputs are recorded."""
    if plan.entity == "system" or not plan.calls_model or not by_likelihood(plan.benchmark.scorers):
        return None
    solver = plan.benchmark.solver
    assert isinstance(solver, solver_spec.SingleTurnSolver)  # other solvers are reported as gaps
    return LikelihoodSolver(plan, solver)


def stored_likelihoods(solution: Solution | SampleFailure | None, key: str = RAW_KEY) -> list[float]:
    """Return the first log-likelihoods that a solver stored under a key, in the order of the choices."""
    output = solution.output if isinstance(solution, Solution) else None
    for raw in output.raw_outputs if isinstance(output, SolverTrace) else ():
        if isinstance(raw, dict) and isinstance(raw.get(key), list):
            return [float(likelihood["log_likelihood"]) for likelihood in raw[key]]
    return []


DEFAULT_SAMPLES = 20
"""Default number of samples in progress. It is twice the number of concurrent model calls, so that the model
does not wait for scoring."""


async def within(seconds: int | None, stage: Stage, work: Awaitable[Any]) -> Any:
    """Await the work and return its result, or a failure if the sample exceeds its time limit."""
    if seconds is None:
        return await work
    with anyio.move_on_after(seconds):
        return await work
    return SampleFailure(stage, "LimitExceeded", f"the time limit ({seconds} s) of the sample was exceeded")


@dataclass
class PlanRun:
    """State and work of one plan while lighteval runs it."""

    plan: TaskPlan
    program: SampleProgram | None
    """Solver and scorers of the plan; `None` for system tasks."""
    host: SnippetHost
    model: HostedModel | None
    """Evaluated model; `None` if the plan calls no model."""
    models: TaskModels
    portal: BlockingPortal
    progress: ProgressCounter
    max_samples: int = DEFAULT_SAMPLES
    attempt_timeout: int | None = None
    time_limit: int | None = None
    token_limit: int | None = None
    replay: Replay | None = None
    likelihoods: LikelihoodSolver | None = None
    """Solver that asks for likelihoods; `None` if no scorer compares likelihoods."""
    solved: TrialStore = field(default_factory=lambda: TrialStore(calls_of_solver))
    """Solver outcomes by trial, including those that are reused from an earlier run. The facts are the parts
    of a response."""
    scored: TrialStore = field(default_factory=lambda: TrialStore(calls_of_scorers))
    interrupted: bool = False
    stopped: str | None = None
    """Reason for starting no further trials, such as too many failed samples; `None` if all trials were
    started."""
    fault: str | None = None
    """Reason why lighteval failed; `None` if it finished or was interrupted."""

    def run_all(self) -> None:
        """Solve and score every trial of every sample. If interrupted, set `interrupted` and return early."""
        self._run_all(self._run, self.scored)

    def solve_all(self) -> None:
        """Solve every trial of every sample, as `run_all`."""
        self._run_all(self._solve, self.solved)

    def score_all(self) -> None:
        """Score all solved trials."""
        self._run_all(self._score_solved, self.scored)

    def _run_all(self, work: Callable[[Trial], Awaitable[object]], done: TrialStore) -> None:
        trials = [
            (number, trial)
            for number in range(len(self.plan.samples))
            for trial in range(self.plan.num_trials)
            if (number, trial) not in done
        ]
        ended = threading.Event()
        future = self.portal.start_task_soon(self._work_off, iter(trials), work, ended)
        try:
            # A signal that arrives just before a wait does not end it, so wait in steps.
            while not wait([future], 1).done:
                pass
            future.result()
        except (KeyboardInterrupt, CancelledError):
            self.interrupted = True
            future.cancel()
            # The outcomes are saved next, so wait until the workers have stopped adding to them.
            ended.wait()

    async def _work_off(
        self,
        trials: Iterable[Trial],
        work: Callable[[Trial], Awaitable[object]],
        ended: threading.Event,
    ) -> None:
        remaining = iter(trials)
        tolerance = self.progress.tolerance
        RETRIES.set(self.progress.retrying)
        ATTEMPT_SECONDS.set(self.attempt_timeout)

        async def worker() -> None:
            for trial in remaining:
                if tolerance.is_spent:
                    self.stopped = tolerance.reason
                    break
                await work(trial)

        try:
            async with anyio.create_task_group() as group:
                for _ in range(self.max_samples):
                    group.start_soon(worker)
        finally:
            ended.set()

    async def _run(self, trial: Trial) -> None:
        """Solve and score one trial."""
        await checkpoint()  # some models never wait, and a run can only be interrupted at an await
        await self._score(trial, *await self._solve(trial))

    async def _solve(self, trial: Trial) -> tuple[Solution | SampleFailure | None, int]:
        """Solve one trial and return the result, `None` without a solver, and the number of tokens."""
        sample = self.plan.samples[trial[0]]
        program = self.program
        if program is None or program.solver is None:
            self.solved.add(trial, {})
            return None, 0
        asker = self.progress.asker(sample.id, trial[1], "solver")
        recording = CallLog(program.plan.benchmark.solver.type, "solver", self.token_limit)  # type: ignore[union-attr]  # it has a solver
        with recording as record, asking(asker):
            result = await within(self.time_limit, "solver", self._solution(program, sample, trial[1]))
        stored = solved_json(result, record, postprocessed=program.postprocessor is not None)
        if "failure" in stored:
            result = SampleFailure.from_json(stored["failure"])
        parts = None
        with contextlib.suppress(Exception):  # the error is reported when the response is saved
            parts = _response_parts(stored, result)
        self.solved.add(trial, stored, parts)
        return result, record.tokens

    async def _solution(self, program: SampleProgram, sample: Sample, trial: int) -> Solution | SampleFailure:
        SAMPLE_ROW.set(sample.data)
        if self.replay is not None:
            replayed = await contained(self.replay.solution(program, sample, trial), "solver")
            if replayed is not None:
                return replayed
        # The protocol needs a model object, also for recorded traces without a model.
        model = self.model or HostedModel("", _NoModel(), anyio.CapacityLimiter(1))
        if self.likelihoods is not None:
            return await contained(self.likelihoods.solve(program, sample, model, self.models), "solver")
        return await program.solve(sample, model, self.models)

    async def _score_solved(self, trial: Trial) -> None:
        await checkpoint()
        await self._score(trial, self.solution(trial), 0)

    async def _score(self, trial: Trial, solution: Solution | SampleFailure | None, tokens: int) -> None:
        sample = self.plan.samples[trial[0]]
        spent = Spent(tokens=tokens)
        if isinstance(solution, SampleFailure):
            self.scored.add(trial, {})
            self.progress.finished(sample.id, trial[1], solution, spent)
            return
        SAMPLE_ROW.set(sample.data)
        if self.program is None:
            result = await contained(compute_evidence(self.plan, self.host), "metric")
            self.scored.add(trial, {SYSTEM_SCORER: [[None, dump_result(result), None]]})
            self.progress.finished(sample.id, trial[1], result if isinstance(result, SampleFailure) else None)
            return
        rows = (ScorerRow(sample, None),) if solution is None else solution.rows
        named = self.program.postprocessor is not None and solution is not None
        scores: dict[str, list[list[Any]]] = {}
        failure: SampleFailure | None = None
        for scorer in self.program.scorers:
            results = scores[scorer.key] = []
            for row in rows:
                asker = self.progress.asker(sample.id, trial[1], f"{scorer.key}/{row.sample.id}")
                with CallLog(scorer.key, "scorer") as record, asking(asker):
                    work = self.program.score(scorer, row, self.models)
                    outcome = await within(self.time_limit, "score", work)
                spent.note(scorer.key, outcome)
                spent.tokens = (spent.tokens or 0) + record.tokens
                failure = failure or (outcome if isinstance(outcome, SampleFailure) else None)
                row_id = str(row.sample.id) if named else None
                results.append([row_id, dump_result(outcome), record.to_json() if record.calls else None])
        self.scored.add(trial, scores)
        self.progress.finished(sample.id, trial[1], failure, spent)

    def solution(self, trial: Trial) -> Solution | SampleFailure | None:
        """Return the solver's result of a trial; `None` without a solver."""
        return load_solution(self.solved.outcome(trial), self.plan.samples[trial[0]])

    # Results in lighteval's own form

    def response(self, number: int) -> ModelResponse:
        """Return the response to one document, with the answers of all trials."""
        responses: list[_ResponseParts] = []
        outcomes: list[str] = []
        for trial in range(self.plan.num_trials):
            text, parts = self.solved.get((number, trial))
            if parts is None:
                stored = json.loads(text) or {}
                parts = _response_parts(stored, load_solution(stored, self.plan.samples[number]))
            responses.append(parts)
            outcomes.append(text)
        return AigoResponse(
            input=next((messages for messages, *_ in responses if messages), []),
            text=[answer for _, answer, *_ in responses],
            logprobs=responses[0][2],
            unconditioned_logprobs=responses[0][3] or None,
            aigo=f"[{', '.join(outcomes)}]",
        )

    def metric_value(self, number: int) -> str:
        """Return the scores of one document for all trials, as JSON text."""
        return self.texts(self.scored, number)

    def texts(self, store: TrialStore, number: int) -> str:
        """Return the outcomes of one document for all trials, as JSON text."""
        return f"[{', '.join(store.get((number, trial))[0] for trial in range(self.plan.num_trials))}]"


_ResponseParts = tuple[list[dict[str, str]], str, list[float], list[float]]
"""Messages of the first call, the answer, and the likelihoods with and without the question."""


def _response_parts(stored: Json, solution: Solution | SampleFailure | None) -> _ResponseParts:
    calls = stored["record"]["calls"] if "record" in stored else []
    return (
        [_shown(item) for item in calls[0]["input"]] if calls else [],
        _answer(solution),
        stored_likelihoods(solution),
        stored_likelihoods(solution, UNCONDITIONED_KEY),
    )


def _answer(solution: Solution | SampleFailure | None) -> str:
    output = solution.output if isinstance(solution, Solution) else None
    items = output.trace.items if isinstance(output, SolverTrace) else []
    return storable(last_text(items) or "")


def _shown(item: Mapping[str, Any]) -> dict[str, str]:
    """Convert an item to a message that lighteval can store. All values are strings because Arrow needs one
    type per column.
    """
    parts = item.get("content")
    texts = (
        [part.get("text") if isinstance(part, dict) else None for part in parts]
        if isinstance(parts, list)
        else []
    )
    shown = [text for text in texts if isinstance(text, str)]
    content = "\n".join(shown) if shown and len(shown) == len(texts) else json_text(item)
    return {"role": str(item.get("role") or item.get("type")), "content": storable(content)}


class _NoModel:
    """Placeholder for a plan that calls no model."""

    name = "none"
    max_concurrent = 1
    settings: Mapping[str, Any] = MappingProxyType({})

    async def attempt(self, request: Any, stage: Any) -> Any:
        raise AssertionError("a plan without model calls has called a model")

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""


# lighteval's classes


def _response_class() -> type[ModelResponse]:
    from dataclasses import dataclass as native_dataclass

    @native_dataclass
    class AigoResponse(ModelResponse):  # type: ignore[misc]  # lighteval is untyped
        """lighteval response with the outcomes of the aigo-bridge solver."""

        aigo: str = ""

    return AigoResponse


AigoResponse: Any = _response_class()
