"""Options of `aigo-bridge merge`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.engine_options import OPTION
from aigo_bridge.cli.options import AllowOption, BadTasksOption, JsonOption, RootOption, SnippetsOption


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
