"""`aigo-bridge export`: write a task as files for an engine, or results as engine logs or for AI GO."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowUrlOption,
    BadTasksOption,
    ConfigOption,
    DatasetOption,
    EnvOption,
    NetworkOption,
    RootOption,
    verb_command,
    with_options,
)
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import ExportedFiles
    from aigo_bridge.exporting import InexactExportError
    from aigo_bridge.plan.plan import TaskPlan

app = typer.Typer(**VERB)

RESULTS = (".tasklog.json", ".tasklog.jsonl", ".tasklog.json.gz", ".tasklog.json.zst")
"""File extensions of result logs; `--to inspect` with one of them suggests `--to inspect-log`."""


_OF_TASKS = ("native", "config", "dataset", "num_samples", "root", "allow_bad_tasks")
"""Options that apply only to tasks."""

_OF_EVIDENCE = (
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
    num_samples: Annotated[
        int | None,
        typer.Option(
            "--num-samples",
            "-n",
            "--limit",
            min=1,
            metavar="N",
            help="Number of samples to export. [default: all]",
        ),
    ] = None
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


@app.command(
    "export",
    cls=verb_command(
        "aigo-bridge export task.yaml --to inspect --native --out exported",
        "aigo-bridge export out/capitals.tasklog.json --to inspect-log --out logs",
        "aigo-bridge export out --to aigo --out platform",
        exit_codes={
            "0": "the files were written",
            "1": "some parts cannot be exported exactly; the output lists them",
            "2": "wrong arguments or an invalid file",
            "3": "written without invalid task records or damaged parts of logs",
        },
        panels={"AI GO platform (--to aigo)": _OF_EVIDENCE},
    ),
)
@with_options(ExportVerbOptions)
def export(options: ExportVerbOptions) -> None:
    """Write a task as files for an engine, a result as an engine log, or results for the AI GO platform.

    The exported files contain the task, all included files and the rows, so you can copy them to another
    machine. Nothing is executed.
    """
    from aigo_bridge.cli.failing import reported, show_issues
    from aigo_bridge.cli.options import origin_of, refuse_options
    from aigo_bridge.cli.storage.evidence_exports import export_to_aigo
    from aigo_bridge.cli.terminal import print_json
    from aigo_bridge.engine.engine import ExportOptions
    from aigo_bridge.engine.formats import result_exports
    from aigo_bridge.errors import UnsupportedPlanError, UsageError
    from aigo_bridge.evaluation.task import plan
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.exporting import (
        EVIDENCE,
        LOG_SUFFIX,
        InexactExportError,
        check_target,
        task_exporter,
    )

    to, sources = options.to, options.sources
    check_target(to)
    is_of_results = to == EVIDENCE or to.endswith(LOG_SUFFIX) or to in result_exports()
    if is_of_results:
        refuse_options(options, _OF_TASKS, f"only for tasks; --to {to} accepts only result logs")
    if to == EVIDENCE:
        raise typer.Exit(export_to_aigo(options))
    refuse_options(options, _OF_EVIDENCE, f"only with --to aigo, found --to {to}")
    if is_of_results:
        _export_logs(options)
        return
    if len(sources) > 1:
        raise UsageError(
            f"--to {to} accepts one task, found {len(sources)}: {', '.join(sources)}",
            code=Code.OPTIONS_APART,
        )
    (source,) = sources
    if source.endswith(RESULTS):
        raise UsageError(
            f"{source!r} looks like a result log, but --to {to} accepts a task; did you mean "
            f"--to {to}{LOG_SUFFIX}?",
            code=Code.OPTIONS_APART,
        )
    exporter = task_exporter(to)
    task_plan = plan(
        origin_of(
            source,
            config=options.config,
            dataset=options.dataset,
            root=options.root,
            num_samples=options.num_samples,
            subsampling=options.subsampling,
            allow_bad_tasks=options.allow_bad_tasks,
        )
    )
    show_issues(task_plan.warnings)
    choices = ExportOptions(native=options.native, force=options.force)
    try:
        exported = exporter.export(task_plan, options.out, choices)
    except UnsupportedPlanError as error:
        if options.as_json and isinstance(error, InexactExportError):
            print_json(_refusal(task_plan, error))
        with reported(ExitCode.FAILED):
            raise error from error
    if options.as_json:
        print_json(_summary(task_plan, exported, native=options.native))
    else:
        _print(task_plan, exported)
    if task_plan.num_invalid:
        raise typer.Exit(ExitCode.PARTIAL)


def _export_logs(options: ExportVerbOptions) -> None:
    from aigo_bridge.cli.terminal import name_of, print_json, short_path
    from aigo_bridge.engine.formats import result_export
    from aigo_bridge.exporting import log_exporter

    results = [Path(source) for source in options.sources]
    export_as = result_export(options.to)
    if export_as is not None:
        for result in results:
            exported = export_as(result, options.out, force=options.force)
            if options.as_json:
                summary = {"result": str(result), "file": str(exported.path), "loss": list(exported.lines)}
                print_json(summary, indent=None)
                continue
            typer.echo(name_of(short_path(exported.path)))
            for line in exported.lines:
                typer.echo(f"  {line}")
        return
    exporter = log_exporter(options.to)
    for result in results:
        written = exporter.export_log(result, options.out, force=options.force)
        if options.as_json:
            print_json({"result": str(result), "log": str(written)}, indent=None)
        else:
            typer.echo(name_of(short_path(written)))


def _summary(plan: TaskPlan, exported: ExportedFiles, *, native: bool) -> dict[str, Any]:
    return {
        "task": plan.task.key,
        "digest": plan.digest,
        "form": "native" if native else "hosted",
        "folder": str(exported.folder),
        "files": list(exported.files),
        "samples": len(plan.samples),
        "model_keys": list(plan.model_keys),
        "commands": list(exported.commands),
    }


def _refusal(plan: TaskPlan, error: InexactExportError) -> dict[str, Any]:
    parts = [
        {"part": part.part, "fidelity": part.fidelity.value, "reason": part.reason or None, "hint": part.hint}
        for part in error.parts
    ]
    return {"task": plan.task.key, "digest": plan.digest, "folder": None, "parts": parts}


def _print(plan: TaskPlan, exported: ExportedFiles) -> None:
    from aigo_bridge.cli.terminal import name_of, printable, short_path

    folder = name_of(short_path(exported.folder))
    rows = f", {plural(len(plan.samples), 'sample')}" if plan.dataset is not None else ""
    typer.echo(f"{name_of(plan.task.key)}: {plural(len(exported.files), 'file')} in {folder}{rows}")
    for note in exported.notes:
        typer.echo(f"note: {printable(note)}")
    typer.echo(f"run it in {folder}:")
    for command in exported.commands:
        typer.echo(f"  {printable(command)}")
