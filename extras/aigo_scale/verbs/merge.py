"""`aigo-bridge merge`: the shards of a run as the results of one run."""

from __future__ import annotations

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
    choose_confinement,
)

app = typer.Typer(**VERB)


@app.command("merge", cls=MergeCommand)
def merge(
    shards: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR…", help="Folders of shards (`run --shard K/N --out DIR`), or single shards."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the evidence.")],
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="The task of the shards, where numbers depend on its code over all samples; their run file, "
            "or their benchmark (inspect:NAME, lighteval:NAME).",
        ),
    ] = None,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Merge what there is; the results say how much of the whole it is."),
    ] = False,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="With --task, as for run. Repeatable."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", metavar="KEY=FILE", help="With --task, as for run. Repeatable."),
    ] = None,
    num_samples: Annotated[
        int | None,
        typer.Option("--num-samples", "-n", "--limit", min=1, metavar="N", help="With --task, as for run."),
    ] = None,
    subsampling: Annotated[
        str | None, typer.Option("--subsampling", metavar="head|random", help="With --task, as for run.")
    ] = None,
    num_trials: Annotated[
        int | None,
        typer.Option("--num-trials", "--epochs", min=1, metavar="N", help="With --task, as for run."),
    ] = None,
    task_args: Annotated[
        list[str] | None,
        typer.Option(
            "--task-arg", "-T", metavar="NAME=VALUE", help="With a benchmark, as for run. Repeatable."
        ),
    ] = None,
    sample_id: Annotated[
        str | None, typer.Option("--sample-id", metavar="ID,…", help="With a benchmark, as for run.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", metavar="DIR", help="With a benchmark, as for run.")
    ] = None,
    custom_tasks: Annotated[
        Path | None, typer.Option("--custom-tasks", metavar="FILE", help="With a benchmark, as for run.")
    ] = None,
    engine_options: Annotated[list[str] | None, typer.Option(OPTION, hidden=True)] = None,
    root: RootOption = None,
    allow_bad_tasks: BadTasksOption = False,
    fail_on_error: Annotated[
        str | None,
        typer.Option(
            "--fail-on-error",
            metavar="N|0.x",
            help="Failed samples that are tolerated (per specification): a number, or a share of all.",
        ),
    ] = None,
    snippets: SnippetsOption = None,
    allow: AllowOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge the shards of a run: check that they belong together, and write what one run would have written.

    Every metric is computed anew over all samples, from the shards' logs as a stream. Nothing is written when
    a shard is missing, is there twice, has changed since it ended, or is of another plan, model or version.
    Nothing that stands in a shard is run; --task names your own task where code is needed. Numbers of an
    engine's own benchmark are the engine's: it computes them over what all shards were answered.
    Exit code: as of run; 3 with --partial where something is missing.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.options import origin_of
    from aigo_bridge.cli.shards import MergeOptions, benchmark_of, merge_shards, refuse_without_use

    with reported():
        choose_confinement(snippets, allow)
        options = MergeOptions(
            config=config,
            dataset=dataset,
            subsampling=subsampling,
            root=root,
            allow_bad_tasks=allow_bad_tasks,
            task_args=task_args,
            sample_id=sample_id,
            data_dir=data_dir,
            custom_tasks=custom_tasks,
            engine_options=engine_options,
            num_samples=num_samples,
            num_trials=num_trials,
        )
        benchmark = None if task is None else benchmark_of(task, options, out)
        refuse_without_use(task, options, is_benchmark=benchmark is not None)
        origin = (
            None
            if task is None or benchmark is not None
            else origin_of(
                task,
                config=config,
                dataset=dataset,
                root=root,
                num_samples=num_samples,
                subsampling=subsampling,
                num_trials=num_trials,
                allow_bad_tasks=allow_bad_tasks,
            )
        )
        code = merge_shards(
            shards, out, origin, benchmark, partial=partial, fail_on_error=fail_on_error, as_json=as_json
        )
    if code:
        raise typer.Exit(code)
