"""Solver outputs of an earlier run in place of new ones: nothing is asked of the evaluated model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aigo_bridge.dtypes import SolverOutput, SolverTrace, Trace
from aigo_bridge.engine import Evidence
from aigo_bridge.errors import EvidenceError
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.program import Failure, Row, SampleProgram, Solution
from aigo_bridge.results import LogReader
from aigo_bridge.results.stored_runs import StoredRuns, records_of
from aigo_bridge.results.trials import TrialRecord


class Replay:
    """Outputs by sample and trial."""

    def __init__(self, runs: StoredRuns, *, complete: bool, made_rows: bool):
        self._runs = runs
        self._complete = complete
        """Whether there is nothing else: what is missing or has failed stays so."""
        self._made_rows = made_rows
        """Whether the samples are rows that a post-processor has made already."""

    async def solution(self, program: SampleProgram, sample: Sample, trial: int) -> Solution | Failure | None:
        """What was made of one trial of a sample; `None` when it has to be solved (again).

        Args:
            program: the compiled plan; its post-processor runs on outputs that none has seen.
            sample: the sample.
            trial: its number, from 0.
        """
        records = self._runs.get(sample.id, trial)
        if not records and self._made_rows:
            # The post-processor made this row in other trials only: it is not missing, it never was.
            nothing = SolverTrace(trace=Trace.from_items([]), raw_outputs=[], direct_ios=[])
            return Solution(nothing, (), absent=True)
        failure = _failure(records)
        if failure is not None:
            return failure if self._complete else None
        output = _output(records)
        if records[0].source_id is not None:
            rows = tuple(Row(Sample(each.sample_id, each.data), each.solver) for each in records)
            return Solution(output, rows)
        if records[0].without_rows:
            return Solution(output, ())
        if program.postprocessor is None or self._made_rows:
            return Solution(output, (Row(sample, output),))
        return await program.postprocessed(sample, output)


def of_result_log(path: Path) -> Replay:
    """The outputs in a result log; there are no others.

    Raises:
        EvidenceError: the file is no result log.
    """
    task = LogReader(path).frame().specification.task
    solver = getattr(getattr(task, "definition", None), "solver", None)
    made_rows = getattr(solver, "postprocessor", None) is not None
    return Replay(StoredRuns(records_of(path)), complete=True, made_rows=made_rows)


def of_native_log(path: Path, plan: TaskPlan, read: Callable[[Path], Evidence]) -> Replay:
    """The outputs in an earlier log of the same solver; what it lacks is solved.

    Args:
        path: the engine's log.
        plan: the plan that takes them over.
        read: how the engine reads its log back.

    Raises:
        EvidenceError: the file is no log of ours, or of another solver.
    """
    evidence = read(path)
    if evidence.plan.solver_digest != plan.solver_digest:
        raise EvidenceError(f"{str(path)!r} is the log of another solver, of other rows or of other trials")
    return Replay(StoredRuns(evidence.trials()), complete=False, made_rows=False)


def _output(records: list[TrialRecord]) -> SolverOutput:
    output = records[0].solver
    assert output is not None  # else it was a failure
    return output


def _failure(records: list[TrialRecord]) -> Failure | None:
    missing = Failure("solver", "MissingOutput", "no output of this trial is stored")
    if not records:
        return missing
    for record in records:
        for error in record.errors:
            if error.stage is not None and error.stage.value == "solver":
                return Failure("solver", error.error_type, error.message, error.hint)
    return missing if any(record.solver is None for record in records) else None
