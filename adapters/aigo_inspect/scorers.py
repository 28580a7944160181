"""The core's scorers, hosted as Inspect scorers.

The numbers of the evidence are computed by the core from the scores in the log; `mirrors` shows them in Inspect's own views.
"""

from __future__ import annotations

from collections.abc import Callable

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError, span

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.models import Models
from aigo_bridge.plan import TaskPlan
from aigo_bridge.program import Failure, Row, SampleProgram, Solution, contained
from aigo_bridge.scoring import CompiledScorer
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.system_tasks import SCORER_KEY, compute_evidence
from aigo_inspect.direct_ios import ROW_SPAN
from aigo_inspect.mirrors import Exclusions, mirrored_metrics, shown_outcomes
from aigo_inspect.namespace import in_namespace
from aigo_inspect.score_views import answer_text
from aigo_inspect.stored import load_stored, rows_score_fields, score_fields, solution_of

Results = dict[str | None, Outcome | Failure]
"""Results of one scorer on one trial: of the sample (`None`), or by row of the post-processor."""


def hosted_scorers(
    program: SampleProgram, models: Models, progress: ProgressCounter, solutions: dict[str, Solution]
) -> list[Scorer]:
    """One Inspect scorer for each scorer of the plan, under the same key.

    Args:
        program: the compiled plan.
        models: judges.
        progress: told of trials when their last scorer has run.
        solutions: what the solver made of the trials, by uuid; taken out after the last scorer.
    """
    exclusions = Exclusions(program.plan)
    failures: dict[str, Failure] = {}
    """Trial's uuid → its first failure, until its last scorer has run."""

    def scored(state: TaskState, solution: Solution | None, key: str, results: Results) -> None:
        failed = next((result for result in results.values() if isinstance(result, Failure)), None)
        if failed is not None:
            failures.setdefault(state.uuid, failed)
        exclusions.note(program.sample(state.sample_id), state.epoch, solution, key, results)
        if key == program.scorers[-1].key:
            solutions.pop(state.uuid, None)
            progress.finished(state.sample_id, state.epoch - 1, failures.pop(state.uuid, None))

    return [_hosted(program, each, models, solutions, exclusions, scored) for each in program.scorers]


def _hosted(
    program: SampleProgram,
    compiled: CompiledScorer,
    models: Models,
    solutions: dict[str, Solution],
    exclusions: Exclusions,
    scored: Callable[[TaskState, Solution | None, str, Results], None],
) -> Scorer:
    @scorer(metrics=[mirrored_metrics(program, compiled, exclusions)], name=compiled.key)
    @in_namespace
    def factory() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            sample = program.sample(state.sample_id)
            solution = solutions.get(state.uuid) or solution_of(
                load_stored(
                    {"output": {"metadata": state.output.metadata}, "store": dict(state.store.items())}
                ),
                sample,
            )

            async def one(row: Row) -> Outcome | Failure:
                return await program.score(compiled, row, models, let_through=(LimitExceededError,))

            results: Results
            answer = None if solution is None else answer_text(solution.output)
            if program.solver is not None and solution is None:
                # A limit ended the solver: Inspect scores such samples, but there is nothing to score.
                unsolved = Failure("solver", "Unsolved", "the solver did not finish")
                results = {None: unsolved}
                fields = score_fields(unsolved)
            elif program.postprocessor is not None and solution is not None:
                rows: dict[str, Outcome | Failure] = {}
                for row in solution.rows:
                    async with span(str(row.sample.id), type=ROW_SPAN):
                        rows[str(row.sample.id)] = await one(row)
                results = dict(rows.items())
                fields = rows_score_fields(rows, answer)
            else:
                result = await one(Row(sample, None) if solution is None else solution.rows[0])
                results = {None: result}
                fields = score_fields(result, answer)
            scored(state, solution, compiled.key, results)
            return Score(**fields)

        return score

    return factory()


def system_scorer(plan: TaskPlan, progress: ProgressCounter) -> Scorer:
    """A system task's code, as the scorer of its one sample."""
    host = SnippetHost()

    @metric(name=plan.task.key)
    @in_namespace
    def values() -> Metric:
        def compute(scores: list[SampleScore]) -> Value:
            found = [outcome for each in scores[:1] for _, outcome in shown_outcomes(each)]
            return dict(found[0].values) if found else {}

        return compute

    @scorer(metrics=[values()], name=SCORER_KEY)
    @in_namespace
    def factory() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            result = await contained(compute_evidence(plan, host), "metric", (LimitExceededError,))
            failure = result if isinstance(result, Failure) else None
            progress.finished(state.sample_id, state.epoch - 1, failure)
            return Score(**score_fields(result))

        return score

    return factory()
