"""Whether what a user is shown of a run is what its evidence says: looked at once the evidence is written, at the end of every run.

Both come from the same samples on different ways, through different code. A difference is a defect of aigo-bridge, never of the run, and a number
that its own evidence does not bear out is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.dtypes import MetricData, TaskResultLog
from aigo_bridge.errors import BridgeError
from aigo_bridge.results.reading import LogReader

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
    """Whether the evidence counts something else than samples: the rows that a post-processor made of them."""


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
            yield f"{shown.num_samples} samples are shown, the evidence counts none"
        return
    if not shown.counts_rows and failures.num_total != shown.num_samples:
        yield f"{shown.num_samples} samples are shown, the evidence has {failures.num_total}"
    if (
        bool(shown.num_failed) != bool(failures.num_errors)
        if shown.counts_rows
        else shown.num_failed != failures.num_errors
    ):
        yield f"{shown.num_failed} samples are shown as failed, the evidence has {failures.num_errors}"


def _metrics(shown: Iterable[ShownMetric], log: TaskResultLog) -> Iterator[str]:
    stored = list((log.evidence.metrics if log.evidence is not None else None) or ())
    left = [(metric, name, value) for metric in stored for name, value in metric.values.items()]
    for one in shown:
        if one.value is None:
            # In the evidence it has no value either, or is none of the metrics: values that are left over are told below.
            continue
        same = [entry for entry in left if _is_same(one, entry[0], entry[1])]
        equal = next((entry for entry in same if entry[2] == one.value), None)
        if equal is not None:
            left.remove(equal)
            continue
        found = ", ".join(repr(value) for _, _, value in same) or "none"
        yield f"metric {one.names[0]!r} of scorer {one.scorer!r} is shown as {one.value!r}, the evidence has {found}"
    for metric, name, value in left:
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
