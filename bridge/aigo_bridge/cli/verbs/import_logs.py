"""`aigo-bridge import`: convert engine logs to AI GO evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowOption,
    SnippetsOption,
    refuse_options,
    verb_command,
    with_options,
)
from aigo_bridge.cli.storage.import_reports import ImportReports, one_result
from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport
    from aigo_bridge.plan.logged_plan import LoggedPlan
    from aigo_bridge.plan.plan import TaskPlan

app = typer.Typer(**VERB)

CHOICES = {
    "--context": ("full", "delta", "none"),
    "--format": ("json", "json.gz", "json.zst", "parquet"),
    "--events": ("all", "default", "minimal"),
}


@dataclass(frozen=True, kw_only=True)
class ImportLogsOptions:
    """Options of an import."""

    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG…",
            help="Log files, folders, patterns, or URLs (s3://…) of an engine, of "
            "lm-evaluation-harness or of Every Eval Ever. With --format parquet or "
            "--lake, result logs are also accepted. With --lake, run files with task "
            "result logs are also accepted.",
        ),
    ]
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR|FILE",
            help="Folder for the evidence. For a single log, you can name the file: NAME.tasklog.json.",
        ),
    ] = Path("out")
    output_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="json|json.gz|json.zst|parquet",
            help="Format of the evidence: a JSON file, optionally compressed, or Parquet tables.",
        ),
    ] = "json"
    context: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="full|delta|none",
            help="Model inputs to keep: full (complete inputs), delta (only new messages of "
            "each call) or none.",
        ),
    ] = "full"
    events: Annotated[
        str,
        typer.Option(
            "--events",
            metavar="all|default|minimal",
            help="Trace events to keep: all, default (without state patches and library "
            "messages below warning) or minimal (only the conversation).",
        ),
    ] = "default"
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            min=1,
            metavar="N",
            help="Number of logs to import in parallel. [default: one per CPU core]",
        ),
    ] = None
    redact: Annotated[
        bool, typer.Option("--redact/--no-redact", help="Remove texts that look like API keys.")
    ] = True
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--redact-pattern",
            metavar="REGEX",
            help="Also remove texts that match this regular expression, e.g. 'tok_[a-z0-9]+'. Repeatable.",
        ),
    ] = None
    max_loss: Annotated[
        int | None,
        typer.Option(
            "--max-loss", min=0, metavar="N", help="Maximum number of dropped items. More set exit code 1."
        ),
    ] = None
    bound: Annotated[
        list[str] | None,
        typer.Option(
            "--bound",
            metavar="NAME=NUMBER",
            help="Raise a safety limit for large logs, e.g. events=10000000. Repeatable.",
        ),
    ] = None
    recompute: Annotated[
        str | None,
        typer.Option(
            "--recompute",
            metavar="TASK",
            help="Compute all metrics of an aigo-bridge log again, with this task or run "
            "file. It must be the task of the log.",
        ),
    ] = None
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            metavar="KEY=FILE",
            help="File for a dataset key of the task in --recompute, e.g. capitals=rows.csv. Repeatable.",
        ),
    ] = None
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Folder that the task in --recompute may read from. [default: the project folder]",
        ),
    ] = None
    snippets: SnippetsOption = None
    allow: AllowOption = None
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="Import traces of another tool: claude_code, opentelemetry, phoenix or langsmith.",
        ),
    ] = None
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Engine or format of the logs. [default: recognized from the files]",
        ),
    ] = None
    provenance: Annotated[
        bool,
        typer.Option(
            "--provenance", help="Also write checksums of each result and its samples. `verify` needs them."
        ),
    ] = False
    lake: Annotated[
        str | None,
        typer.Option(
            "--lake",
            metavar="LAKE",
            help="Add the results to a lake of Delta tables, e.g. team.lake or s3://team/evidence.lake.",
        ),
    ] = None
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Continue to import new logs into the lake until you press ctrl-C."),
    ] = False
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            min=0.1,
            metavar="SECONDS",
            help="Time between two searches for new logs with --watch.",
        ),
    ] = 10
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="ray", help="Import into a lake on the workers of a Ray cluster."),
    ] = None
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="HOST:PORT|auto",
            help="Address of the Ray cluster for --on ray. [default: a cluster on this "
            "machine, for the duration of the import]",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            metavar="N",
            help="Number of worker processes for --on ray. [default: one per CPU]",
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print the reports as JSON.")] = False


@app.command(
    "import",
    cls=verb_command(
        "aigo-bridge import logs/run.eval",
        "aigo-bridge import 'logs/**/*.eval' --out evidence --format json.zst",
        "aigo-bridge import sessions.jsonl --from claude_code",
        "aigo-bridge import logs --lake team.lake --watch",
        exit_codes={
            "0": "all logs were imported",
            "1": "more items were dropped than --max-loss allows",
            "2": "wrong arguments",
            "3": "some logs could only be read or written in part",
        },
        panels={
            "Content": ("output_format", "context", "events", "redact", "pattern"),
            "Loss and limits": ("max_loss", "bound"),
            "Metrics": ("recompute", "dataset"),
            "Lake": ("lake", "watch", "interval", "on", "ray_address", "workers"),
        },
    ),
)
@with_options(ImportLogsOptions)
def import_logs(options: ImportLogsOptions) -> None:
    """Convert engine logs to AI GO evidence, including damaged and unfinished logs.

    The command prints one line for each log. `<name>.loss.json` counts everything that was kept, changed
    and dropped; --verbose prints these details.

    Code inside a log is never executed. Metrics that an AI GO task computes in Python are copied from the
    log. To compute them again with your own task, use --recompute.
    """
    reports = ImportReports(options.as_json)
    choices = _choices(options)
    lake = _lake(options)
    _check_cluster(options)
    if lake is not None:
        code = _into_lake(lake, options, choices, reports)
    elif options.source is not None:
        with one_result(options.out, choices, reports) as (folder, chosen, found):
            code = _traces(options, options.source, folder, chosen, found.add)
        reports.finish()
    else:
        code = _engine_logs(options, choices, reports)
    if code:
        raise typer.Exit(code)


def _choices(options: ImportLogsOptions) -> ImportOptions:
    from aigo_bridge.access.bounds import DEFAULT_BOUNDS
    from aigo_bridge.importing.log_import import ImportOptions

    _check_choices(
        {"--context": options.context, "--format": options.output_format, "--events": options.events}
    )
    return ImportOptions(
        context=options.context,  # type: ignore[arg-type]  # checked above
        output_format=options.output_format,  # type: ignore[arg-type]  # checked above
        events=options.events,  # type: ignore[arg-type]  # checked above
        jobs=options.jobs,
        redact=options.redact,
        patterns=tuple(options.pattern or ()),
        bounds=DEFAULT_BOUNDS.changed(_numbers(options.bound)),
        max_loss=options.max_loss,
        provenance=options.provenance,
        recompute=_recompute(options),
    )


def _engine_logs(options: ImportLogsOptions, choices: ImportOptions, reports: ImportReports) -> int:
    """Import the logs of engines, and result logs as tables; return the worst exit code."""
    from aigo_bridge.engine.registry import load_logs, logs_by_engine
    from aigo_bridge.errors import MissingEngineError, UsageError
    from aigo_bridge.importing.log_import import SEVERAL_RESULTS

    is_table = options.output_format == "parquet"
    logs, results = _result_logs(options.logs) if is_table else (options.logs, [])
    located = logs_by_engine(logs, options.engine, lambda line: typer.echo(line, err=True))
    # Load all engines before reading any log.
    by_engine = [(load_logs(name), locations) for name, locations in located.items()]
    code, missing = 0, list[MissingEngineError]()
    with one_result(options.out, choices, reports) as (folder, chosen, found):
        if chosen.name is not None and len(located) > 1:
            raise UsageError(SEVERAL_RESULTS, code=Code.WRONG_OPTION)
        for one, locations in by_engine:
            try:
                code = max(code, one.import_logs(locations, folder, chosen, found.add))
            except MissingEngineError as error:
                # A missing package of one engine does not affect the files of the others.
                missing.append(error)
    if results:
        code = max(code, _result_tables(results, options.out, choices, reports.names(), reports.add))
    reports.finish()
    if missing:
        raise MissingEngineError("; ".join(map(str, missing)))
    return code


def _check_choices(values: Mapping[str, str]) -> None:
    from aigo_bridge.errors import UsageError

    for option, value in values.items():
        if value not in CHOICES[option]:
            raise UsageError(
                f"{option}: found {value!r}, expected one of {', '.join(CHOICES[option])}",
                code=Code.WRONG_OPTION,
            )


def _lake(options: ImportLogsOptions) -> str | None:
    """Return the lake to import into; `None` without one."""
    is_table, lake = options.output_format == "parquet", options.lake
    if lake is None and is_table:
        from aigo_bridge.importing.lakes import names_lake

        lake = _lake_out(options.out) if names_lake(options.out) else None
    if lake is None:
        place = f"--lake {_lake_out(options.out) if is_table else 'LAKE'}"
        hint = (
            "; with --format parquet, --out is a lake if it contains one, or if its name is "
            "lake or ends in .lake, -lake or _lake"
        )
        reason = f"only for an import into a lake ({place}{hint if is_table else ''})"
        refuse_options(options, ("watch", "on"), reason)
    return lake


def _check_cluster(options: ImportLogsOptions) -> None:
    from aigo_bridge.errors import UsageError

    if options.on not in (None, "ray"):
        raise UsageError(f"--on: found {options.on!r}, expected ray", code=Code.UNKNOWN_CHOICE)
    if options.on is None:
        refuse_options(options, ("ray_address", "workers"), "only with --on ray")
    if options.on is not None and options.jobs is not None:
        raise UsageError("--jobs: cannot be combined with --on ray; use --workers", code=Code.OPTIONS_APART)


def _into_lake(lake: str, options: ImportLogsOptions, choices: ImportOptions, reports: ImportReports) -> int:
    """Import logs into a lake; return the exit code."""
    from aigo_bridge.hooks import load_hook
    from aigo_bridge.importing.lakes import Lake, LakeImport

    other = ("recompute", "engine", "provenance", "source")
    refuse_options(options, other, "cannot be combined with an import into a lake")
    code = load_hook("lake", Lake).import_logs(
        LakeImport(
            lake,
            options.logs,
            choices,
            reports.add,
            options.interval if options.watch else None,
            options.on is not None,
            options.ray_address,
            options.workers,
        )
    )
    reports.finish(total=False)  # A lake prints its own total.
    return code


def _lake_out(out: Path) -> str:
    """Return `--out` as the user typed it: a path reduces two slashes to one."""
    return re.sub(r"^([a-z0-9]+):/(?!/)", r"\1://", str(out))


def _traces(
    options: ImportLogsOptions,
    source: str,
    out: Path,
    choices: ImportOptions,
    tell: Callable[[ImportReport], None],
) -> int:
    """Import traces that no engine wrote; return the worst exit code."""
    from aigo_bridge.engine.formats import formats
    from aigo_bridge.errors import UsageError

    refuse_options(options, ("engine",), "cannot be combined with --from")
    sources = {name: row.traces for name, row in formats().items() if row.traces is not None}
    if source not in sources:
        raise UsageError(
            f"--from: found {source!r}, expected one of {', '.join(sources)}", code=Code.WRONG_OPTION
        )
    return sources[source]().import_logs(options.logs, out, choices, tell)


def _recompute(options: ImportLogsOptions) -> Callable[[LoggedPlan], TaskPlan] | None:
    """Return a function that replaces a log's plan with the user's own; `None` without --recompute."""
    task = options.recompute
    if task is None:
        refuse_options(options, ("dataset", "root"), "only with --recompute")
        return None
    from aigo_bridge.cli.options import pairs
    from aigo_bridge.evaluation.bridge_logs import check_task, own_plan
    from aigo_bridge.execution.permissions import resolve_permissions

    reach = None if options.root is None else str(options.root.resolve())
    files = {key: str(Path(file).resolve()) for key, file in pairs("--dataset", options.dataset).items()}
    check_task(task, reach)
    return lambda logged: resolve_permissions(own_plan(task, logged, datasets=files, root=reach))


def _result_logs(logs: list[str]) -> tuple[list[str], list[str]]:
    """Return the locations that are not result logs, and the result logs."""
    from aigo_bridge.access.file_kinds import expanded, is_result_file

    patterns: list[str] = []
    results: list[str] = []
    for pattern in logs:
        locations = expanded(pattern)
        result_files = [
            location for location in locations if "://" not in location and is_result_file(location)
        ]
        results += result_files
        patterns += (
            [pattern]
            if not result_files
            else [location for location in locations if location not in result_files]
        )
    return patterns, results


def _result_tables(
    results: list[str],
    out: Path,
    options: ImportOptions,
    taken: set[str],
    tell: Callable[[ImportReport], None],
) -> int:
    """Write the tables of result logs; return the worst exit code."""
    from aigo_bridge.importing.result_tables import import_result_log

    worst = 0
    for location in dict.fromkeys(results):
        report = import_result_log(location, out, options.redaction(), taken)
        tell(report)
        worst = max(worst, report.exit_code)
    return worst


def _numbers(texts: list[str] | None) -> dict[str, float]:
    if not texts:
        return {}
    # Imported late because it loads the planning modules.
    from aigo_bridge.cli.options import pairs
    from aigo_bridge.errors import UsageError

    try:
        return {name: float(text) for name, text in pairs("--bound", texts).items()}
    except ValueError as error:
        raise UsageError(
            f"--bound: {error}; expected NAME=NUMBER, e.g. member_bytes=1e9", code=Code.WRONG_OPTION
        ) from error
