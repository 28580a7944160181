"""An import as parquet tables; see `aigo_bridge.importing.tables`."""

from __future__ import annotations

from pathlib import Path

from aigo_bridge.importing.encoding import dumps
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.tables import TrialParts, total_of, written_tables

from .events import EventChoice
from .frame import Totals, frame_of
from .model_calls import model_usage
from .reading import LogReader
from .samples import MappedTrial, marked
from .scores import REDUCED, aggregated_scores
from .trials import read_trials


def write_tables(log: LogReader, folder: Path, keep: EventChoice, loss: LossReport) -> Totals:
    """Write the tables of a log to `folder`, which appears when all is written.

    Raises:
        UsageError: pyarrow is not installed.
    """
    totals = Totals()
    reduced = aggregated_scores(log.reductions(), loss) if log.has_epochs else {}
    with written_tables(folder, loss) as (tables, draft):
        for trial, first in marked(read_trials(log, keep=keep, loss=loss)):
            totals.count_trial(trial, first=first)
            tables.add(_parts(trial))
            # Freed before the next one is made, not after.
            del trial
        frame = frame_of(log.header, totals, log.damage, loss)
        if reduced:
            frame["reduced_scores"] = reduced
            loss.kept[REDUCED] += sum(map(len, reduced.values()))
        loss.changed.update(log.changes)
        (draft / "result.json").write_bytes(dumps(frame) + b"\n")
    return totals


def _parts(trial: MappedTrial) -> TrialParts:
    usages = [model_usage(usage) or {} for usage in trial.usage.values()]
    metadata = trial.trace.metadata if trial.trace is not None else {}
    return TrialParts(
        sample_id=trial.sample_id,
        index=trial.index,
        data=trial.data,
        items=trial.trace.items if trial.trace is not None else (),
        events=trial.trace.events if trial.trace is not None else (),
        metadata=metadata,
        scores=trial.scores or (),
        errors=trial.errors,
        extra=metadata.get("extra", {}).get("inspect", {}),
        prompt_tokens=total_of(usage.get("num_prompt_tokens") for usage in usages),
        completion_tokens=total_of(usage.get("num_completion_tokens") for usage in usages),
    )
