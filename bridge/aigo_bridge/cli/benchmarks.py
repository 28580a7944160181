"""`aigo-bridge run ENGINE:BENCHMARK`: what the outcome looks like, and which options a benchmark has."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from aigo_bridge.benchmarks import BenchmarkOutcome, BenchmarkRun, load_benchmarks
from aigo_bridge.cli.failing import show_differences
from aigo_bridge.errors import UsageError
from aigo_bridge.results.first_errors import more_samples


def refuse_options(given: Mapping[str, Any]) -> None:
    """Options that a benchmark of an engine has nothing to do with.

    Raises:
        UsageError: one was given; all are named.
    """
    used = [name for name, value in given.items() if value]
    if used:
        message = f"{', '.join(used)}: not for an engine's own benchmark"
        hint = (
            " (its parameters are given with -T NAME=VALUE)" if {"--config", "--dataset"} & set(used) else ""
        )
        raise UsageError(message + hint)


def run_benchmark(engine: str, request: BenchmarkRun, *, fail_on_error: str | None, as_json: bool) -> int:
    """Run a benchmark (or several of a file or folder) and show what it came to; returns the exit code."""
    from aigo_bridge.cli.failing import ExitCode, code_of, reported
    from aigo_bridge.cli.outcomes import note_other_result
    from aigo_bridge.cli.progress import progress
    from aigo_bridge.cli.terminal import printable
    from aigo_bridge.errors import EngineError
    from aigo_bridge.tolerance import tolerated

    benchmarks = load_benchmarks(engine)
    _refuse_local_rows(engine, benchmarks, request.data_dir, request.custom_tasks)
    tells = getattr(benchmarks, "TELLS_PROGRESS", False)
    if request.resume and not getattr(benchmarks, "CAN_RESUME", False):
        raise UsageError(f"--resume: not for benchmarks of {engine}")
    try:
        with progress(
            enabled=tells and not as_json, several=True, resumable=getattr(benchmarks, "CAN_RESUME", False)
        ) as on_progress:
            outcomes = benchmarks.run(replace(request, on_progress=on_progress))
        outcomes = [outcome.compared() for outcome in outcomes]
    except EngineError as error:
        with reported(ExitCode.NOT_RIGHT):
            raise error from error
    for outcome in outcomes:
        for warning in outcome.warnings:
            typer.echo(f"warning: {printable(outcome.task)}: {printable(warning)}", err=True)
        note_other_result(outcome.result)
        if request.resume:
            typer.echo(f"{printable(outcome.task)}: {resumption(outcome, request.out)}", err=True)
    if as_json:
        typer.echo(json.dumps([summary(outcome) for outcome in outcomes], indent=2, ensure_ascii=False))
    else:
        for outcome in outcomes:
            show(outcome)
    for outcome in outcomes:
        show_differences(outcome.result, outcome.differences)
    right = bool(outcomes) and all(
        outcome.is_right(tolerated(fail_on_error, outcome.planned)) for outcome in outcomes
    )
    return code_of({outcome.status for outcome in outcomes}, right=right)


def resumption(outcome: BenchmarkOutcome, out: Path) -> str:
    """What `--resume` came to."""
    from aigo_bridge.cli.terminal import short_path

    if outcome.reused:
        return f"{outcome.reused} finished trials were taken over"
    return f"nothing to resume: no run of this task with these models in {short_path(out)}; all of it was run"


def _refuse_local_rows(engine: str, benchmarks: object, *given: Path | None) -> None:
    """Options that only some engines' benchmarks have."""
    if any(given) and not getattr(benchmarks, "TAKES_LOCAL_ROWS", False):
        raise UsageError(f"--data-dir, --custom-tasks: not for benchmarks of {engine}")


def summary(outcome: BenchmarkOutcome) -> dict[str, Any]:
    """For programs."""
    return {
        "task": outcome.task,
        "file": outcome.file,
        "status": outcome.status,
        "error": outcome.error,
        "model": outcome.model,
        "samples": {
            "planned": outcome.planned,
            "completed": outcome.num_samples - outcome.num_failed,
            "failed": outcome.num_failed,
            "missing": outcome.num_missing,
            "stopped": outcome.num_stopped,
            "unscored": outcome.num_unscored,
        },
        "metrics": [
            {"scorer": row.scorer, "name": row.name, "value": row.value, "num_scored": row.num_scored}
            for row in outcome.metrics
        ],
        "errors": [
            {"sample_id": sample_id, "message": text, "count": count}
            for (sample_id, text), count in zip(outcome.first_errors, outcome.error_counts, strict=True)
        ],
        "reused": outcome.reused,
        "warnings": list(outcome.warnings),
        "native_log": str(outcome.native_log),
        "result": None if outcome.result is None else str(outcome.result),
        **({"differences": list(outcome.differences)} if outcome.differences else {}),
    }


def show(outcome: BenchmarkOutcome) -> None:
    """For people, on standard output."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from aigo_bridge.cli.terminal import one_line, printable, short_path

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    place = "" if outcome.file is None else f"  {printable(short_path(outcome.file))}"
    console.print(Text.assemble(("\n" + printable(outcome.task), "bold"), (place, "dim")))
    if outcome.metrics:
        table = Table("metric", "value", "samples", "scorer", box=None, padding=(0, 3, 0, 0))
        table.columns[1].justify = table.columns[2].justify = "right"
        for row in outcome.metrics:
            value = "–" if row.value is None else f"{row.value:.4g}"
            number = "" if row.num_scored is None else str(row.num_scored)
            table.add_row(Text(printable(row.name)), value, number, Text(printable(row.scorer)))
        console.print(table)
    parts = [f"{outcome.num_samples - outcome.num_failed} of {outcome.planned} samples completed"]
    parts += [f"{outcome.num_failed} failed"] if outcome.num_failed else []
    parts += [f"{outcome.num_missing} missing"] if outcome.num_missing else []
    parts += [f"{outcome.num_unscored} not scored"] if outcome.num_unscored else []
    wrong = len(parts) > 1
    parts += [f"{outcome.num_stopped} stopped early by the task"] if outcome.num_stopped else []
    console.print(", ".join(parts), style="red" if wrong else None)
    for (sample_id, message), count in zip(outcome.first_errors, outcome.error_counts, strict=True):
        line = f"  sample {printable(str(sample_id))}: {one_line(message)}{more_samples(count)}"
        console.print(Text(line))
    more = outcome.num_failed - sum(outcome.error_counts)
    if more > 0:
        console.print(f"  … and {more} more; all are in the evidence", style="dim")
    if outcome.status != "success":
        console.print(
            Text(f"the run did not finish ({one_line(outcome.error or outcome.status)})", style="red")
        )
    console.print()
    if outcome.result is not None:
        typer.echo(f"evidence    {short_path(outcome.result)}")
    typer.echo(f"native log  {short_path(outcome.native_log)}")


def show_list(engine: str, *, as_json: bool) -> None:
    """The benchmarks that are installed for an engine."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from aigo_bridge.cli.terminal import printable

    listing = load_benchmarks(engine).listing()
    for problem in listing.problems:
        typer.echo(f"warning: {printable(problem)}", err=True)
    if not listing.benchmarks:
        hint = f"; {listing.hint}" if listing.hint else ""
        typer.echo(f"no package with benchmarks for {engine} is installed here{hint}", err=True)
    if as_json:
        rows: Sequence[dict[str, Any]] = [
            {
                "name": f"{engine}:{benchmark.name}",
                "package": benchmark.package,
                "parameters": list(benchmark.parameters),
                "description": benchmark.summary,
            }
            for benchmark in listing.benchmarks
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not listing.benchmarks:
        return
    table = Table("benchmark", "what it does", "parameters", box=None, padding=(0, 2, 0, 0))
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for benchmark in listing.benchmarks:
        name = Text(printable(f"{engine}:{benchmark.name}"))
        table.add_row(name, Text(printable(benchmark.summary)), Text(", ".join(benchmark.parameters)))
    # A name that is cut cannot be run; and in a pipe rich would take 80 characters.
    table.columns[0].min_width = max(len(each.name) for each in listing.benchmarks) + len(engine) + 1
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def convert_benchmark(
    engine: str,
    task: str,
    out: Path,
    *,
    arguments: Sequence[str],
    key: str | None,
    force: bool,
    data_dir: Path | None = None,
    custom_tasks: Path | None = None,
) -> bool:
    """Write a benchmark as an AI GO task with its rows; whether it could be said in AI GO."""
    from aigo_bridge.cli.terminal import printable, short_path
    from aigo_bridge.errors import UnsupportedPlanError
    from aigo_bridge.jsonl_spec import write_aigo
    from aigo_bridge.jsonl_spec.to_aigo import Converted

    if (out / "task.yaml").exists() and not force:
        raise UsageError(f"{str(out / 'task.yaml')!r} is there already (--force replaces it)")
    try:
        benchmarks = load_benchmarks(engine)
        _refuse_local_rows(engine, benchmarks, data_dir, custom_tasks)
        local = {"data_dir": data_dir, "custom_tasks": custom_tasks}
        given = {name: value for name, value in local.items() if value is not None}
        converted = benchmarks.converted(task, arguments, key, **given)
    except UnsupportedPlanError as error:
        typer.echo(f"error: {printable(str(error))}", err=True)
        return False
    path = write_aigo(Converted(dict(converted.task), converted.rows, ()), out)
    for gap in converted.gaps:
        hint = f" ({gap.hint})" if gap.hint else ""
        typer.echo(f"gap: {gap.part}: {gap.reason} [{gap.fidelity.value}]{hint}", err=True)
    typer.echo(f"{len(converted.rows)} samples  {printable(short_path(path))}")
    return True
