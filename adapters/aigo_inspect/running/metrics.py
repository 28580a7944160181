"""Metrics and reducers that display the evidence's numbers in Inspect.

Their results are never read back. The core computes the evidence from the scores in the log.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inspect_ai.scorer import Metric as NativeMetric
from inspect_ai.scorer import SampleScore, ScoreReducer, Value, metric, score_reducer
from inspect_ai.scorer import Score as InspectScore

from aigo_bridge.dtypes import SampleScore as AigoSampleScore
from aigo_bridge.execution.program import SampleProgram
from aigo_bridge.execution.solutions import SampleFailure, Solution
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.metrics.metric import NoAggregate, as_number, metrics_of, std_dev
from aigo_bridge.metrics.registry import compute_metric
from aigo_bridge.metrics.trials import NUM_TRIALS, aggregate_trials
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.results.assembling import left_out, scores_data
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.scoring.registry import CompiledScorer
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.spec.metric import MetricSpec
from aigo_bridge.spec.metrics import MeanMetric
from aigo_inspect.logs.shapes import SCORE_KEY
from aigo_inspect.models.registration import in_namespace
from aigo_inspect.running.codec import outcomes_of, rows_score_fields, score_fields

REDUCER = "aigo_trials"

STDERR = "stderr"
"""Name of the standard error in Inspect's tables."""

_UNAGGREGATED = "aigo_bridge.unaggregated"
"""Metadata key of a reduced score: score name → (reason for the missing aggregate, whether the score is a
number)."""

RowKey = tuple[str, str | None]
"""Id of a sample, and id of the row from its post-processor (`None` for the sample itself). Ids are text, as
in Inspect."""


class Exclusions:
    """Rows that the task's action rules exclude from the metrics, collected during scoring.

    Samples reused by a retried run were scored in another process, so their exclusions are unknown here.
    Inspect's metrics may include them; the evidence does not.
    """

    def __init__(self, plan: TaskPlan):
        self._plan = plan
        self._applies = plan.entity != "system" and bool(plan.benchmark.actions)
        self._records: dict[RowKey, dict[int, TrialRecord]] = {}
        self._known: dict[RowKey, bool] = {}

    def note(
        self,
        sample: Sample,
        epoch: int,
        solution: Solution | None,
        scorer_key: str,
        results: Mapping[str | None, Score | SampleFailure],
    ) -> None:
        """Record the results of one scorer on one trial."""
        if not self._applies:
            return
        rows = {str(row.sample.id): row for row in solution.rows} if solution is not None else {}
        for row_id, result in results.items():
            key = (str(sample.id), row_id)
            row = rows.get(str(sample.id) if row_id is None else row_id)
            trials = self._records.setdefault(key, {})
            record = trials.get(epoch)
            scores = [] if record is None else list(record.scores)
            if isinstance(result, Score):
                scores.append(scores_data(scorer_key, "score", None, result.values, {}))
            trials[epoch] = TrialRecord(
                sample_id=sample.id if row_id is None else row_id,
                index=epoch - 1,
                data=sample.data if row is None else row.sample.data,
                # Rules read only the output of the first trial, so other outputs are not stored.
                output=row.output if row is not None and epoch == 1 else None,
                scores=tuple(scores),
            )

    def excluded(self, key: RowKey) -> bool:
        """Return whether a row is excluded from all metrics. Call it after all scorers have finished."""
        if key in self._records:
            trials = self._records.pop(key)
            self._known[key] = left_out([trials[epoch] for epoch in sorted(trials)], self._plan)
        return self._known.get(key, False)


def mirrored_metrics(
    program: SampleProgram, compiled: CompiledScorer, exclusions: Exclusions
) -> NativeMetric:
    """Return all metrics of one scorer as a single Inspect metric with a value for each."""

    @metric(name=compiled.key)
    @in_namespace
    def factory() -> NativeMetric:
        def compute(scores: list[SampleScore]) -> Value:
            outcomes = [
                outcome
                for score in scores
                for key, outcome in shown_outcomes(score)
                if not exclusions.excluded(key)
            ]
            values = [{**outcome.values, **_unaggregated(outcome)} for outcome in outcomes]
            samples = [
                AigoSampleScore(values=dict(each.values), metadata=dict(each.metadata)) for each in outcomes
            ]
            shown: dict[str, str | int | float | bool | None] = {}
            # The evidence reports errors of a metric. In Inspect they would fail the whole run.
            with contextlib.suppress(Exception):
                for number, spec in enumerate(metrics_of(compiled.spec, values)):
                    shown |= compute_metric(spec, values, host=program.host, samples=samples).values
                    if (
                        number == 0
                        and shown
                        and STDERR not in shown
                        and (error := _standard_error(spec, values)) is not None
                    ):
                        shown[STDERR] = error
            return shown

        return compute

    return factory()


def _standard_error(spec: MetricSpec, samples: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the standard error of a mean over numbers, as computed by Inspect's `stderr`."""
    if not isinstance(spec, MeanMetric):
        return None
    values = [
        as_number(scores.get(spec.field)) for scores in samples if not is_missing(scores.get(spec.field))
    ]
    numbers = [value for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return None
    try:
        return std_dev(numbers) / math.sqrt(len(numbers))
    except OverflowError:
        return None


def _unaggregated(outcome: Score) -> dict[str, NoAggregate]:
    missing = outcome.metadata.get(_UNAGGREGATED) or {}
    return {name: NoAggregate(reason, is_number) for name, (reason, is_number) in missing.items()}


def shown_outcomes(score: SampleScore) -> Iterator[tuple[RowKey, Score]]:
    """Yield the outcomes in a score for the sample or for the rows of its post-processor. An unscored sample
    yields nothing.
    """
    native = score.score
    if not isinstance(native.value, dict) and SCORE_KEY not in (native.metadata or {}):
        return
    for row_id, outcome in outcomes_of({"value": native.value, "metadata": native.metadata}).items():
        if isinstance(outcome, Score):
            yield (str(score.sample_id), row_id), outcome


def trials_reducer(plan: TaskPlan | None) -> ScoreReducer:
    """Return a reducer that displays the aggregated trials of a sample. With one trial, the score is
    unchanged.

    Inspect's default reducer would convert labels to 0.0, and its pass@k formula differs from AI GO's.
    """
    trials = plan.benchmark.trials if plan is not None else None
    aggregators = trials.score_aggregators if trials is not None else None

    @score_reducer(name=REDUCER)
    @in_namespace
    def factory() -> ScoreReducer:
        def aggregated(values: Sequence[Mapping[str, Any] | None]) -> Score:
            reduced = aggregate_trials(values, aggregators)
            missing = {name: (each.reason, each.is_number) for name, each in reduced.missing.items()}
            metadata: dict[str, Any] = {NUM_TRIALS: sum(value is not None for value in values)}
            if missing:
                metadata[_UNAGGREGATED] = missing
            return Score(
                {name: value for name, value in reduced.values.items() if value is not None}, metadata
            )

        def reduce(scores: list[InspectScore]) -> InspectScore:
            if len(scores) == 1:
                return scores[0]
            results = [outcomes_of({"value": each.value, "metadata": each.metadata}) for each in scores]
            if any(
                SCORE_KEY in (each.metadata or {}) and None not in outcomes
                for each, outcomes in zip(scores, results, strict=True)
            ):
                ids = dict.fromkeys(
                    row_id for outcomes in results for row_id in outcomes if row_id is not None
                )
                rows = {
                    row_id: aggregated([_values(outcomes.get(row_id)) for outcomes in results])
                    for row_id in ids
                }
                return InspectScore(**rows_score_fields({**rows}))
            values = [_values(outcomes.get(None)) for outcomes in results]
            if not any(value is not None for value in values):
                return scores[0]
            return InspectScore(**score_fields(aggregated(values)))

        def contained(scores: list[InspectScore]) -> InspectScore:
            try:
                return reduce(scores)
            except Exception:  # noqa: BLE001  # the evidence reports the error, as for metrics
                return scores[0]

        return contained

    return factory()


def _values(outcome: Score | SampleFailure | None) -> Mapping[str, Any] | None:
    return outcome.values if isinstance(outcome, Score) else None


@score_reducer(name=REDUCER)
@in_namespace
def aigo_trials() -> ScoreReducer:
    """Return the reducer without a plan, as Inspect loads it by name for a retried run."""
    return trials_reducer(None)
