"""Outcome of a task (run, repeated, read from a file, or failed; including an engine's own benchmark), and a
comparison of the displayed values with the written evidence.

The comparison runs after the evidence is written, at the end of every run. Both values come from the same
samples by different ways, and a metric that its own evidence contradicts must not be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.dtypes import MetricData, TaskResultError, TaskResultLog
from aigo_bridge.errors import BridgeError, Issue
from aigo_bridge.results.counts import NO_COUNTS, Counts
from aigo_bridge.results.internal_errors import FirstError, note_error
from aigo_bridge.results.reading import LogReader
from aigo_bridge.text.json_text import key_of
from aigo_bridge.text.plurals import plural
from aigo_bridge.text.summaries import summary

if TYPE_CHECKING:
    from aigo_bridge.codes import Code
    from aigo_bridge.engine.protocol import Gap, LogRef
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.results.assembling import MetricRow

REPORT = "this is a defect of aigo-bridge: trust neither, and please report it with both files"


@dataclass(frozen=True)
class ShownMetric:
    """Displayed metric value."""

    scorer: str
    """Key or name of the scorer."""
    names: tuple[str, ...]
    """Name of the value and key of its metric, if known."""
    value: float | int | None


@dataclass(frozen=True)
class DisplayedRun:
    """Displayed values of a run."""

    metrics: Sequence[ShownMetric]
    succeeded: bool
    """Whether the run is displayed as successful, with all samples."""
    num_samples: int
    num_failed: int
    num_missing: int = 0
    counts_rows: bool = False
    """Whether the evidence counts rows of a post-processor instead of samples."""


def differences(shown: DisplayedRun, result: Path) -> tuple[str, ...]:
    """Return the differences between the evidence in a file and the displayed values; empty if they are
    equal.

    The samples are not read, because the end of the file contains the rest of the log.
    """
    try:
        log = LogReader(result).frame()
    except (BridgeError, OSError) as error:
        return (f"the evidence cannot be read back: {error}",)
    return (*_status(shown, log), *_counts(shown, log), *_metrics(shown.metrics, log))


def _status(shown: DisplayedRun, log: TaskResultLog) -> Iterator[str]:
    reason = f" ({log.errors[0].message})" if log.errors else ""
    if log.status == "success" and not shown.succeeded:
        yield "the run is shown as failed, the evidence says 'success'"
    clean = shown.succeeded and not shown.num_failed and not shown.num_missing
    if log.status != "success" and clean:
        yield f"the run is shown as a success, the evidence says {log.status!r}{reason}"


def _counts(shown: DisplayedRun, log: TaskResultLog) -> Iterator[str]:
    failures = None if log.evidence is None else log.evidence.failures
    if failures is None:
        if shown.num_samples:
            yield f"{plural(shown.num_samples, 'sample is', 'samples are')} shown, the evidence counts none"
        return
    if not shown.counts_rows and failures.num_total != shown.num_samples:
        yield (
            f"{plural(shown.num_samples, 'sample is', 'samples are')} shown, the evidence has"
            f" {failures.num_total}"
        )
    if (
        bool(shown.num_failed) != bool(failures.num_errors)
        if shown.counts_rows
        else shown.num_failed != failures.num_errors
    ):
        yield (
            f"{plural(shown.num_failed, 'sample is', 'samples are')} shown as failed, the"
            f" evidence has {failures.num_errors}"
        )


def _metrics(shown: Iterable[ShownMetric], log: TaskResultLog) -> Iterator[str]:
    stored = list((log.evidence.metrics if log.evidence is not None else None) or ())
    unmatched = [(metric, name, value) for metric in stored for name, value in metric.values.items()]
    for one in shown:
        if one.value is None:
            # The value is also missing in the evidence, or the evidence does not contain the metric.
            # Remaining values are handled below.
            continue
        same = [entry for entry in unmatched if _is_same(one, entry[0], entry[1])]
        equal = next((entry for entry in same if entry[2] == one.value), None)
        if equal is not None:
            unmatched.remove(equal)
            continue
        values = ", ".join(repr(value) for _, _, value in same) or "none"
        yield (
            f"metric {one.names[0]!r} of scorer {one.scorer!r} is shown as {one.value!r}, the evidence has"
            f" {values}"
        )
    for metric, name, value in unmatched:
        scorer = metric.scorer_key or metric.scorer_name
        yield f"the evidence has metric {name!r} of scorer {scorer!r} as {value!r}, which is not shown"


def _is_same(shown: ShownMetric, metric: MetricData, name: str) -> bool:
    scorers = {metric.scorer_key, metric.scorer_name}
    if scorers == {None}:
        # A system task does not have scorers.
        scorers = {shown.scorer}
    # Of metrics with the same key, the second and later ones end with a number.
    key = re.sub(r"-\d+$", "", metric.metric_key)
    return shown.scorer in scorers and bool({name, metric.metric_key, key} & set(shown.names))


_MOST_NUMBERS = 5
"""Maximum number of metrics to name in the text of an outcome."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of one task, for the terminal and for scripts."""

    task: str
    """Key of the task, or name of the benchmark."""
    status: str
    """`success`, the engine's term for another status, or `failure`."""
    error: str | None = None
    """Reason for a missing or incomplete result; `None` if it is complete."""
    code: Code | None = None
    """Code of the `error`, if known."""
    key: str = ""
    """Key of the task specification, or name of the plan for a single task."""
    display_name: str = ""
    plan: TaskPlan | None = None
    """Plan that ran; `None` for a benchmark of the engine or a stored result, or if nothing ran."""
    result: Path | None = None
    """Path of the `TaskResultLog`; `None` if it was not written."""
    logs: tuple[LogRef, ...] = ()
    """Native logs of the engine, one for each run."""
    stored: Path | None = None
    """Result log that was used instead of a run."""
    models: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key (`""` for the evaluated model) → model name for the engine."""
    num_planned: int = 0
    """Number of planned samples, over all runs."""
    counts: Counts = NO_COUNTS
    """Number of samples and trials in each state."""
    stop_reasons: Mapping[str, int] = field(default_factory=dict)
    """Stop reason of final answers → number of trials. Trials without a recorded stop reason are left out."""
    num_unscored: int = 0
    """Number of samples that a benchmark scorer left without a value although nothing failed. For several
    scorers, the largest number.
    """
    num_stopped: int = 0
    """Number of samples that are not in the result because a benchmark stopped early."""
    metrics: tuple[MetricRow, ...] = ()
    """Metrics to display."""
    uncomputed: tuple[MetricRow, ...] = ()
    """Metrics without a value although some scores exist."""
    data: tuple[MetricData, ...] = ()
    """Metrics in the result."""
    first_errors: tuple[FirstError, ...] = ()
    """First kinds of errors."""
    gaps: tuple[Gap, ...] = ()
    """Approximations that the user allowed."""
    warnings: tuple[Issue, ...] = ()
    """Warnings from planning."""
    doubts: tuple[str, ...] = ()
    """Doubts about the metrics that planning did not report, although nothing failed; one line each."""
    faults: tuple[str, ...] = ()
    """Parts of the evidence that could not be created."""
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Model name for the engine → tokens."""
    started_at: float | None = None
    """Start time, in Unix seconds; `None` if it did not start."""
    ended_at: float | None = None
    is_sample_data: bool = False
    """Whether the rows are sample data for another dataset."""
    file: str | None = None
    """File that contains the benchmark; `None` if there is none or the engine does not report it."""
    differences: tuple[str, ...] = ()
    """Differences between the written evidence and this outcome. They indicate a bug."""

    def __repr__(self) -> str:
        numbers = [f"{row.name} {'–' if row.value is None else f'{row.value:.6g}'}" for row in self.metrics]
        parts = [
            self.status,
            plural(self.num_samples, "sample"),
            *([f"{self.num_failed} failed"] if self.num_failed else ()),
            *([f"{self.num_missing} missing"] if self.num_missing else ()),
            *numbers[:_MOST_NUMBERS],
            *([f"{len(numbers) - _MOST_NUMBERS} more"] if len(numbers) > _MOST_NUMBERS else ()),
            *([f"error: {summary(self.error)!r}"] if self.error else ()),
        ]
        place = "" if self.result is None else f" in {str(self.result)!r}"
        return f"<Outcome of {(self.key or self.task)!r}: {', '.join(parts)}{place}>"

    @property
    def num_samples(self) -> int:
        """Number of samples in the result."""
        return self.counts.samples

    @property
    def num_failed(self) -> int:
        """Number of failed samples."""
        return self.counts.failed

    @property
    def num_missing(self) -> int:
        """Number of planned samples that are not in the result because the run ended early."""
        return max(0, self.num_planned - self.num_samples - self.num_stopped)

    @property
    def num_reused(self) -> int:
        """Number of trials that were reused from earlier runs."""
        return sum(log.reused for log in self.logs)

    @property
    def earlier(self) -> Path | None:
        """Source of reused data: the log of an earlier run, or a stored result."""
        return self.logs[0].earlier if self.logs else self.stored

    @property
    def origin(self) -> str:
        """`run`; `reused`: an identical earlier result; `rescored`: solver outputs were scored again;
        `stored`: a file.
        """
        if self.stored is not None:
            return "stored"
        if self.logs and all(log.earlier == log.path for log in self.logs):
            return "reused"
        return "rescored" if any(log.replayed for log in self.logs) else "run"

    @property
    def native_log(self) -> Path:
        """Native log of a task that ran one time."""
        (log,) = self.logs
        return log.path

    def passed(self, tolerated: int) -> bool:
        """Return whether the run ended normally, with every metric and at most the tolerated number of
        failures.

        Args:
            tolerated: number of samples that may fail. All trials of that many samples may fail.
        """
        counts = self.counts
        failed = counts.failed + self.num_missing + self.num_unscored
        per_sample = -(-counts.trials // counts.samples) if counts.samples else 1
        whole = self.result is not None and not (self.uncomputed or self.faults or self.differences)
        few = failed <= tolerated and counts.failed_trials <= tolerated * per_sample
        return self.status == "success" and few and whole

    def compared(self) -> Outcome:
        """Return this outcome with its differences from the evidence."""
        if self.result is None:
            return self
        of_plan = self.plan is not None
        shown = DisplayedRun(
            metrics=shown_metrics(self.metrics),
            succeeded=self.status == "success" and not (of_plan and self.num_missing),
            num_samples=self.num_samples,
            num_failed=self.num_failed,
            num_missing=self.num_missing,
            counts_rows=self.plan is not None and _scores_rows(self.plan),
        )
        return replace(self, differences=differences(shown, self.result))


def _scores_rows(plan: TaskPlan) -> bool:
    return plan.entity != "system" and getattr(plan.benchmark.solver, "postprocessor", None) is not None


def shown_metrics(rows: Sequence[MetricRow]) -> list[ShownMetric]:
    """Convert table rows to values for the comparison with the evidence."""
    return [
        ShownMetric(row.scorer_key, (row.name, row.metric_key or key_of(row.name)), row.value) for row in rows
    ]


def uncomputed(rows: Sequence[MetricRow], num_samples: int, num_failed: int) -> tuple[MetricRow, ...]:
    """Return the metrics of a benchmark without a value although some scores exist.

    If every sample failed, the result is empty, because failed samples are reported instead.
    """
    return tuple(row for row in rows if row.value is None) if num_failed < num_samples else ()


def errors_by_kind(failures: Sequence[tuple[str | int, str]], most: int) -> tuple[FirstError, ...]:
    """Return the first failed sample of each kind, at most `most`, with the number of its samples."""
    errors: list[FirstError] = []
    for sample_id, message in failures:
        note_error(errors, FirstError(sample_id, TaskResultError(error_type="Error", message=message)), most)
    return tuple(errors)
