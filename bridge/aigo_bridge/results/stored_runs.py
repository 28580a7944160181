"""What was solved before, for scoring it again: trials of a result log, found by sample and number.

The trials wait in a temporary file, not in memory: scorers ask for them in any order, and logs of several gigabytes exist.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from aigo_bridge.dtypes import SampleEvidence, SolverOutput, TaskResultError, TaskResultLog, make_explicit
from aigo_bridge.errors import EvidenceError
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.trials import TrialRecord

_OUTPUT: TypeAdapter[SolverOutput] = TypeAdapter(SolverOutput)
_ERRORS: TypeAdapter[list[TaskResultError]] = TypeAdapter(list[TaskResultError])


def records_of(log: Path) -> Iterator[TrialRecord]:
    """The trials of a result log, sample by sample; scores stay out.

    Raises:
        EvidenceError: the file is no result log, or a sample of it cannot be read.
    """
    reader = LogReader(log)
    scored_rows = _scored_rows(reader.frame())
    for number, sample in enumerate(reader.samples()):
        sample_id = number if sample.sample_id is None else sample.sample_id
        yield from _records(sample, sample_id, scored_rows)


def _scored_rows(frame: TaskResultLog) -> bool:
    """Whether the log's samples are rows of a post-processor, each of which has a score or an error."""
    definition = getattr(frame.specification.task, "definition", None)
    solver = getattr(definition, "solver", None)
    return getattr(solver, "postprocessor", None) is not None and bool(getattr(definition, "scorers", None))


def _records(sample: SampleEvidence, sample_id: str | int, scored_rows: bool) -> Iterator[TrialRecord]:
    for trial in sample.trials:
        yield TrialRecord(
            sample_id=sample_id,
            index=trial.index,
            data={} if trial.sample is None else trial.sample.data,
            solver=None if trial.solver is None else trial.solver.output,
            scores=(),
            errors=tuple(error for error in trial.errors if _of_the_solver(error)),
            # AI GO has no word for it: such a trial stands in the evidence as the row that the solver was given.
            without_rows=scored_rows and not trial.scores and not trial.errors,
        )


def _of_the_solver(error: TaskResultError) -> bool:
    return error.stage is not None and error.stage.value == "solver"


class StoredRuns:
    """Trials by sample and number, in a temporary file that goes with the object."""

    def __init__(self, records: Iterable[TrialRecord]):
        # Without a name, the data base is SQLite's own temporary file: gone when closed, and after a crash.
        self._rows = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._rows.close)
        self._rows.execute("create table runs (planned text, trial int, run blob)")
        self._rows.execute("begin")
        for record in records:
            key = _key(record.planned_id)
            self._rows.execute("insert into runs values (?, ?, ?)", (key, record.index, _dump(record)))
        self._rows.execute("create index found on runs (planned, trial)")
        self._rows.execute("commit")

    def get(self, planned_id: str | int, index: int) -> list[TrialRecord]:
        """One trial of a sample: its record, or one for each row that its post-processor made; empty when there is none."""
        found = self._rows.execute(
            "select run from runs where planned = ? and trial = ? order by rowid", (_key(planned_id), index)
        )
        return [_load(run) for (run,) in found]


def _key(sample_id: str | int) -> str:
    """Engines know ids as texts."""
    return str(sample_id)


def _dump(record: TrialRecord) -> bytes:
    solver = None if record.solver is None else make_explicit(record.solver).model_dump(mode="json")
    errors = [make_explicit(error).model_dump(mode="json") for error in record.errors]
    ids = [record.sample_id, record.index, record.source_id]
    fields = [*ids, dict(record.data), solver, errors, record.without_rows]
    return orjson.dumps(fields, default=str)


def _load(stored: bytes) -> TrialRecord:
    sample_id, index, source_id, data, solver, errors, without_rows = orjson.loads(stored)
    try:
        output = None if solver is None else _OUTPUT.validate_python(solver)
        found = tuple(_ERRORS.validate_python(errors))
    except ValueError as error:
        raise EvidenceError(f"sample {sample_id!r}: its stored output cannot be read: {error}") from error
    return TrialRecord(sample_id, index, data, output, (), found, source_id, without_rows)
