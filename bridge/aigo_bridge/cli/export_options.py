"""Options of `aigo-bridge export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import (
    AllowFileOption,
    AllowUrlOption,
    BadTasksOption,
    ConfigOption,
    DatasetOption,
    EnvOption,
    NetworkOption,
    NumSamplesOption,
    RootOption,
)

OF_TASKS = ("native", "config", "dataset", "num_samples", "root", "allow_bad_tasks")
"""Options that apply only to tasks."""

OF_EVIDENCE = (
    *("app", "evaluation_key", "model_key", "task_key", "events", "attachments"),
    *("allow_gaps", "dry_run"),
)
"""Options that require --to aigo."""


@dataclass(frozen=True, kw_only=True)
class ExportVerbOptions:
    """Options of an export."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="TASK|RESULT",
            help="Task file (YAML or JSONL task records) or shipped task. With --to NAME-log "
            "or FORMAT: result logs. With --to aigo: results, engine logs, folders and "
            "lakes.",
        ),
    ]
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NAME|NAME-log|FORMAT|aigo",
            help="Target. Files to run a task: inspect, lighteval, inspect-hub (a dataset with "
            "an eval.yaml). Results: inspect-log (for the Inspect viewer), every-eval-ever, "
            "aigo (for the AI GO platform).",
        ),
    ]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the files.")]
    native: Annotated[
        bool, typer.Option("--native", help="Write plain engine code that runs without aigo-bridge.")
    ] = False
    config: ConfigOption = None
    dataset: DatasetOption = None
    num_samples: NumSamplesOption = None
    subsampling: Annotated[
        str,
        typer.Option(
            "--subsampling",
            metavar="head|random",
            help="How to choose these samples: the first ones, or a fixed random choice.",
        ),
    ] = "head"
    root: RootOption = None
    allow_bad_tasks: BadTasksOption = False
    force: Annotated[
        bool, typer.Option("--force", help="Replace the files of an earlier export. Other files are kept.")
    ] = False
    app: Annotated[
        str | None,
        typer.Option("--app", metavar="KEY", help="Key of the AI app that the README selects."),
    ] = None
    evaluation_key: Annotated[
        str | None,
        typer.Option(
            "--evaluation-key",
            metavar="KEY",
            help="Key of the evaluation. [default: derived from the results]",
        ),
    ] = None
    model_key: Annotated[
        list[str] | None,
        typer.Option(
            "--model-key",
            metavar="MODEL=KEY",
            help="Use a model that already exists on the platform, e.g. openai/gpt-4o=my-model. Repeatable.",
        ),
    ] = None
    task_key: Annotated[
        list[str] | None,
        typer.Option(
            "--task-key",
            metavar="TASK=KEY",
            help="Use a task that already exists on the platform, e.g. capitals=my-task. Repeatable.",
        ),
    ] = None
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            metavar="all|main",
            help="Keep all events of the traces, or only the main conversation. [default: all]",
        ),
    ] = None
    attachments: Annotated[
        str | None,
        typer.Option(
            "--attachments",
            metavar="keep|files|drop",
            help="Keep images, audio and files in the logs, write them to attachments/, or leave them out. "
            "[default: keep]",
        ),
    ] = None
    allow_gaps: Annotated[
        bool,
        typer.Option(
            "--allow-gaps",
            help="Export without the parts that AI GO cannot express. losses.json lists them.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="List the files with their sizes without writing them."),
    ] = False
    env: EnvOption = None
    allow_file: AllowFileOption = None
    allow_url: AllowUrlOption = None
    network: NetworkOption = True
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON summary.")] = False
