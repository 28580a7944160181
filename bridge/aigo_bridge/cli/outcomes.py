"""Terminal output of outcomes of tasks, evaluations and benchmarks: tables, notes and warnings."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aigo_bridge.cli.metric_tables import missing_lines, print_matrix, print_results, shown_metrics
from aigo_bridge.cli.tables import print_cells, print_metrics
from aigo_bridge.cli.terminal import name_of, note, one_line, printable, short_path
from aigo_bridge.errors import code_of_kind
from aigo_bridge.results.result_files import SUFFIX
from aigo_bridge.results.stop_reasons import incomplete_texts
from aigo_bridge.spec.base import SAMPLE_NOTE
from aigo_bridge.text.numbers import shown_number
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from rich.console import Console

    from aigo_bridge.engine.outcome import Outcome
    from aigo_bridge.evaluation.parity import Parity
    from aigo_bridge.evaluation.running import EvaluationOutcome
    from aigo_bridge.results.assembling import MetricRow

WIDTH = 1000
"""Maximum columns of evaluation tables, so that users can copy and search the names in their cells."""


@dataclass(frozen=True)
class EngineResults:
    """Results of one task on all engines."""

    name: str
    """Displayed name."""
    parity: Parity
    problems: tuple[str, ...] = ()
    """Notes about the numbers, e.g. why samples failed."""


def metric_problems(rows: Iterable[MetricRow]) -> Iterator[str]:
    """Yield one line per problem of metrics: a metric with many values has its problem only once."""
    return _problem_lines((row.scorer_key, row.name, row.problem, "") for row in rows if row.problem)


def _problem_lines(problems: Iterable[tuple[str, str, str, str]]) -> Iterator[str]:
    """Yield lines of (scorer key, metric, problem, affected engines); problems that differ only in the metric
    share a line.
    """
    names: dict[tuple[str, str, str], list[str]] = {}
    for scorer, name, problem, engines in problems:
        names.setdefault((scorer, problem, engines), []).append(name)
    for (_, problem, engines), (metric, *further) in names.items():
        more = f" and {len(further)} more" if further else ""
        yield f"{engines}{name_of(metric)}{more}: {printable(problem)}"


def note_other_result(result: Path | None, name: str | None = None) -> None:
    """Print that the plain file name belongs to the result of another run, if this result has a longer name
    (see `results.result_files`).

    Args:
        result: result file; `None`: there is no result.
        name: plain name without suffix; `None`: the text before the first `@`.
    """
    if result is None:
        return
    plain = f"{result.name.partition('@')[0] if name is None else name}{SUFFIX}"
    if result.name not in (plain, f"{name}{SUFFIX}") and "@" in result.name:
        other = name_of(short_path(result.with_name(plain)))
        note(
            f"note: {other} belongs to another run and is kept; the result of this run is "
            f"{name_of(result.name)}"
        )


def _console(width: int | None = None) -> Console:
    """Return a console for standard output that never wraps, so that messages and paths can be copied."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, soft_wrap=True, width=width)


def show_outcome(outcome: Outcome) -> None:
    """Print the outcome of a single task or a benchmark."""
    from rich.text import Text

    console = _console(WIDTH)
    place = "" if outcome.file is None else f"  {name_of(short_path(outcome.file))}"
    console.print(
        Text.assemble((f"\n{name_of(outcome.display_name or outcome.task)}", "bold"), (place, "dim"))
    )
    metrics = shown_metrics(outcome)
    print_metrics(console, [line for line, _ in metrics])
    for problem in metric_problems(outcome.metrics):
        console.print(Text(f"  {problem}", style="yellow"))
    for line in missing_lines(metrics):
        console.print(Text(f"  {line}", style="yellow"))
    console.print(_counts(outcome), style="red" if _has_trouble(outcome) else None)
    if incomplete := incomplete_texts(outcome.stop_reasons):
        console.print(Text(", ".join(incomplete), style="yellow"))
    _show_problems(outcome, console)
    console.print()
    # Each path is printed on its own line so that users can copy it.
    if outcome.result is not None:
        typer.echo(f"evidence    {short_path(outcome.result)}")
    typer.echo(f"native log  {short_path(outcome.native_log)}")


def show_next(outcome: Outcome) -> None:
    """Print useful next commands after a run, only on a terminal; output for other programs is unchanged."""
    if outcome.result is not None and sys.stdout.isatty():
        place = shlex.quote(short_path(outcome.result))
        failed = " --failed" if outcome.counts.failed_trials else ""
        _show_commands(f"show {place}{failed}", f"report {place}")


def _show_commands(*commands: str) -> None:
    typer.echo("\nlook at it")
    for command in commands:
        typer.echo(f"  aigo-bridge {command}")


def _counts(outcome: Outcome) -> str:
    """Return how many samples were scored, and the outcome of the others."""
    plan, counts = outcome.plan, outcome.counts
    partly = outcome.num_unscored if outcome.num_unscored > counts.unscored else 0
    numbers = (
        (partly, "not scored by every scorer"),
        (outcome.num_missing, "missing"),
        (outcome.num_stopped, "stopped early by the task"),
        (plan.num_invalid if plan is not None else 0, "invalid and skipped"),
        (outcome.num_reused if plan is not None else 0, "reused from the earlier run"),
    )
    scored = f"{counts.scored} of {plural(outcome.num_planned, 'sample')} scored{_by_every_scorer(outcome)}"
    others = (f"{number} {what}" for number, what in numbers if number)
    return ", ".join([scored, *counts.others(), *others])


def _has_trouble(outcome: Outcome) -> bool:
    counts = outcome.counts
    return bool(
        counts.failed_trials or counts.unfinished_trials or outcome.num_missing or outcome.num_unscored
    )


def _by_every_scorer(outcome: Outcome) -> str:
    """Return a note for several scorers: a sample that failed with one scorer may be in the metrics of the
    others.
    """
    plan = outcome.plan
    if plan is None or plan.entity == "system" or len(plan.benchmark.scorers) < 2 or not outcome.num_failed:
        return ""
    in_metrics = max((row.num_scored or 0 for row in outcome.metrics), default=0)
    return " by every scorer" if in_metrics > outcome.counts.scored else ""


def _show_problems(outcome: Outcome, console: Console) -> None:
    """Print notes about sample data, sample errors, doubtful numbers, evidence faults and an early end."""
    from rich.text import Text

    from aigo_bridge.evaluation.task import sample_note

    plan = outcome.plan
    note = None if plan is None else sample_note(plan)
    if note is not None:
        console.print(Text(note, style="yellow"))
    for first in outcome.first_errors:
        error = first.error
        stage = "" if plan is None else f"{error.stage.value if error.stage else '?'}: "
        code = code_of_kind(error.error_type)
        console.print(
            Text(f"  {name_of(first.where)}: {stage}{one_line(error.message)} [{code}]{first.more}")
        )
        if error.hint:
            console.print(Text(f"    hint: {one_line(error.hint)}", style="dim"))
    more = outcome.counts.with_failed_trials - sum(first.count for first in outcome.first_errors)
    if more > 0:
        console.print(f"  … and {more} more; the evidence contains all of them", style="dim")
    if plan is not None:  # Warnings of a benchmark are printed to standard error.
        for line in outcome.doubts:
            console.print(Text(f"warning: {printable(line)}", style="yellow"))
    for fault in outcome.faults:
        console.print(Text(f"  {one_line(fault)}", style="red"))
    if outcome.status != "success" and not outcome.faults:
        reason = one_line(outcome.error or outcome.status)
        remedy = "" if plan is None else "; continue it with --resume"
        console.print(Text(f"the run did not finish ({reason}){remedy}{_code(outcome)}", style="red"))


def _code(outcome: Outcome) -> str:
    return "" if outcome.code is None else f" [{outcome.code}]"


def show_evaluation(outcome: EvaluationOutcome, written: Path) -> None:
    """Print the results of a run file; `written`: path of its summary."""
    from rich.text import Text

    console = _console(WIDTH)
    console.print(Text(f"\n{name_of(outcome.evaluation.display_name)}", style="bold"))
    if not outcome.results:
        console.print("the evaluation does not contain task specifications", style="dim")
    metrics = [shown_metrics(result) for result in outcome.results]
    print_matrix(console, outcome.results, metrics)
    print_results(console, outcome.results, metrics)
    for result, numbers in zip(outcome.results, metrics, strict=True):
        for line in (*_problems(result), *missing_lines(numbers)):
            style = "yellow" if outcome.has_passed(result) else "red"
            console.print(Text(f"  {name_of(result.key)}: {line}", style=style))
    for result in outcome.results:
        if result.is_sample_data:
            console.print(Text(f"  {name_of(result.key)}: {SAMPLE_NOTE}", style="yellow"))
    for verdict in outcome.verdicts:
        mark, style = ("passed", "green") if verdict.passed else ("FAILED", "red")
        rule = f"{name_of(verdict.display_name)} ({verdict.policy}/{verdict.rule})"
        console.print(Text(f"policy {mark}  {rule}: {printable(verdict.reason)}", style=style))
    if any(_is_unfinished(result) for result in outcome.results):
        console.print("the run did not finish; continue it with --resume", style="red")
    console.print()
    typer.echo(f"summary   {short_path(written)}")
    typer.echo(f"evidence  {plural(len(outcome.results), 'result')} in {short_path(outcome.out)}")
    if sys.stdout.isatty():
        failed = next((one for one in outcome.results if one.counts.failed_trials and one.result), None)
        commands = [f"report {shlex.quote(short_path(outcome.out))}"]
        if failed is not None and failed.result is not None:
            commands.append(f"show {shlex.quote(short_path(failed.result))} --failed")
        _show_commands(*commands)


def _problems(result: Outcome) -> Iterator[str]:
    if result.error is not None:
        yield f"{one_line(result.error)}{_code(result)}"
    yield from map(one_line, result.faults)
    yield from metric_problems(result.metrics)
    if incomplete := incomplete_texts(result.stop_reasons):
        yield printable(", ".join(incomplete))
    for error in result.first_errors:
        stage = error.error.stage.value if error.error.stage else "?"
        yield f"{name_of(error.where)}: {stage}: {one_line(error.error.message)}{error.more}"
    if result.counts.with_failed_trials > sum(error.count for error in result.first_errors):
        yield (
            f"{plural(result.counts.with_failed_trials, 'sample has', 'samples have')} "
            "failed trials; the evidence contains all of them"
        )
    for line in result.doubts:
        yield f"warning: {printable(line)}"


def _is_unfinished(result: Outcome) -> bool:
    return result.origin != "stored" and (result.status != "success" or result.num_missing > 0)


# Several engines


def compared(outcomes: Mapping[str, EvaluationOutcome]) -> list[EngineResults]:
    """Compare the task specifications of one evaluation; all engines have the same ones."""
    from aigo_bridge.evaluation.parity import parity
    from aigo_bridge.evaluation.task import sample_note

    tasks: list[EngineResults] = []
    for results in zip(*(outcome.results for outcome in outcomes.values()), strict=True):
        one = results[0]
        sides = dict(zip(outcomes, results, strict=True))
        if outcomes[next(iter(outcomes))].evaluation.is_task:
            assert one.plan is not None
            name, note = one.display_name, sample_note(one.plan)
            problems = [
                f"{engine}: {name_of(error.where)}: {one_line(error.error.message)}{error.more}"
                for engine, side in sides.items()
                for error in side.first_errors[:2]
            ]
        else:
            name, note = one.key, SAMPLE_NOTE if one.is_sample_data else None
            problems = [
                f"{engine}: {one_line(side.error)}"
                for engine, side in sides.items()
                if side.error is not None
            ]
        notes = () if note is None else (note,)
        tasks.append(EngineResults(name, parity(sides), (*notes, *problems)))
    return tasks


def show_parity(tasks: Sequence[EngineResults]) -> None:
    """Print the numbers of several engines side by side, and whether they agree."""
    from rich.text import Text

    console = _console(WIDTH)
    for task in tasks:
        parity = task.parity
        console.print(Text(f"\n{name_of(task.name)}", style="bold"))
        headers = ("metric", *parity.statuses, "samples", "scorer", "")
        print_cells(console, headers, _parity_rows(parity), slice(1, -2))
        console.print(Text(_verdict(parity), style="" if parity.is_equal else "red"))
        for problem in (*_parity_problems(parity), *task.problems):
            console.print(Text(f"  {problem}", style="yellow"))
    console.print()


def _parity_rows(parity: Parity) -> Iterator[tuple[Sequence[str], str | None]]:
    for metric in parity.metrics:
        # Use enough digits to show a difference.
        values = [shown_number(value) for value in metric.values.values()]
        if not metric.is_equal and len(set(values)) == 1:
            values = [repr(value) for value in metric.values.values()]
        counts = " / ".join(dict.fromkeys(map(str, metric.num_scored.values())))
        mark, style = ("", None) if metric.is_equal else ("differs", "red")
        yield (name_of(metric.name), *values, counts, name_of(metric.scorer_key), mark), style
    if any(status != "success" for status in parity.statuses.values()):
        yield ("status", *(name_of(status) for status in parity.statuses.values()), "", "", ""), None


def _parity_problems(parity: Parity) -> Iterator[str]:
    """Yield why metrics have no value: one line per reason, with its engines unless all engines report it."""
    problems: list[tuple[str, str, str, str]] = []
    for metric in parity.metrics:
        for problem in dict.fromkeys(metric.problems.values()):
            engines = [engine for engine, reason in metric.problems.items() if reason == problem]
            who = "" if len(engines) == len(parity.statuses) else f"{', '.join(engines)}: "
            problems.append((metric.scorer_key, metric.name, problem, who))
    return _problem_lines(problems)


def _verdict(parity: Parity) -> str:
    if len(parity.statuses) == 1:
        return "only one engine was run"
    if parity.is_equal:
        # Metrics of system tasks are computed by the author's code; their results have no samples.
        what = (
            plural(parity.num_samples, "sample")
            if parity.num_samples or not parity.metrics
            else plural(len(parity.metrics), "metric")
        )
        return f"the engines agree on {what}"
    parts: list[str] = []
    if parity.num_differing:
        names = ", ".join(name_of(str(sample_id)) for sample_id in parity.first_differing)
        more = ", …" if parity.num_differing > len(parity.first_differing) else ""
        parts.append(f"{parity.num_differing} of {plural(parity.num_samples, 'sample')} ({names}{more})")
    unequal = sum(not metric.is_equal for metric in parity.metrics)
    if unequal:
        parts.append(f"{unequal} of {plural(len(parity.metrics), 'metric')}")
    if len(set(parity.statuses.values())) > 1:
        parts.append("the status")
    return f"the engines differ in {', '.join(parts)}"
