"""A results file of our own run, read back as evidence: from lighteval's two files alone, without lighteval, without the task file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import (
    DirectModelIO,
    GroupedSolverTrace,
    ScoresData,
    SolverOutput,
    SolverTrace,
    TaskResultError,
    Trace,
)
from aigo_bridge.engine import Evidence, Execution
from aigo_bridge.errors import EvidenceError
from aigo_bridge.plan import Sample, TaskPlan, plan_from_header
from aigo_bridge.program import Failure
from aigo_bridge.results.assembling import scores_data
from aigo_bridge.results.trials import TrialRecord
from aigo_bridge.scoring import scorer_keys
from aigo_bridge.system_tasks import SCORER_KEY
from aigo_lighteval import recording
from aigo_lighteval.parquet import require_parquet
from aigo_lighteval.stored import BLOCK, FORMAT, Json, Scored, as_json, load_solution, results_of

BATCH = 64
"""Documents that are read from the details at a time."""


def read(path: Path) -> Evidence:
    """What a results file of ours, and the details beside it, say.

    Raises:
        EvidenceError: the file is no results file of lighteval, or none that aigo-bridge has written; while trials are read, also
            when details are missing or damaged, so that no sample goes missing silently.
    """
    block = block_of(path)
    plan = plan_from_header(block["plan"])
    execution = Execution(
        status=str(block["status"]),
        started_at=float(block["started_at"]),
        ended_at=float(block["ended_at"]),
        error=block.get("error"),
        model_usage=block.get("model_usage") or {},
    )

    def trials() -> Iterator[TrialRecord]:
        for row_id, data, solved, scored in stored_trials(path, block):
            sample = Sample(row_id, data)
            for index, left in enumerate(solved):
                if left is not None and scored[index] is not None:
                    yield from trial_records(sample, index, left, scored[index], plan)

    return Evidence(plan, execution, dict(block["models"]), trials)


def block_of(path: Path) -> Json:
    """Our block in a results file.

    Raises:
        EvidenceError: there is none, or a newer release wrote it.
    """
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise EvidenceError(f"{str(path)!r} cannot be read as lighteval results: {error}") from error
    block = found.get(BLOCK) if isinstance(found, dict) else None
    if not isinstance(block, dict) or not isinstance(block.get("plan"), dict):
        raise EvidenceError(f"{str(path)!r} was not written by aigo-bridge: it carries no plan")
    if block.get("format") != FORMAT:
        raise EvidenceError(
            f"{str(path)!r} has format {block.get('format')!r}, this release reads format {FORMAT}"
        )
    return block


def stored_trials(
    path: Path, block: Mapping[str, Any]
) -> Iterator[tuple[str | int, Mapping[str, Any], list[Json | None], list[Any]]]:
    """Id, row, and what solver and scorers left of each trial (`None`: not finished), sample by sample.

    Raises:
        EvidenceError: the details are missing or damaged.
    """
    if block.get("details") is None:
        return
    details = path.parent / str(block["details"])
    require_parquet(str(details))
    import pyarrow as pa  # type: ignore[import-untyped]  # ships none
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

    try:
        with pq.ParquetFile(details) as file:
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
        raise EvidenceError(f"{str(details)!r}: the details cannot be read: {error}") from error


def trial_records(
    sample: Sample, index: int, solved: Json, scored: Scored | Json, plan: TaskPlan
) -> list[TrialRecord]:
    """One trial: one record, or one for each row that its post-processor made; none of a trial that never was.

    Args:
        sample: the sample that was run.
        index: number of the trial.
        solved: what its solver left.
        scored: what its scorers left, as it stands in the details or as they gave it.
        plan: the plan.
    """
    solution = load_solution(solved, sample)

    def record(row_id: str | None, data: Mapping[str, Any], solver: SolverOutput | None) -> TrialRecord:
        scores, failures = _scores(scored, plan, row_id)
        return TrialRecord(
            sample_id=sample.id if row_id is None else row_id,
            index=index,
            data=data,
            solver=solver,
            scores=scores,
            errors=failures,
            source_id=None if row_id is None else sample.id,
        )

    if solution is None:
        return [record(None, sample.data, None)]
    spans = _spans(solved, as_json(scored))
    ios = (
        [DirectModelIO.model_validate(io) for io in recording.direct_ios(solved["record"])]
        if "record" in solved
        else []
    )
    if isinstance(solution, Failure):
        trace = Trace.model_validate({"items": _asked(solved), "events": spans})
        made = SolverTrace(trace=trace, raw_outputs=[], direct_ios=ios)
        return [TrialRecord(sample.id, index, sample.data, made, (), (solution.to_error(),))]
    if solution.absent:
        return []
    if "rows" not in solved or not solution.rows:
        return [record(None, sample.data, _with_run(solution.output, spans, ios))]
    first, *others = solution.rows
    assert first.output is not None
    return [
        record(str(first.sample.id), first.sample.data, _with_run(first.output, spans, ios)),
        *(record(str(other.sample.id), other.sample.data, other.output) for other in others),
    ]


def _asked(solved: Json) -> list[Any]:
    """What was said before a solver failed: the last call's conversation."""
    calls = solved["record"]["calls"] if "record" in solved else []
    return [*calls[-1]["input"], *calls[-1]["output"]] if calls else []


def _with_run(output: SolverOutput, spans: list[Json], ios: list[DirectModelIO]) -> SolverOutput:
    """A solver's output with everything that happened in the run as events of its trace; of a group, the first one's."""
    if isinstance(output, GroupedSolverTrace):
        group = output.solver_outputs
        first = group[0] if isinstance(group, list) else next(iter(group.values()))
        _with_run(first, spans, ios)
    elif isinstance(output, SolverTrace):
        own = Trace.model_validate({"items": [], "events": spans})
        output.trace.events = [*(output.trace.events or []), *(own.events or [])]
        output.direct_ios = ios or output.direct_ios
    return output


def _spans(solved: Json, scored: Json) -> list[Json]:
    events: list[Json] = []
    if "record" in solved:
        events += recording.events(solved["record"], "solver")
    for key, results in scored.items():
        for number, (_, _, record) in enumerate(results):
            if record is not None:
                events += recording.events(record, f"scorer:{key}:{number}")
    return events


def _scores(
    scored: Scored | Json, plan: TaskPlan, row_id: str | None
) -> tuple[tuple[ScoresData, ...], tuple[TaskResultError, ...]]:
    found: list[ScoresData] = []
    errors: list[TaskResultError] = []
    for key, purpose, display_name in _scorers(plan):
        for named, result, record in results_of(scored, key):
            if named != row_id:
                continue
            if isinstance(result, Failure):
                errors.append(result.to_error(f"scorer {key!r}" if plan.entity != "system" else None))
                continue
            ios = [DirectModelIO.model_validate(io) for io in recording.direct_ios(record)] if record else []
            found.append(scores_data(key, purpose, display_name, result.values, result.metadata, ios))
    return tuple(found), tuple(errors)


def _scorers(plan: TaskPlan) -> Iterator[tuple[str, str, str | None]]:
    """Key, purpose and shown name of every scorer."""
    if plan.entity == "system":
        yield SCORER_KEY, "score", None
        return
    scorers = plan.benchmark.scorers
    for scorer, key in zip(scorers, scorer_keys(scorers), strict=True):
        yield key, scorer.purpose, scorer.display_name
