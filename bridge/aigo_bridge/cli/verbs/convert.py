"""`aigo-bridge convert`: tasks of other forms to AI GO tasks, and AI GO tasks to JSONL records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowUrlOption,
    BadTasksOption,
    ConfigOption,
    CustomTasksOption,
    DataDirOption,
    DatasetOption,
    EnvOption,
    NetworkOption,
    RootOption,
    refuse_options,
    verb_command,
    with_options,
)
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.engine.formats import TaskConverter

app = typer.Typer(**VERB)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """Options of a conversion."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="JSONL file with task records, AI GO task, inspect:BENCHMARK, "
            "lighteval:TASK, lm-eval:PATH (a task or group of lm-evaluation-harness), or "
            "inspect-hub:PATH (an eval.yaml of Inspect).",
        ),
    ]
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="PATH", help="Folder for the AI GO task, or .jsonl file for the records."
        ),
    ]
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", help="Key of the AI GO task. [default: the file name]"),
    ] = None
    allow_bad_tasks: BadTasksOption = False
    config: ConfigOption = None
    dataset: DatasetOption = None
    root: RootOption = None
    task_args: Annotated[
        list[str] | None,
        typer.Option(
            "--task-arg",
            "-T",
            metavar="NAME=VALUE",
            help="Parameter of the benchmark, e.g. subset=easy. For inspect-hub: "
            "repository=ORG/NAME. Repeatable.",
        ),
    ] = None
    data_dir: DataDirOption = None
    custom_tasks: CustomTasksOption = None
    allow_gaps: Annotated[
        bool,
        typer.Option(
            "--allow-gaps",
            help="Convert lm-eval and inspect-hub tasks without the parts that AI GO cannot "
            "express. The new task lists them.",
        ),
    ] = False
    to: Annotated[
        str | None, typer.Option("--to", metavar="aigo", help="Target format of a benchmark: aigo.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False
    env: EnvOption = None
    allow_file: AllowFileOption = None
    allow_url: AllowUrlOption = None
    network: NetworkOption = True


@app.command(
    "convert",
    cls=verb_command(
        "aigo-bridge convert tasks.jsonl --out capitals",
        "aigo-bridge convert inspect:inspect_evals/arc_easy --out arc",
        "aigo-bridge convert lm-eval:tasks/quiz.yaml --out quiz",
        exit_codes={
            "0": "the task was converted",
            "1": "the task cannot be converted exactly",
            "2": "wrong arguments or an invalid file",
            "3": "invalid task records were skipped",
        },
    ),
)
@with_options(ConvertOptions)
def convert(options: ConvertOptions) -> None:
    """Convert task records or a benchmark to an AI GO task, or an AI GO task to records.

    The AI GO task has the same prompts and produces the same scores. If an AI GO task cannot be expressed
    as records, the command lists all reasons.
    """
    from aigo_bridge.engine.registry import split_name
    from aigo_bridge.errors import UsageError
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.jsonl_spec import is_record_file

    if options.to not in (None, "aigo"):
        raise UsageError(f"--to: found {options.to!r}, expected aigo", code=Code.WRONG_OPTION)
    foreign, benchmark = _foreign(options.source), split_name(options.source)
    if foreign is None:
        refuse_options(options, ("allow_gaps",), "only for lm-eval:PATH and inspect-hub:PATH")
        if benchmark is None:
            names = ("task_args", "data_dir", "custom_tasks")
            refuse_options(options, names, "only for engine benchmarks")
    failed = ExitCode.FAILED
    if foreign is not None:
        is_exact = _write_foreign(*foreign, options)
    elif benchmark is not None:
        is_exact = _benchmark(*benchmark, options)
    elif is_record_file(Path(options.source)):
        is_exact, failed = _to_aigo(options), ExitCode.PARTIAL
    else:
        is_exact = _to_records(options)
    if not is_exact:
        raise typer.Exit(failed)


def _to_aigo(options: ConvertOptions) -> bool:
    """Convert task records to an AI GO task; return whether all of them are valid."""
    from aigo_bridge.cli.error_handling import show_issues
    from aigo_bridge.cli.terminal import name_of, short_path
    from aigo_bridge.jsonl_spec import read_task_file, write_aigo

    records = read_task_file(Path(options.source), key=options.key, allow_bad_tasks=options.allow_bad_tasks)
    _refuse_existing(options.out / "task.yaml", options)
    path = write_aigo(records.converted, options.out)
    show_issues(records.issues)
    for gap in records.converted.gaps:
        typer.echo(f"gap: {gap}", err=True)
    typer.echo(f"{plural(len(records.converted.rows), 'task')}  {name_of(short_path(path))}")
    return not records.num_invalid


def _refuse_existing(path: Path, options: ConvertOptions) -> None:
    from aigo_bridge.errors import UsageError

    if path.exists() and not options.force:
        raise UsageError(f"{str(path)!r} already exists (replace it with --force)", code=Code.ALREADY_THERE)


def _to_records(options: ConvertOptions) -> bool:
    """Convert an AI GO task to records; return whether they can express it."""
    from aigo_bridge.cli.options import origin_of
    from aigo_bridge.cli.terminal import name_of, printable, short_path
    from aigo_bridge.errors import UsageError
    from aigo_bridge.evaluation.task import plan
    from aigo_bridge.jsonl_spec import from_aigo, write_records
    from aigo_bridge.plan.plan import document_of

    out = options.out
    if not out.name.lower().endswith(".jsonl"):
        raise UsageError(f"--out: found {str(out)!r}, expected a .jsonl file", code=Code.WRONG_OPTION)
    _refuse_existing(out, options)
    origin = origin_of(options.source, config=options.config, dataset=options.dataset, root=options.root)
    task_plan = plan(origin)
    # Config values are bound in the definition, so the task needs no parameters.
    definition = task_plan.definition.model_dump(mode="json", by_alias=True, exclude_unset=True)
    document = {**document_of(task_plan.task), "config_spec": [], "definition": definition}
    recovered = from_aigo(document, [sample.data for sample in task_plan.samples])
    if recovered.reasons:
        typer.echo("the task cannot be expressed as task records:", err=True)
        for reason in recovered.reasons:
            typer.echo(f"  {printable(reason)}", err=True)
        return False
    out.parent.mkdir(parents=True, exist_ok=True)
    write_records(recovered.tasks, out)
    typer.echo(f"{plural(len(recovered.tasks), 'task')}  {name_of(short_path(out))}")
    return True


def _foreign(source: str) -> tuple[TaskConverter, Path] | None:
    """Return the converter of `FORMAT:PATH` and the path; `None` if the source does not name a format."""
    from aigo_bridge.engine.formats import format_named

    name, colon, path = source.partition(":")
    row = format_named(name) if colon else None
    return None if row is None or row.tasks is None else (row.tasks(), Path(path))


def _write_foreign(convert: TaskConverter, path: Path, options: ConvertOptions) -> bool:
    """Write tasks of another project as AI GO tasks; return whether AI GO can express them."""
    from aigo_bridge.cli.error_handling import show_issues, show_message
    from aigo_bridge.cli.terminal import name_of, short_path
    from aigo_bridge.engine.formats import ConversionOptions
    from aigo_bridge.errors import UnsupportedPlanError

    choices = ConversionOptions(
        options.root, options.task_args or (), options.key, options.allow_gaps, options.force
    )
    try:
        converted = convert(path, options.out, choices)
    except UnsupportedPlanError as error:
        show_message(str(error), error.code)
        return False
    show_issues(converted.issues)
    typer.echo(f"{plural(len(converted.tasks), 'task')}  {name_of(short_path(converted.path))}")
    for task, dataset in (converted.missing_rows or {}).items():
        typer.echo(f"pass the rows of {task} when you run it: --dataset {dataset}=FILE", err=True)
    return True


def _benchmark(engine: str, task: str, options: ConvertOptions) -> bool:
    """Write a benchmark as an AI GO task with its rows; return whether AI GO can express it."""
    from aigo_bridge.cli.error_handling import show_message
    from aigo_bridge.cli.terminal import name_of, short_path
    from aigo_bridge.engine.registry import load_benchmarks, refuse_local_rows
    from aigo_bridge.errors import UnsupportedPlanError
    from aigo_bridge.jsonl_spec import write_aigo
    from aigo_bridge.jsonl_spec.conversion import Converted

    _refuse_existing(options.out / "task.yaml", options)
    try:
        runner = load_benchmarks(engine)
        refuse_local_rows(engine, options.data_dir, options.custom_tasks)
        converted = runner.converted(
            task,
            options.task_args or [],
            options.key,
            data_dir=options.data_dir,
            custom_tasks=options.custom_tasks,
        )
    except UnsupportedPlanError as error:
        show_message(str(error), error.code)
        return False
    path = write_aigo(Converted(dict(converted.task), converted.rows, ()), options.out)
    for gap in converted.gaps:
        hint = f" ({gap.hint})" if gap.hint else ""
        typer.echo(f"gap: {gap.part}: {gap.reason} [{gap.fidelity.value}]{hint}", err=True)
    typer.echo(f"{plural(len(converted.rows), 'sample')}  {name_of(short_path(path))}")
    return True
