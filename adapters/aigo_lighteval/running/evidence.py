"""Evidence of aigo-bridge runs in lighteval's files: writing, reading and resuming it without lighteval."""

from __future__ import annotations

import contextlib
import hashlib
import json
import marshal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import zstandard

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.datasets.spill_files import SpillFile
from aigo_bridge.dtypes import (
    DirectModelIO,
    SolverOutput,
    SolverTrace,
    Trace,
)
from aigo_bridge.engine.protocol import Evidence, Execution
from aigo_bridge.errors import EvidenceError
from aigo_bridge.execution import jobs
from aigo_bridge.execution.codec import (
    Json,
    dump_result,
    dump_solution,
    exchanges,
    first_trace,
    load_result,
    load_solution,
    solved_records,
)
from aigo_bridge.execution.earlier_runs import EarlierLogs, EarlierRun
from aigo_bridge.execution.solutions import SampleFailure, Solution
from aigo_bridge.plan.logged_plan import logged_plan
from aigo_bridge.plan.outline import TaskOutline
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.records import StoredNumbers, TrialRecord, numbers_from_json
from aigo_bridge.scoring.scorer import Score
from aigo_lighteval.models.models import CallLog, call_events, direct_ios
from aigo_lighteval.versions import require_parquet

BLOCK = "aigo_bridge"
"""Key of aigo-bridge's block in the results file."""

FORMAT = 1
"""Format version of the block and of the JSON texts in the details."""


@dataclass(frozen=True, slots=True)
class SolvedTrial:
    """Solver outcome of one trial. It is converted to JSON when it is saved."""

    result: Solution | SampleFailure
    record: CallLog
    postprocessed: bool
    """Whether the plan has a post-processor. If so, its rows are kept."""

    def to_json(self) -> Json:
        """Return the outcome as stored in the details."""
        try:
            fields = dump_solution(self.result, _dump, postprocessed=self.postprocessed)
        except (ValueError, RecursionError) as error:
            # Task code can return output that is nested too deeply to be written. Only that sample fails.
            message = f"the output cannot be written as JSON: {error}"
            fields = {"failure": SampleFailure("solver", "InvalidSolverOutput", message).to_json()}
        return {**fields, "record": self.record.to_json()}


ScoredRow = tuple[str | None, Score | SampleFailure, CallLog | None]
"""Row id from a post-processor (`None`: the sample itself), the scorer's result, and its calls, if any."""


@dataclass(frozen=True, slots=True)
class ScoredTrial:
    """Scorer outcomes of one trial, by scorer key."""

    results: Mapping[str, Sequence[ScoredRow]]

    def to_json(self) -> Json:
        """Return the outcomes as stored in the details."""
        return {
            key: [
                [row_id, dump_result(result), None if record is None else record.to_json()]
                for row_id, result, record in rows
            ]
            for key, rows in self.results.items()
        }


def as_json(trial: SolvedTrial | ScoredTrial | Json) -> Json:
    """Return a trial as stored in the details. Trials of an earlier run already have that form."""
    return trial if isinstance(trial, dict) else trial.to_json()


def is_plain(solved: SolvedTrial | Json) -> bool:
    """Return whether a trial was solved and its sample is scored directly, without a post-processor."""
    if isinstance(solved, SolvedTrial):
        return isinstance(solved.result, Solution) and not solved.postprocessed
    return "failure" not in solved and "rows" not in solved


def results_of(
    scored: ScoredTrial | Json, key: str
) -> Iterable[tuple[str | None, Score | SampleFailure, Json | None]]:
    """Yield one scorer's results in one trial: row id, result and calls."""
    if isinstance(scored, ScoredTrial):
        for row_id, result, record in scored.results.get(key, ()):
            yield row_id, result, None if record is None else record.to_json()
    else:
        for row_id, stored, calls in scored.get(key, ()):
            yield row_id, load_result(stored), calls


def calls_of_solver(solved: SolvedTrial | Json) -> CallLog | Json | None:
    """Return the solver's calls in one trial; `None` without a solver."""
    return solved.record if isinstance(solved, SolvedTrial) else solved.get("record")


def calls_of_scorers(scored: ScoredTrial | Json) -> list[CallLog | Json]:
    """Return the calls of all scorers in one trial."""
    results = scored.results if isinstance(scored, ScoredTrial) else scored
    return [record for rows in results.values() for _, _, record in rows if record is not None]


def _dump(output: SolverOutput) -> Json:
    # AI GO's default dump omits fields that were not set.
    dumped: Json = output.model_dump(mode="json", exclude_unset=False, exclude_none=True)
    return dumped


Trial = tuple[int, int]
"""Sample number and trial number."""

MOST_OBJECTS = 2000
"""Maximum number of trials whose outcomes are kept in memory."""

Kept = TypeVar("Kept", SolvedTrial, ScoredTrial)


class TrialStore(Mapping[Trial, Kept | Json], Generic[Kept]):
    """Outcomes by trial. Most outcomes of a large run are in a temporary file."""

    def __init__(self) -> None:
        self._outcomes: dict[Trial, Kept | Json | int] = {}
        """Outcomes, or their numbers in the file."""
        self._file = SpillFile()
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._decompressor = zstandard.ZstdDecompressor()

    def add(self, trial: Trial, outcome: Kept | Json) -> None:
        """Add the outcome of a trial.

        If the run is large, it is written to the file, unless it contains values that are not JSON or the
        disk is full.
        """
        self._outcomes[trial] = outcome
        if len(self._outcomes) <= MOST_OBJECTS:
            return
        with contextlib.suppress(OSError, ValueError):
            self._file.append(self._compressor.compress(marshal.dumps(as_json(outcome))))
            self._outcomes[trial] = len(self._file) - 1

    def __getitem__(self, trial: Trial) -> Kept | Json:
        outcome = self._outcomes[trial]
        if not isinstance(outcome, int):
            return outcome
        (compressed,) = self._file.read(outcome, outcome + 1)
        content: Json = marshal.loads(self._decompressor.decompress(compressed))  # noqa: S302  # written by this process
        return content

    def __contains__(self, trial: object) -> bool:
        return trial in self._outcomes

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)


def open_details(path: Path, block: Mapping[str, Any]) -> BinaryIO:
    """Open the details file that a results file names.

    The file must be a regular file in the run's own folder, even if the results file names another place.

    Raises:
        OSError: the file cannot be opened, is not a regular file, or is outside the folder.
    """
    folder = path.absolute().parent
    root = next((parent.parent for parent in (folder, *folder.parents) if parent.name == "results"), folder)
    return open_regular(path.parent / str(block["details"]), root)


# Metrics in aigo-bridge's block. They belong to the details they were computed from, whose checksum is stored
# with them. If the details were modified, the metrics are ignored.


NUMBERS = "numbers"


def numbers_in(path: Path, block: Mapping[str, Any]) -> StoredNumbers | None:
    """Return the stored metrics of a results file; `None` if missing or if they belong to other
    details.
    """
    stored = block.get(NUMBERS)
    if not isinstance(stored, dict):
        return None
    try:
        if stored.get("details") != _digest(path, block):
            return None
        return numbers_from_json(stored.get("numbers"))
    except (EvidenceError, OSError):
        return None


def store_numbers(path: Path, numbers: StoredNumbers) -> None:
    """Rewrite the results file with these metrics in aigo-bridge's block.

    Raises:
        OSError: the file cannot be written.
    """
    results = json.loads(path.read_bytes())
    block = results[BLOCK]
    block[NUMBERS] = {"details": _digest(path, block), "numbers": numbers.to_json()}
    with open_for_replacing(path, clean=False) as file:
        file.write(json.dumps(results, indent=2, ensure_ascii=False).encode())


def _digest(path: Path, block: Mapping[str, Any]) -> str | None:
    if block.get("details") is None:
        return None
    digest = hashlib.sha256()
    with open_details(path, block) as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


BATCH = 64
"""Number of documents that are read from the details together."""


def read(path: Path) -> Evidence:
    """Read a results file of aigo-bridge and the details that belong to it.

    Raises:
        EvidenceError: the file is not a lighteval results file, or aigo-bridge did not write it. Also
            raised while trials are read if details are missing or damaged, to prevent a silent loss of
            samples.
    """
    block = block_of(path)
    plan = logged_plan(block["plan"])
    execution, models = _execution(path, block)

    def trials() -> Iterator[TrialRecord]:
        for row_id, data, solved, scored in stored_trials(path, block):
            sample = Sample(row_id, data)
            for index, output in enumerate(solved):
                if output is not None and scored[index] is not None:
                    yield from trial_records(sample, index, output, scored[index], plan.outline)

    return Evidence(plan, execution, models, trials, numbers_in(path, block))


def _execution(path: Path, block: Mapping[str, Any]) -> tuple[Execution, dict[str, str]]:
    """Return the execution, and a mapping from AI GO model key (`""`: evaluated model) to lighteval model
    name.

    Raises:
        EvidenceError: aigo-bridge's block is damaged.
    """
    try:
        execution = Execution(
            status=str(block["status"]),
            started_at=float(block["started_at"]),
            ended_at=float(block["ended_at"]),
            error=block.get("error"),
            model_usage={
                str(model): {str(name): int(number) for name, number in usage.items()}
                for model, usage in (block.get("model_usage") or {}).items()
            },
        )
        return execution, {str(key): str(name) for key, name in block["models"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise EvidenceError(
            f"{str(path)!r}: the part that aigo-bridge wrote is damaged: {error}", code=Code.DAMAGED_LOG
        ) from error


def block_of(path: Path) -> Json:
    """Return aigo-bridge's block of a results file.

    Raises:
        EvidenceError: the block is missing, or a newer release wrote it.
    """
    try:
        results = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise EvidenceError(
            f"{str(path)!r} cannot be read as lighteval results: {error}", code=Code.UNREADABLE_LOG
        ) from error
    block = results.get(BLOCK) if isinstance(results, dict) else None
    if not isinstance(block, dict) or not isinstance(block.get("plan"), dict):
        raise EvidenceError(
            f"{str(path)!r} was not written by aigo-bridge: it contains no plan", code=Code.LOG_WITHOUT_PLAN
        )
    if block.get("format") != FORMAT:
        raise EvidenceError(
            f"{str(path)!r} has format {block.get('format')!r}, this release reads format {FORMAT}",
            code=Code.OTHER_RELEASE,
        )
    return block


def stored_trials(
    path: Path, block: Mapping[str, Any]
) -> Iterator[tuple[str | int, Mapping[str, Any], list[Json | None], list[Any]]]:
    """Yield id, row, solver outcomes and scorer outcomes of each sample. A trial that did not finish is
    `None`.

    Raises:
        EvidenceError: the details are missing or damaged.
    """
    if block.get("details") is None:
        return
    details = path.parent / str(block["details"])
    require_parquet(str(details))
    import pyarrow as pa  # type: ignore[import-untyped]  # no type stubs
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # no type stubs

    try:
        with open_details(path, block) as opened, pq.ParquetFile(opened) as file:
            for batch in file.iter_batches(
                BATCH, columns=["doc.specific.aigo", "model_response.aigo", "metric.aigo"]
            ):
                rows, responses, metrics = (
                    batch.column(name) for name in ("doc", "model_response", "metric")
                )
                texts = zip(
                    rows.field("specific").field("aigo").to_pylist(),
                    responses.field("aigo").to_pylist(),
                    metrics.field("aigo").to_pylist(),
                    strict=True,
                )
                for row, solved, scored in texts:
                    sample = json.loads(row)
                    yield sample["id"], sample["data"], json.loads(solved), json.loads(scored)
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise EvidenceError(
            f"{str(details)!r}: the details cannot be read: {error}", code=Code.UNREADABLE_LOG
        ) from error


def trial_records(
    sample: Sample, index: int, solved: Json, scored: ScoredTrial | Json, outline: TaskOutline
) -> list[TrialRecord]:
    """Return the records of a trial: one, or one for each row of its post-processor.

    Args:
        sample: the sample that was run.
        index: trial number.
        solved: solver outcome.
        scored: scorer outcomes, either as stored in the details or as objects.
        outline: outline of the plan.
    """
    result = load_solution(solved, sample)
    if result is not None:
        events = _events(solved, as_json(scored))
        ios = exchanges(direct_ios(solved["record"]) if "record" in solved else ())
        if isinstance(result, SampleFailure):
            trace = Trace.model_validate({"items": _asked(solved), "events": events})
            solver = SolverTrace(trace=trace, raw_outputs=[], direct_ios=ios)
            return [TrialRecord(sample.id, index, sample.data, solver, (), (result.to_error(),))]
        has_rows = "rows" in solved and bool(result.rows)
        _add_run(result.rows[0].output if has_rows else result.output, events, ios)

    def results(key: str, row_id: str | None) -> Iterator[tuple[Score | SampleFailure, list[Json]]]:
        for scored_row, outcome, record in results_of(scored, key):
            if scored_row == row_id:
                yield outcome, direct_ios(record) if record else []

    return solved_records(sample, index, result, outline, results, has_rows="rows" in solved)


def _asked(solved: Json) -> list[Any]:
    """Return the conversation of the last call before the solver failed."""
    calls = solved["record"]["calls"] if "record" in solved else []
    return [*calls[-1]["input"], *calls[-1]["output"]] if calls else []


def _add_run(output: SolverOutput | None, events: list[Json], ios: list[DirectModelIO]) -> None:
    solver = first_trace(output)
    if solver is not None:
        run = Trace.model_validate({"items": [], "events": events})
        solver.trace.events = [*(solver.trace.events or []), *(run.events or [])]
        solver.direct_ios = ios or solver.direct_ios


def _events(solved: Json, scored: Json) -> list[Json]:
    events: list[Json] = []
    if "record" in solved:
        events += call_events(solved["record"], "solver")
    for key, results in scored.items():
        for number, (_, _, record) in enumerate(results):
            if record is not None:
                events += call_events(record, f"scorer:{key}:{number}")
    return events


# Earlier runs in a folder and their finished trials, for `execution.jobs`


Finished = tuple[TrialStore[SolvedTrial], TrialStore[ScoredTrial]]
"""Solver and scorer outcomes."""


def earlier_runs(out: Path) -> list[EarlierRun]:
    """Return aigo-bridge's results files in a folder, newest first."""
    malformed = (AttributeError, RecursionError, TypeError, ValueError)
    return jobs.earlier_runs(out.glob("results/*/results_*.json"), _head, malformed)


def _head(path: Path) -> EarlierRun:
    block = block_of(path)
    execution, models = _execution(path, block)
    return EarlierRun(
        path=path,
        plan=block["plan"],
        status=execution.status,
        models=models,
        # lighteval does not support a cost limit.
        limits=(*(block.get("limits") or ()), None),
        datasets=block.get("datasets") or {},
        times=(execution.started_at, execution.ended_at),
    )


def _count_finished(run: EarlierRun, plan: TaskPlan) -> int:
    return _finished(run, plan)[1]


def _finished(run: EarlierRun, plan: TaskPlan) -> tuple[Finished, int]:
    """Return the solver and scorer outcomes of all trials that finished without a failure."""
    numbers = {str(sample.id): number for number, sample in enumerate(plan.samples)}
    solver_outcomes: TrialStore[SolvedTrial] = TrialStore()
    scorer_outcomes: TrialStore[ScoredTrial] = TrialStore()
    for sample_id, _, solved, scored in stored_trials(run.path, block_of(run.path)):
        for trial, (output, results) in enumerate(zip(solved, scored, strict=True)):
            if output is None or results is None or "failure" in output or _has_failed(results):
                continue
            number = numbers[str(sample_id)]
            solver_outcomes.add((number, trial), output)
            scorer_outcomes.add((number, trial), results)
    return (solver_outcomes, scorer_outcomes), len(solver_outcomes)


def _has_failed(scored: Json) -> bool:
    return any("failure" in stored for results in scored.values() for _, stored, _ in results)


EARLIER_LOGS = EarlierLogs(earlier_runs, _count_finished, _finished)
"""Earlier runs that a job can resume."""
