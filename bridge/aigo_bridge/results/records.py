"""Records of an engine log: `TrialRecord`, one trial of one sample, and `StoredNumbers`, the results of the
author's code and templates over all samples (Python metrics and action rules). Also, lookup of the trials
in a result log by sample and number.

Reading a log never executes its content, so stored numbers are used unchanged. If they are missing (the
run was killed before its metrics, or has an older format), the evidence contains the reason.

Stored trials for rescoring are kept in a temporary file instead of memory, because scorers need them in
any order and logs may have several gigabytes.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    GroupedSolverTrace,
    SampleEvidence,
    ScoresData,
    SolverOutput,
    SolverTrace,
    TaskResultError,
    TaskResultLog,
    make_explicit,
)
from aigo_bridge.dtypes.chat import LATE
from aigo_bridge.errors import EvidenceError
from aigo_bridge.metrics.metric import Exclusion, MetricResult, fits_json
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.reading import LogReader


@dataclass(frozen=True)
class PlainOutput:
    """Solver output as plain data, which is written without creating objects. Few tasks need them."""

    data: dict[str, Any]
    """Output in the form of the evidence."""
    answer: SolverTrace | GroupedSolverTrace
    """Output without the events of the run."""


@dataclass(frozen=True)
class TrialRecord:
    """One sample, solved and scored one time."""

    sample_id: str | int
    index: int
    """Number of the trial, from 0."""
    data: Mapping[str, Any]
    """Row of the sample."""
    output: SolverOutput | PlainOutput | None
    """Output of the solver; `None` in tasks without a solver, or if the solver produced nothing."""
    scores: tuple[ScoresData, ...]
    """One entry for each scorer that gave a score, in the order of the task."""
    errors: tuple[TaskResultError, ...] = ()
    """Errors with their stage. A trial with a solver error has an empty list of scores."""
    source_id: str | int | None = None
    """Id of the sample that was run, for a row that the solver's post-processor created; otherwise `None`."""
    without_rows: bool = False
    """Whether the post-processor created zero rows for this trial, so that nothing was scored."""

    @cached_property
    def solver(self) -> SolverOutput | None:
        """Output of the solver as an object."""
        output = self.output
        return OUTPUT.validate_python(output.data) if isinstance(output, PlainOutput) else output

    @property
    def written_output(self) -> SolverOutput | dict[str, Any] | None:
        """Output of the solver as an object or as plain data."""
        return self.output.data if isinstance(self.output, PlainOutput) else self.output

    @property
    def planned_id(self) -> str | int:
        """Id of the sample in the plan."""
        return self.sample_id if self.source_id is None else self.source_id


OUTPUT: TypeAdapter[SolverOutput] = TypeAdapter(SolverOutput, config=LATE)
_ERRORS: TypeAdapter[list[TaskResultError]] = TypeAdapter(list[TaskResultError], config=LATE)


def records_of(log: Path) -> Iterator[TrialRecord]:
    """Yield the trials of a result log, sample by sample, without scores.

    Raises:
        EvidenceError: the file is not a result log, or a sample cannot be read.
    """
    reader = LogReader(log)
    scored_rows = _scored_rows(reader.frame())
    for number, sample in enumerate(reader.samples()):
        sample_id = number if sample.sample_id is None else sample.sample_id
        yield from _records(sample, sample_id, scored_rows)


def _scored_rows(frame: TaskResultLog) -> bool:
    """Return whether the samples of the log are rows of a post-processor, each with a score or an error."""
    definition = getattr(frame.specification.task, "definition", None)
    solver = getattr(definition, "solver", None)
    return getattr(solver, "postprocessor", None) is not None and bool(getattr(definition, "scorers", None))


def _records(sample: SampleEvidence, sample_id: str | int, scored_rows: bool) -> Iterator[TrialRecord]:
    for trial in sample.trials:
        yield TrialRecord(
            sample_id=sample_id,
            index=trial.index,
            data={} if trial.sample is None else trial.sample.data,
            output=None if trial.solver is None else trial.solver.output,
            scores=(),
            errors=tuple(error for error in trial.errors if _of_the_solver(error)),
            # AI GO cannot represent such a trial, so it is stored as the row that the solver received.
            without_rows=scored_rows and not trial.scores and not trial.errors,
        )


def _of_the_solver(error: TaskResultError) -> bool:
    return error.stage is not None and error.stage.value == "solver"


class StoredRuns:
    """Trials by sample and number, in a temporary file that is deleted with the object."""

    def __init__(self, records: Iterable[TrialRecord]):
        import sqlite3

        # A database without a name is a temporary file of SQLite, which is deleted on close and after a
        # crash.
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
        """Return one trial of a sample: its record, or one record for each row of its post-processor. Return
        an empty list if it is missing.
        """
        rows = self._rows.execute(
            "select run from runs where planned = ? and trial = ? order by rowid", (_key(planned_id), index)
        )
        return [_load(run) for (run,) in rows]


def _key(sample_id: str | int) -> str:
    """Engines convert ids to text."""
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
        output = None if solver is None else OUTPUT.validate_python(solver)
        problems = tuple(_ERRORS.validate_python(errors))
    except ValueError as error:
        raise EvidenceError(
            f"sample {sample_id!r}: its stored output cannot be read: {error}", code=Code.DAMAGED_RESULT
        ) from error
    return TrialRecord(sample_id, index, data, output, (), problems, source_id, without_rows)


FORMAT = 1
"""Version of the format of `StoredNumbers.to_json`."""

UNSTORED = "its value is not stored in the log, and code is not executed when a log is read"
"""Reason for a metric without a value."""

UNKNOWN_EXCLUSIONS = (
    "the exclusions of the action rules are not stored in the log, and templates "
    "are not rendered when a log is read"
)

HINT = "compute it with your own task: aigo-bridge import LOG --recompute TASK"

_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


@cache
def _exclusions() -> TypeAdapter[Exclusion]:
    return TypeAdapter(Exclusion)


@dataclass(frozen=True)
class StoredNumbers:
    """Results of the author's code, as stored in a log."""

    metrics: Mapping[tuple[str, str], MetricResult] = field(default_factory=dict)
    """Scorer key and key of the Python metric → result."""
    exclusions: Mapping[int, Exclusion] = field(default_factory=dict)
    """Number of a row → outcome of the action rules, for rows with an outcome."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers in the form of a log, without secrets known to this process."""
        content: dict[str, Any] = redact_value(
            {
                "format": FORMAT,
                "metrics": [
                    {"scorer": scorer, "metric": metric, **asdict(result)}
                    for (scorer, metric), result in self.metrics.items()
                ],
                "exclusions": [
                    {"row": row, **_exclusions().dump_python(exclusion, mode="json")}
                    for row, exclusion in self.exclusions.items()
                ],
            }
        )
        return content


def numbers_from_json(stored: Any) -> StoredNumbers:
    """Convert the output of `StoredNumbers.to_json` to stored numbers.

    Raises:
        EvidenceError: the value has another form.
    """
    try:
        if stored["format"] != FORMAT:
            raise EvidenceError(
                f"the log's numbers have format {stored['format']!r:.80}, this release reads format {FORMAT}",
                code=Code.OTHER_RELEASE,
            )
        return StoredNumbers(
            _once(
                ((str(entry["scorer"]), str(entry["metric"])), _result(entry)) for entry in stored["metrics"]
            ),
            _once((_whole(entry["row"]), _exclusion(entry)) for entry in stored["exclusions"]),
        )
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise EvidenceError(f"the log's numbers are damaged: {error}", code=Code.DAMAGED_RESULT) from error


def _once(pairs: Iterable[tuple[_Name, _Value]]) -> dict[_Name, _Value]:
    """Return the stored values by name. A repeated name is an error, because the right value is unknown."""
    values: dict[_Name, _Value] = {}
    for name, value in pairs:
        if name in values:
            raise EvidenceError(
                f"the log's numbers are damaged: {name!r:.80} occurs twice", code=Code.DAMAGED_RESULT
            )
        values[name] = value
    return values


def _exclusion(stored: Mapping[str, Any]) -> Exclusion:
    return _exclusions().validate_python({"records": stored["records"], "errors": stored["errors"]})


def _result(stored: Mapping[str, Any]) -> MetricResult:
    values, problem = stored["values"], stored["problem"]
    for name, value in values.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not fits_json(value):
            raise EvidenceError(
                f"the log's numbers are damaged: {name!r:.80} is {value!r:.80}", code=Code.DAMAGED_RESULT
            )
    if problem is not None and not isinstance(problem, str):
        raise EvidenceError(
            f"the log's numbers are damaged: a problem is {problem!r:.80}", code=Code.DAMAGED_RESULT
        )
    return MetricResult(dict(values), _whole(stored["num_used"]), _whole(stored["num_skipped"]), problem)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise EvidenceError(
            f"the log's numbers are damaged: found {value!r:.80}, expected a count", code=Code.DAMAGED_RESULT
        )
    return value
