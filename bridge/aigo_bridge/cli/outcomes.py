"""What a run came to, for people and for programs."""

from __future__ import annotations

import sys
from typing import Any

import typer

from aigo_bridge.evaluate import Outcome


def summary(outcome: Outcome) -> dict[str, Any]:
    """For programs."""
    return {
        "task": outcome.plan.task.key,
        "status": outcome.execution.status,
        "digest": outcome.plan.digest,
        "models": dict(outcome.models),
        "samples": {
            "planned": len(outcome.plan.samples),
            "scored": outcome.num_samples - outcome.num_failed,
            "failed": outcome.num_failed,
            "missing": outcome.num_missing,
            "reused": outcome.log.reused,
        },
        "metrics": [
            {
                "scorer": row.scorer_key,
                "name": row.name,
                "value": row.value,
                "num_scored": row.num_scored,
                "problem": row.problem,
            }
            for row in outcome.metrics
        ],
        "errors": [
            {"sample_id": sample_id, "stage": error.stage and error.stage.value, "message": error.message}
            for sample_id, error in outcome.first_errors
        ],
        "usage": {name: dict(usage) for name, usage in outcome.execution.model_usage.items()},
        "native_log": str(outcome.log.path),
        "result": str(outcome.result),
    }


def show_outcome(outcome: Outcome) -> None:
    """For people, on standard output."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from aigo_bridge.cli.terminal import one_line, printable, short_path

    # Lines are never broken: messages and paths are there to be copied and searched for.
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    planned = len(outcome.plan.samples)
    console.print(Text(f"\n{printable(outcome.plan.task.display_name)}", style="bold"))
    table = Table("metric", "value", "samples", "scorer", box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.columns[1].justify = table.columns[2].justify = "right"
    for row in outcome.metrics:
        value = "–" if row.value is None else f"{row.value:.4g}"
        table.add_row(Text(printable(row.name)), value, str(row.num_scored), Text(row.scorer_key))
    if outcome.metrics:
        console.print(table)
    for row in outcome.metrics:
        if row.problem:
            console.print(Text(f"  {row.name}: {printable(row.problem)}", style="yellow"))
    scored = outcome.num_samples - outcome.num_failed
    parts = [f"{scored} of {planned} samples scored"]
    if outcome.num_failed:
        parts.append(f"{outcome.num_failed} failed")
    if outcome.num_missing:
        parts.append(f"{outcome.num_missing} missing")
    if outcome.num_excluded:
        parts.append(f"{outcome.num_excluded} excluded from metrics")
    if outcome.log.reused:
        parts.append(f"{outcome.log.reused} taken over from the earlier run")
    console.print(", ".join(parts), style="red" if outcome.num_failed or outcome.num_missing else None)
    for sample_id, error in outcome.first_errors:
        stage = error.stage.value if error.stage else "?"
        console.print(Text(f"  sample {printable(str(sample_id))}: {stage}: {one_line(error.message)}"))
        if error.hint:
            console.print(Text(f"    hint: {one_line(error.hint)}", style="dim"))
    if outcome.num_failed > len(outcome.first_errors):
        console.print(
            f"  … and {outcome.num_failed - len(outcome.first_errors)} more; all are in the evidence",
            style="dim",
        )
    if outcome.execution.status != "success":
        reason = one_line(outcome.execution.error or outcome.execution.status)
        console.print(Text(f"the run did not finish ({reason}); continue it with --resume", style="red"))
    console.print()
    # Paths are printed whole, on lines of their own, so that they can be copied.
    typer.echo(f"evidence    {short_path(outcome.result)}")
    typer.echo(f"native log  {short_path(outcome.log.path)}")
