"""Trial data in native logs: conversion of solutions and scores to and from JSON, and records for evidence.

The format is the same for every engine. Each adapter decides where its log stores the JSON and how it
dumps a solver output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    DirectModelIO,
    ScoresData,
    SolverOutput,
    SolverTrace,
    TaskResultError,
    Trace,
)
from aigo_bridge.errors import EvidenceError
from aigo_bridge.execution.solutions import SampleFailure, ScorerRow, Solution
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.results.assembling import scores_data
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.records import OUTPUT, StoredRuns, TrialRecord, records_of
from aigo_bridge.scoring.scorer import SYSTEM_SCORER, Score

if TYPE_CHECKING:
    from aigo_bridge.engine.protocol import Evidence
    from aigo_bridge.execution.program import SampleProgram
    from aigo_bridge.plan.outline import TaskOutline

Json = dict[str, Any]


def dump_solution(
    result: Solution | SampleFailure, dump: Callable[[SolverOutput], Json], *, postprocessed: bool
) -> Json:
    """Convert the result of a solver to JSON; `load_solution` reverses it. With `postprocessed`, rows of
    the plan's post-processor are stored.
    """
    if isinstance(result, SampleFailure):
        return {"failure": result.to_json()}
    fields: Json = {"output": dump(result.output)}
    if result.absent:
        fields["absent"] = True
    if postprocessed:
        fields["rows"] = [
            {
                "id": row.sample.id,
                "data": dict(row.sample.data),
                "output": None if row.output is None else dump(row.output),
            }
            for row in result.rows
        ]
    return fields


def load_solution(stored: Mapping[str, Any], sample: Sample) -> Solution | SampleFailure | None:
    """Return the solver result of a sample; `None` if the log lacks one, as in tasks without a solver."""
    if "failure" in stored:
        return SampleFailure.from_json(stored["failure"])
    if "output" not in stored:
        return None
    output = OUTPUT.validate_python(stored["output"])
    if "rows" not in stored:
        return Solution(output, (ScorerRow(sample, output),))
    rows = tuple(
        ScorerRow(
            Sample(row["id"], row["data"]),
            None if row["output"] is None else OUTPUT.validate_python(row["output"]),
        )
        for row in stored["rows"]
    )
    return Solution(output, rows, absent=stored.get("absent", False))


def dump_result(result: Score | SampleFailure) -> Json:
    """Convert the result of a scorer to JSON; `load_result` reverses it."""
    if isinstance(result, SampleFailure):
        return {"failure": result.to_json(), "details": dict(result.details)}
    return {"values": dict(result.values), "metadata": dict(result.metadata)}


def load_result(stored: Mapping[str, Any]) -> Score | SampleFailure:
    """Convert the output of `dump_result` to a result."""
    if "failure" in stored:
        return SampleFailure.from_json(stored["failure"], stored["details"])
    return Score(stored["values"], stored["metadata"])


# Records


Results = Callable[[str, str | None], Iterable[tuple[Score | SampleFailure, Sequence[Mapping[str, Any]]]]]
"""Scorer key, row id (`None` for the sample itself) → results of the scorer, each with its raw exchanges."""


def solved_records(
    sample: Sample,
    index: int,
    solution: Solution | None,
    outline: TaskOutline,
    results: Results,
    *,
    has_rows: bool = False,
    errors: Sequence[TaskResultError] = (),
) -> list[TrialRecord]:
    """Return the records of a trial whose solver succeeded: one, or one for each row of its post-processor.

    Args:
        sample: sample that was run.
        index: number of the trial.
        solution: output of the solver, including all events of the run; `None` in tasks without a solver.
        outline: outline of the plan.
        results: returns the results of the scorers.
        has_rows: whether a post-processor created the rows.
        errors: errors of the trial as a whole.
    """

    def record(row_id: str | None, data: Mapping[str, Any], solver: SolverOutput | None) -> TrialRecord:
        scores, failures = _scores(outline, row_id, results)
        source_id = None if row_id is None else sample.id
        sample_id = sample.id if row_id is None else row_id
        return TrialRecord(sample_id, index, data, solver, scores, (*errors, *failures), source_id)

    if solution is None:
        return [record(None, sample.data, None)]
    if solution.absent:
        return []
    if not has_rows or not solution.rows:
        return [record(None, sample.data, solution.output)]
    return [record(str(row.sample.id), row.sample.data, row.output) for row in solution.rows]


def exchanges(ios: Iterable[Mapping[str, Any]]) -> list[DirectModelIO]:
    """Convert raw exchanges to evidence."""
    return [DirectModelIO.model_validate(io) for io in ios]


def scorers_of(outline: TaskOutline) -> Iterator[tuple[str, str, str | None]]:
    """Yield key, purpose and display name of every scorer."""
    if outline.entity == "system":
        yield SYSTEM_SCORER, "score", None
        return
    for scorer, key in zip(outline.scorers, outline.scorer_keys, strict=True):
        yield key, scorer.purpose, scorer.display_name


def _scores(
    outline: TaskOutline, row_id: str | None, results: Results
) -> tuple[tuple[ScoresData, ...], list[TaskResultError]]:
    scores: list[ScoresData] = []
    errors: list[TaskResultError] = []
    for key, purpose, display_name in scorers_of(outline):
        for result, ios in results(key, row_id):
            if isinstance(result, SampleFailure):
                errors.append(result.to_error(f"scorer {key!r}" if outline.entity != "system" else None))
            else:
                calls = exchanges(ios)
                scores.append(scores_data(key, purpose, display_name, result.values, result.metadata, calls))
    return tuple(scores), errors


# Replay


class Replay:
    """Outputs by sample and trial."""

    def __init__(self, runs: StoredRuns, *, complete: bool, made_rows: bool):
        self._runs = runs
        self._complete = complete
        """Whether the outputs are complete, so that missing or failed trials are not repeated."""
        self._made_rows = made_rows
        """Whether the samples are rows that a post-processor already created."""

    async def solution(
        self, program: SampleProgram, sample: Sample, trial: int
    ) -> Solution | SampleFailure | None:
        """Return the stored output of one trial of a sample; `None` if it must be solved (again). The
        program's post-processor runs on outputs that were not post-processed yet.
        """
        records = self._runs.get(sample.id, trial)
        if not records and self._made_rows:
            # The post-processor created this row only in other trials, so the row is not missing.
            nothing = SolverTrace(trace=Trace.from_items([]), raw_outputs=[], direct_ios=[])
            return Solution(nothing, (), absent=True)
        failure = _failure(records)
        if failure is not None:
            return failure if self._complete else None
        output = _output(records)
        if records[0].source_id is not None:
            rows = tuple(
                ScorerRow(Sample(record.sample_id, record.data), record.solver) for record in records
            )
            return Solution(output, rows)
        if records[0].without_rows:
            return Solution(output, ())
        if program.postprocessor is None or self._made_rows:
            return Solution(output, (ScorerRow(sample, output),))
        return await program.postprocessed(sample, output)


def of_result_log(path: Path) -> Replay:
    """Return the outputs in a result log as the complete outputs.

    Raises:
        EvidenceError: the file is not a result log.
    """
    task = LogReader(path).frame().specification.task
    solver = getattr(getattr(task, "definition", None), "solver", None)
    made_rows = getattr(solver, "postprocessor", None) is not None
    return Replay(StoredRuns(records_of(path)), complete=True, made_rows=made_rows)


def of_native_log(path: Path, plan: TaskPlan, read: Callable[[Path], Evidence]) -> Replay:
    """Return the outputs in an earlier log of the same solver. Missing outputs are solved.

    Raises:
        EvidenceError: the file is not a log of aigo-bridge, or belongs to another solver.
    """
    evidence = read(path)
    if evidence.plan.damage:
        raise EvidenceError(f"{str(path)!r}: {'; '.join(evidence.plan.damage)}", code=Code.DAMAGED_LOG)
    if evidence.plan.solver_digest != plan.solver_digest:
        raise EvidenceError(
            f"{str(path)!r} is the log of another solver, of other rows or of other trials",
            code=Code.OTHER_PLAN,
        )
    return Replay(StoredRuns(evidence.trials()), complete=False, made_rows=False)


def replay_of(
    plan: TaskPlan, stored: Path | None, log: Path | None, read: Callable[[Path], Evidence]
) -> Replay | None:
    """Return the outputs to reuse; `None` if all samples must be solved.

    Args:
        plan: plan that reuses the outputs.
        stored: result log whose samples the plan uses.
        log: native log of the same solver.
        read: function that reads an engine log.

    Raises:
        EvidenceError: the file is not such a log.
    """
    if stored is not None:
        return of_result_log(stored)
    return None if log is None else of_native_log(log, plan, read)


def _output(records: list[TrialRecord]) -> SolverOutput:
    output = records[0].solver
    assert output is not None  # Otherwise the record would be a failure.
    return output


def _failure(records: list[TrialRecord]) -> SampleFailure | None:
    missing = SampleFailure("solver", "MissingOutput", "no output of this trial is stored")
    if not records:
        return missing
    for record in records:
        for error in record.errors:
            if error.stage is not None and error.stage.value == "solver":
                return SampleFailure("solver", error.error_type, error.message, error.hint)
    return missing if any(record.solver is None for record in records) else None
