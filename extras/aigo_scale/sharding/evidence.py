"""Evidence of shards as evidence of one run: all trials in the order of the rows.

Only the trials of a shard are used. They are read as a stream from one log at a time, so that memory does not
grow with the number of samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import anyio

from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import Capabilities, Engine
from aigo_bridge.engine.protocol import Evidence, Execution, Gap, Job, LogRef, RunSettings
from aigo_bridge.errors import EngineError, EvidenceError, Issue
from aigo_bridge.execution.codec import dump_result, load_result
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.execution.program import contained
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.plan.logged_plan import LoggedPlan
from aigo_bridge.plan.plan import SNIPPET_LEVELS, Sample, TaskPlan
from aigo_bridge.plan.shards import ShardRows
from aigo_bridge.results.assembling import scores_data
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.scoring.registry import CompiledScorer, compile_scorers
from aigo_bridge.text.plurals import plural
from aigo_scale.sharding.manifest import Identity, ShardJob
from aigo_scale.sharding.shard_matching import FoundShard, Shards, shard_numbers

"""Evaluation, name of the result, and run number."""


@dataclass(frozen=True)
class _Part:
    """Log of one shard, with its execution."""

    shard: FoundShard
    job: ShardJob
    log: Path
    execution: Execution


def merged_evidence(shards: Shards, identity: Identity, engine: Engine) -> tuple[LogRef, Evidence]:
    """Return the combined evidence of one job in all shards, and its first log.

    Raises:
        EvidenceError: a log is missing, cannot be read, or does not match the manifest.
    """
    parts: list[_Part] = []
    plans: list[LoggedPlan] = []
    models: Mapping[str, str] = {}
    problems: list[Issue] = []
    for one in shards.found:
        job = one.job(identity)
        if job.log is None:
            continue
        log = one.folder / job.log
        try:
            evidence = engine.read(log)
            _check(one, job, evidence)
        except EvidenceError as error:
            problems += error.issues or (Issue(str(error), file=str(log), code=Code.DAMAGED_LOG),)
            continue
        parts.append(_Part(one, job, log, evidence.execution))
        plans, models = plans or [evidence.plan], models or evidence.models
        levels = [plan.snippets for plan in (plans[0], evidence.plan) if plan.snippets is not None]
        # If machines confine code differently, record the weakest level.
        plans = [replace(plans[0], snippets=max(levels, key=SNIPPET_LEVELS.index, default=None))]
    if problems:
        raise EvidenceError(problems)
    if not parts:
        raise EvidenceError(
            f"no shard has a log of {identity[1]!r}, so there is nothing to merge", code=Code.SHARDS_MISSING
        )
    # Each log is opened only when it is read, so that memory is needed for one at a time.
    evidence = Evidence(
        replace(plans[0], shard=None), _execution(shards, parts), models, lambda: _trials(parts, engine)
    )
    return LogRef(engine.name, parts[0].log), evidence


def _check(shard: FoundShard, job: ShardJob, evidence: Evidence) -> None:
    """Check that a log belongs to the plan and rows of its shard."""
    plan = evidence.plan
    if plan.damage:
        raise EvidenceError("; ".join(plan.damage), code=Code.DAMAGED_LOG)
    if plan.digest != job.digest:
        raise EvidenceError(
            f"the log belongs to another plan ({plan.digest:.12}) than its shard ({job.digest:.12})",
            code=Code.SHARDS_APART,
        )
    if plan.shard != ShardRows(shard.shard, job.total):
        rows = (
            "all rows"
            if plan.shard is None
            else f"shard {plan.shard.shard} of {plural(plan.shard.total, 'row')}"
        )
        raise EvidenceError(
            f"the log belongs to {rows}, not to shard {shard.shard} of {job.total}", code=Code.SHARDS_APART
        )
    models = {key: name for key, name in evidence.models.items() if key in job.models}
    if set(models) != set(job.models):
        raise EvidenceError("the log belongs to other models than its shard", code=Code.SHARDS_APART)


def _trials(parts: Sequence[_Part], engine: Engine) -> Iterator[TrialRecord]:
    for part in parts:
        count, latest = 0, None
        for record in engine.read(part.log).trials():
            if (type(record.planned_id), record.planned_id) != latest:
                latest = (type(record.planned_id), record.planned_id)
                count += 1
            yield record
        if count != part.job.num_samples:
            message = (
                f"shard {part.shard.shard} has {plural(count, 'sample')}, and had"
                f" {part.job.num_samples} when it ended"
            )
            raise EvidenceError(message, file=str(part.log), code=Code.SHARDS_APART)


def _execution(shards: Shards, parts: Sequence[_Part]) -> Execution:
    """Return the combined execution, from the start of the first shard to the end of the last."""
    executions = [part.execution for part in parts]
    usage: dict[str, dict[str, int]] = {}
    for execution in executions:
        for model, tokens in execution.model_usage.items():
            total = usage.setdefault(model, {})
            for name, number in tokens.items():
                total[name] = total.get(name, 0) + number
    status, error = "success", None
    for part in parts:
        if part.execution.status != "success":
            status = part.execution.status
            error = f"shard {part.shard.shard}: {part.execution.error or status}"
            break
    if shards.missing:
        missing = f"{shard_numbers(shards.missing)} of {shards.first.of} not among them"
        status, error = "partial", missing if error is None else f"{missing}; {error}"
    return Execution(
        status=status,
        started_at=min(execution.started_at for execution in executions),
        ended_at=max(execution.ended_at for execution in executions),
        error=error,
        model_usage=usage,
    )


def shard_logs(shards: Shards, identity: Identity, engine: Engine) -> list[Path]:
    """Return the files of all native logs of one job in its shards."""
    logs = [one.folder / log for one in shards.found if (log := one.job(identity).log) is not None]
    return [file for log in logs for file in engine.capabilities.log_files(log)]


class MergedEngine:
    """Engine that reads merged evidence. It does not have its own logs."""

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, engine: Engine, merged: Mapping[Path, Evidence]):
        """Store the evidence of merged shards by their first log."""
        self.name = engine.name
        self._merged = merged

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """Return no gaps because the shards have already run."""
        return ()

    def run(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        """Return errors because a merge does not run tasks."""
        return [EngineError("a merge does not run models", code=Code.FAILED_ENGINE) for _ in jobs]

    def read(self, log: Path) -> Evidence:
        """Return the merged evidence by its first log."""
        return self._merged[log]


def merged_engine(
    engine: Engine, merged: Mapping[Path, Evidence], files: Mapping[Path, Sequence[Path]]
) -> MergedEngine:
    """Return an engine that reads merged evidence and lists the files of all its logs, by first log."""

    class OfShards(MergedEngine):
        capabilities: ClassVar[Capabilities] = Capabilities(log_files=lambda log: files[log])

    return OfShards(engine, merged)


# Scorers that see all samples. In every shard, their code got all rows and returned some of the scores.


def check_seen_together(evidence: Evidence, plan: TaskPlan) -> None:
    """Compare the scores of scorers that see all samples with a single call over all rows.

    Each shard has called the code with all rows of the plan. The parts fit together only if every call
    returns the same scores.

    Raises:
        EvidenceError: the scores differ.
    """
    together = (
        [scorer for scorer in plan.benchmark.scorers if scorer.sees_all_samples]
        if plan.entity != "system"
        else []
    )
    if not together:
        return
    host = snippet_host(plan)
    try:
        compiled = [
            scorer
            for scorer in compile_scorers(
                plan.benchmark.scorers,
                samples=plan.samples,
                host=host,
                snippet_place=lambda number: plan.snippet_place("scorers", number, "compute_scores_snippet"),
            )
            if scorer.spec.sees_all_samples
        ]
        anyio.run(_compare, compiled, evidence)
    finally:
        host.close()


async def _compare(scorers: Sequence[CompiledScorer], evidence: Evidence) -> None:
    for record in evidence.trials():
        if any(error.stage is not None and error.stage.value == "solver" for error in record.errors):
            continue
        for scorer in scorers:
            sample = Sample(record.sample_id, record.data)
            result = await contained(scorer.score(sample, record.solver, cast("Any", None)), "score")
            expected = load_result(dump_result(result))
            score = next((score for score in record.scores if score.scorer_key == scorer.key), None)
            if isinstance(expected, SampleFailure):
                is_same = score is None
            else:
                data = scores_data(scorer.key, scorer.purpose, None, expected.values, expected.metadata)
                is_same = score is not None and _equal(dict(score.values), dict(data.values))
            if not is_same:
                raise EvidenceError(
                    f"scorer {scorer.key!r} is not deterministic: sample {record.sample_id!r} had "
                    "other scores in its shard than now; fix its random seed, or run the task "
                    "without shards",
                    code=Code.SHARDS_APART,
                )


def _equal(left: object, right: object) -> bool:
    return repr(left) == repr(right) or left == right
