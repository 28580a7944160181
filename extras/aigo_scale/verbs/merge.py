"""The command `aigo-bridge merge`: merging the shards of a run into the results of one run."""

from __future__ import annotations

import typer

from aigo_bridge.cli.engine_options import MergeCommand
from aigo_bridge.cli.options import VERB, verb_command, with_options
from aigo_scale.sharding.options import MergeOptions

app = typer.Typer(**VERB)


@app.command(
    "merge",
    cls=verb_command(
        "aigo-bridge merge out --out merged",
        "aigo-bridge merge out/shard-1-of-2 out/shard-2-of-2 --task task.yaml --out merged",
        exit_codes={
            "0": "all samples were scored and all policies passed",
            "1": "samples failed, a metric has no value, or a policy failed",
            "2": "wrong arguments, or the shards do not belong together",
            "3": "some shards are missing (with --partial), or invalid task records were skipped",
        },
        panels={
            "Options of the run": (
                "config",
                "dataset",
                "num_samples",
                "subsampling",
                "num_trials",
                "task_args",
                "sample_id",
                "data_dir",
                "custom_tasks",
                "allow_bad_tasks",
            )
        },
        base=MergeCommand,
    ),
)
@with_options(MergeOptions)
def merge(options: MergeOptions) -> None:
    """Merge the shards of a run into the result of a single run.

    All metrics are recomputed over all samples. Nothing is written if a shard is missing, duplicate or
    modified, or belongs to another task, model or version.

    Code inside a shard is never executed; pass --task to use your own task code. For a benchmark, the
    engine computes the metrics over the answers of all shards.
    """
    from aigo_bridge.cli.options import origin_of
    from aigo_scale.sharding.command import benchmark_of, merge_shards, refuse_without_use

    benchmark = benchmark_of(options)
    refuse_without_use(options, is_benchmark=benchmark is not None)
    origin = (
        None
        if options.task is None or benchmark is not None
        else origin_of(
            options.task,
            config=options.config,
            dataset=options.dataset,
            root=options.root,
            num_samples=options.num_samples,
            subsampling=options.subsampling,
            num_trials=options.num_trials,
            allow_bad_tasks=options.allow_bad_tasks,
        )
    )
    code = merge_shards(
        options.shards,
        options.out,
        origin,
        benchmark,
        partial=options.partial,
        fail_on_error=options.fail_on_error,
        as_json=options.as_json,
    )
    if code:
        raise typer.Exit(code)
