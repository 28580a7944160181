"""Evidence of aigo-bridge runs in lighteval's files: writing, reading and resuming it without lighteval."""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

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
    dump_solution,
    exchanges,
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
from aigo_bridge.results.stop_reasons import outputs_of
from aigo_bridge.scoring.scorer import Score
from aigo_lighteval.models.models import CallLog, call_events, direct_ios, tokens_used
from aigo_lighteval.versions import require_parquet

BLOCK = "aigo_bridge"
"""Key of aigo-bridge's block in the results file."""

FORMAT = 1
"""Format version of the block and of the JSON texts in the details."""


def solved_json(result: Solution | SampleFailure, record: CallLog, *, postprocessed: bool) -> Json:
    """Return the solver outcome of a trial as stored in the details.

    With `postprocessed`, the rows of the plan's post-processor are stored.
    """
    try:
        fields = dump_solution(result, _dump, postprocessed=postprocessed)
    except (ValueError, RecursionError) as error:
        # Task code can return output that is nested too deeply to be written. Only that sample fails.
        message = f"the output cannot be written as JSON: {error}"
        fields = {"failure": SampleFailure("solver", "InvalidSolverOutput", message).to_json()}
    return {**fields, "record": record.to_json()}


def _dump(output: SolverOutput) -> Json:
    # AI GO's default dump omits fields that were not set.
    dumped: Json = output.model_dump(mode="json", exclude_unset=False, exclude_none=True)
    return dumped


def calls_of_solver(solved: Json) -> list[Json]:
    """Return the recording of the solver's calls in one trial; empty without a solver."""
    return [solved["record"]] if "record" in solved else []


def calls_of_scorers(scored: Json) -> list[Json]:
    """Return the recordings of the calls of all scorers in one trial."""
    return [record for rows in scored.values() for _, _, record in rows if record is not None]


Trial = tuple[int, int]
"""Sample number and trial number."""

json_text = json.JSONEncoder(default=str).encode
"""Function that returns the JSON text for the details. It is ASCII because Arrow rejects lone surrogates."""


def sum_of(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the sum of input and output tokens; `None` if some are unknown."""
    return None if one is None or other is None else (one[0] + other[0], one[1] + other[1])


class TrialStore:
    """JSON texts of outcomes by trial, in a temporary file."""

    def __init__(self, calls: Callable[[Json], list[Json]]) -> None:
        self._calls = calls
        self._contents: dict[Trial, int | bytes] = {}
        """Numbers of outcomes in the file, or outcomes if the disk is full."""
        self._file = SpillFile()
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._decompressor = zstandard.ZstdDecompressor()
        self.usage: dict[str, tuple[int, int] | None] = {}
        """Model → input and output tokens of all calls; `None` after a call of unknown tokens."""

    def add(self, trial: Trial, outcome: Json, facts: Any = None) -> None:
        """Add the outcome of a trial, and facts about it as plain data."""
        content = self._compressor.compress(marshal.dumps((json_text(outcome), facts)))
        try:
            self._file.append(content)
            self._contents[trial] = len(self._file) - 1
        except OSError:
            self._contents[trial] = content
        for record in self._calls(outcome):
            for model, tokens in tokens_used(record):
                self.usage[model] = sum_of(self.usage.get(model, (0, 0)), tokens)

    def get(self, trial: Trial) -> tuple[str, Any]:
        """Return the outcome of a trial as JSON text, and the facts; `null` without an outcome."""
        content = self._contents.get(trial)
        if content is None:
            return "null", None
        if isinstance(content, int):
            (content,) = self._file.read(content, content + 1)
        stored: tuple[str, Any] = marshal.loads(self._decompressor.decompress(content))  # noqa: S302  # written by this process
        return stored

    def outcome(self, trial: Trial) -> Any:
        """Return the outcome of a trial; `None` without an outcome."""
        return json.loads(self.get(trial)[0])

    def __contains__(self, trial: Trial) -> bool:
        return trial in self._contents

    def __len__(self) -> int:
        return len(self._contents)


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
    sample: Sample, index: int, solved: Json, scored: Json, outline: TaskOutline
) -> list[TrialRecord]:
    """Return the records of a trial: one, or one for each row of its post-processor.

    Args:
        sample: the sample that was run.
        index: trial number.
        solved: solver outcome.
        scored: scorer outcomes.
        outline: outline of the plan.
    """
    result = load_solution(solved, sample)
    if result is not None:
        events = _events(solved, scored)
        ios = exchanges(direct_ios(solved["record"]) if "record" in solved else ())
        if isinstance(result, SampleFailure):
            trace = Trace.model_validate({"items": _asked(solved), "events": events})
            solver = SolverTrace(trace=trace, raw_outputs=[], direct_ios=ios)
            return [TrialRecord(sample.id, index, sample.data, solver, (), (result.to_error(),))]
        has_rows = "rows" in solved and bool(result.rows)
        _add_run(result.rows[0].output if has_rows else result.output, events, ios)

    def results(key: str, row_id: str | None) -> Iterator[tuple[Score | SampleFailure, list[Json]]]:
        for scored_row, stored, record in scored.get(key, ()):
            if scored_row == row_id:
                yield load_result(stored), direct_ios(record) if record else []

    return solved_records(sample, index, result, outline, results, has_rows="rows" in solved)


def _asked(solved: Json) -> list[Any]:
    """Return the conversation of the last call before the solver failed."""
    calls = solved["record"]["calls"] if "record" in solved else []
    return [*calls[-1]["input"], *calls[-1]["output"]] if calls else []


def _add_run(output: SolverOutput | None, events: list[Json], ios: list[DirectModelIO]) -> None:
    solver = next(iter(outputs_of({"solver": {"output": output}})), None)
    if isinstance(solver, SolverTrace):
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


Finished = tuple[TrialStore, TrialStore]
"""Solver and scorer outcomes."""


def no_outcomes() -> Finished:
    """Return empty stores for solver and scorer outcomes."""
    return TrialStore(calls_of_solver), TrialStore(calls_of_scorers)


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
    solver_outcomes, scorer_outcomes = no_outcomes()
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
