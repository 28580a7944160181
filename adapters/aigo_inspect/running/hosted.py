"""The core's solvers and scorers wrapped as Inspect solvers and scorers.

The core computes the metrics of the evidence from the scores in the log. The module `metrics` only displays
them in Inspect.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from inspect_ai.model import ModelOutput
from inspect_ai.model import _model as model_module
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
)
from inspect_ai.scorer import (
    Score as InspectScore,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import LimitExceededError, span

from aigo_bridge.dtypes import GroupedSolverTrace, SolverOutput, SolverTrace
from aigo_bridge.errors import SampleError
from aigo_bridge.execution.checkpoint import asking
from aigo_bridge.execution.codec import Replay
from aigo_bridge.execution.program import SampleProgram, contained
from aigo_bridge.execution.progress import ProgressCounter, Spent
from aigo_bridge.execution.solutions import SampleFailure, ScorerRow, Solution
from aigo_bridge.models.protocol import Models
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.scoring.python import compute_evidence
from aigo_bridge.scoring.registry import CompiledScorer
from aigo_bridge.scoring.scorer import SYSTEM_SCORER, Score
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.conversation import last_text, request_of_items
from aigo_inspect.logs.shapes import STORE_KEY
from aigo_inspect.mapping.traces import ROW_SPAN
from aigo_inspect.models.models import evaluated_model, native_messages
from aigo_inspect.models.registration import in_namespace
from aigo_inspect.running.codec import (
    answer_text,
    dump_stored,
    load_stored,
    rows_score_fields,
    score_fields,
    solution_of,
)
from aigo_inspect.running.metrics import Exclusions, mirrored_metrics, shown_outcomes


def hosted_solver(
    program: SampleProgram,
    models: Models,
    progress: ProgressCounter,
    solutions: dict[str, Solution],
    replay: Replay | None = None,
) -> Solver:
    """Return the solver of the plan. Without one, return a solver that does nothing (dataset tasks).

    Args:
        program: the compiled plan.
        models: other models of the task.
        progress: counter for samples that end in the solver.
        solutions: receives the solutions by the uuid of the trial, so that scorers need not decode them
            again.
        replay: outputs of an earlier run, used if available.
    """
    spec = program.plan.benchmark.solver
    if spec is None or program.solver is None:
        return no_solver()

    @solver(name=spec.type)
    @in_namespace
    def factory() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            sample = program.sample(state.sample_id)
            result: Solution | SampleFailure | None = None
            last_output: ModelOutput | None = None
            if replay is not None:
                result = await contained(replay.solution(program, sample, state.epoch - 1), "solver")
            if result is None:
                model = evaluated_model()
                with asking(progress.asker(state.sample_id, state.epoch - 1, "solver")):
                    result = await program.solve(sample, model, models, let_through=(LimitExceededError,))
                last_output = model.last_output
            if isinstance(result, SampleFailure):
                _keep(state, dump_stored(result))
                progress.finished(state.sample_id, state.epoch - 1, result, _spent())
                raise SampleError(result.message, stage=result.stage, hint=result.hint, kind=result.kind)
            postprocessed = program.postprocessor is not None
            _show(state, result.output, last_output)
            _keep(state, dump_stored(result, postprocessed=postprocessed))
            if program.scorers:
                solutions[state.uuid] = result
            else:
                progress.finished(state.sample_id, state.epoch - 1, None, _spent())
            return state

        return solve

    return factory()


@solver(name="no_solver")
@in_namespace
def no_solver() -> Solver:
    """Return a solver that does nothing, for dataset and system tasks without model calls."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


def _keep(state: TaskState, stored: str) -> None:
    """Store the result of the solver in the log.

    The metadata of the output is used, because each change of the store costs two events and a comparison of
    the whole store. The event of the model call refers to the same output, so a copy gets the metadata.
    """
    metadata = {**(state.output.metadata or {}), STORE_KEY: stored}
    state.output = state.output.model_copy(update={"metadata": metadata})


def _show(state: TaskState, output: SolverOutput, last: ModelOutput | None) -> None:
    """Set the messages and the output for Inspect's viewer. For a group, set all conversations."""
    traces = _traces(output)
    try:
        state.messages = [
            message
            for trace in traces
            for message in native_messages(request_of_items(trace.trace.items), "solver")
        ]
    except SampleError:
        # Items without an Inspect message, for example of a custom task, are only in the stored result and in
        # the evidence.
        state.messages = []
    if last is not None:
        state.output = last
    else:
        text = last_text(traces[-1].trace.items) if traces else None
        state.output = ModelOutput.from_content(str(state.model), text or "")
    state.completed = True


def _traces(output: SolverOutput) -> list[SolverTrace]:
    if isinstance(output, SolverTrace):
        return [output]
    if not isinstance(output, GroupedSolverTrace):
        return []
    group = output.solver_outputs
    return list(group.values()) if isinstance(group, dict) else group


def _spent(spent: Spent | None = None) -> Spent:
    """Return the scores, tokens and cost of the running sample, as counted by Inspect."""
    spent = spent or Spent()
    with suppress(Exception):  # for display only; an error here must not fail the sample
        # The public limits of the sample are not updated during scoring, but judges also use tokens.
        usages = list(model_module.sample_model_usage().values())
        spent.tokens = sum(usage.total_tokens for usage in usages)
        costs = [usage.total_cost for usage in usages if usage.total_cost is not None]
        spent.cost = sum(costs) if costs else None
    return spent


Results = dict[str | None, Score | SampleFailure]
"""Results of one scorer on one trial, by row id of the post-processor. The key is `None` for the sample
itself."""


def hosted_scorers(
    program: SampleProgram, models: Models, progress: ProgressCounter, solutions: dict[str, Solution]
) -> list[Scorer]:
    """Return one Inspect scorer for each scorer of the plan, with the same key.

    Args:
        program: the compiled plan.
        models: judges.
        progress: counter for trials whose last scorer has finished.
        solutions: solutions by the uuid of the trial. Each is removed after the last scorer.
    """
    exclusions = Exclusions(program.plan)
    failures: dict[str, SampleFailure] = {}
    """Uuid of a trial → first failure, until the last scorer has finished."""
    spent: dict[str, Spent] = {}
    """Uuid of a trial → scores so far, until the last scorer has finished."""

    def scored(state: TaskState, solution: Solution | None, key: str, results: Results) -> None:
        failed = next((result for result in results.values() if isinstance(result, SampleFailure)), None)
        if failed is not None:
            failures.setdefault(state.uuid, failed)
        exclusions.note(program.sample(state.sample_id), state.epoch, solution, key, results)
        for result in results.values():
            spent.setdefault(state.uuid, Spent()).note(key, result)
        if key == program.scorers[-1].key:
            solutions.pop(state.uuid, None)
            failure = failures.pop(state.uuid, None)
            progress.finished(state.sample_id, state.epoch - 1, failure, _spent(spent.pop(state.uuid, None)))

    return [
        _hosted(program, scorer, models, solutions, exclusions, scored, progress)
        for scorer in program.scorers
    ]


def _hosted(
    program: SampleProgram,
    compiled: CompiledScorer,
    models: Models,
    solutions: dict[str, Solution],
    exclusions: Exclusions,
    scored: Callable[[TaskState, Solution | None, str, Results], None],
    progress: ProgressCounter,
) -> Scorer:
    @scorer(metrics=[mirrored_metrics(program, compiled, exclusions)], name=compiled.key)
    @in_namespace
    def factory() -> Scorer:
        async def score(state: TaskState, target: Target) -> InspectScore:
            sample = program.sample(state.sample_id)
            solution = solutions.get(state.uuid) or solution_of(
                load_stored(
                    {"output": {"metadata": state.output.metadata}, "store": dict(state.store.items())}
                ),
                sample,
            )

            async def one(row: ScorerRow) -> Score | SampleFailure:
                who = f"{compiled.key}/{row.sample.id}"
                with asking(progress.asker(state.sample_id, state.epoch - 1, who)):
                    return await program.score(compiled, row, models, let_through=(LimitExceededError,))

            results: Results
            answer = None if solution is None else answer_text(solution.output)
            if program.solver is not None and solution is None:
                # Inspect also scores samples whose solver was ended by a limit, but an answer to score is
                # missing.
                unsolved = SampleFailure("solver", "Unsolved", "the solver did not finish")
                results = {None: unsolved}
                fields = score_fields(unsolved)
            elif program.postprocessor is not None and solution is not None:
                rows: dict[str, Score | SampleFailure] = {}
                for row in solution.rows:
                    async with span(str(row.sample.id), type=ROW_SPAN):
                        rows[str(row.sample.id)] = await one(row)
                results = dict(rows.items())
                fields = rows_score_fields(rows, answer)
            else:
                result = await one(ScorerRow(sample, None) if solution is None else solution.rows[0])
                results = {None: result}
                fields = score_fields(result, answer)
            scored(state, solution, compiled.key, results)
            return InspectScore(**fields)

        return score

    return factory()


def system_scorer(plan: TaskPlan, progress: ProgressCounter, host: SnippetHost) -> Scorer:
    """Return a scorer that runs the code of a system task for its only sample."""

    @metric(name=plan.task.key)
    @in_namespace
    def values() -> Metric:
        def compute(scores: list[SampleScore]) -> Value:
            outcomes = [outcome for each in scores[:1] for _, outcome in shown_outcomes(each)]
            return dict(outcomes[0].values) if outcomes else {}

        return compute

    @scorer(metrics=[values()], name=SYSTEM_SCORER)
    @in_namespace
    def factory() -> Scorer:
        async def score(state: TaskState, target: Target) -> InspectScore:
            result = await contained(compute_evidence(plan, host), "metric", (LimitExceededError,))
            failure = result if isinstance(result, SampleFailure) else None
            progress.finished(state.sample_id, state.epoch - 1, failure)
            return InspectScore(**score_fields(result))

        return score

    return factory()
