"""Run files on the command line: one table for all specifications, policies, what was taken over."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from aigo_bridge.cli.failing import (
    CANCELLED,
    ExitCode,
    code_of,
    reported,
    show_differences,
    show_issues,
    shown,
)
from aigo_bridge.cli.outcomes import metric_names, metric_problems, note_other_result
from aigo_bridge.cli.terminal import one_line, printable, short_path
from aigo_bridge.engine import Engine, RunSettings
from aigo_bridge.errors import EngineError, Issue
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.evaluation.naming import parse_reference
from aigo_bridge.evaluation.planning import plan_evaluations
from aigo_bridge.evaluation.results import EntryResult
from aigo_bridge.evaluation.running import EvaluationOutcome, ReadyEvaluation, ready, run_evaluation
from aigo_bridge.evaluation.summary import summary, write_summary
from aigo_bridge.plan import CachePolicy, PlanOrigin
from aigo_bridge.spec.datasets import SAMPLE_NOTE
from aigo_bridge.tolerance import tolerated
from aigo_bridge.trace_sources import trace_reader

WIDTH = 1000
"""Columns of the table at most."""


def run_evaluations(
    origin: PlanOrigin,
    engine: Engine,
    settings: RunSettings,
    *,
    cache: CachePolicy | None,
    fail_on_error: str | None,
    as_json: bool,
) -> int:
    """Run what a run file or an assessment plan holds, and show it; returns the exit code.

    Evaluations of an assessment plan run one after the other, each in a folder of its own below `settings.out`.
    """
    reference = parse_reference(origin.task)
    only = None if reference is None else reference.key
    if reference is not None:
        origin = replace(origin, task=str(reference.file))
    evaluations = plan_evaluations(origin, cache=cache, read_traces=trace_reader, only=only)
    show_issues(issue for evaluation in evaluations for issue in evaluation.warnings)
    choice = ModelChoice(settings.model, settings.model_map)
    made = ready(evaluations, engine, choice, resume=settings.resume)
    if made and made[0].model_is_unused:
        message = "--model is not used: no specification evaluates a model"
        show_issues([Issue(message, severity="warning")])
    summaries: list[dict[str, Any]] = []
    right = True
    statuses: set[str] = set()
    for one in made:
        out = settings.out if len(made) == 1 else settings.out / one.evaluation.key
        outcome, limits = _run(one, engine, replace(settings, out=out), fail_on_error)
        if only is not None:
            outcome = replace(outcome, verdicts=())
        right &= outcome.is_right(limits)
        statuses |= {result.status for result in outcome.results}
        into = summaries if as_json else None
        right &= shown(out, partial(_tell, outcome, limits, resume=settings.resume, summaries=into))
        if CANCELLED in statuses:
            break
    if as_json and summaries:
        typer.echo(json.dumps(summaries[0] if len(made) == 1 else summaries, indent=2, ensure_ascii=False))
    return code_of(statuses, right=right)


def _run(
    made: ReadyEvaluation, engine: Engine, settings: RunSettings, fail_on_error: str | None
) -> tuple[EvaluationOutcome, list[int]]:
    try:
        outcome = run_evaluation(made, engine, settings, fail_on_error=fail_on_error)
    except EngineError as error:
        with reported(ExitCode.NOT_RIGHT):
            raise error from error
    return outcome, [tolerated(fail_on_error, result.num_planned) for result in outcome.results]


def _tell(
    outcome: EvaluationOutcome,
    limits: Sequence[int],
    *,
    resume: bool,
    summaries: list[dict[str, Any]] | None,
) -> None:
    """Write the summary, and show the outcome, or add it to `summaries`."""
    written = write_summary(outcome, limits)
    _tell_earlier(outcome, resume=resume)
    for result in outcome.results:
        show_differences(result.result, result.differences)
    if summaries is None:
        _show(outcome, limits, written)
    else:
        summaries.append({**summary(outcome, limits), "out": str(outcome.out)})


def _tell_earlier(outcome: EvaluationOutcome, *, resume: bool) -> None:
    """What was taken over from earlier runs, on standard error."""
    counts = Counter(
        "begun anew" if result.earlier is None else "complete" if result.origin == "reused" else "continued"
        for result in outcome.results
        if result.origin != "stored"
    )
    if resume and counts:
        if set(counts) == {"begun anew"}:
            where = short_path(outcome.out)
            typer.echo(f"nothing to resume: no earlier run of these specifications in {where}", err=True)
        elif set(counts) == {"complete"}:
            typer.echo(f"nothing to resume: all {counts['complete']} are complete", err=True)
        else:
            parts = [
                f"{counts[word]} {word}" for word in ("complete", "continued", "begun anew") if counts[word]
            ]
            typer.echo(f"resumed: {', '.join(parts)}", err=True)
    for result in outcome.results:
        if result.origin != "stored":
            note_other_result(result.result, result.key)
        if not resume and result.earlier is not None and result.origin != "stored":
            log = short_path(result.earlier)
            how = {
                "reused": "taken from",
                "rescored": "outputs scored again, from",
            }.get(result.origin, "continued from")
            typer.echo(f"{printable(result.key)}: {how} {log} (--cache update runs it anew)", err=True)


def _show(outcome: EvaluationOutcome, limits: Sequence[int], written: Path) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Wide enough for every cell: names and paths are there to be copied and searched for.
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True, width=WIDTH)
    console.print(Text(f"\n{printable(outcome.evaluation.display_name)}", style="bold"))
    if not outcome.results:
        console.print("the evaluation has no task specifications", style="dim")
    table = Table(
        "task",
        "model",
        "metric",
        "value",
        "samples",
        "failed",
        box=None,
        padding=(0, 3, 0, 0),
        header_style="dim",
    )
    for column in (3, 4, 5):
        table.columns[column].justify = "right"
    for result in outcome.results:
        for cells in _rows(result):
            table.add_row(*(Text(cell) for cell in cells))
    if outcome.results:
        console.print(table)
    for result, limit in zip(outcome.results, limits, strict=True):
        for line in _problems(result):
            style = "yellow" if result.is_right(limit) else "red"
            console.print(Text(f"  {printable(result.key)}: {line}", style=style))
    for result in outcome.results:
        if result.is_sample_data:
            console.print(Text(f"  {printable(result.key)}: {SAMPLE_NOTE}", style="yellow"))
    for verdict in outcome.verdicts:
        mark, style = ("passed", "green") if verdict.passed else ("FAILED", "red")
        text = f"policy {mark}  {printable(verdict.display_name)} ({verdict.policy}/{verdict.rule}): {printable(verdict.reason)}"
        console.print(Text(text, style=style))
    if any(_is_unfinished(result) for result in outcome.results):
        console.print("the run did not finish; continue it with --resume", style="red")
    console.print()
    typer.echo(f"summary   {short_path(written)}")
    typer.echo(f"evidence  {len(outcome.results)} result(s) in {short_path(outcome.out)}")


def _rows(result: EntryResult) -> list[tuple[str, ...]]:
    """The result's lines of the table; what all of them share stands in the first."""
    model = result.models.get("", "")
    counts = (str(result.num_samples - result.num_failed), str(result.num_failed + result.num_missing))
    lines = [
        (printable(name), "–" if row.value is None else f"{row.value:.4g}")
        for row, name in zip(result.metrics, metric_names(result.metrics), strict=True)
    ] or [("–", "–")]
    head, *rest = lines
    return [
        (printable(result.key), printable(model), *head, *counts),
        *(("", "", *line, "", "") for line in rest),
    ]


def _problems(result: EntryResult) -> list[str]:
    found: list[str] = []
    if result.problem is not None:
        found.append(one_line(result.problem))
    found += [one_line(fault) for fault in result.faults]
    found += metric_problems(result.metrics)
    for first in result.first_errors:
        stage = first.error.stage.value if first.error.stage else "?"
        found.append(f"{printable(first.where)}: {stage}: {one_line(first.error.message)}{first.more}")
    if result.num_failed > sum(first.count for first in result.first_errors):
        found.append(f"{result.num_failed} samples failed; all are in the evidence")
    found += [f"warning: {printable(line)}" for line in result.doubts]
    return found


def _is_unfinished(result: EntryResult) -> bool:
    return result.origin != "stored" and (result.status != "success" or result.num_missing > 0)
