"""Output and exit codes of `run --shard` and `merge`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aigo_bridge.cli.error_handling import exit_code, reported, show_differences, show_issues, shown
from aigo_bridge.cli.options import cache_policy, refuse_options
from aigo_bridge.cli.outcomes import note_other_result, show_evaluation, show_next, show_outcome
from aigo_bridge.cli.progress import progress
from aigo_bridge.cli.run_options import RunOptions
from aigo_bridge.cli.summaries import benchmark_json, evaluation_json, task_json
from aigo_bridge.cli.terminal import name_of, note, print_json, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkRun, BenchmarkShards
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import Progress
from aigo_bridge.engine.registry import (
    benchmarks_of,
    load_engine,
    refuse_local_rows,
    required,
    split_name,
)
from aigo_bridge.errors import EngineError, EvidenceError, UsageError
from aigo_bridge.evaluation.running import prepare
from aigo_bridge.evaluation.summary import write_summary
from aigo_bridge.evaluation.task import evaluations_of
from aigo_bridge.execution.progress import tolerated
from aigo_bridge.exit_codes import ExitCode, of_runs
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.plan.shards import Shard, parse_shard
from aigo_bridge.text.plurals import plural
from aigo_scale.sharding.benchmarks import merge_benchmarks, refuse_other_kind, run_benchmark_shard
from aigo_scale.sharding.merging import MergeResult, merge
from aigo_scale.sharding.running import ShardOutcome, run_shard
from aigo_scale.sharding.shard_matching import Shards, find_shards, shard_numbers

if TYPE_CHECKING:
    from aigo_scale.sharding.options import MergeOptions


def run_one_shard(options: RunOptions) -> ExitCode:
    """Run one shard of a task or a run file, and show its outcome."""
    assert options.shard is not None
    shard = parse_shard(options.shard)
    names = options.engine_names()
    refused = {
        "--report": options.report,
        f"--engine {options.engine}": len(names) > 1,
        "--cache reuse": options.cache == "reuse",
    }
    problems = [f"{name}: cannot be combined with --shard" for name, is_given in refused.items() if is_given]
    if problems:
        raise UsageError(
            "; ".join([*problems, "results exist only after the merge"]),
            code=Code.OPTIONS_APART,
        )
    with ExitStack() as shown_meanwhile:
        on_progress = shown_meanwhile.enter_context(
            progress(enabled=not options.as_json, display=options.display(), several=True)
        )
        benchmark = split_name(options.task)
        if benchmark is None:
            outcome = _shard_of_tasks(options, names[0], shard, on_progress)
        else:
            outcome = _shard_of_benchmark(options, *benchmark, shard, on_progress)
    if options.as_json:
        print_json(_shard_json(outcome))
    else:
        _show_shard(outcome)
    passed = all(part.passed(tolerated(options.fail_on_error, part.num_planned)) for part in outcome.parts)
    statuses = {part.status for part in outcome.parts}
    return of_runs(statuses, passed=passed, stopped=exit_code())


def _shard_of_tasks(
    options: RunOptions, name: str, shard: Shard, on_progress: Callable[[Progress], None] | None
) -> ShardOutcome:
    options.refuse_those_of_benchmarks()
    cache = cache_policy(options.cache)
    engine = load_engine(name)
    evaluations = evaluations_of(options.origin(), cache=cache, model=options.model)
    show_issues(issue for evaluation in evaluations for issue in evaluation.warnings)
    prepared = prepare(evaluations, [engine], options.models(), resume=options.resume)
    settings = options.settings(on_progress=on_progress)
    with reported(ExitCode.FAILED, (EngineError, EvidenceError)):
        return run_shard(
            prepared, engine, settings, shard, resume=options.resume, fail_on_error=options.fail_on_error
        )


def _shard_of_benchmark(
    options: RunOptions,
    name: str,
    task: str,
    shard: Shard,
    on_progress: Callable[[Progress], None] | None,
) -> ShardOutcome:
    request = replace(options.benchmark(name, task), on_progress=on_progress, on_note=_note_of_run)
    refuse_local_rows(name, request.data_dir, request.custom_tasks)
    engine = load_engine(name)
    with reported(ExitCode.FAILED, (EngineError, EvidenceError)):
        return run_benchmark_shard(engine, shards_of(name), request, shard)


def _note_of_run(text: str) -> None:
    note(f"note: {printable(text)}")


def shards_of(engine: str) -> BenchmarkShards:
    """Return the object that runs and merges an engine's benchmarks in shards.

    Raises:
        UsageError: the engine does not support shards.
    """
    shards = required(benchmarks_of(engine).shards, f"--shard: not supported for {engine} benchmarks")
    return shards()


def _show_shard(outcome: ShardOutcome) -> None:
    manifest = outcome.manifest
    if outcome.was_complete:
        typer.echo(f"shard {manifest.shard} is complete; no sample was run again", err=True)
    typer.echo(f"\nshard {manifest.shard}: {manifest.status}")
    for part in outcome.parts:
        first, last = part.rows
        rows = (
            f"rows {first + 1}–{last} of {part.job.total}"
            if last > first
            else f"none of {plural(part.job.total, 'row')}"
        )
        scored = part.job.num_samples - part.job.num_failed
        counts = [f"{scored} of {plural(part.num_planned, 'sample')} scored"]
        counts += [f"{part.job.num_failed} failed"] if part.job.num_failed else []
        missing = part.num_planned - part.job.num_samples
        counts += [f"{missing} missing"] if missing else []
        counts += [f"{part.num_reused} reused from the earlier run"] if part.num_reused else []
        run = f" (run {part.job.run + 1})" if part.job.run else ""
        typer.echo(f"  {name_of(part.job.key)}{run}: {rows}; {', '.join(counts)}")
        for first_error in part.first_errors:
            message = f"{first_error.where}: {first_error.error.message}{first_error.more}"
            typer.echo(f"    {printable(message)}")
        if part.job.error:
            typer.echo(f"    {printable(part.job.error)}")
    typer.echo(f"folder      {short_path(outcome.folder)}")
    typer.echo(f"then        aigo-bridge merge {short_path(outcome.folder.parent)} --out …")


def _shard_json(outcome: ShardOutcome) -> dict[str, Any]:
    manifest = outcome.manifest
    return {
        "shard": manifest.number,
        "of": manifest.of,
        "status": manifest.status,
        "folder": str(outcome.folder),
        "parts": [
            {
                "key": part.job.key,
                "evaluation": part.job.evaluation,
                "run": part.job.run,
                "digest": part.job.digest,
                "rows": list(part.rows),
                "total": part.job.total,
                "status": part.status,
                "error": part.job.error,
                "samples": {
                    "planned": part.num_planned,
                    "scored": part.job.num_samples - part.job.num_failed,
                    "failed": part.job.num_failed,
                    "missing": part.num_planned - part.job.num_samples,
                    "reused": part.num_reused,
                },
                "errors": [error.to_json() for error in part.first_errors],
            }
            for part in outcome.parts
        ],
    }


_OF_TASKS = ("config", "dataset", "subsampling", "root", "allow_bad_tasks")
_OF_BENCHMARKS = ("task_args", "sample_id", "data_dir", "custom_tasks")


def refuse_without_use(options: MergeOptions, *, is_benchmark: bool) -> None:
    """Refuse options that do not apply to the merge.

    Raises:
        UsageError: such options were given. The message lists all of them.
    """
    if options.task is None:
        names = (*_OF_TASKS, *_OF_BENCHMARKS, "engine_options", "num_samples", "num_trials")
        refuse_options(options, names, "only with --task; without it, the values in the logs are used")
    elif is_benchmark:
        refuse_options(options, _OF_TASKS, "only for shards of a task")
    else:
        refuse_options(options, _OF_BENCHMARKS, "only for shards of an engine benchmark")


def benchmark_of(options: MergeOptions) -> tuple[str, BenchmarkRun] | None:
    """Return engine and run of the shards' benchmark; `None` if they belong to a task."""
    benchmark = None if options.task is None else split_name(options.task)
    if benchmark is None:
        return None
    return benchmark[0], BenchmarkRun(
        out=options.out,
        task=benchmark[1],
        arguments=options.task_args or (),
        options=options.engine_options or (),
        sample_id=options.sample_id,
        num_samples=options.num_samples,
        num_trials=options.num_trials,
        data_dir=options.data_dir,
        custom_tasks=options.custom_tasks,
    )


def merge_shards(
    places: list[Path],
    out: Path,
    origin: PlanOrigin | None,
    benchmark: tuple[str, BenchmarkRun] | None = None,
    *,
    partial: bool,
    fail_on_error: str | None,
    as_json: bool,
) -> ExitCode:
    """Merge shards and show the results as one run."""
    tolerated(fail_on_error, 0)
    shards = find_shards(places, partial=partial)
    named_task = None if benchmark is None else f"{benchmark[0]}:{benchmark[1].task}"
    refuse_other_kind(shards, named_task)
    if benchmark is None:
        merged = merge(shards, load_engine(shards.first.engine), out, origin, fail_on_error=fail_on_error)
    else:
        merged = MergeResult(tuple(_merged_benchmark(shards, *benchmark)))
    _note(shards)
    is_shown = shown(out, lambda: _show(merged, shards, as_json=as_json))
    outcomes = [*merged.outcomes, *(result for one in merged.evaluations for result in one.results)]
    passed = is_shown and all(one.passed for one in merged.evaluations)
    passed &= all(
        outcome.passed(tolerated(fail_on_error, outcome.num_planned)) for outcome in merged.outcomes
    )
    if not shards.is_whole:
        return ExitCode.PARTIAL
    return of_runs({outcome.status for outcome in outcomes}, passed=passed)


def _merged_benchmark(shards: Shards, engine: str, request: BenchmarkRun) -> list[Outcome]:
    refuse_local_rows(engine, request.data_dir, request.custom_tasks)
    load_engine(engine)
    outcomes = merge_benchmarks(shards, shards_of(engine), replace(request, on_note=_note_of_run))
    for outcome in outcomes:
        for doubt in outcome.doubts:
            typer.echo(f"warning: {name_of(outcome.task)}: {printable(doubt)}", err=True)
    return [outcome.compared() for outcome in outcomes]


def _note(shards: Shards) -> None:
    of = shards.first.of
    for numbers, what in ((shards.missing, "not there"), (shards.stopped, "not complete")):
        if numbers:
            typer.echo(f"warning: {shard_numbers(numbers)} of {of} {what}: the results are partial", err=True)


def _show(merged: MergeResult, shards: Shards, *, as_json: bool) -> None:
    summaries: list[dict[str, Any]] = []
    digest, is_benchmark = shards.first.jobs[0].digest, shards.first.benchmark is not None
    for outcome in merged.outcomes:
        note_other_result(outcome.result, outcome.key)
        if as_json and is_benchmark:
            summaries.append(benchmark_json(outcome))
        elif as_json:
            summaries.append(task_json(outcome, digest))
        else:
            show_outcome(outcome)
            show_next(outcome)
        show_differences(outcome)
    for evaluation in merged.evaluations:
        written = write_summary(evaluation)
        for result in evaluation.results:
            note_other_result(result.result, result.key)
            show_differences(result)
        if as_json:
            summaries.append({**evaluation_json(evaluation), "out": str(evaluation.out)})
        else:
            show_evaluation(evaluation, written)
    if summaries:
        print_json(summaries if len(summaries) > 1 else summaries[0])
