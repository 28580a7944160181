"""The command `run --on ray`: planning and merging on this machine, and shards on the workers."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.access.display_paths import MIRRORS
from aigo_bridge.access.grants import granted
from aigo_bridge.cli.error_handling import reported, show_issues
from aigo_bridge.cli.hooks import DistributedRuns
from aigo_bridge.cli.options import cache_policy
from aigo_bridge.cli.progress import progress
from aigo_bridge.cli.terminal import note
from aigo_bridge.codes import Code
from aigo_bridge.engine.registry import load_engine, split_name
from aigo_bridge.errors import EngineError, EvidenceError, UsageError
from aigo_bridge.evaluation.running import ReadyEvaluation, prepare
from aigo_bridge.evaluation.task import evaluations_of
from aigo_bridge.execution.jobs import make_folder
from aigo_bridge.execution.progress import tolerated
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.plan.shards import MOST_SHARDS
from aigo_scale.cluster.local import connected
from aigo_scale.cluster.pieces import FOLDER, PIECE_ROWS, PlannedRun
from aigo_scale.cluster.running import ClusterRun, model_addresses, run_pieces
from aigo_scale.sharding.command import merge_shards, run_one_shard
from aigo_scale.sharding.manifest import Identity, plan_identity, sole
from aigo_scale.sharding.shard_matching import number_of_shards

if TYPE_CHECKING:
    from aigo_bridge.cli.run_options import RunOptions

LOCK = ".cluster.lock"

_SETTINGS = ("max_connections", "max_samples", "attempt_timeout", "time_limit", "token_limit", "cost_limit")


def run_on_ray(options: RunOptions) -> ExitCode:
    """Run a task or a run file on a Ray cluster, and show it as one run."""
    _refuse(options)
    options.refuse_those_of_benchmarks()
    origin, folder = options.origin(), options.out / FOLDER
    with ExitStack() as stack:
        on_progress = stack.enter_context(
            progress(enabled=not options.as_json, display=options.display(), several=True)
        )
        cache = cache_policy(options.cache)
        engine = load_engine(options.engine_names()[0])
        evaluations = evaluations_of(origin, cache=cache, model=options.model)
        show_issues(issue for evaluation in evaluations for issue in evaluation.warnings)
        prepared = prepare(evaluations, [engine], options.models(), resume=True)
        _refuse_pending(prepared)
        most_rows = max(len(job.plan.samples) for job in _jobs(prepared))
        pieces = _number_of_pieces(options, folder, most_rows)
        ray = stack.enter_context(connected(options.ray_address, options.workers))
        make_folder(folder)
        stack.enter_context(
            sole(options.out / LOCK, f"another run on Ray is in progress in {str(options.out)!r}")
        )
        work = _work(options, origin, prepared, folder, pieces, cache)
        wanted = ClusterRun(
            work,
            sum(len(job.plan.samples) * job.plan.num_trials for job in _jobs(prepared)),
            options.max_connections,
            options.workers,
            None if options.fail_on_error is None else _tolerated(prepared, options.fail_on_error),
            on_progress,
            _note,
        )
        with reported(ExitCode.FAILED, (EngineError, EvidenceError)):
            run_pieces(ray, wanted)
    return merge_shards(
        [folder],
        options.out,
        origin,
        partial=False,
        fail_on_error=options.fail_on_error,
        as_json=options.as_json,
    )


def _note(text: str) -> None:
    note(f"note: {text}")


def _refuse(options: RunOptions) -> None:
    if split_name(options.task) is not None:
        raise UsageError(
            "--on ray: not supported for engine benchmarks; convert the benchmark to an AI "
            "GO task first (`aigo-bridge convert`)",
            code=Code.OPTIONS_APART,
        )
    refused = {
        "--shard": options.shard,
        "--report": options.report,
        f"--engine {options.engine}": len(options.engine_names()) > 1,
        "several --model": options.model is not None and "," in options.model,
        "--vary": options.vary,
        "--record": options.record,
        "--replay": options.replay,
        "--cache reuse": options.cache == "reuse",
    }
    problems = [f"{name}: cannot be combined with --on ray" for name, given in refused.items() if given]
    if options.piece_rows is not None and options.pieces is not None:
        problems.append("--pieces, --piece-rows: use only one of them")
    if problems:
        raise UsageError("\n".join(problems), code=Code.OPTIONS_APART)


def _refuse_pending(prepared: list[ReadyEvaluation]) -> None:
    pending = [
        entry.entry.key for one in prepared for entry in one.entries if entry.entry.pending is not None
    ]
    if pending:
        raise UsageError(
            f"--on ray: the rows of {', '.join(map(repr, pending))} come from the result of "
            "another specification, which exists only after the merge; run it separately",
            code=Code.NOTHING_TO_RUN,
        )
    if not _jobs(prepared):
        raise UsageError(
            "--on ray: nothing to run, because every specification uses a stored result",
            code=Code.NOTHING_TO_RUN,
        )


def _jobs(prepared: list[ReadyEvaluation]) -> list[Any]:
    return [job for one in prepared for entry in one.entries for job in entry.jobs]


def _number_of_pieces(options: RunOptions, folder: Path, rows: int) -> int:
    """Return the number of shards: unchanged for a resumed run, otherwise derived from the rows."""
    earlier = number_of_shards(folder)
    if earlier is not None and not options.resume:
        raise UsageError(
            f"--out: {str(folder)!r} already contains pieces of a run; continue it with "
            "--resume, or choose another --out",
            code=Code.ALREADY_THERE,
        )
    wanted = options.pieces
    if wanted is None and (options.piece_rows is not None or earlier is None):
        wanted = max(1, math.ceil(rows / (options.piece_rows or PIECE_ROWS)))
    if earlier is not None and wanted not in (None, earlier):
        raise UsageError(
            f"--resume: the run in {str(options.out)!r} has {earlier} pieces, not {wanted}; "
            "remove --pieces and --piece-rows",
            code=Code.OPTIONS_APART,
        )
    number = earlier or wanted or 1
    if number > MOST_SHARDS:
        raise UsageError(
            f"--pieces: found {number:,}, expected at most {MOST_SHARDS:,}", code=Code.WRONG_OPTION
        )
    return number


def _work(
    options: RunOptions,
    origin: PlanOrigin,
    prepared: list[ReadyEvaluation],
    folder: Path,
    pieces: int,
    cache: Any,
) -> PlannedRun:
    settings = options.settings()
    return PlannedRun(
        origin=origin,
        engine=options.engine_names()[0],
        models=options.models(),
        pieces=pieces,
        folder=folder.resolve(),
        settings={name: getattr(settings, name) for name in _SETTINGS},
        digests=tuple(
            plan.digest for one in prepared for entry in one.evaluation.entries for plan in entry.plans
        ),
        cwd=str(Path.cwd()),
        cache=cache,
        snippets=options.snippets,
        allow=tuple(options.allow or ()),
        grants=replace(granted()),
        mirrors=tuple(MIRRORS),
        variables=model_addresses(),
    )


def _tolerated(prepared: list[ReadyEvaluation], text: str) -> dict[Identity, int]:
    return {
        plan_identity(one.evaluation, job.plan): tolerated(text, len(job.plan.samples))
        for one in prepared
        for entry in one.entries
        for job in entry.jobs
    }


DISTRIBUTED_RUNS = DistributedRuns(run_one_shard, run_on_ray)
"""Hook `distributed runs`."""
