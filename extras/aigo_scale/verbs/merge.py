"""The command `aigo-bridge merge`: merging the shards of a run into the results of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.engine_options import OPTION, MergeCommand
from aigo_bridge.cli.options import (
    VERB,
    AllowOption,
    BadTasksOption,
    JsonOption,
    RootOption,
    SnippetsOption,
    verb_command,
    with_options,
)

app = typer.Typer(**VERB)


@dataclass(frozen=True, kw_only=True)
class MergeOptions:
    """Options of a merge."""

    shards: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR…", help="Folders of shards (from `run --shard K/N --out DIR`), or single shards."
        ),
    ]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the evidence.")]
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="Task, run file or benchmark (inspect:NAME, lighteval:NAME) of the shards. "
            "Needed only if a metric depends on task code over all samples.",
        ),
    ] = None
    partial: Annotated[
        bool,
        typer.Option(
            "--partial",
            help="Merge the existing shards even if some are missing. The result records its "
            "proportion of the whole.",
        ),
    ] = False
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="KEY=VALUE",
            help="Value of a task parameter, as in `run`, e.g. language=de. Repeatable.",
        ),
    ] = None
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            metavar="KEY=FILE",
            help="File for a dataset key, as in `run`, e.g. capitals=rows.csv. Repeatable.",
        ),
    ] = None
    num_samples: Annotated[
        int | None,
        typer.Option(
            "--num-samples", "-n", "--limit", min=1, metavar="N", help="Number of samples, as in `run`."
        ),
    ] = None
    subsampling: Annotated[
        str | None,
        typer.Option(
            "--subsampling", metavar="head|random", help="How the samples were chosen, as in `run`."
        ),
    ] = None
    num_trials: Annotated[
        int | None,
        typer.Option(
            "--num-trials",
            "--epochs",
            min=1,
            metavar="N",
            help="Number of trials of each sample, as in `run`.",
        ),
    ] = None
    task_args: Annotated[
        list[str] | None,
        typer.Option(
            "--task-arg",
            "-T",
            metavar="NAME=VALUE",
            help="Parameter of the benchmark, as in `run`. Repeatable.",
        ),
    ] = None
    sample_id: Annotated[
        str | None, typer.Option("--sample-id", metavar="ID,…", help="Samples of the benchmark, as in `run`.")
    ] = None
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", metavar="DIR", help="Folder with local rows of the benchmark, as in `run`."
        ),
    ] = None
    custom_tasks: Annotated[
        Path | None,
        typer.Option(
            "--custom-tasks", metavar="FILE", help="Python file with your own lighteval tasks, as in `run`."
        ),
    ] = None
    engine_options: Annotated[list[str] | None, typer.Option(OPTION, hidden=True)] = None
    root: RootOption = None
    allow_bad_tasks: BadTasksOption = False
    fail_on_error: Annotated[
        str | None,
        typer.Option(
            "--fail-on-error",
            metavar="N|0.x",
            help="Number or proportion of failed samples that do not set exit code 1, e.g. 5 "
            "or 0.02. Applies to each specification. [default: 0]",
        ),
    ] = None
    snippets: SnippetsOption = None
    allow: AllowOption = None
    as_json: JsonOption = False


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
