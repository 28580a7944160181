"""Repeatability results: a whole task run several times, and how much its runs differ.

`evidence.runs` has every run with its samples and metrics. On top stand, over the runs,

* `metrics`: every value as its mean over the runs, under its own name, and its standard deviation (n - 1) as `<name>_std`;
* `samples`: per scorer `score_agreement`, the share of the runs that gave the sample the score's most frequent value; of a scorer with
  several scores `score_agreement.<score>` for each. The values themselves are in `metadata.values`, in the order of the runs.

AI GO says what is computed (see `metrics.repeatability`), not under which names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from aigo_bridge.dtypes import (
    MetricData,
    RunEvidence,
    SampleData,
    SampleEvidence,
    ScorerPurpose,
    ScoresData,
    TaskResultError,
    TaskResultErrorStage,
    TaskResultEvidence,
    TaskResultFailures,
    TaskResultLog,
    make_explicit,
)
from aigo_bridge.engine import Engine, Evidence, Execution, LogRef
from aigo_bridge.errors import EvidenceError
from aigo_bridge.evaluate import (
    APP_VERSION,
    came_to_an_end,
    doubts_of,
    execution_of,
    result_path,
    run_errors,
    scores_rows,
    shown_metrics,
    uncomputed,
)
from aigo_bridge.evaluation.planning import Entry
from aigo_bridge.evaluation.results import EntryResult, rows_of
from aigo_bridge.metrics import metrics_over_runs, score_agreements
from aigo_bridge.results.agreement import Shown, differences
from aigo_bridge.results.assembling import (
    MetricRow,
    Metrics,
    Tally,
    metrics_for,
    sample_stream,
    system_metrics,
)
from aigo_bridge.results.faults import Faults
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.specification import bare_specification, specification_of
from aigo_bridge.results.writing import encoded_sample
from aigo_bridge.snippets import SnippetHost

Values = Mapping[str, Any]


@dataclass
class _Sample:
    """The scores of one sample, run by run."""

    data: Mapping[str, Any] | None
    scores: dict[str, list[Values | None]] = field(default_factory=dict)
    """Scorer key → the values of each run; `None` where it has none."""


@dataclass
class _Runs:
    """What the runs add up to, while they stream by."""

    num_runs: int
    tallies: list[Tally] = field(default_factory=list)
    metrics: list[Metrics] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    samples: dict[tuple[type, str | int], _Sample] = field(default_factory=dict)
    purposes: dict[str, tuple[ScorerPurpose, str | None]] = field(default_factory=dict)

    def note(self, run: int, sample: SampleEvidence) -> None:
        """Take note of what a run says of a sample."""
        assert sample.sample_id is not None  # runs of ours name every sample
        identity = (type(sample.sample_id), sample.sample_id)
        if identity not in self.samples:
            first = sample.trials[0] if sample.trials else None
            data = None if first is None or first.sample is None else first.sample.data
            self.samples[identity] = _Sample(data)
        kept = self.samples[identity]
        for score in _scores_of(sample):
            self.purposes.setdefault(score.scorer_key, (score.scorer_purpose, score.scorer_name))
            values = kept.scores.setdefault(score.scorer_key, [None] * self.num_runs)
            values[run] = score.values


def _scores_of(sample: SampleEvidence) -> Sequence[ScoresData]:
    if sample.scores:
        return sample.scores
    return (sample.trials[0].scores or ()) if len(sample.trials) == 1 else ()


def repeated_result(
    entry: Entry, evaluation: str, logs: Sequence[LogRef], engine: Engine, out: Path
) -> EntryResult:
    """Write the result of a repeated task from the logs of its runs.

    Raises:
        EvidenceError: a log cannot be read, or is that of another plan.
    """
    faults = Faults()
    evidences = [
        evidence
        for log in logs
        if (evidence := faults.attempt(_unread(log), "dataset", partial(engine.read, log.path), None))
        is not None
    ]
    if not evidences:
        raise EvidenceError("; ".join(fault.message for fault in faults.errors))
    if len({evidence.plan.digest for evidence in evidences}) > 1:
        raise EvidenceError("the runs of a repeated task are runs of different tasks")
    path = result_path(entry.plans[0], evidences[0], engine, out, logs[0].path)
    planned = len(entry.plans[0].samples)
    runs = _Runs(len(entry.plans))
    with open_for_replacing(path) as file:
        data = _write(file, evidences, runs, planned, engine.name, faults)
    models = evidences[0].models
    tallies = runs.tallies
    failed = next((each for each in runs.executions if each.status != "success"), None)
    missing = len(evidences) < len(entry.plans)
    rows = rows_of(data, sum(tally.num_samples - tally.num_failed for tally in tallies))
    nothing = tuple(
        row
        for metrics, tally in zip(runs.metrics, tallies, strict=True)
        for row in uncomputed(metrics, tally)
    )
    result = EntryResult(
        key=entry.key,
        display_name=entry.display_name,
        evaluation=evaluation,
        task=entry.plans[0].task.key,
        status="failure" if missing else "success" if failed is None else failed.status,
        result=path,
        native_logs=tuple(log.path for log in logs),
        models=models,
        num_planned=planned * len(entry.plans),
        num_samples=sum(tally.num_samples for tally in tallies),
        num_failed=sum(tally.num_failed for tally in tallies),
        num_excluded=sum(tally.num_excluded for tally in tallies),
        num_reused=sum(log.reused for log in logs),
        metrics=(*rows, *_without_value(runs)),
        uncomputed=nothing,
        data=data,
        first_errors=tuple(error for tally in tallies for error in tally.first_errors)[:5],
        warnings=entry.plans[0].warnings,
        doubts=doubts_of(entry.plans[0], tallies),
        usage=_usage(runs.executions),
        started_at=min(each.started_at for each in runs.executions),
        ended_at=max(each.ended_at for each in runs.executions),
        problem=_problem(len(evidences), len(entry.plans), failed),
        faults=tuple(fault.message for fault in faults.errors),
        origin="reused"
        if all(log.earlier == log.path for log in logs)
        else "rescored"
        if any(log.replayed for log in logs)
        else "run",
        earlier=logs[0].earlier,
        is_sample_data=entry.is_sample_data,
    )
    shown = Shown(
        metrics=shown_metrics(result.metrics),
        succeeded=result.status == "success" and not result.num_missing,
        num_samples=result.num_samples,
        num_failed=result.num_failed,
        num_missing=result.num_missing,
        counts_rows=scores_rows(entry.plans[0]),
    )
    return replace(result, differences=differences(shown, path))


def _unread(log: LogRef) -> str:
    return f"the native log {log.path.name!r} could not be read back"


def _problem(num_logs: int, num_runs: int, failed: Execution | None) -> str | None:
    if num_logs < num_runs:
        return f"{num_logs} of {num_runs} runs took place"
    return None if failed is None else failed.error or failed.status


def _write(
    file: BinaryIO, evidences: Sequence[Evidence], runs: _Runs, planned: int, engine: str, faults: Faults
) -> tuple[MetricData, ...]:
    """The log as one document; the runs' samples are streamed, the samples on top come from what was noted of them."""
    file.write(b'{"evidence":{"runs":[')
    for number, evidence in enumerate(evidences):
        file.write(b"," if number else b"")
        own = evidence.plan.specification
        _write_run(file, number if own is None else own.run, evidence, runs, faults)
    file.write(b'\n],"samples":[')
    separator = b"\n"
    for _, text in faults.samples(_agreements(runs)):
        file.write(separator + text)
        separator = b",\n"
    frame = _frame(evidences, runs, planned, engine, faults)
    dumped = make_explicit(frame).model_dump(mode="json")
    inner = {name: value for name, value in dumped.pop("evidence").items() if name not in ("samples", "runs")}
    file.write(b"\n]," + encoded_sample(inner)[1:] + b"," + encoded_sample(dumped)[1:] + b"\n")
    assert frame.evidence is not None
    return tuple(frame.evidence.metrics or ())


def _write_run(file: BinaryIO, index: int, evidence: Evidence, runs: _Runs, faults: Faults) -> None:
    tally = Tally(evidence.plan)
    samples = sample_stream(evidence.trials(), tally)
    file.write(b'\n{"index":%d,"samples":[' % index)
    compute: Callable[[], Metrics]
    host = SnippetHost()
    if evidence.plan.entity == "system":
        only = [sample for sample, _ in faults.samples(samples)]
        compute = partial(system_metrics, only)
    else:
        separator = b"\n"
        for sample, text in faults.samples(samples):
            runs.note(index, sample)
            file.write(separator + text)
            separator = b",\n"
        compute = partial(metrics_for, tally, host)
    try:
        what = f"run {index + 1}: the metrics could not be computed"
        metrics = faults.attempt(what, "metric", compute, Metrics((), (), ()))
    finally:
        host.close()
    runs.tallies.append(tally)
    runs.metrics.append(metrics)
    runs.executions.append(evidence.execution)
    own = RunEvidence(
        index=index, metrics=list(metrics.data), errors=list(metrics.errors), failures=tally.failures
    )
    dumped = make_explicit(own).model_dump(mode="json")
    rest = {name: value for name, value in dumped.items() if name not in ("index", "samples")}
    file.write(b"\n]," + encoded_sample(rest)[1:])


def _agreements(runs: _Runs) -> Iterator[SampleEvidence]:
    for (_, sample_id), sample in runs.samples.items():
        scores: list[ScoresData] = []
        for key, values in sample.scores.items():
            agreements = score_agreements(values)
            names = list(dict.fromkeys(name for given in values for name in given or ()))
            purpose, shown = runs.purposes[key]
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
                            name: [None if given is None else given.get(name) for given in values]
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
    evidences: Sequence[Evidence], runs: _Runs, planned: int, engine: str, faults: Faults
) -> TaskResultLog:
    first = evidences[0]
    model = first.models.get("")
    ended = all(
        came_to_an_end(execution, tally, planned)
        for execution, tally in zip(runs.executions, runs.tallies, strict=True)
    )
    errors: list[TaskResultError] = []
    for number, (execution, tally) in enumerate(zip(runs.executions, runs.tallies, strict=True)):
        errors += [
            error.model_copy(update={"message": f"run {number + 1}: {error.message}"})
            for error in run_errors(execution, tally.num_samples, planned)
        ]
    if len(evidences) < runs.num_runs:
        message = f"{len(evidences)} of {runs.num_runs} runs took place"
        errors.append(TaskResultError(error_type="IncompleteRun", message=message))
    whole = Execution(
        status="success",
        started_at=min(each.started_at for each in runs.executions),
        ended_at=max(each.ended_at for each in runs.executions),
        model_usage=_usage(runs.executions),
    )
    specification = faults.attempt(
        "the specification could not be written",
        "configuration",
        lambda: specification_of(first.plan, model=model, engine=engine),
        bare_specification(first.plan),
    )
    over_runs = faults.attempt(
        "the metrics over the runs could not be computed", "metric", lambda: _over_runs(runs), None
    )
    errors += [error for error in faults.errors if error.stage is not TaskResultErrorStage.metric]
    of_metrics = [error for error in faults.errors if error.stage is TaskResultErrorStage.metric]
    return TaskResultLog(
        format_version="v1",
        app_version=APP_VERSION,
        status="success" if ended and not errors and not of_metrics else "failure",
        evidence=TaskResultEvidence(
            metrics=over_runs,
            samples=[],
            errors=[*(error for metrics in runs.metrics for error in metrics.errors), *of_metrics],
            failures=TaskResultFailures(
                num_errors=sum(tally.failures.num_errors for tally in runs.tallies),
                num_total=sum(tally.failures.num_total for tally in runs.tallies),
            ),
        ),
        specification=specification,
        execution=execution_of(whole, model, sum(tally.num_samples for tally in runs.tallies)),
        errors=errors,
    )


def _over_runs(runs: _Runs) -> list[MetricData]:
    """Every metric with its mean and spread over the runs, in the order of their first appearance."""
    found: dict[tuple[str | None, str], MetricData] = {}
    values: list[dict[tuple[str | None, str, str], float | int]] = []
    for metrics in runs.metrics:
        values.append(
            {
                (metric.scorer_key, metric.metric_key, name): value
                for metric in metrics.data
                for name, value in metric.values.items()
            }
        )
        for metric in metrics.data:
            found.setdefault((metric.scorer_key, metric.metric_key), metric)
    spreads = metrics_over_runs(values)
    over: list[MetricData] = []
    for (scorer_key, metric_key), metric in found.items():
        numbers: dict[str, float | int] = {}
        for (scorer, key, name), spread in spreads.items():
            if (scorer, key) == (scorer_key, metric_key):
                numbers[name] = spread.mean
                if spread.std is not None:
                    numbers[f"{name}_std"] = spread.std
        over.append(metric.model_copy(update={"values": numbers}))
    return over


def _without_value(runs: _Runs) -> list[MetricRow]:
    """Metrics that could not be computed in some run, with the reason."""
    found: dict[tuple[str, str], MetricRow] = {}
    for number, metrics in enumerate(runs.metrics, start=1):
        for row in metrics.rows:
            if row.value is None:
                problem = f"run {number}: {row.problem}"
                found.setdefault(
                    (row.scorer_key, row.name),
                    MetricRow(row.scorer_key, row.name, None, 0, problem, row.metric_key),
                )
    return list(found.values())


def _usage(executions: Sequence[Execution]) -> dict[str, dict[str, int]]:
    total: dict[str, dict[str, int]] = {}
    for execution in executions:
        for model, usage in execution.model_usage.items():
            own = total.setdefault(model, {})
            for name, number in usage.items():
                own[name] = own.get(name, 0) + number
    return total
