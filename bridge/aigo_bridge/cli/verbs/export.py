"""`aigo-bridge export`: write a task as files for an engine, or results as engine logs or for AI GO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from aigo_bridge.cli.export_options import OF_EVIDENCE, OF_TASKS, ExportVerbOptions
from aigo_bridge.cli.options import VERB, verb_command, with_options
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import ExportedFiles
    from aigo_bridge.exporting import InexactExportError
    from aigo_bridge.plan.plan import TaskPlan

app = typer.Typer(**VERB)

RESULTS = (".tasklog.json", ".tasklog.jsonl", ".tasklog.json.gz", ".tasklog.json.zst")
"""File extensions of result logs; `--to inspect` with one of them suggests `--to inspect-log`."""


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
        panels={"AI GO platform (--to aigo)": OF_EVIDENCE},
    ),
)
@with_options(ExportVerbOptions)
def export(options: ExportVerbOptions) -> None:
    """Write a task as files for an engine, a result as an engine log, or results for the AI GO platform.

    The exported files contain the task, all included files and the rows, so you can copy them to another
    machine. Nothing is executed.
    """
    from aigo_bridge.cli.error_handling import reported, show_issues
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
        refuse_options(options, OF_TASKS, f"only for tasks; --to {to} accepts only result logs")
    if to == EVIDENCE:
        raise typer.Exit(export_to_aigo(options))
    refuse_options(options, OF_EVIDENCE, f"only with --to aigo, found --to {to}")
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
    from aigo_bridge.cli.terminal import name_of, note, print_json, short_path
    from aigo_bridge.engine.formats import result_export
    from aigo_bridge.exporting import log_exporter
    from aigo_bridge.results.sources import existing_results

    export_as = result_export(options.to)
    exporter = log_exporter(options.to) if export_as is None else None
    results = [each.path for each in existing_results(options.sources, note) if each.path is not None]
    for result in results:
        if exporter is not None:
            written = exporter.export_log(result, options.out, force=options.force)
            if options.as_json:
                print_json({"result": str(result), "log": str(written)}, indent=None)
            else:
                typer.echo(name_of(short_path(written)))
        elif export_as is not None:
            exported = export_as(result, options.out, force=options.force)
            if options.as_json:
                summary = {"result": str(result), "file": str(exported.path), "loss": list(exported.lines)}
                print_json(summary, indent=None)
                continue
            typer.echo(name_of(short_path(exported.path)))
            for line in exported.lines:
                typer.echo(f"  {line}")


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
