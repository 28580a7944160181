"""The outcome of a task, however it came about (run once or several times, taken from a file, failed; of an
engine's own benchmark alike), and whether what a user is shown of it is what its evidence says.

The latter is looked at once the evidence is written, at the end of every run. Both come from the same samples
on different ways, and a number that its own evidence does not bear out is worse than none.
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
from aigo_bridge.results.faults import FirstError, note_error
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
    """A number as it is shown."""

    scorer: str
    """Key or name of its scorer."""
    names: tuple[str, ...]
    """Its name, and its metric's key, as far as they are known."""
    value: float | int | None


@dataclass(frozen=True)
class Shown:
    """What a user is shown of a run."""

    metrics: Sequence[ShownMetric]
    succeeded: bool
    """Whether it is shown as a run that ended by itself, with all its samples."""
    num_samples: int
    num_failed: int
    num_missing: int = 0
    counts_rows: bool = False
    """Whether the evidence counts other things than samples: the rows that a post-processor made of them."""


def differences(shown: Shown, result: Path) -> tuple[str, ...]:
    """How the evidence in a file differs from what is shown; empty when it does not.

    The samples are not read: the log without them stands at the end of the file.
    """
    try:
        log = LogReader(result).frame()
    except (BridgeError, OSError) as error:
        return (f"the evidence cannot be read back: {error}",)
    return (*_status(shown, log), *_counts(shown, log), *_metrics(shown.metrics, log))


def _status(shown: Shown, log: TaskResultLog) -> Iterator[str]:
    reason = f" ({log.errors[0].message})" if log.errors else ""
    if log.status == "success" and not shown.succeeded:
        yield "the run is shown as failed, the evidence says 'success'"
    clean = shown.succeeded and not shown.num_failed and not shown.num_missing
    if log.status != "success" and clean:
        yield f"the run is shown as a success, the evidence says {log.status!r}{reason}"


def _counts(shown: Shown, log: TaskResultLog) -> Iterator[str]:
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
            # It has no value in the evidence either, or is no metric there; values left over follow below.
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
        # A system task has no scorers.
        scorers = {shown.scorer}
    # Of metrics with the same key, those after the first have a number behind it.
    key = re.sub(r"-\d+$", "", metric.metric_key)
    return shown.scorer in scorers and bool({name, metric.metric_key, key} & set(shown.names))


_MOST_NUMBERS = 5
"""Metrics that the text of an outcome names."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one task, for the terminal and for scripts."""

    task: str
    """Key of the task; of a benchmark its own name."""
    status: str
    """`success`, or what kept it from that: the engine's word, or `failure`."""
    error: str | None = None
    """Why there is no (complete) result; `None` when there is one."""
    code: Code | None = None
    """The kind of mistake that `error` tells of, where it is known."""
    key: str = ""
    """Key of its task specification; of a task by itself the name of its plan."""
    display_name: str = ""
    plan: TaskPlan | None = None
    """What was run; `None`: a benchmark of the engine, a stored result, or nothing."""
    result: Path | None = None
    """The `TaskResultLog`; `None` when there is none."""
    logs: tuple[LogRef, ...] = ()
    """The engine's native logs, one for each run."""
    stored: Path | None = None
    """Result log that stood in for a run."""
    models: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key (`""` for the evaluated model) → the engine's model name."""
    num_planned: int = 0
    """Samples that there should be, over all runs."""
    counts: Counts = NO_COUNTS
    """Samples and trials that were run, in each state."""
    stop_reasons: Mapping[str, int] = field(default_factory=dict)
    """Stop reason of final answers → trials that have it; trials without a recorded one are left out."""
    num_unscored: int = 0
    """Samples that some scorer of a benchmark gave no value, although nothing failed; of several scorers, the
    most."""
    num_stopped: int = 0
    """Samples that are not in the result because a benchmark itself stopped early."""
    metrics: tuple[MetricRow, ...] = ()
    """The metrics as they are shown."""
    uncomputed: tuple[MetricRow, ...] = ()
    """Metrics without a value although there were scores to compute them from."""
    data: tuple[MetricData, ...] = ()
    """The metrics as they stand in the result."""
    first_errors: tuple[FirstError, ...] = ()
    """The first few kinds of errors."""
    gaps: tuple[Gap, ...] = ()
    """Approximations that were allowed."""
    warnings: tuple[Issue, ...] = ()
    """What planning warned of."""
    doubts: tuple[str, ...] = ()
    """What makes the numbers doubtful although nothing failed, as far as planning did not know: one line
    each."""
    faults: tuple[str, ...] = ()
    """What of the evidence could not be put together."""
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Engine's model name → tokens."""
    started_at: float | None = None
    """Unix time in seconds; `None` when it never began."""
    ended_at: float | None = None
    is_sample_data: bool = False
    """Whether its rows only stand for those of another dataset."""
    file: str | None = None
    """The file that a benchmark stands in; `None`: in none, or the engine does not say."""
    differences: tuple[str, ...] = ()
    """How the written evidence differs from all this, which it never should."""

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
        """Samples in the result."""
        return self.counts.samples

    @property
    def num_failed(self) -> int:
        """Failed samples."""
        return self.counts.failed

    @property
    def num_missing(self) -> int:
        """Planned samples that are not in the result, because the run ended early."""
        return max(0, self.num_planned - self.num_samples - self.num_stopped)

    @property
    def num_reused(self) -> int:
        """Trials taken over from earlier runs."""
        return sum(log.reused for log in self.logs)

    @property
    def earlier(self) -> Path | None:
        """Where it was taken over from: the log of an earlier run, or a stored result."""
        return self.logs[0].earlier if self.logs else self.stored

    @property
    def origin(self) -> str:
        """`run`; `reused`: an earlier result of the same; `rescored`: its solver outputs were scored again;
        `stored`: a file.
        """
        if self.stored is not None:
            return "stored"
        if self.logs and all(log.earlier == log.path for log in self.logs):
            return "reused"
        return "rescored" if any(log.replayed for log in self.logs) else "run"

    @property
    def native_log(self) -> Path:
        """The engine's log of what was run once."""
        (log,) = self.logs
        return log.path

    def passed(self, tolerated: int) -> bool:
        """Return whether it ended by itself, with every metric, and with no more failures than are tolerated.

        Args:
            tolerated: failed samples; as many trials as these samples have may fail.
        """
        counts = self.counts
        failed = counts.failed + self.num_missing + self.num_unscored
        per_sample = -(-counts.trials // counts.samples) if counts.samples else 1
        whole = self.result is not None and not (self.uncomputed or self.faults or self.differences)
        few = failed <= tolerated and counts.failed_trials <= tolerated * per_sample
        return self.status == "success" and few and whole

    def compared(self) -> Outcome:
        """This outcome with how its evidence differs from it."""
        if self.result is None:
            return self
        of_plan = self.plan is not None
        shown = Shown(
            metrics=shown_metrics(self.metrics),
            succeeded=self.status == "success" and not (of_plan and self.num_missing),
            num_samples=self.num_samples,
            num_failed=self.num_failed,
            num_missing=self.num_missing,
            counts_rows=self.plan is not None and _scores_rows(self.plan),
        )
        return replace(self, differences=differences(shown, self.result))


def _scores_rows(plan: TaskPlan) -> bool:
    """Whether rows that a post-processor makes of the samples are scored, and not the samples."""
    return plan.entity != "system" and getattr(plan.benchmark.solver, "postprocessor", None) is not None


def shown_metrics(rows: Sequence[MetricRow]) -> list[ShownMetric]:
    """Rows of a table as what is compared with the evidence."""
    return [
        ShownMetric(row.scorer_key, (row.name, row.metric_key or key_of(row.name)), row.value) for row in rows
    ]


def uncomputed(rows: Sequence[MetricRow], num_samples: int, num_failed: int) -> tuple[MetricRow, ...]:
    """Metrics of a benchmark that have no value although there is something to compute them from.

    Where every sample failed there is nothing: that is told as failed samples.
    """
    return tuple(row for row in rows if row.value is None) if num_failed < num_samples else ()


def errors_by_kind(failures: Sequence[tuple[str | int, str]], most: int) -> tuple[FirstError, ...]:
    """Of failed samples and their messages the first of each kind, with their number; `most` kinds."""
    errors: list[FirstError] = []
    for sample_id, message in failures:
        note_error(errors, FirstError(sample_id, TaskResultError(error_type="Error", message=message)), most)
    return tuple(errors)
