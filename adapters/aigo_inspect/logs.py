"""Inspect logs → AI GO evidence, in memory: for programs that want objects.

Files are written by `importing`, which builds no objects.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from aigo_bridge.dtypes import SampleEvidence, TaskResultLog, Trace
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.redaction import NO_REDACTION, Redaction

from .carried import carried_frame, carried_samples, carries_evidence
from .events import EventChoice
from .frame import Totals, frame_of
from .live import as_sample
from .reading import LogReader, RawSample, open_log
from .samples import grouped, typed_sample
from .scores import REDUCED, aggregated_scores
from .traces import trace_of
from .trials import read_trials

__all__ = ["import_log", "iter_samples", "open_log", "trace_from_sample", "trace_of"]


def import_log(
    location: str | os.PathLike[str],
    *,
    keep: EventChoice = "default",
    bounds: Bounds = DEFAULT_BOUNDS,
    redaction: Redaction = NO_REDACTION,
    loss: LossReport | None = None,
) -> TaskResultLog:
    """A whole Inspect log as AI GO evidence.

    Everything is held in memory; for large logs see `iter_samples` and `importing.import_file`.

    Args:
        location: path or fsspec URL of an `.eval` or `.json` log, of any Inspect version, finished or not.
        keep: which events the traces keep.
        bounds: limits on what the log may ask of the machine.
        redaction: secrets to take out.
        loss: filled with what was kept, changed and dropped.

    Raises:
        EvidenceError: nothing of the log can be read. Single bad samples do not raise: the result's status is
            `failure` then, and its errors name them.
    """
    loss = loss if loss is not None else LossReport()
    totals = Totals()
    with open_log(location, bounds=bounds, redaction=redaction) as log:
        if carries_evidence(log):
            try:
                carried = carried_frame(log)
                carried["evidence"] = {**(carried["evidence"] or {}), "samples": list(carried_samples(log))}
                return TaskResultLog.model_validate(carried)
            except EvidenceError as error:
                # Inspect's members are sound all the same.
                log.note("_aigo/", error)
        samples = list(_samples(log, keep, loss, totals))
        frame = frame_of(log.header, totals, log.damage, loss)
    frame["evidence"]["samples"] = samples
    return TaskResultLog.model_validate(frame)


def iter_samples(
    location: str | os.PathLike[str],
    *,
    keep: EventChoice = "default",
    bounds: Bounds = DEFAULT_BOUNDS,
    redaction: Redaction = NO_REDACTION,
    loss: LossReport | None = None,
) -> Iterator[SampleEvidence]:
    """The samples of an Inspect log, one at a time, with their epochs as trials; arguments as for `import_log`.

    Samples that cannot be read are left out; `import_log` names them.
    """
    with open_log(location, bounds=bounds, redaction=redaction) as log:
        if carries_evidence(log):
            yield from map(SampleEvidence.model_validate, carried_samples(log))
            return
        yield from _samples(log, keep, loss if loss is not None else LossReport(), Totals())


def _samples(log: LogReader, keep: EventChoice, loss: LossReport, totals: Totals) -> Iterator[SampleEvidence]:
    aggregated = aggregated_scores(log.reductions(), loss) if log.has_epochs else {}
    for group in grouped(read_trials(log, keep=keep, loss=loss)):
        totals.count(group)
        reduced = aggregated.get(str(group[0].sample_id))
        if reduced:
            loss.kept[REDUCED] += len(reduced)
        yield typed_sample(group, reduced)


def trace_from_sample(sample: Any, *, keep: EventChoice = "default") -> Trace:
    """The trace of a sample that is at hand: raw, as a dictionary, or as Inspect's live object.

    Args:
        sample: a `RawSample`; an `EvalSample` (object or dictionary); or a list of Inspect events, as a scorer or
            hook finds them in the running sample's transcript. Live objects are copied, never changed.
        keep: which events to keep.
    """
    if isinstance(sample, RawSample):
        return trace_of(sample, keep=keep)
    return trace_of(as_sample(sample), keep=keep)
