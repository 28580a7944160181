"""Shards of an engine's own benchmarks.

The engine itself computes their metrics over one run. Therefore a shard stores only the answers, and a merge
lets the engine compute the metrics over all answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import (
    BenchmarkPart,
    BenchmarkRun,
    BenchmarkShards,
    PartLog,
    PartLogs,
    PartRun,
)
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.execution.jobs import make_folder
from aigo_bridge.plan.shards import Shard
from aigo_bridge.text.plurals import plural
from aigo_scale.sharding.manifest import (
    LOCK,
    ShardJob,
    ShardManifest,
    sole,
    write_manifest,
)
from aigo_scale.sharding.merging import LOCK as MERGE_LOCK
from aigo_scale.sharding.running import (
    PartOutcome,
    ShardOutcome,
    begun_shard,
    complete_already,
    earlier_shard,
    ended_shard,
)
from aigo_scale.sharding.shard_matching import FoundShard, Shards, shard_numbers


def run_benchmark_shard(
    engine: Engine, shards: BenchmarkShards, request: BenchmarkRun, shard: Shard
) -> ShardOutcome:
    """Run one shard of a benchmark in its folder below `request.out`.

    Raises:
        UsageError: the benchmark does not support shards, the folder already contains a shard, or another
            run of the shard is in progress.
        EngineError: the engine failed before the run started.
        EvidenceError: the folder has other content.
    """
    if request.more_tasks:
        raise UsageError(
            "--shard: only one benchmark at a time, each with its own --out", code=Code.OPTIONS_APART
        )
    folder = request.out / shard.folder
    begun: ShardManifest | None = None
    complete: ShardManifest | None = None

    def begin(parts: Sequence[BenchmarkPart]) -> bool:
        nonlocal begun, complete
        begun = begun_shard(
            engine,
            request,
            shard,
            [_job(part, number) for part, number in _numbered(parts)],
            benchmark=f"{engine.name}:{request.task}",
        )
        earlier = earlier_shard(folder, begun, resume=request.resume)
        if earlier is not None and earlier.status == "complete":
            complete = earlier
            return False
        write_manifest(folder, begun)
        return True

    make_folder(folder)
    with sole(folder / LOCK, f"shard {shard} is being run in {str(folder)!r} already"):
        runs = shards.run(replace(request, out=folder), shard, begin)
        if complete is not None:
            return complete_already(folder, complete)
        assert begun is not None  # set before the run starts
        return ended_shard(folder, begun, _parts(begun, runs))


def _numbered(parts: Sequence[BenchmarkPart]) -> list[tuple[BenchmarkPart, int]]:
    """Number the parts with the same name from 0."""
    counts: Counter[str] = Counter()
    numbered = []
    for part in parts:
        numbered.append((part, counts[part.name]))
        counts[part.name] += 1
    return numbered


def _job(part: BenchmarkPart, number: int) -> ShardJob:
    return ShardJob(
        evaluation=None,
        key=part.name,
        run=number,
        digest=part.digest,
        total=part.total,
        trials=part.num_trials,
        models=part.models,
        fingerprints={},
    )


def _parts(begun: ShardManifest, runs: Sequence[PartRun]) -> list[PartOutcome]:
    outcomes = []
    for job, run in zip(begun.jobs, runs, strict=True):
        ended = replace(
            job,
            log=None if run.log is None else run.log.name,
            num_samples=run.num_samples,
            num_failed=run.num_failed,
            error=run.error if run.status != "success" else None,
        )
        rows = begun.shard.bounds(job.total)
        outcomes.append(PartOutcome(ended, rows, run.status, run.num_reused, run.first_errors))
    return outcomes


def merge_benchmarks(shards: Shards, runner: BenchmarkShards, request: BenchmarkRun) -> list[Outcome]:
    """Write the results of shards that belong together to `request.out`.

    Args:
        shards: shards from `find_shards`.
        runner: benchmark runner of the shards' engine.
        request: the user's benchmark, with the options of the shards.

    Raises:
        UsageError: another merge uses the same folder, or the benchmark does not exist.
        EvidenceError: a log cannot be read, or the benchmark, its data or its options differ from the
            shards.
    """
    make_folder(request.out)
    with sole(request.out / MERGE_LOCK, f"another merge writes to {str(request.out)!r}"):
        return runner.merge(request, lambda parts: _logs(shards, parts))


def _logs(shards: Shards, parts: Sequence[BenchmarkPart]) -> list[PartLogs]:
    """Return the shards' logs for the parts, after a check that both match."""
    jobs = {job.identity: job for job in shards.first.jobs}
    problems: list[Issue] = []
    for part, number in _numbered(parts):
        job = jobs.pop((None, part.name, number), None)
        if job is None:
            problems.append(Issue(f"the shards do not contain {part.name!r}", code=Code.SHARDS_APART))
        elif (job.total, job.trials) != (part.total, part.num_trials):
            problems.append(
                Issue(
                    f"{part.name!r}: {plural(part.total, 'sample')} and"
                    f" {plural(part.num_trials, 'trial was', 'trials were')} requested, the"
                    f" shards have {job.total} and {job.trials}: pass the options of the shards",
                    code=Code.SHARDS_APART,
                )
            )
        elif job.digest != part.digest:
            problems.append(
                Issue(
                    f"{part.name!r}: its data or arguments differ from the shards: its digest is "
                    f"{part.digest:.12}, theirs is {job.digest:.12}",
                    code=Code.SHARDS_APART,
                )
            )
    problems += [
        Issue(f"the shards contain {job.key!r}, which was not requested", code=Code.SHARDS_APART)
        for job in jobs.values()
    ]
    if problems:
        raise EvidenceError(problems)
    missing = _missing(shards)
    return [
        PartLogs(tuple(_log(one, part, number) for one in shards.found if _has(one, part, number)), missing)
        for part, number in _numbered(parts)
    ]


def _has(shard: FoundShard, part: BenchmarkPart, number: int) -> bool:
    return shard.job((None, part.name, number)).log is not None


def _log(shard: FoundShard, part: BenchmarkPart, number: int) -> PartLog:
    log = shard.job((None, part.name, number)).log
    assert log is not None  # checked before
    return PartLog(shard.shard, shard.folder / log, shard.shard.bounds(part.total))


def _missing(shards: Shards) -> str | None:
    of = shards.first.of
    texts = [f"{shard_numbers(shards.missing)} of {of} not there"] if shards.missing else []
    texts += [f"{shard_numbers(shards.stopped)} of {of} not complete"] if shards.stopped else []
    return "; ".join(texts) or None


def refuse_other_kind(shards: Shards, benchmark: str | None) -> None:
    """Check that the shards and the user's arguments agree on the kind of task.

    Args:
        shards: shards from `find_shards`.
        benchmark: benchmark named by the user; `None`: none.

    Raises:
        UsageError: they do not agree.
    """
    theirs = shards.first.benchmark
    if benchmark is None and theirs is not None:
        raise UsageError(
            f"shards of the benchmark {theirs}: its code computes the metrics, so pass "
            f"--task {theirs} with the options of the shards",
            code=Code.MISSING_ARGUMENT,
        )
    if benchmark is not None and theirs is None:
        raise UsageError(
            f"--task {benchmark}: these are shards of AI GO tasks, not of a benchmark",
            code=Code.SHARDS_APART,
        )
    if benchmark is not None and theirs is not None and not benchmark.startswith(f"{shards.first.engine}:"):
        raise UsageError(f"--task {benchmark}: these are shards of {theirs}", code=Code.SHARDS_APART)
