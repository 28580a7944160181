"""The sample program inside lighteval: a model that solves, and a metric that scores.

lighteval calls the model with all documents and the metric with all responses. Both are ours and share one `TaskRun`, which does the work
in its own event loop, contains every failure in its sample, and goes by the plan's order (lighteval shuffles).
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal
from anyio.lowlevel import checkpoint
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.abstract_model import LightevalModel, ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.program import Failure, Row, SampleProgram, Solution, contained
from aigo_bridge.replaying import Replay
from aigo_bridge.scoring.likelihoods import UNCONDITIONED_KEY
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.conversation import last_text
from aigo_bridge.system_tasks import SCORER_KEY, compute_evidence
from aigo_lighteval.calling import SAMPLE_ROW
from aigo_lighteval.golds import storable
from aigo_lighteval.likelihoods import LikelihoodSolver, stored_likelihoods
from aigo_lighteval.models import RETRIES, HostedModel, Models
from aigo_lighteval.recording import Recording
from aigo_lighteval.stored import Scored, ScoredRow, Solved, as_json, dump_result, load_solution
from aigo_lighteval.translate import CARRIER, sampling_method

DEFAULT_SAMPLES = 20
"""Samples in flight at a time where nobody says otherwise: twice the calls of a model, so that scoring does not wait."""

Json = dict[str, Any]
Trial = tuple[int, int]
"""Number of the sample, number of its trial."""


@dataclass
class TaskRun:
    """One plan while lighteval runs it."""

    plan: TaskPlan
    program: SampleProgram | None
    """`None` for system tasks."""
    host: SnippetHost
    model: HostedModel | None
    """The evaluated model; `None` when none is asked."""
    models: Models
    portal: BlockingPortal
    progress: ProgressCounter
    max_samples: int = DEFAULT_SAMPLES
    time_limit: int | None = None
    token_limit: int | None = None
    finished: Mapping[Trial, tuple[Json, Json]] = field(default_factory=dict)
    """Trials of an earlier run that are taken over: what its solver left, what its scorers left."""
    replay: Replay | None = None
    likelihoods: LikelihoodSolver | None = None
    """What asks how likely choices are; `None` where no scorer compares that."""
    solved: dict[Trial, Solved | Json] = field(default_factory=dict)
    """What the solver left of each trial; as JSON those of an earlier run, and those without a solver."""
    scored: dict[Trial, Scored | Json] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str | None = None
    """Why no further trials were begun: more samples had failed than are tolerated; `None`: all were."""
    fault: str | None = None
    """Why lighteval did not come to its end although it was not interrupted."""

    # Solving

    def solve_all(self) -> None:
        """Solve every trial of every sample; comes back early, and says so, when it is interrupted."""
        for trial, (solved, scored) in self.finished.items():
            self.solved[trial], self.scored[trial] = solved, scored
        self._run_all(self._solve, self.solved)

    def score_all(self) -> None:
        """Score what was solved."""
        if not self.interrupted:
            # Where solving was stopped, what had been solved is scored: it need not be solved again.
            self._run_all(self._score, self.scored, stops=self.stopped is None)

    def _run_all(
        self,
        work: Callable[[Trial], Awaitable[None]],
        done: Mapping[Trial, object],
        *,
        stops: bool = True,
    ) -> None:
        trials = [
            (number, trial)
            for number in range(len(self.plan.samples))
            for trial in range(self.plan.num_trials)
            if (number, trial) not in done and (done is self.solved or (number, trial) in self.solved)
        ]
        ended = threading.Event()
        future = self.portal.start_task_soon(self._work_off, iter(trials), work, ended, stops)
        try:
            future.result()
        except (KeyboardInterrupt, CancelledError):
            self.interrupted = True
            future.cancel()
            # What there is will be saved now: nothing may be added to it any more.
            ended.wait()

    async def _work_off(
        self,
        trials: Iterable[Trial],
        work: Callable[[Trial], Awaitable[None]],
        ended: threading.Event,
        stops: bool,
    ) -> None:
        remaining = iter(trials)
        tolerance = self.progress.tolerance
        RETRIES.set(self.progress.retrying)

        async def worker() -> None:
            for trial in remaining:
                if stops and tolerance.is_spent:
                    self.stopped = tolerance.reason
                    break
                await work(trial)

        try:
            async with anyio.create_task_group() as group:
                for _ in range(self.max_samples):
                    group.start_soon(worker)
        finally:
            ended.set()

    async def _solve(self, trial: Trial) -> None:
        sample = self.plan.samples[trial[0]]
        program = self.program
        if program is None or program.solver is None:
            self.solved[trial] = {}
            return
        with Recording(program.plan.benchmark.solver.type, "solver", self.token_limit) as record:  # type: ignore[union-attr]  # it has a solver
            result = await self._limited("solver", self._solution(program, sample, trial[1]))
        self.solved[trial] = Solved(result, record, program.postprocessor is not None)
        if isinstance(result, Failure) or not program.scorers:
            self.progress.finished(sample.id, trial[1], result if isinstance(result, Failure) else None)

    async def _solution(self, program: SampleProgram, sample: Sample, trial: int) -> Solution | Failure:
        SAMPLE_ROW.set(sample.data)
        if self.replay is not None:
            found = await contained(self.replay.solution(program, sample, trial), "solver")
            if found is not None:
                return found
        # Without a model (recorded traces) the protocol's object is never asked.
        model = self.model or HostedModel("", _NoModel(), anyio.CapacityLimiter(1))
        if self.likelihoods is not None:
            return await contained(self.likelihoods.solve(program, sample, model, self.models), "solver")
        return await program.solve(sample, model, self.models)

    async def _limited(self, stage: Any, work: Awaitable[Any]) -> Any:
        if self.time_limit is None:
            return await work
        with anyio.move_on_after(self.time_limit):
            return await work
        return Failure(
            stage, "LimitExceeded", f"the time limit ({self.time_limit} s) of the sample was exceeded"
        )

    # Scoring

    async def _score(self, trial: Trial) -> None:
        await checkpoint()  # most scorers wait for nothing, and a run can only be interrupted where it waits
        sample = self.plan.samples[trial[0]]
        solution = self.solution(trial)
        if isinstance(solution, Failure):
            self.scored[trial] = {}
            return
        SAMPLE_ROW.set(sample.data)
        if self.program is None:
            result = await contained(compute_evidence(self.plan, self.host), "metric")
            self.scored[trial] = {SCORER_KEY: [[None, dump_result(result), None]]}
            self.progress.finished(sample.id, trial[1], result if isinstance(result, Failure) else None)
            return
        rows = (Row(sample, None),) if solution is None else solution.rows
        named = self.program.postprocessor is not None and solution is not None
        found: dict[str, list[ScoredRow]] = {}
        failure: Failure | None = None
        for scorer in self.program.scorers:
            results = found[scorer.key] = []
            for row in rows:
                with Recording(scorer.key, "scorer") as record:
                    outcome = await self._limited("score", self.program.score(scorer, row, self.models))
                failure = failure or (outcome if isinstance(outcome, Failure) else None)
                row_id = str(row.sample.id) if named else None
                results.append((row_id, outcome, record if record.calls else None))
        self.scored[trial] = Scored(found)
        if self.program.scorers:
            self.progress.finished(sample.id, trial[1], failure)

    def solution(self, trial: Trial) -> Solution | Failure | None:
        """What the solver made of a trial; `None` where there is no solver."""
        solved = self.solved[trial]
        if isinstance(solved, Solved):
            return solved.result
        return load_solution(solved, self.plan.samples[trial[0]])

    # What lighteval keeps

    def response(self, number: int) -> ModelResponse:
        """The response to one document: the answers of all trials."""
        texts: list[str] = []
        logprobs: list[float] = []
        alone: list[float] = []
        left: list[Json | None] = []
        messages: list[dict[str, str]] = []
        for trial in range(self.plan.num_trials):
            kept = self.solved.get((number, trial))
            solved = None if kept is None else as_json(kept)
            left.append(solved)
            record = None if solved is None else solved.get("record")
            if not messages and record and record["calls"]:
                messages = [_shown(item) for item in record["calls"][0]["input"]]
            solution = None if kept is None else self.solution((number, trial))
            texts.append(_answer(solution))
            if trial == 0:
                logprobs = stored_likelihoods(solution)
                alone = stored_likelihoods(solution, UNCONDITIONED_KEY)
        return AigoResponse(
            input=messages,
            text=texts,
            logprobs=logprobs,
            unconditioned_logprobs=alone or None,
            aigo=_text(left),
        )

    def left_by_solver(self, number: int) -> str:
        """What the solver left of one document in all trials, as one text."""
        kept = [self.solved.get((number, trial)) for trial in range(self.plan.num_trials)]
        return _text([None if solved is None else as_json(solved) for solved in kept])

    def metric_value(self, number: int) -> str:
        """The scores of one document: those of all trials, as one text."""
        kept = [self.scored.get((number, trial)) for trial in range(self.plan.num_trials)]
        return _text([None if scored is None else as_json(scored) for scored in kept])


_text = json.JSONEncoder(default=str).encode


def _answer(solution: Solution | Failure | None) -> str:
    output = solution.output if isinstance(solution, Solution) else None
    items = output.trace.items if isinstance(output, SolverTrace) else []
    return storable(last_text(items) or "")


def _shown(item: Mapping[str, Any]) -> dict[str, str]:
    """An item as a message for lighteval's eyes: always of texts, as Arrow wants one type per column."""
    parts = item.get("content")
    texts = (
        [part.get("text") if isinstance(part, dict) else None for part in parts]
        if isinstance(parts, list)
        else []
    )
    said = [text for text in texts if isinstance(text, str)]
    content = "\n".join(said) if said and len(said) == len(texts) else _text(item)
    return {"role": str(item.get("role") or item.get("type")), "content": storable(content)}


class _NoModel:
    """Stands for a model that nobody asks."""

    name = "none"
    max_concurrent = 1

    async def attempt(self, request: Any, stage: Any) -> Any:
        raise AssertionError("a plan that calls no model has called one")

    async def aclose(self) -> None:
        """Nothing is held open."""


# lighteval's side


def _response_class() -> type[ModelResponse]:
    from dataclasses import dataclass as native_dataclass

    @native_dataclass
    class AigoResponse(ModelResponse):  # type: ignore[misc]  # lighteval has no types
        """A response that carries what our solver left."""

        aigo: str = ""

    return AigoResponse


AigoResponse: Any = _response_class()


class _NoCache:
    """In place of lighteval's response cache, which gives old answers when only the rows or the prompts have changed."""

    def _init_registry(self, registry: object) -> None:
        """Asked for by the pipeline."""


class AigoModel(LightevalModel):  # type: ignore[misc]  # lighteval has no types
    """A lighteval model that runs the plan's solver on every document, and never raises."""

    def __init__(self, run: TaskRun, name: str):
        self.run = run
        self.config = ModelConfig(model_name=name)
        self._cache = _NoCache()

    tokenizer = None
    add_special_tokens = False
    max_length = 2**31
    disable_tqdm = True

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """One response per document, in the order of the documents."""
        self.run.solve_all()
        # What else there is to say of them is made when they are saved (see `pipeline.Tracker`).
        return [ModelResponse() for _ in docs]

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """As `greedy_until`, for plans that ask for likelihoods and nothing else."""
        return self.greedy_until(docs)

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """No task of ours is about the likelihood of prompts."""
        raise NotImplementedError


class AigoComputation(SampleLevelComputation):  # type: ignore[misc]  # lighteval has no types
    """Scores all documents of a task at once; the value of each, a text that holds all scorers' results, is made when it is saved."""

    def __init__(self, run: TaskRun):
        self.run = run

    def __deepcopy__(self, memo: object) -> AigoComputation:
        # lighteval copies the metrics of every task; a run has one state.
        return self

    def __str__(self) -> str:
        # Stands in the results file; the usual form has an address of memory.
        return type(self).__name__

    def compute(self, responses: list[ModelResponse], docs: list[Doc], **_: Any) -> list[str]:
        """One text per document, in the order of the documents."""
        self.run.score_all()
        return ["" for _ in docs]


def aigo_metric(run: TaskRun, summary: Callable[[], Mapping[str, float]]) -> SampleLevelMetric:
    """The metric under which all of a plan's scorers and metrics stand in lighteval's results.

    Args:
        run: the run.
        summary: the plan's metrics by name, computed when all is scored.
    """

    def aigo(values: list[str]) -> dict[str, float]:
        return {name: value for name, value in summary().items() if math.isfinite(value)}

    return SampleLevelMetric(
        metric_name=CARRIER,
        higher_is_better=True,
        category=sampling_method()
        if run.likelihoods is None or run.likelihoods.generates
        else SamplingMethod.LOGPROBS,
        sample_level_fn=AigoComputation(run),
        corpus_level_fn=aigo,
        batched_compute=True,
    )
