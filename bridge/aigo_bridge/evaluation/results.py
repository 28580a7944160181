"""What became of one task specification, whichever way it came about: run, run several times, taken from a file, failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aigo_bridge.dtypes import MetricData
from aigo_bridge.errors import Issue
from aigo_bridge.evaluate import Outcome
from aigo_bridge.evaluation.planning import Entry
from aigo_bridge.results import LogReader
from aigo_bridge.results.assembling import MetricRow
from aigo_bridge.results.first_errors import FirstError
from aigo_bridge.results.specification import dataset_tags
from aigo_bridge.spec.datasets import is_sample_data


@dataclass(frozen=True)
class EntryResult:
    """The result of one specification."""

    key: str
    display_name: str
    evaluation: str
    """Key of the evaluation."""
    task: str
    """Key of the task."""
    status: str
    """`success`, or what kept it from that: the engine's word, or `failure`."""
    result: Path | None
    """Its `TaskResultLog`; `None` when there is none."""
    native_logs: tuple[Path, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key (`""` for the evaluated model) → the engine's model name."""
    num_planned: int = 0
    """Samples that there should be, over all runs."""
    num_samples: int = 0
    """Samples in the result."""
    num_failed: int = 0
    num_excluded: int = 0
    num_reused: int = 0
    """Trials taken over from an earlier run."""
    metrics: tuple[MetricRow, ...] = ()
    uncomputed: tuple[MetricRow, ...] = ()
    """Metrics without a value although there were scores."""
    data: tuple[MetricData, ...] = ()
    first_errors: tuple[FirstError, ...] = ()
    warnings: tuple[Issue, ...] = ()
    """What planning warned of."""
    doubts: tuple[str, ...] = ()
    """What counted against the model and may be no fault of its answers, as far as planning did not know."""
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    started_at: float | None = None
    """Unix time in seconds; `None` when it never began."""
    ended_at: float | None = None
    problem: str | None = None
    """Why there is no (complete) result."""
    faults: tuple[str, ...] = ()
    """What of the evidence could not be put together."""
    origin: str = "run"
    """`run`; `reused`: an earlier result of the same; `rescored`: its solver outputs were scored again; `stored`: a file."""
    earlier: Path | None = None
    """Where it was taken over from."""
    is_sample_data: bool = False
    """Whether its rows only stand for those of another data set."""
    differences: tuple[str, ...] = ()
    """How the written evidence differs from all this, which it never should."""

    @property
    def num_missing(self) -> int:
        """Planned samples that are not in the result."""
        return max(0, self.num_planned - self.num_samples)

    def is_right(self, tolerated: int) -> bool:
        """Whether it ended, with every metric and no more failed samples than are tolerated."""
        failed = self.num_failed + self.num_missing
        whole = not (self.uncomputed or self.faults or self.differences)
        return self.status == "success" and failed <= tolerated and whole


def of_outcome(entry: Entry, evaluation: str, outcome: Outcome) -> EntryResult:
    """The result of a specification that was run once."""
    log = outcome.log
    complete = log.earlier is not None and log.earlier == log.path
    return EntryResult(
        key=entry.key,
        display_name=entry.display_name,
        evaluation=evaluation,
        task=outcome.plan.task.key,
        status=outcome.execution.status,
        result=outcome.result,
        native_logs=(log.path,),
        models=outcome.models,
        num_planned=len(outcome.plan.samples),
        num_samples=outcome.num_samples,
        num_failed=outcome.num_failed,
        num_excluded=outcome.num_excluded,
        num_reused=log.reused,
        metrics=outcome.metrics,
        uncomputed=outcome.uncomputed,
        data=outcome.data,
        first_errors=outcome.first_errors,
        warnings=outcome.plan.warnings,
        doubts=outcome.doubts,
        usage=outcome.execution.model_usage,
        started_at=outcome.execution.started_at,
        ended_at=outcome.execution.ended_at,
        problem=None if outcome.execution.status == "success" else outcome.execution.error,
        faults=tuple(fault.message for fault in outcome.faults),
        origin="reused" if complete else "rescored" if log.replayed else "run",
        earlier=log.earlier,
        is_sample_data=entry.is_sample_data,
        differences=outcome.differences,
    )


def of_file(entry: Entry, evaluation: str, path: Path) -> EntryResult:
    """A stored result.

    Raises:
        EvidenceError: the file is no result log.
    """
    frame = LogReader(path).frame()
    evidence = frame.evidence
    data = tuple(evidence.metrics or ()) if evidence is not None else ()
    failures = evidence.failures if evidence is not None else None
    entity = frame.specification.evaluated_entity
    total = failures.num_total if failures is not None else 0
    return EntryResult(
        key=entry.key,
        display_name=entry.display_name,
        evaluation=evaluation,
        task=frame.specification.task.key,
        status=frame.status,
        result=path,
        models={} if entity is None else {"": entity.key},
        num_planned=total,
        num_samples=total,
        num_failed=failures.num_errors if failures is not None else 0,
        metrics=rows_of(data, total),
        data=data,
        started_at=float(frame.execution.started_at),
        ended_at=float(frame.execution.ended_at),
        problem=frame.errors[0].message if frame.errors else None,
        origin="stored",
        earlier=entry.stored,
        is_sample_data=is_sample_data(dataset_tags(frame.specification)),
    )


def of_failure(
    entry: Entry, evaluation: str, problem: str, result: Path | None, native_logs: Sequence[Path] = ()
) -> EntryResult:
    """A specification that has come to nothing."""
    plan = entry.plans[0] if entry.plans else None
    return EntryResult(
        key=entry.key,
        display_name=entry.display_name,
        evaluation=evaluation,
        task="" if plan is None else plan.task.key,
        status="failure",
        result=result,
        native_logs=tuple(native_logs),
        num_planned=sum(len(each.samples) for each in entry.plans),
        problem=problem,
        is_sample_data=entry.is_sample_data,
    )


def rows_of(data: Sequence[MetricData], num_scored: int) -> tuple[MetricRow, ...]:
    """Metrics of a result as rows of a table."""
    return tuple(
        MetricRow(metric.scorer_key or "", name, value, num_scored, metric_key=metric.metric_key)
        for metric in data
        for name, value in metric.values.items()
    )
