"""Repeatability results: a whole task that runs several times, and the variation between the runs.

`evidence.runs` contains every run with its samples and metrics. The top level contains, across the runs:

* `metrics`: the mean of every value under the same name, and its standard deviation (n - 1) as
  `<name>_std`.
* `samples`: for each scorer, `score_agreement`, the proportion of runs that gave the sample the most
  frequent score value. A scorer with several scores has `score_agreement.<score>` for each. The values are
  in `metadata.values`, in the order of the runs.

AI GO defines the computation (see `metrics.repeatability`) but not the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    MetricData,
    RunEvidence,
    SampleData,
    SampleEvidence,
    ScorerPurpose,
    ScoresData,
    TaskResultError,
    TaskResultEvidence,
    TaskResultFailures,
    TaskResultLog,
)
from aigo_bridge.engine.protocol import Execution, LogRef
from aigo_bridge.engine.provenance import cassette_digests, write_run_provenance
from aigo_bridge.errors import EvidenceError
from aigo_bridge.evaluation.writing import (
    NO_METRICS,
    WrittenRun,
    by_stage,
    came_to_an_end,
    execution_of,
    outcome_of_runs,
    result_frame,
    result_path,
    run_errors,
    total_usage,
)
from aigo_bridge.metrics.trials import metrics_over_runs, score_agreements
from aigo_bridge.results.assembling import MetricRow
from aigo_bridge.results.internal_errors import Faults
from aigo_bridge.results.specification import bare_specification, specification_of
from aigo_bridge.results.writing import Run, Sample, write_log
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import Engine
    from aigo_bridge.engine.outcome import Outcome
    from aigo_bridge.engine.recording import Recording
    from aigo_bridge.evaluation.planning import Entry

Values = Mapping[str, Any]


@dataclass
class _Sample:
    """Scores of one sample in each run."""

    data: Mapping[str, Any] | None
    scores: dict[str, list[Values | None]] = field(default_factory=dict)
    """Scorer key → values of each run; `None` for a run without scores."""


@dataclass
class RunSamples:
    """Sample scores of all runs, collected while the samples are streamed."""

    num_runs: int
    by_id: dict[tuple[type, str | int], _Sample] = field(default_factory=dict)
    purposes: dict[str, tuple[ScorerPurpose, str | None]] = field(default_factory=dict)

    def note(self, run: int, sample: SampleEvidence) -> None:
        """Record the scores of a sample in a run."""
        assert sample.sample_id is not None  # Runs by aigo-bridge give every sample an id.
        identity = (type(sample.sample_id), sample.sample_id)
        if identity not in self.by_id:
            trial = sample.trials[0] if sample.trials else None
            data = None if trial is None or trial.sample is None else trial.sample.data
            self.by_id[identity] = _Sample(data)
        scores = self.by_id[identity].scores
        for score in _scores_of(sample):
            self.purposes.setdefault(score.scorer_key, (score.scorer_purpose, score.scorer_name))
            scores.setdefault(score.scorer_key, [None] * self.num_runs)[run] = score.values


def _scores_of(sample: SampleEvidence) -> Sequence[ScoresData]:
    if sample.scores:
        return sample.scores
    return (sample.trials[0].scores or ()) if len(sample.trials) == 1 else ()


def repeated_outcome(
    entry: Entry, logs: Sequence[LogRef], engine: Engine, out: Path, recording: Recording | None = None
) -> Outcome:
    """Write the result of a repeated task from the logs of its runs.

    Raises:
        EvidenceError: a log cannot be read or belongs to another plan.
    """
    faults = Faults()
    plan, num_runs = entry.plans[0], len(entry.plans)
    runs = [
        WrittenRun(evidence, plan, faults, partial(engine.capabilities.store_numbers, log.path))
        for log in logs
        if (evidence := faults.attempt(_unread(log), "dataset", partial(engine.read, log.path), None))
        is not None
    ]
    if not runs:
        raise EvidenceError("; ".join(fault.message for fault in faults.errors), code=Code.UNREADABLE_LOG)
    if {run.evidence.plan.digest for run in runs} != {plan.digest}:
        raise EvidenceError("the runs of a repeated task belong to different tasks", code=Code.OTHER_PLAN)
    path = result_path(plan, runs[0].evidence, engine, out, logs[0].path)
    samples = RunSamples(num_runs)
    frames: list[TaskResultLog] = []

    def finish() -> TaskResultLog:
        frames.append(_frame(runs, num_runs, len(plan.samples), engine.name, faults))
        return frames[0]

    over_runs = ((sample, sample) for sample in agreements(samples))
    texts = (text for _, text in faults.samples(over_runs))
    parts = (_written(number, run, samples) for number, run in enumerate(runs))
    write_log(path, texts, finish=finish, runs=parts)
    cassette = cassette_digests(recording, entry.plans or [plan])
    write_run_provenance(plan, path, engine, logs, runs[0].evidence.models, cassette=cassette)
    assert frames[0].evidence is not None
    data = tuple(frames[0].evidence.metrics or ())
    executions = (run.evidence.execution for run in runs)
    failed = next((execution for execution in executions if execution.status != "success"), None)
    outcome = outcome_of_runs(plan, runs, path, tuple(logs))
    return replace(
        outcome,
        status="failure" if len(runs) < num_runs else "success" if failed is None else failed.status,
        error=_problem(len(runs), num_runs, failed),
        key=entry.key,
        display_name=entry.display_name,
        num_planned=len(plan.samples) * num_runs,
        metrics=(*rows_of(data, outcome.num_samples - outcome.num_failed), *_without_value(runs)),
        data=data,
        is_sample_data=entry.is_sample_data,
    ).compared()


def rows_of(data: Sequence[MetricData], num_scored: int) -> tuple[MetricRow, ...]:
    """Return the metrics of a result as table rows."""
    return tuple(
        MetricRow(metric.scorer_key or "", name, value, num_scored, metric_key=metric.metric_key)
        for metric in data
        for name, value in metric.values.items()
    )


def _unread(log: LogRef) -> str:
    return f"the engine log {log.path.name!r} could not be read"


def _problem(num_logs: int, num_runs: int, failed: Execution | None) -> str | None:
    if num_logs < num_runs:
        return f"{num_logs} of {plural(num_runs, 'run')} were completed"
    return None if failed is None else failed.error or failed.status


def _written(number: int, run: WrittenRun, samples: RunSamples) -> Run:
    """Return a run whose sample scores are recorded while it is written."""
    specification = run.evidence.plan.specification
    index = number if specification is None else specification.run

    def texts() -> Iterator[Sample]:
        for sample, text in run.samples(salvage=True):
            samples.note(index, sample)
            yield text

    def finish() -> RunEvidence:
        run.metrics = run.compute(f"run {index + 1}: the metrics could not be computed") or NO_METRICS
        metrics, failures = run.metrics, run.tally.failures
        return RunEvidence(
            index=index, metrics=list(metrics.data), errors=list(metrics.errors), failures=failures
        )

    return index, texts(), finish


def agreements(samples: RunSamples) -> Iterator[SampleEvidence]:
    """Yield the agreement of the runs on the scores of each sample."""
    for (_, sample_id), sample in samples.by_id.items():
        scores: list[ScoresData] = []
        for key, values in sample.scores.items():
            agreements = score_agreements(values)
            names = list(dict.fromkeys(name for run_values in values for name in run_values or ()))
            purpose, shown = samples.purposes[key]
            fields: dict[str, Any] = {} if shown is None else {"scorer_name": shown}
            scores.append(
                ScoresData(
                    scorer_key=key,
                    scorer_purpose=purpose,
                    values={
                        "score_agreement" if len(names) == 1 else f"score_agreement.{name}": share
                        for name, share in agreements.items()
                    },
                    metadata={
                        "values": {
                            name: [
                                None if run_values is None else run_values.get(name) for run_values in values
                            ]
                            for name in names
                        }
                    },
                    **fields,
                )
            )
        yield SampleEvidence(
            sample_id=sample_id,
            sample=None if sample.data is None else SampleData(data=dict(sample.data)),
            solver=None,
            scores=scores,
            errors=[],
            trials=[],
        )


def _frame(
    runs: Sequence[WrittenRun], num_runs: int, planned: int, engine: str, faults: Faults
) -> TaskResultLog:
    plan, model = runs[0].evidence.plan, runs[0].evidence.models.get("")
    executions, tallies = [run.evidence.execution for run in runs], [run.tally for run in runs]
    ended = all(came_to_an_end(run.evidence.execution, run.tally, planned) for run in runs)
    errors = [
        error.model_copy(update={"message": f"run {number}: {error.message}"})
        for number, run in enumerate(runs, start=1)
        for error in run_errors(run.evidence.execution, run.tally.counts.samples, planned)
    ]
    if len(runs) < num_runs:
        message = f"{len(runs)} of {plural(num_runs, 'run')} were completed"
        errors.append(TaskResultError(error_type="IncompleteRun", message=message))
    over_all = Execution(
        status="success",
        started_at=min(execution.started_at for execution in executions),
        ended_at=max(execution.ended_at for execution in executions),
        model_usage=total_usage(executions),
    )
    specification = faults.attempt(
        "the specification could not be written",
        "configuration",
        lambda: specification_of(plan, model=model, engine=engine),
        bare_specification(plan),
    )
    over_runs = faults.attempt(
        "the metrics over the runs could not be computed",
        "metric",
        lambda: metrics_over([run.metrics.data for run in runs]),
        None,
    )
    of_metrics, other_errors = by_stage(faults.errors)
    errors += other_errors
    return result_frame(
        plan,
        TaskResultEvidence(
            metrics=over_runs,
            samples=[],
            errors=[*(error for run in runs for error in run.metrics.errors), *of_metrics],
            failures=TaskResultFailures(
                num_errors=sum(tally.failures.num_errors for tally in tallies),
                num_total=sum(tally.failures.num_total for tally in tallies),
            ),
        ),
        specification,
        execution_of(over_all, model, tallies),
        errors,
        is_success=ended and not errors and not of_metrics,
    )


def metrics_over(runs: Sequence[Sequence[MetricData]]) -> list[MetricData]:
    """Return the mean and standard deviation of every metric over the runs, in order of first appearance."""
    metrics_by_key: dict[tuple[str | None, str], MetricData] = {}
    values: list[dict[tuple[str | None, str, str], float | int]] = []
    for metrics in runs:
        values.append(
            {
                (metric.scorer_key, metric.metric_key, name): value
                for metric in metrics
                for name, value in metric.values.items()
            }
        )
        for metric in metrics:
            metrics_by_key.setdefault((metric.scorer_key, metric.metric_key), metric)
    spreads = metrics_over_runs(values)
    over: list[MetricData] = []
    for (scorer_key, metric_key), metric in metrics_by_key.items():
        numbers: dict[str, float | int] = {}
        for (scorer, key, name), spread in spreads.items():
            if (scorer, key) == (scorer_key, metric_key):
                numbers[name] = spread.mean
                if spread.std is not None:
                    numbers[f"{name}_std"] = spread.std
        over.append(metric.model_copy(update={"values": numbers}))
    return over


def _without_value(runs: Sequence[WrittenRun]) -> list[MetricRow]:
    """Return the metrics that could not be computed in at least one run, with the reason."""
    rows: dict[tuple[str, str], MetricRow] = {}
    for number, run in enumerate(runs, start=1):
        for row in run.metrics.rows:
            if row.value is None:
                problem = f"run {number}: {row.problem}"
                rows.setdefault(
                    (row.scorer_key, row.name),
                    MetricRow(row.scorer_key, row.name, None, 0, problem, row.metric_key),
                )
    return list(rows.values())
