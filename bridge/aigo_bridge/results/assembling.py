"""Assembly of task results from trial records: samples are streamed, metrics follow at the end.

All metrics are computed here. An engine provides scores per trial; the same code aggregates them and
computes metrics for every engine. Only the score values of all samples are held in memory, never the
samples.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from aigo_bridge.dtypes import (
    DirectModelIO,
    MetricData,
    SampleData,
    SampleEvidence,
    SampleScore,
    SampleTrialEvidence,
    ScorerPurpose,
    ScoresData,
    SolverData,
    TaskResultError,
    TaskResultErrorStage,
    TaskResultFailures,
    make_explicit,
)
from aigo_bridge.metrics.metric import Exclusion, MetricResult, NoAggregate, excluded, metric_keys, metrics_of
from aigo_bridge.metrics.names import MetricIdentity
from aigo_bridge.metrics.registry import compute_metric
from aigo_bridge.metrics.trials import NUM_TRIALS, aggregate_trials
from aigo_bridge.plan.outline import CodeMetric, OutlineMetric, TaskOutline
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.results.counts import Counts, CountsTally, SampleFacts, is_failure, one_sample, record_facts
from aigo_bridge.results.internal_errors import FirstError, bare_sample, error_of, explained, note_error
from aigo_bridge.results.records import (
    HINT,
    UNKNOWN_EXCLUSIONS,
    UNSTORED,
    PlainOutput,
    StoredNumbers,
    TrialRecord,
)
from aigo_bridge.results.stop_reasons import member, outputs_of, stop_reason_of
from aigo_bridge.results.warnings import Doubts
from aigo_bridge.results.writing import Sample
from aigo_bridge.scoring.scorer import SYSTEM_SCORER, Score

if TYPE_CHECKING:
    from aigo_bridge.plan.logged_plan import AnyPlan
    from aigo_bridge.snippets import SnippetHost
    from aigo_bridge.spec.metric import MetricSpec


@dataclass(frozen=True)
class MetricRow:
    """One metric of one scorer, as a table row."""

    scorer_key: str
    name: str
    value: float | int | None
    """Value of the metric; `None` if it could not be computed, with the reason in `problem`."""
    num_scored: int | None
    """Number of samples in the value; `None` if an engine does not report it for its own metrics."""
    problem: str | None = None
    metric_key: str = ""
    """Key of the metric, as names may repeat within a scorer; empty for an engine's own metrics."""
    score: str | None = None
    """Score that the metric reads, if the scorer gives several."""
    reducer: str | None = None
    """Inspect function that combined the scores of several epochs."""
    group: str | None = None
    """Metric and column of a value that is computed over groups of samples."""
    kind: str | None = None
    """Type of the metric."""

    @property
    def identity(self) -> MetricIdentity:
        """Parts of the metric's name."""
        parts = (self.score, self.reducer, self.group, self.kind)
        return MetricIdentity(self.scorer_key, self.metric_key, self.name, *parts)


MOST_SHARED = 1_000
"""Maximum number of different score values that are stored only one time."""


def _score_of(metric: OutlineMetric) -> str | None:
    return metric.scores[0] if not isinstance(metric, CodeMetric) and len(metric.scores) == 1 else None


@dataclass
class RunningTotals:
    """Totals over the samples, updated while they are streamed."""

    plan: AnyPlan
    """Plan of the user, or the plan in a log. With a plan in a log, code and rules are not available, and
    their results are taken from `stored`.
    """
    stored: StoredNumbers | None = None
    """Results of code and rules in a log; `None` if the log does not contain them."""
    samples_tally: CountsTally = field(default_factory=CountsTally)
    """Samples of the plan that were run."""
    rows_tally: CountsTally = field(default_factory=CountsTally)
    """Samples of the evidence: those of the plan, or the rows that a post-processor created from them."""
    stop_reasons: Counter[str] = field(default_factory=Counter)
    """Stop reason → number of trials whose final answer has it."""
    num_rows: int = 0
    callers: Counter[str] = field(default_factory=Counter)
    """Model name for the engine → number of samples whose traces contain a call of the model."""
    scores: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """Scorer key → values of each sample that counts, aggregated over its trials."""
    samples: dict[str, list[SampleScore]] = field(default_factory=dict)
    """Scorer key → scores with metadata, for scorers whose `python` metrics read them."""
    first_errors: list[FirstError] = field(default_factory=list)
    """First kinds of errors, for the terminal."""
    exclusions: dict[int, Exclusion] = field(default_factory=dict)
    """Number of a row → outcome of the action rules, for rows with an outcome."""
    outline: TaskOutline = field(init=False)
    """Outline of the plan, which is needed to read the scores."""
    doubts: Doubts = field(default_factory=Doubts)
    """Facts that lower the metrics but may not be caused by the model's answers."""
    _shared: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.outline = self.plan.outline

    def shared(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the same values as an object that all samples with equal values share."""
        text = repr(values)
        if text not in self._shared and len(self._shared) >= MOST_SHARED:
            return values
        return self._shared.setdefault(text, values)

    @property
    def counts(self) -> Counts:
        """Counts of the samples of the plan that were run."""
        return self.samples_tally.counts(len(self.outline.scorers))

    @property
    def row_counts(self) -> Counts:
        """Counts of the samples of the evidence."""
        return self.rows_tally.counts(len(self.outline.scorers))

    @property
    def failures(self) -> TaskResultFailures:
        """Failed samples of the evidence, in AI GO's form."""
        counts = self.row_counts
        return TaskResultFailures(num_errors=counts.failed, num_total=counts.samples)

    @property
    def knows_exclusions(self) -> bool:
        """Whether the rows that are excluded from the metrics are known."""
        return isinstance(self.plan, TaskPlan) or self.stored is not None or not self.outline.rules


MAX_FIRST_ERRORS = 5


def sample_stream(
    trials: Iterable[TrialRecord], tally: RunningTotals
) -> Iterator[tuple[SampleEvidence, Sample]]:
    """Yield the evidence of each sample, also in the form to write, and update `tally`. The trials of a
    sample must be consecutive.

    Rows that a post-processor created from a sample are separate, consecutive samples. Solver outputs that
    are plain data are only in the form to write.
    """
    for records, aggregated, exclusion, facts in _counted_rows(trials, tally):
        try:
            sample = _sample(records, aggregated, exclusion)
            written = _written(sample, records)
        except Exception as error:  # noqa: BLE001  # must not affect other rows
            fault = error_of("its evidence could not be assembled", "dataset", error)
            sample = bare_sample(records[0].sample_id, fault)
            written = sample
            facts[-1] = record_facts([((fault,), ())])
            tally.first_errors.append(FirstError(records[0].sample_id, fault))
        yield sample, written


def count_samples(trials: Iterable[TrialRecord], tally: RunningTotals) -> None:
    """Update `tally` as `sample_stream` does, without creating evidence."""
    for _ in _counted_rows(trials, tally):
        pass


_CountedRow = tuple[list[TrialRecord], list[ScoresData], Exclusion, list[SampleFacts]]
"""Trials of one row, its aggregated scores, the outcome of action rules, and the facts of the sample's rows
so far, ending with this row.
"""


def _counted_rows(trials: Iterable[TrialRecord], tally: RunningTotals) -> Iterator[_CountedRow]:
    detailed = _scorers_with_python_metrics(tally)
    taken: set[str | int] = set()
    for planned_id, group in itertools.groupby(
        trials, key=lambda trial: (type(trial.planned_id), trial.planned_id)
    ):
        records_of_sample = list(group)
        tally.callers.update({name for record in records_of_sample for name in _models_called(record)})
        for output in {record.index: record.written_output for record in records_of_sample}.values():
            if (reason := stop_reason_of({"solver": {"output": output}})) is not None:
                tally.stop_reasons[reason] += 1
        facts: list[SampleFacts] = []
        for row in _rows(records_of_sample):
            records = row if row[0].source_id is None else _distinct(row, planned_id[1], taken)
            yield _counted(records, tally, detailed, facts)
        for of_row in facts:
            tally.rows_tally.add(of_row)
        tally.samples_tally.add(one_sample(facts))


def _models_called(record: TrialRecord) -> Iterator[str]:
    for output in outputs_of({"solver": {"output": record.written_output}}):
        for event in member(member(output, "trace"), "events") or ():
            if member(event, "type") == "model_call_event":
                yield member(event, "model")


def _rows(records: Sequence[TrialRecord]) -> Iterator[list[TrialRecord]]:
    """Yield the trials of each row that was created from a sample, ordered by the first trial that has the
    row.

    A trial without rows, for example a failed one, is a trial of every row. A sample without any row is
    its own row.
    """
    ordered = sorted(records, key=lambda record: record.index)
    without = [record for record in ordered if record.source_id is None]
    rows: dict[str | int, list[TrialRecord]] = {}
    for record in ordered:
        if record.source_id is not None:
            rows.setdefault(record.sample_id, []).append(record)
    if not rows:
        yield without
    for row_id, row_records in rows.items():
        missing = [
            replace(record, sample_id=row_id, source_id=row_records[0].source_id, data=row_records[0].data)
            for record in without
        ]
        yield sorted([*row_records, *missing], key=lambda record: record.index)


def _distinct(records: list[TrialRecord], planned_id: str | int, taken: set[str | int]) -> list[TrialRecord]:
    """Return the records of a row with an id that is unique among all samples; authors reuse names."""
    row_id = records[0].sample_id
    if row_id in taken:
        row_id = f"{planned_id}#{row_id}"
        records = [replace(record, sample_id=row_id) for record in records]
    taken.add(row_id)
    return records


def _counted(
    records: list[TrialRecord], tally: RunningTotals, detailed: frozenset[str], facts: list[SampleFacts]
) -> _CountedRow:
    """Count one row and append its facts to `facts`."""
    aggregated, missing, exclusion = _result_of(records, tally)
    if exclusion.records or exclusion.errors:
        tally.exclusions[tally.num_rows] = exclusion
    tally.num_rows += 1
    if (error := _first_error(records, exclusion)) is not None:
        note_error(tally.first_errors, error, MAX_FIRST_ERRORS)
    trials = [(record.errors, record.scores) for record in records]
    facts.append(record_facts(trials, is_excluded=exclusion.excluded, is_undecided=bool(exclusion.errors)))
    for score in aggregated:
        tally.doubts.note_names(
            score.scorer_key, score.values.keys() | missing.get(score.scorer_key, {}).keys()
        )
    # A rule that cannot be evaluated might have excluded the sample, so the sample is left out of all
    # metrics.
    if not exclusion.excluded and not exclusion.errors:
        for record in records:
            tally.doubts.note(record)
        for score in aggregated:
            values = {**score.values, **missing.get(score.scorer_key, {})}
            tally.scores.setdefault(score.scorer_key, []).append(tally.shared(values))
            if score.scorer_key in detailed:
                tally.samples.setdefault(score.scorer_key, []).append(_sample_score(score, records))
    return records, aggregated, exclusion, facts


def _sample_score(score: ScoresData, records: Sequence[TrialRecord]) -> SampleScore:
    """Return the score that `python` metrics receive. For several trials, it includes the number of scored
    trials.
    """
    metadata = score.metadata
    if len(records) > 1:
        keys = [{each.scorer_key for each in record.scores} for record in records]
        metadata = {**(metadata or {}), NUM_TRIALS: sum(score.scorer_key in scored for scored in keys)}
    return SampleScore(values=score.values, metadata=metadata, direct_ios=score.direct_ios)


def _result_of(
    records: list[TrialRecord], tally: RunningTotals
) -> tuple[list[ScoresData], Mapping[str, Mapping[str, NoAggregate]], Exclusion]:
    """Return the aggregated scores of a row and the outcome of action rules. If they cannot be computed, the
    row is left out of all metrics.
    """
    try:
        aggregated, missing = _aggregated(records, tally.outline)
        if isinstance(tally.plan, TaskPlan):
            return aggregated, missing, _exclusion(records, aggregated, tally.plan)
        exclusions = {} if tally.stored is None else tally.stored.exclusions
        return aggregated, missing, exclusions.get(tally.num_rows, Exclusion())
    except Exception as error:  # noqa: BLE001  # must not affect other rows
        fault = error_of("its scores could not be assembled", "metric", error)
        return [], {}, Exclusion(errors=(fault,))


def _first_error(records: Sequence[TrialRecord], exclusion: Exclusion) -> FirstError | None:
    sample_id = records[0].sample_id
    for record in records:
        for error in record.errors:
            if is_failure(error.error_type):
                return FirstError(sample_id, error, record.index if len(records) > 1 else None)
    return FirstError(sample_id, exclusion.errors[0]) if exclusion.errors else None


def left_out(records: Sequence[TrialRecord], plan: TaskPlan) -> bool:
    """Return whether an action rule excludes a row from all metrics or could not be evaluated."""
    exclusion = _exclusion(records, _aggregated(records, plan.outline)[0], plan)
    return exclusion.excluded or bool(exclusion.errors)


def _aggregated(
    records: Sequence[TrialRecord], outline: TaskOutline
) -> tuple[list[ScoresData], Mapping[str, Mapping[str, NoAggregate]]]:
    """Return one score per scorer, aggregated over trials, and scores without an aggregate by scorer."""
    if len(records) == 1:
        return list(records[0].scores), {}
    by_scorer: dict[str, list[ScoresData | None]] = {}
    for number, record in enumerate(records):
        for score in record.scores:
            by_scorer.setdefault(score.scorer_key, [None] * len(records))[number] = score
    aggregated: list[ScoresData] = []
    missing: dict[str, Mapping[str, NoAggregate]] = {}
    for key, scores in by_scorer.items():
        first = next(score for score in scores if score is not None)
        result = aggregate_trials(
            [None if score is None else score.values for score in scores], outline.aggregators
        )
        missing[key] = result.missing
        metadata = {"problems": list(result.problems)} if result.problems else {}
        aggregated.append(
            scores_data(key, first.scorer_purpose.value, first.scorer_name, result.values, metadata)
        )
    return aggregated, missing


def _exclusion(records: Sequence[TrialRecord], aggregated: Sequence[ScoresData], plan: TaskPlan) -> Exclusion:
    """Return the outcome of the task's action rules.

    With several trials, expressions read the aggregated scores. For scores without an aggregate (labels)
    and for the solver output, they read the first trial. Otherwise, an undefined name would make
    `not_equals` exclude every sample.
    """
    if plan.entity == "system" or not plan.benchmark.actions:
        return Exclusion()
    scores: dict[str, dict[str, Any]] = {}
    for record in reversed(records):
        for score in record.scores:
            scores.setdefault(score.scorer_key, {}).update(score.values)
    for score in aggregated:
        scores.setdefault(score.scorer_key, {}).update(score.values)
    return excluded(plan.benchmark.actions, records[0].data, records[0].solver, scores)


def _scorers_with_python_metrics(tally: RunningTotals) -> frozenset[str]:
    """Return the keys of scorers whose scores the author's code reads; empty for a plan in a log."""
    if not isinstance(tally.plan, TaskPlan):
        return frozenset()
    return frozenset(
        key
        for scorer, key in zip(tally.outline.scorers, tally.outline.scorer_keys, strict=True)
        if any(isinstance(metric, CodeMetric) for metric in scorer.metrics or ())
    )


def _sample(
    records: Sequence[TrialRecord], aggregated: list[ScoresData], exclusion: Exclusion
) -> SampleEvidence:
    # For several trials, the top level contains aggregated scores; the trials contain everything else.
    is_one = len(records) == 1
    sample = SampleEvidence(
        sample_id=records[0].sample_id,
        sample=None,
        solver=None,
        scores=None if is_one else aggregated,
        errors=[],
        trials=[_trial(record, 0 if is_one else record.index) for record in records],
    )
    if exclusion.records:
        sample.action_records = list(exclusion.records)
    if exclusion.errors:
        sample.errors = list(exclusion.errors)
    return sample


def _written(sample: SampleEvidence, records: Sequence[TrialRecord]) -> Sample:
    """Return a sample with the solver outputs that are plain data."""
    if not any(isinstance(record.output, PlainOutput) for record in records):
        return sample
    data = make_explicit(sample).model_dump(mode="json")
    for trial, record in zip(data["trials"], records, strict=True):
        if isinstance(record.output, PlainOutput):
            trial["solver"] = {"output": record.output.data}
    return data


def _trial(record: TrialRecord, index: int) -> SampleTrialEvidence:
    output = record.output
    is_absent = output is None or isinstance(output, PlainOutput)
    return SampleTrialEvidence(
        index=index,
        sample_id=record.sample_id,
        sample=SampleData(data=dict(record.data)),
        solver=None if is_absent else SolverData(output=output),
        scores=list(record.scores),
        errors=list(record.errors),
    )


@dataclass(frozen=True)
class Metrics:
    """All metrics of a task and their errors."""

    data: tuple[MetricData, ...]
    rows: tuple[MetricRow, ...]
    errors: tuple[TaskResultError, ...]
    of_code: Mapping[tuple[str, str], MetricResult] = field(default_factory=dict)
    """Scorer key and metric key → result of the author's code, which cannot be derived from scores alone."""


def metrics_for(tally: RunningTotals, host: SnippetHost | None = None) -> Metrics:
    """Compute the metrics of every scorer over its scores. Without a host, `python` metrics of the user's own
    plan have an error. Code in a log is never executed, so its metrics keep their stored values.
    """
    data: list[MetricData] = []
    rows: list[MetricRow] = []
    errors: list[TaskResultError] = []
    of_code: dict[tuple[str, str], MetricResult] = {}
    for number, (scorer, scorer_key) in enumerate(
        zip(tally.outline.scorers, tally.outline.scorer_keys, strict=True)
    ):
        scores = tally.scores.get(scorer_key, [])
        metrics: tuple[OutlineMetric, ...] = metrics_of(scorer, scores)
        for position, (metric, key) in enumerate(zip(metrics, metric_keys(metrics), strict=True)):
            if isinstance(metric, CodeMetric):
                result = of_code[scorer_key, key] = _of_code(tally, number, position, (scorer_key, key), host)
            else:
                result = _computed(tally, metric, scores)
            if result.problem is not None:
                message = f"metric {key!r} of scorer {scorer_key!r}: {result.problem}"
                errors.append(
                    TaskResultError(
                        error_type="MetricError", message=message, stage=TaskResultErrorStage.metric
                    )
                )
            rows += [
                MetricRow(scorer_key, name, value, result.num_used, result.problem, key, _score_of(metric))
                for name, value in result.values.items()
            ]
            if not result.values:
                rows.append(
                    MetricRow(
                        scorer_key,
                        metric.value_name or key,
                        None,
                        0,
                        result.problem,
                        key,
                        _score_of(metric),
                    )
                )
                continue
            data.append(
                MetricData(
                    values=dict(result.values),
                    metric_key=key,
                    metric_type=metric.type,
                    scorer_key=scorer_key,
                    scorer_name=scorer.display_name,
                    scorer_purpose=ScorerPurpose(scorer.purpose),
                )
            )
    return Metrics(tuple(data), tuple(rows), tuple(errors), of_code)


def _computed(tally: RunningTotals, metric: MetricSpec, scores: Sequence[Mapping[str, Any]]) -> MetricResult:
    """Compute one built-in metric; an exception becomes an error of the metric."""
    if not tally.knows_exclusions:
        return MetricResult({}, 0, len(scores), f"{UNKNOWN_EXCLUSIONS}; {HINT}")
    return _contained(scores, lambda: compute_metric(metric, scores))


def _of_code(
    tally: RunningTotals, number: int, position: int, keys: tuple[str, str], host: SnippetHost | None
) -> MetricResult:
    """Return one metric of the author's code: computed for the user's plan, otherwise from the log."""
    scores = tally.scores.get(keys[0], [])
    if not isinstance(tally.plan, TaskPlan):
        stored = None if tally.stored is None else tally.stored.metrics.get(keys)
        return stored or MetricResult({}, 0, len(scores), f"{UNSTORED}; {HINT}")
    plan = tally.plan
    metric = (plan.benchmark.scorers[number].metrics or ())[position]
    samples = tally.samples.get(keys[0], [])
    place = plan.snippet_place("scorers", number, "metrics", position, metric.snippet or "")
    return _contained(
        scores, lambda: compute_metric(metric, scores, host=host, samples=samples, snippet_place=place)
    )


def _contained(scores: Sequence[Mapping[str, Any]], compute: Callable[[], MetricResult]) -> MetricResult:
    try:
        return compute()
    except Exception as error:  # noqa: BLE001  # must not affect other metrics
        return MetricResult({}, 0, len(scores), f"could not be computed: {explained(error)}")


def system_metrics(samples: Sequence[SampleEvidence]) -> Metrics:
    """Return the metrics of a system task from the samples in which they were logged (usually one)."""
    trials = [trial for sample in samples for trial in sample.trials]
    outcomes = [Score(score.values, score.metadata or {}) for trial in trials for score in trial.scores or []]
    data = [entry for outcome in outcomes for entry in _metric_data(outcome)]
    rows = [
        MetricRow(SYSTEM_SCORER, name, value, 1) for entry in data for name, value in entry.values.items()
    ]
    return Metrics(tuple(data), tuple(rows), tuple(error for trial in trials for error in trial.errors))


def _metric_data(outcome: Score) -> list[MetricData]:
    """Return the metrics of a system task in AI GO's format: one entry per metric, with its reason."""
    reasons = outcome.metadata.get("reasons") or {}
    return [
        MetricData(
            values={name: value},
            metric_key=name,
            metric_type="system_task",
            **({"reason": reasons[name]} if name in reasons else {}),
        )
        for name, value in outcome.values.items()
    ]


def scores_data(
    key: str,
    purpose: str,
    display_name: str | None,
    values: Mapping[str, Any],
    metadata: Mapping[str, Any],
    direct_ios: Sequence[DirectModelIO] = (),
) -> ScoresData:
    """Return the result of a scorer on one trial.

    The JSON evidence cannot represent infinity and contains null instead. Metrics receive the infinite
    value (a mean then reports an error), and the metadata contains it as text.
    """
    infinite = {
        name: str(value) for name, value in values.items() if isinstance(value, float) and math.isinf(value)
    }
    if infinite:
        metadata = {**metadata, "not_finite": infinite}
    fields: dict[str, Any] = {
        "scorer_key": key,
        "scorer_purpose": ScorerPurpose(purpose),
        "values": dict(values),
    }
    if display_name is not None:
        fields["scorer_name"] = display_name
    if metadata:
        fields["metadata"] = dict(metadata)
    if direct_ios:
        fields["direct_ios"] = list(direct_ios)
    return ScoresData(**fields)
