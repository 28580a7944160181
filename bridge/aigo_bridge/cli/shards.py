"""What `run --shard` and `merge` show, and what they end with."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from aigo_bridge.cli.failing import exit_code, reported, show_differences, show_issues, shown
from aigo_bridge.cli.numbers.intervals import evaluation_json, task_json
from aigo_bridge.cli.options import cache_policy
from aigo_bridge.cli.outcomes import note_other_result, show_evaluation, show_next, show_outcome
from aigo_bridge.cli.progress import progress
from aigo_bridge.cli.run_options import RunOptions
from aigo_bridge.cli.terminal import name_of, print_json, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.engine.registry import load_engine
from aigo_bridge.errors import EngineError, EvidenceError, UsageError
from aigo_bridge.evaluation.running import ready
from aigo_bridge.evaluation.summary import write_summary
from aigo_bridge.evaluation.task import evaluations_of
from aigo_bridge.execution.progress import tolerated
from aigo_bridge.exit_codes import ExitCode, of_runs
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.plan.shards import parse_shard
from aigo_bridge.sharding.belonging import Shards, find_shards, named
from aigo_bridge.sharding.merging import Merged, merge
from aigo_bridge.sharding.running import ShardOutcome, run_shard


def run_one_shard(options: RunOptions) -> ExitCode:
    """Run one shard of a task or a run file, and show what it left."""
    assert options.shard is not None
    shard = parse_shard(options.shard)
    names = options.engine_names()
    refused = {
        "--report": options.report,
        f"--engine {options.engine}": len(names) > 1,
        "--cache reuse": options.cache == "reuse",
    }
    problems = [f"{name}: not with --shard" for name, is_given in refused.items() if is_given]
    if problems:
        raise UsageError(
            "; ".join([*problems, "results are there when the shards have been merged"]),
            code=Code.OPTIONS_APART,
        )
    options.refuse_those_of_benchmarks()
    cache = cache_policy(options.cache)
    with ExitStack() as shown_meanwhile:
        on_progress = shown_meanwhile.enter_context(
            progress(enabled=not options.as_json, display=options.display(), several=True)
        )
        engine = load_engine(names[0])
        evaluations = evaluations_of(options.origin(), cache=cache, model=options.model)
        show_issues(issue for evaluation in evaluations for issue in evaluation.warnings)
        prepared = ready(evaluations, [engine], options.models(), resume=options.resume)
        settings = options.settings(on_progress=on_progress)
        try:
            outcome = run_shard(
                prepared,
                engine,
                settings,
                shard,
                resume=options.resume,
                fail_on_error=options.fail_on_error,
            )
        except (EngineError, EvidenceError) as error:
            with reported(ExitCode.FAILED):
                raise error from error
    if options.as_json:
        print_json(_shard_json(outcome))
    else:
        _show_shard(outcome)
    passed = all(part.passed(tolerated(options.fail_on_error, part.num_planned)) for part in outcome.parts)
    statuses = {part.status for part in outcome.parts}
    return of_runs(statuses, passed=passed, stopped=exit_code())


def _show_shard(outcome: ShardOutcome) -> None:
    manifest = outcome.manifest
    if outcome.was_complete:
        typer.echo(f"shard {manifest.shard} is complete: nothing was run again", err=True)
    typer.echo(f"\nshard {manifest.shard}: {manifest.status}")
    for part in outcome.parts:
        first, last = part.rows
        rows = (
            f"rows {first + 1}–{last} of {part.job.total}"
            if last > first
            else f"none of {part.job.total} rows"
        )
        scored = part.job.num_samples - part.job.num_failed
        counts = [f"{scored} of {part.num_planned} samples scored"]
        counts += [f"{part.job.num_failed} failed"] if part.job.num_failed else []
        missing = part.num_planned - part.job.num_samples
        counts += [f"{missing} missing"] if missing else []
        counts += [f"{part.num_reused} taken over from the earlier run"] if part.num_reused else []
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


def merge_shards(
    places: list[Path],
    out: Path,
    origin: PlanOrigin | None,
    *,
    partial: bool,
    fail_on_error: str | None,
    as_json: bool,
) -> ExitCode:
    """Merge shards and show the results as those of one run."""
    tolerated(fail_on_error, 0)
    shards = find_shards(places, partial=partial)
    merged = merge(shards, load_engine(shards.first.engine), out, origin, fail_on_error=fail_on_error)
    _note(shards)
    is_shown = shown(out, lambda: _show(merged, shards.first.jobs[0].digest, as_json=as_json))
    outcomes = [*merged.outcomes, *(result for one in merged.evaluations for result in one.results)]
    passed = is_shown and all(one.passed for one in merged.evaluations)
    passed &= all(
        outcome.passed(tolerated(fail_on_error, outcome.num_planned)) for outcome in merged.outcomes
    )
    if not shards.is_whole:
        return ExitCode.PARTIAL
    return of_runs({outcome.status for outcome in outcomes}, passed=passed)


def _note(shards: Shards) -> None:
    of = shards.first.of
    for numbers, what in ((shards.missing, "not there"), (shards.stopped, "not complete")):
        if numbers:
            typer.echo(f"warning: {named(numbers)} of {of} {what}: the results are partial", err=True)


def _show(merged: Merged, digest: str, *, as_json: bool) -> None:
    summaries: list[dict[str, Any]] = []
    for outcome in merged.outcomes:
        note_other_result(outcome.result, outcome.key)
        if as_json:
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
