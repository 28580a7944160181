"""Options of `aigo-bridge merge`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.engine_options import OPTION
from aigo_bridge.cli.options import (
    AllowOption,
    BadTasksOption,
    ConfigOption,
    CustomTasksOption,
    DataDirOption,
    DatasetOption,
    JsonOption,
    NumSamplesOption,
    NumTrialsOption,
    RootOption,
    SnippetsOption,
    SubsamplingOption,
    TaskArgOption,
)


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
    config: ConfigOption = None
    dataset: DatasetOption = None
    num_samples: NumSamplesOption = None
    subsampling: SubsamplingOption = None
    num_trials: NumTrialsOption = None
    task_args: TaskArgOption = None
    sample_id: Annotated[
        str | None, typer.Option("--sample-id", metavar="ID,…", help="Samples of the benchmark, as in `run`.")
    ] = None
    data_dir: DataDirOption = None
    custom_tasks: CustomTasksOption = None
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
