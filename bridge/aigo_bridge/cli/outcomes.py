"""What a run came to, for people and for programs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aigo_bridge.cli.terminal import one_line, printable, short_path
from aigo_bridge.evaluate import Outcome
from aigo_bridge.evaluation.summary import warnings_json
from aigo_bridge.full_data import sample_note
from aigo_bridge.results.result_files import SUFFIX

if TYPE_CHECKING:
    from rich.console import Console

    from aigo_bridge.results.assembling import MetricRow


def summary(outcome: Outcome) -> dict[str, Any]:
    """For programs."""
    return {
        "task": outcome.plan.task.key,
        "status": outcome.execution.status,
        "digest": outcome.plan.digest,
        "sample_data": outcome.plan.dataset is not None and outcome.plan.dataset.is_sample,
        "models": dict(outcome.models),
        "samples": {
            "planned": len(outcome.plan.samples),
            "scored": outcome.num_samples - outcome.num_failed,
            "failed": outcome.num_failed,
            "missing": outcome.num_missing,
            "excluded": outcome.num_excluded,
            "reused": outcome.log.reused,
            **({"invalid": outcome.plan.num_invalid} if outcome.plan.num_invalid else {}),
        },
        "metrics": [
            {
                "scorer": row.scorer_key,
                "key": row.metric_key,
                "name": row.name,
                "value": row.value,
                "num_scored": row.num_scored,
                "problem": row.problem,
            }
            for row in outcome.metrics
        ],
        "errors": [error.to_json() for error in outcome.first_errors],
        "warnings": warnings_json(outcome.plan.warnings, outcome.doubts),
        "faults": [fault.message for fault in outcome.faults],
        "usage": {name: dict(usage) for name, usage in outcome.execution.model_usage.items()},
        "native_log": str(outcome.log.path),
        "result": str(outcome.result),
        **({"differences": list(outcome.differences)} if outcome.differences else {}),
    }


def metric_problems(rows: Iterable[MetricRow]) -> Iterator[str]:
    """What is wrong with metrics, one line for each problem: a metric with many values has one problem, not many."""
    names: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.problem:
            names.setdefault((row.scorer_key, row.problem), []).append(row.name)
    for (_, problem), (first, *others) in names.items():
        more = f" and {len(others)} more" if others else ""
        yield f"{printable(first)}{more}: {printable(problem)}"


def metric_names(rows: Sequence[MetricRow]) -> list[str]:
    """The names of metrics as shown; those that a scorer has twice with the metric's key behind them."""
    count = Counter((row.scorer_key, row.name) for row in rows)
    return [
        f"{row.name} ({row.metric_key})"
        if count[row.scorer_key, row.name] > 1 and row.metric_key != row.name
        else row.name
        for row in rows
    ]


def note_other_result(result: Path | None, name: str | None = None) -> None:
    """Say that the plain name of a result has another run's, where this one's is longer (see `results.result_files`).

    Args:
        result: the file; `None`: there is none.
        name: its plain name without suffix; `None`: what stands in front of the first `@`.
    """
    if result is None:
        return
    plain = f"{result.name.partition('@')[0] if name is None else name}{SUFFIX}"
    if result.name not in (plain, f"{name}{SUFFIX}") and "@" in result.name:
        other = printable(short_path(result.with_name(plain)))
        typer.echo(
            f"note: {other} is of another run and stays; this one's is {printable(result.name)}", err=True
        )


def _has_several_scorers(outcome: Outcome) -> bool:
    return outcome.plan.entity != "system" and len(outcome.plan.benchmark.scorers) > 1


def show_outcome(outcome: Outcome) -> None:
    """For people, on standard output."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Lines are never broken: messages and paths are there to be copied and searched for.
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(f"\n{printable(outcome.plan.task.display_name)}", style="bold"))
    table = Table("metric", "value", "samples", "scorer", box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.columns[1].justify = table.columns[2].justify = "right"
    for row, name in zip(outcome.metrics, metric_names(outcome.metrics), strict=True):
        value = "–" if row.value is None else f"{row.value:.4g}"
        table.add_row(Text(printable(name)), value, str(row.num_scored), Text(row.scorer_key))
    if outcome.metrics:
        console.print(table)
    for problem in metric_problems(outcome.metrics):
        console.print(Text(f"  {problem}", style="yellow"))
    console.print(_counts(outcome), style="red" if outcome.num_failed or outcome.num_missing else None)
    _show_problems(outcome, console)
    console.print()
    # Paths are printed whole, on lines of their own, so that they can be copied.
    typer.echo(f"evidence    {short_path(outcome.result)}")
    typer.echo(f"native log  {short_path(outcome.log.path)}")


def _counts(outcome: Outcome) -> str:
    """How many samples were scored, and what became of the others."""
    scored = outcome.num_samples - outcome.num_failed
    # With several scorers, a sample that one of them failed on may well be in the others' metrics.
    in_metrics = max((row.num_scored for row in outcome.metrics), default=0)
    by = (
        " by every scorer"
        if in_metrics > scored and outcome.num_failed and _has_several_scorers(outcome)
        else ""
    )
    others = (
        (outcome.num_failed, "failed"),
        (outcome.num_missing, "missing"),
        (outcome.num_excluded, "excluded from metrics"),
        (outcome.plan.num_invalid, "invalid and left out"),
        (outcome.log.reused, "taken over from the earlier run"),
    )
    parts = [f"{scored} of {len(outcome.plan.samples)} samples scored{by}"]
    return ", ".join([*parts, *(f"{number} {what}" for number, what in others if number)])


def _show_problems(outcome: Outcome, console: Console) -> None:
    """What the rows stand for, errors of samples, doubts about the numbers, faults of the evidence, and an early end."""
    from rich.text import Text

    note = sample_note(outcome.plan)
    if note is not None:
        console.print(Text(note, style="yellow"))
    for first in outcome.first_errors:
        error = first.error
        stage = error.stage.value if error.stage else "?"
        console.print(Text(f"  {printable(first.where)}: {stage}: {one_line(error.message)}{first.more}"))
        if error.hint:
            console.print(Text(f"    hint: {one_line(error.hint)}", style="dim"))
    more = outcome.num_failed - sum(first.count for first in outcome.first_errors)
    if more > 0:
        console.print(f"  … and {more} more; all are in the evidence", style="dim")
    for line in outcome.doubts:
        console.print(Text(f"warning: {printable(line)}", style="yellow"))
    for fault in outcome.faults:
        console.print(Text(f"  {one_line(fault.message)}", style="red"))
    if outcome.execution.status != "success" and not outcome.faults:
        reason = one_line(outcome.execution.error or outcome.execution.status)
        console.print(Text(f"the run did not finish ({reason}); continue it with --resume", style="red"))
