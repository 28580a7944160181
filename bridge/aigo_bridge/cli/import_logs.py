"""`aigo-bridge import`: logs of an engine, whoever wrote them, as AI GO evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aigo_bridge.cli.settings import VERB

if TYPE_CHECKING:
    from aigo_bridge.engine import ImportOptions
    from aigo_bridge.importing.report import ImportReport

app = typer.Typer(**VERB)

CHOICES = {
    "--context": ("full", "delta", "none"),
    "--format": ("json", "json.gz", "json.zst", "parquet"),
    "--events": ("all", "default", "minimal"),
}


@app.command("import")
def import_logs(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG…",
            help="Log files, folders, patterns, or URLs (s3://…) of any engine; with --format parquet also result logs.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the evidence.")] = Path(
        "out"
    ),
    output_format: Annotated[
        str, typer.Option("--format", metavar="json|json.gz|json.zst|parquet", help="What is written.")
    ] = "json",
    context: Annotated[
        str,
        typer.Option(
            "--context", metavar="full|delta|none", help="How much of the models' inputs is written."
        ),
    ] = "full",
    events: Annotated[
        str, typer.Option("--events", metavar="all|default|minimal", help="Which events the traces keep.")
    ] = "default",
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes. [cores]")] = None,
    redact: Annotated[
        bool, typer.Option("--redact/--no-redact", help="Take out what looks like a key.")
    ] = True,
    pattern: Annotated[
        list[str] | None,
        typer.Option("--redact-pattern", metavar="REGEX", help="Further secrets to take out. Repeatable."),
    ] = None,
    max_loss: Annotated[
        int | None,
        typer.Option("--max-loss", min=0, metavar="N", help="More dropped things than N are an error."),
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            "--bound", metavar="NAME=NUMBER", help="A bound on what a log may ask of the machine. Repeatable."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="NAME", help="Engine that wrote the logs. [found out from the files]"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the reports for programs.")] = False,
) -> None:
    """Turn an engine's logs into AI GO evidence, also damaged and unfinished ones.

    Every log ends with counts of what was kept, changed and dropped, here and in `<name>.loss.json`.
    Exit code: 0 done, 1 more was dropped than `--max-loss` allows, 2 wrong use, 3 only a part could be read or written.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.engine import ImportOptions
    from aigo_bridge.engines import load_logs
    from aigo_bridge.errors import MissingEngineError, UsageError

    reports: list[dict[str, Any]] = []
    outputs: set[str] = set()

    def tell(report: ImportReport) -> None:
        if report.output is not None:
            outputs.add(report.output.name.removesuffix(".tasklog"))
        if as_json:
            output = None if report.output is None else str(report.output)
            reports.append({"log": report.log, "output": output, **report.summary})
            return
        for line in report.lines:
            typer.echo(line)

    with reported():
        for option, value in (("--context", context), ("--format", output_format), ("--events", events)):
            if value not in CHOICES[option]:
                raise UsageError(f"{option}: found {value!r}, expected one of {', '.join(CHOICES[option])}")
        options = ImportOptions(
            context=context,  # type: ignore[arg-type]  # checked above, as the next two
            output_format=output_format,  # type: ignore[arg-type]
            events=events,  # type: ignore[arg-type]
            jobs=jobs,
            redact=redact,
            patterns=tuple(pattern or ()),
            bounds=_numbers(bound),
            max_loss=max_loss,
        )
        logs, results = _result_logs(logs) if output_format == "parquet" else (logs, [])
        found = _by_engine(logs) if engine is None else {engine: _of_engine(logs, engine)}
        # Every engine is there before anything is read.
        by_engine = [(load_logs(name), locations) for name, locations in found.items()]
        code, missing = 0, list[MissingEngineError]()
        for one, locations in by_engine:
            try:
                code = max(code, one.import_logs(locations, out, options, tell))
            except MissingEngineError as error:
                # What one engine's files need is no matter of the others.
                missing.append(error)
        if results:
            code = max(code, _result_tables(results, out, options, outputs, tell))
        if as_json:
            typer.echo(json.dumps(reports, indent=2, ensure_ascii=False))
        if missing:
            raise MissingEngineError("; ".join(map(str, missing)))
    if code:
        raise typer.Exit(code)


def _result_logs(logs: list[str]) -> tuple[list[str], list[str]]:
    """The locations that are no result logs, and those that are."""
    from aigo_bridge.importing.file_kinds import is_result_file
    from aigo_bridge.importing.locations import expanded

    others: list[str] = []
    results: list[str] = []
    for pattern in logs:
        locations = expanded(pattern)
        found = [location for location in locations if "://" not in location and is_result_file(location)]
        results += found
        others += [pattern] if not found else [location for location in locations if location not in found]
    return others, results


def _result_tables(
    results: list[str],
    out: Path,
    options: ImportOptions,
    taken: set[str],
    tell: Callable[[ImportReport], None],
) -> int:
    """Write the tables of result logs; the worst exit code."""
    from aigo_bridge.importing.redaction import redaction
    from aigo_bridge.importing.result_tables import import_result_log

    worst = 0
    for location in dict.fromkeys(results):
        secrets = (
            redaction(options.patterns)
            if options.redact
            else redaction(options.patterns, environment={}, well_known=False)
        )
        report = import_result_log(location, out, secrets, taken)
        tell(report)
        worst = max(worst, report.exit_code)
    return worst


def _of_engine(logs: list[str], engine: str) -> list[str]:
    """The locations, none of them a file that is surely no log; all else the engine itself has to say."""
    from aigo_bridge.engines import load_logs, refuse_other

    for location in logs:
        if not load_logs(engine).files(location):
            refuse_other(location)
    return logs


def _by_engine(logs: list[str]) -> dict[str, list[str]]:
    """Engine → the locations that have logs of it. What a pattern matches is looked at one by one; what is no log is passed over, and said."""
    from aigo_bridge.engines import logs_at
    from aigo_bridge.errors import UsageError
    from aigo_bridge.importing.file_kinds import skipped_files, skipped_lines
    from aigo_bridge.importing.locations import expanded

    found: dict[str, list[str]] = {}
    for pattern in logs:
        refused: list[UsageError] = []
        locations = expanded(pattern)
        for location in locations:
            try:
                engines = logs_at(location)
            except UsageError as error:
                refused.append(error)
                continue
            for name in engines:
                found.setdefault(name, []).append(location)
            if Path(location).is_dir():
                taken = [path for files in engines.values() for path in files]
                for line in skipped_lines(skipped_files(Path(location), taken)):
                    typer.echo(line, err=True)
        if len(refused) == len(locations):
            raise refused[-1]
        for refusal in refused:
            typer.echo(f"skipped: {refusal}", err=True)
    return found


def _numbers(given: list[str] | None) -> dict[str, float]:
    if not given:
        return {}
    # Late: it loads what plans need.
    from aigo_bridge.cli.origins import pairs
    from aigo_bridge.errors import UsageError

    try:
        return {name: float(text) for name, text in pairs("--bound", given).items()}
    except ValueError as error:
        raise UsageError(f"--bound: {error}; expected NAME=NUMBER, e.g. member_bytes=1e9") from error
