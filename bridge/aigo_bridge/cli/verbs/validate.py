"""`aigo-bridge validate`: check files and report each problem with its place."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    EnvOption,
    RootOption,
    verb_command,
)
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

app = typer.Typer(**VERB)

NONE_FOUND = "no files found: folders are searched for YAML files, tasks.jsonl and result logs"


@app.command(
    "validate",
    cls=verb_command(
        "aigo-bridge validate task.yaml",
        "aigo-bridge validate . --strict --format github",
        exit_codes={"0": "all files are valid", "1": "a file is not valid", "2": "wrong arguments"},
    ),
)
def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            help="Files of any kind, folders and names of shipped tasks. Folders are searched recursively.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="rich|json|github",
            help="Output format: text for people, JSON for programs, or GitHub annotations.",
        ),
    ] = "rich",
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    dialect: Annotated[
        str,
        typer.Option(
            "--dialect",
            metavar="default|aigo-3.17",
            help="Accepted syntax: all of AI GO including deprecated syntax, or only AI GO 3.17.",
        ),
    ] = "default",
    root: RootOption = None,
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
) -> None:
    """Validate tasks, run files, datasets, models and result logs.

    The kind of a file is recognized by its content. No model is called and no snippet is executed.
    """
    from aigo_bridge.cli.error_handling import as_json, render_issues, shortened
    from aigo_bridge.cli.options import uses_as_lines, variables_as_json
    from aigo_bridge.cli.terminal import colour_of, name_of, print_json, printable, short_path, width_of
    from aigo_bridge.errors import UsageError
    from aigo_bridge.evaluation.validation import validate as validate_files
    from aigo_bridge.exit_codes import ExitCode

    if output not in ("rich", "json", "github"):
        raise UsageError(f"--format: found {output!r}, expected rich, json or github", code=Code.WRONG_OPTION)
    if dialect not in ("default", "aigo-3.17"):
        raise UsageError(
            f"--dialect: found {dialect!r}, expected default or aigo-3.17", code=Code.WRONG_OPTION
        )
    reports = list(validate_files(paths, root=root, dialect=dialect))  # type: ignore[arg-type]  # checked above
    valid = all(report.is_valid(strict=strict) for report in reports)
    # Problems of a dataset or task are reported once, at their own position, even if several files refer to
    # it.
    issues = list(
        {
            replace(issue, path=()) if issue.line is not None else issue: issue
            for report in reports
            for issue in shortened(report.issues)
        }.values()
    )
    if output == "json":
        files = [
            {
                "file": short_path(report.file),
                "kind": report.kind,
                "valid": report.is_valid(strict=strict),
                "issues": [as_json(issue) for issue in shortened(report.issues)],
                "variables": variables_as_json(report.variables),
                "addresses": list(report.addresses),
                "files": [short_path(file) for file in report.files],
                "needs": report.needs,
            }
            for report in reports
        ]
        print_json(files)
    elif output == "github":
        typer.echo(render_issues(issues, "github"), nl=False)
    else:
        text = render_issues(issues, colour=colour_of(sys.stdout), width=width_of(sys.stdout))
        typer.echo(text, nl=False)
        for line in uses_as_lines(
            (use for report in reports for use in report.variables),
            dict.fromkeys(address for report in reports for address in report.addresses),
            (file for report in reports for file in report.files),
        ):
            typer.echo(line)
        for report in reports:
            if report.needs is not None:
                note = (
                    f"{short_path(report.file)}: the code of the task needs the {report.needs}; run "
                    f"it with --allow {report.needs}"
                )
                typer.echo(printable(note))
        wrong = sum(not report.is_valid(strict=strict) for report in reports)
        kinds = ", ".join(sorted({report.kind for report in reports}))
        if wrong:
            typer.echo(f"{wrong} of {plural(len(reports), 'file')} {'is' if wrong == 1 else 'are'} not valid")
        elif len(reports) == 1:
            typer.echo(f"{name_of(short_path(reports[0].file))}: a valid {reports[0].kind}")
        else:
            typer.echo(f"{plural(len(reports), 'file is', 'files are')} valid ({kinds or NONE_FOUND})")
    if not valid:
        raise typer.Exit(ExitCode.FAILED)
