"""Run of one shard: its rows, in a separate folder with a manifest.

A shard does not compute metrics because metrics over a part of the rows are meaningless. It stores the
engine's native logs, from which a merge creates the results of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkRun
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.protocol import Job, LogRef, RunSettings
from aigo_bridge.errors import BridgeError, EngineError, UsageError
from aigo_bridge.evaluation.planning import Evaluation
from aigo_bridge.evaluation.running import ReadyEvaluation, tolerant_jobs
from aigo_bridge.execution.jobs import make_folder
from aigo_bridge.plan.shards import Shard
from aigo_bridge.results.assembling import RunningTotals, count_samples
from aigo_bridge.results.internal_errors import FirstError, explained
from aigo_bridge.text.plurals import plural
from aigo_scale.sharding.manifest import (
    FILE,
    FORMAT,
    LOCK,
    ShardJob,
    ShardManifest,
    digests_in,
    plan_identity,
    read_manifest,
    sole,
    versions_of,
    write_manifest,
)


@dataclass(frozen=True)
class PartOutcome:
    """Outcome of a shard's part of one plan."""

    job: ShardJob
    rows: tuple[int, int]
    status: str
    """`success`, or the engine's own status."""
    num_reused: int = 0
    """Number of trials reused from the shard's interrupted run."""
    first_errors: tuple[FirstError, ...] = ()

    @property
    def num_planned(self) -> int:
        """Return the number of the plan's rows in the shard."""
        return self.rows[1] - self.rows[0]

    def passed(self, tolerated: int) -> bool:
        """Return whether the part finished without exceeding the tolerated failures."""
        missing = self.num_planned - self.job.num_samples
        few = self.job.num_failed + missing <= tolerated
        few_trials = self.job.num_failed_trials <= tolerated * self.job.trials
        return self.status == "success" and few and few_trials


@dataclass(frozen=True)
class ShardOutcome:
    """Outcome of a shard."""

    folder: Path
    manifest: ShardManifest
    parts: tuple[PartOutcome, ...]
    was_complete: bool = False
    """Whether an earlier run had already completed the shard."""


def run_shard(
    evaluations: Sequence[ReadyEvaluation],
    engine: Engine,
    settings: RunSettings,
    shard: Shard,
    *,
    resume: bool = False,
    fail_on_error: str | None = None,
) -> ShardOutcome:
    """Run one shard of evaluations in its folder below `settings.out`. The plans already contain only its
    rows.

    Raises:
        UsageError: a specification does not support shards, the folder already contains a shard, or
            another run of it is in progress.
        EngineError: the engine failed before the run started.
        EvidenceError: the folder has other content.
    """
    _refuse_pending(evaluations)
    folder = settings.out / shard.folder
    settings = replace(settings, out=folder)
    jobs = [
        (one.evaluation, job)
        for one in evaluations
        for entry in one.entries
        for job in tolerant_jobs(entry, fail_on_error)
    ]
    make_folder(folder)
    with sole(folder / LOCK, f"shard {shard} is being run in {str(folder)!r} already"):
        begun = begun_shard(
            engine,
            settings,
            shard,
            [_shard_job(evaluation, job) for evaluation, job in jobs],
            is_task=evaluations[0].evaluation.is_task,
        )
        earlier = earlier_shard(folder, begun, resume=resume)
        if earlier is not None and earlier.status == "complete":
            return complete_already(folder, earlier)
        write_manifest(folder, begun)
        return ended_shard(folder, begun, _run(begun, jobs, engine, settings))


def complete_already(folder: Path, earlier: ShardManifest) -> ShardOutcome:
    """Return the outcome of a shard that an earlier run has completed."""
    parts = tuple(PartOutcome(part, earlier.shard.bounds(part.total), "success") for part in earlier.jobs)
    return ShardOutcome(folder, earlier, parts, was_complete=True)


def ended_shard(folder: Path, begun: ShardManifest, parts: Sequence[PartOutcome]) -> ShardOutcome:
    """Write the outcome of a shard with the checksums of its files."""
    is_complete = all(part.status == "success" and part.job.num_samples == part.num_planned for part in parts)
    ended = replace(
        begun,
        status="complete" if is_complete else "stopped",
        jobs=tuple(part.job for part in parts),
        files=digests_in(folder),
    )
    write_manifest(folder, ended)
    return ShardOutcome(folder, ended, tuple(parts))


def _refuse_pending(evaluations: Sequence[ReadyEvaluation]) -> None:
    problems = [
        f"--shard: the rows of {entry.entry.key!r} come from the result of "
        f"{entry.entry.pending!r}, which exists only after the merge; run it separately "
        f"(FILE#SPECIFICATION with --dataset {entry.entry.pending}=RESULT)"
        for one in evaluations
        for entry in one.entries
        if entry.entry.pending is not None
    ]
    if problems:
        raise UsageError("\n".join(problems), code=Code.OPTIONS_APART)
    if not any(entry.jobs for one in evaluations for entry in one.entries):
        raise UsageError(
            "--shard: nothing to run, because every specification uses a stored result",
            code=Code.NOTHING_TO_RUN,
        )


def begun_shard(
    engine: Engine,
    settings: RunSettings | BenchmarkRun,
    shard: Shard,
    jobs: Sequence[ShardJob],
    *,
    benchmark: str | None = None,
    is_task: bool = False,
) -> ShardManifest:
    """Return the manifest that is written before the shard runs."""
    checks = engine.capabilities.checks
    return ShardManifest(
        format=FORMAT,
        number=shard.number,
        of=shard.of,
        status="started",
        engine=engine.name,
        versions=versions_of({} if checks is None else {check.subject: check.found for check in checks()}),
        limits={name: getattr(settings, name) for name in ("time_limit", "token_limit", "cost_limit")},
        is_task=is_task,
        benchmark=benchmark,
        jobs=tuple(jobs),
    )


def _shard_job(evaluation: Evaluation, job: Job) -> ShardJob:
    plan = job.plan
    assert plan.shard is not None  # set by the planner
    is_asked = plan.calls_model or plan.entity == "model"
    key, name, run = plan_identity(evaluation, plan)
    return ShardJob(
        evaluation=key,
        key=name,
        run=run,
        digest=plan.digest,
        total=plan.shard.total,
        trials=plan.num_trials,
        models={**({"": job.model} if is_asked and job.model is not None else {}), **job.model_map},
        fingerprints=dict(plan.fingerprints),
    )


def earlier_shard(folder: Path, begun: ShardManifest, *, resume: bool) -> ShardManifest | None:
    """Return the manifest of an earlier run of the shard; `None` if missing.

    Raises:
        UsageError: a manifest exists without `resume`, or it belongs to another run.
        EvidenceError: the manifest is damaged.
    """
    if not (folder / FILE).exists():
        return None
    earlier = read_manifest(folder)
    if not resume:
        raise UsageError(
            f"--out: {str(folder)!r} already contains this shard ({earlier.status}); "
            "continue it with --resume, or choose another --out",
            code=Code.PLACE_IN_USE,
        )
    differences = differing(begun, earlier)
    if differences:
        raise UsageError(
            f"--resume: {str(folder)!r} is a shard of another run ({'; '.join(differences)});"
            " use another --out",
            code=Code.PLACE_IN_USE,
        )
    return earlier


def differing(first: ShardManifest, other: ShardManifest) -> list[str]:
    """Return the differences that show that two manifests belong to different runs."""
    problems = []
    if first.of != other.of:
        problems.append(f"it is one of {plural(other.of, 'shard')}, not of {first.of}")
    if first.engine != other.engine:
        problems.append(f"it was run on {other.engine}, not on {first.engine}")
    for name in dict.fromkeys([*first.versions, *other.versions]):
        version, other_version = first.versions.get(name), other.versions.get(name)
        if version != other_version:
            problems.append(f"{name} was {other_version}, not {version}")
    for name, limit in first.limits.items():
        if other.limits.get(name) != limit:
            problems.append(f"--{name.replace('_', '-')} was {other.limits.get(name)}, not {limit}")
    jobs = {job.identity: job for job in other.jobs}
    for job in first.jobs:
        same = jobs.pop(job.identity, None)
        problems += [f"it has no {job.key!r}"] if same is None else _other_job(job, same)
    return [*problems, *(f"it also has {job.key!r}" for job in jobs.values())]


def _other_job(job: ShardJob, other: ShardJob) -> list[str]:
    problems = []
    if job.digest != other.digest:
        problems.append(
            f"the task {job.key!r} or its data have changed: the plan's digest is {other.digest:.12}, not"
            f" {job.digest:.12}"
        )
    elif (job.total, job.trials) != (other.total, other.trials):
        counts, expected = ((one.total, one.trials) for one in (other, job))
        problems.append(f"{job.key!r} had rows and trials {counts}, not {expected}")
    for key in dict.fromkeys([*job.models, *other.models]):
        name = "the model" if key == "" else f"the model {key!r}"
        model, other_model = job.models.get(key), other.models.get(key)
        if model != other_model:
            problems.append(f"{name} was {other_model}, not {model}")
        elif job.fingerprints.get(key) != other.fingerprints.get(key):
            problems.append(f"{name}, {model}, had another content")
    return problems


def _run(
    begun: ShardManifest, jobs: Sequence[tuple[Evaluation, Job]], engine: Engine, settings: RunSettings
) -> tuple[PartOutcome, ...]:
    todo = [job for _, job in jobs if job.plan.samples]
    logs = iter(engine.run(todo, settings) if todo else [])
    parts: list[PartOutcome] = []
    for (_, job), part in zip(jobs, begun.jobs, strict=True):
        rows = begun.shard.bounds(part.total)
        if not job.plan.samples:
            parts.append(PartOutcome(part, rows, "success"))
            continue
        log = next(logs)
        if isinstance(log, EngineError):
            parts.append(PartOutcome(replace(part, error=str(log)), rows, "error"))
        else:
            parts.append(_part_outcome(part, rows, job, log, engine, settings.out))
    return tuple(parts)


def _part_outcome(
    part: ShardJob, rows: tuple[int, int], job: Job, log: LogRef, engine: Engine, folder: Path
) -> PartOutcome:
    """Return the counts of a shard's log. An unreadable log is found now, not during the merge."""
    path = log.path.resolve().relative_to(folder.resolve()).as_posix()
    tally, error, status = RunningTotals(job.plan), log.error, "error"
    try:
        evidence = engine.read(log.path)
        status, error = evidence.execution.status, evidence.execution.error or error
        count_samples(evidence.trials(), tally)
    except BridgeError as problem:
        status, error = "error", f"the log cannot be read back: {problem}"
    except Exception as problem:  # noqa: BLE001  # keep the log even if it cannot be read back
        status, error = "error", f"the log cannot be read back: {explained(problem)}"
    counts = tally.counts
    outcome = replace(
        part,
        log=path,
        num_samples=counts.samples,
        num_failed=counts.failed,
        num_failed_trials=counts.failed_trials,
        error=None if status == "success" else error or status,
    )
    return PartOutcome(outcome, rows, status, log.reused, tuple(tally.first_errors))
