"""`aigo-bridge import`: logs of an engine, whoever wrote them, as AI GO evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from aigo_bridge.cli.settings import VERB

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
        typer.Argument(metavar="LOG…", help="Log files, folders, patterns, or URLs (s3://…) of any engine."),
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
    from aigo_bridge.errors import UsageError
    from aigo_bridge.importing.report import ImportReport

    reports: list[dict[str, Any]] = []

    def tell(report: ImportReport) -> None:
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
        found = {engine: logs} if engine is not None else _by_engine(logs)
        # Every engine is there before anything is read.
        by_engine = [(load_logs(name), locations) for name, locations in found.items()]
        code = max(one.import_logs(locations, out, options, tell) for one, locations in by_engine)
    if as_json:
        typer.echo(json.dumps(reports, indent=2, ensure_ascii=False))
    if code:
        raise typer.Exit(code)


def _by_engine(logs: list[str]) -> dict[str, list[str]]:
    """Engine → the locations that have logs of it. What a pattern matches is looked at one by one; folders without logs are passed over."""
    from aigo_bridge.engines import engines_with_logs
    from aigo_bridge.errors import UsageError
    from aigo_bridge.importing.locations import expanded

    found: dict[str, list[str]] = {}
    for pattern in logs:
        refused: UsageError | None = None
        some = False
        for location in expanded(pattern):
            try:
                names = engines_with_logs(location)
            except UsageError as error:
                refused = error
                continue
            some = True
            for name in names:
                found.setdefault(name, []).append(location)
        if refused is not None and not some:
            raise refused
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
