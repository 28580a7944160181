"""`aigo-bridge merge`: the shards of a run as the results of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowOption,
    BadTasksOption,
    JsonOption,
    RootOption,
    SnippetsOption,
    choose_confinement,
)
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)


@app.command("merge")
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
            help="The task of the shards, where numbers depend on its code over all samples; their run file.",
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
        typer.Option("--num-samples", "-n", min=1, metavar="N", help="With --task, as for run."),
    ] = None,
    subsampling: Annotated[
        str | None, typer.Option("--subsampling", metavar="head|random", help="With --task, as for run.")
    ] = None,
    num_trials: Annotated[
        int | None, typer.Option("--num-trials", min=1, metavar="N", help="With --task, as for run.")
    ] = None,
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
    Nothing that stands in a shard is run; --task names your own task where code is needed.
    Exit code: as of run; 3 with --partial where something is missing.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.options import origin_of
    from aigo_bridge.cli.shards import merge_shards
    from aigo_bridge.errors import UsageError

    with reported():
        choose_confinement(snippets, allow)
        given = {
            "--config": config,
            "--dataset": dataset,
            "--num-samples": num_samples,
            "--subsampling": subsampling,
            "--num-trials": num_trials,
            "--root": root,
            "--allow-bad-tasks": allow_bad_tasks,
        }
        used = [name for name, value in given.items() if value]
        if task is None and used:
            raise UsageError(
                f"{', '.join(used)}: with --task only; without it, all is taken from the logs",
                code=Code.OPTIONS_APART,
            )
        origin = (
            None
            if task is None
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
            shards, out, origin, partial=partial, fail_on_error=fail_on_error, as_json=as_json
        )
    if code:
        raise typer.Exit(code)
