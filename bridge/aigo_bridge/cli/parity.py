"""`aigo-bridge run --engine A,B`: the same task on several engines, and whether they agree."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import typer

from aigo_bridge.cli.failing import CANCELLED, ExitCode, code_of, reported, show_differences, show_issues
from aigo_bridge.cli.outcomes import summary as summary_of_task
from aigo_bridge.cli.progress import progress
from aigo_bridge.cli.terminal import one_line, printable, short_path
from aigo_bridge.engine import Engine, Gap, RunSettings
from aigo_bridge.engines import load_engine, require_exact
from aigo_bridge.errors import EngineError, EvidenceError, UnsupportedPlanError
from aigo_bridge.evaluate import Outcome, check_models, plan, run, unused_options
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.evaluation.naming import parse_reference
from aigo_bridge.evaluation.planning import plan_evaluations
from aigo_bridge.evaluation.running import EvaluationOutcome, ready, run_evaluation
from aigo_bridge.evaluation.summary import summary as summary_of_evaluation
from aigo_bridge.evaluation.summary import write_summary
from aigo_bridge.full_data import sample_note
from aigo_bridge.parity import Parity, Side, parity
from aigo_bridge.plan import CachePolicy, PlanOrigin
from aigo_bridge.spec.datasets import SAMPLE_NOTE
from aigo_bridge.tolerance import allowed, tolerated
from aigo_bridge.trace_sources import trace_reader

T = TypeVar("T")


@dataclass(frozen=True)
class Compared:
    """One task on all engines."""

    name: str
    """As shown."""
    parity: Parity
    problems: tuple[str, ...] = ()
    """What is to be known beside the numbers, e.g. why samples failed."""


def run_task_on_all(
    engines: Sequence[str],
    origin: PlanOrigin,
    settings: RunSettings,
    *,
    cache: CachePolicy | None,
    fail_on_error: str | None,
    as_json: bool,
) -> int:
    """Run one task on each engine, the results in a folder of its own below `settings.out`; returns the exit code."""
    made = replace(plan(origin), cache=cache or "update")
    show_issues((*made.warnings, *unused_options(made, settings)))
    loaded = [load_engine(name) for name in engines]
    check_models(made, settings)
    _refuse_gaps({engine.name: engine.gaps(made) for engine in loaded})
    limit = tolerated(fail_on_error, len(made.samples))
    settings = replace(settings, tolerated=allowed(fail_on_error, len(made.samples)))
    outcomes: dict[str, Outcome] = {}
    for engine in loaded:
        outcome = _on(engine, settings, as_json, partial(run, made, engine))
        outcomes[engine.name] = outcome
        if outcome.execution.status == CANCELLED:
            break
    complete = len(outcomes) == len(engines)
    found = parity(
        {name: Side(each.execution.status, each.metrics, each.result) for name, each in outcomes.items()}
    )
    right = all(each.is_right(limit) for each in outcomes.values())
    note = sample_note(made)
    problems = tuple(
        f"{name}: {printable(first.where)}: {one_line(first.error.message)}{first.more}"
        for name, each in outcomes.items()
        for first in each.first_errors[:2]
    )
    problems = problems if note is None else (note, *problems)
    for each in outcomes.values():
        show_differences(each.result, each.differences)
    if as_json:
        shown = {name: summary_of_task(each) for name, each in outcomes.items()}
        _print_json({"parity": found.to_json(), "engines": shown})
    else:
        _show([Compared(made.task.display_name, found, problems)])
        for name, each in outcomes.items():
            typer.echo(f"{name:12}{short_path(each.result)}")
    code = _code({each.execution.status for each in outcomes.values()}, complete and right, [found])
    return ExitCode.PARTIAL if code == ExitCode.DONE and made.num_invalid else code


def run_evaluations_on_all(
    engines: Sequence[str],
    origin: PlanOrigin,
    settings: RunSettings,
    *,
    cache: CachePolicy | None,
    fail_on_error: str | None,
    as_json: bool,
) -> int:
    """Run what a run file holds on each engine, `settings.out/<engine>`; returns the exit code."""
    reference = parse_reference(origin.task)
    only = None if reference is None else reference.key
    if reference is not None:
        origin = replace(origin, task=str(reference.file))
    evaluations = plan_evaluations(origin, cache=cache, read_traces=trace_reader, only=only)
    show_issues(issue for evaluation in evaluations for issue in evaluation.warnings)
    choice = ModelChoice(settings.model, settings.model_map)
    loaded = {name: load_engine(name) for name in engines}
    made = {
        name: ready(evaluations, engine, choice, resume=settings.resume) for name, engine in loaded.items()
    }
    compared: list[Compared] = []
    shown: dict[str, list[dict[str, Any]]] = {name: [] for name in engines}
    right = True
    statuses: set[str] = set()
    for number in range(len(evaluations)):
        outcomes: dict[str, EvaluationOutcome] = {}
        for name, engine in loaded.items():
            one = made[name][number]
            out = settings.out if len(evaluations) == 1 else settings.out / one.evaluation.key
            own = replace(settings, out=out)
            outcome = _on(
                engine, own, as_json, partial(run_evaluation, one, engine, fail_on_error=fail_on_error)
            )
            limits = [tolerated(fail_on_error, result.num_planned) for result in outcome.results]
            if only is not None:
                outcome = replace(outcome, verdicts=())
            right &= outcome.is_right(limits)
            for result in outcome.results:
                show_differences(result.result, result.differences)
            statuses |= {result.status for result in outcome.results}
            write_summary(outcome, limits)
            shown[name].append(summary_of_evaluation(outcome, limits))
            outcomes[name] = outcome
            if _interrupted(outcome):
                break
        compared += _compared(outcomes)
        if any(_interrupted(outcome) for outcome in outcomes.values()):
            break
    if as_json:
        parities = {each.name: each.parity.to_json() for each in compared}
        _print_json({"parity": parities, "engines": shown})
    else:
        _show(compared)
        for name in engines:
            typer.echo(f"{name:12}{short_path(settings.out / name)}")
    return _code(statuses, right, [each.parity for each in compared])


def _interrupted(outcome: EvaluationOutcome) -> bool:
    return any(result.status == CANCELLED for result in outcome.results)


def _compared(outcomes: Mapping[str, EvaluationOutcome]) -> list[Compared]:
    """The specifications of one evaluation; every engine has the same ones."""
    found: list[Compared] = []
    for results in zip(*(outcome.results for outcome in outcomes.values()), strict=True):
        sides = {
            name: Side(result.status, result.metrics, result.result)
            for name, result in zip(outcomes, results, strict=True)
        }
        problems = tuple(
            f"{name}: {one_line(result.problem)}"
            for name, result in zip(outcomes, results, strict=True)
            if result.problem is not None
        )
        notes = (SAMPLE_NOTE,) if results[0].is_sample_data else ()
        found.append(Compared(results[0].key, parity(sides), (*notes, *problems)))
    return found


def _on(engine: Engine, settings: RunSettings, as_json: bool, work: Callable[[RunSettings], T]) -> T:
    """Run something on an engine in its own folder."""
    with progress(enabled=not as_json) as on_progress:
        if not as_json:
            typer.echo(f"{engine.name} …", err=True)
        own = replace(settings, out=settings.out / engine.name, on_progress=on_progress)
        try:
            return work(own)
        except (EngineError, EvidenceError) as error:
            with reported(ExitCode.NOT_RIGHT):
                raise EngineError(f"{engine.name}: {error}") from error


def _refuse_gaps(gaps: Mapping[str, Sequence[Gap]]) -> None:
    """Refuse before any engine runs, with what each of them cannot do.

    Raises:
        UnsupportedPlanError: there is such a thing.
    """
    refused: list[str] = []
    for name, found in gaps.items():
        try:
            require_exact(found, engine=name)
        except UnsupportedPlanError as error:
            refused.append(str(error))
    if refused:
        raise UnsupportedPlanError("\n".join(refused))


def _code(statuses: Iterable[str], right: bool, found: Sequence[Parity]) -> int:
    return code_of(statuses, right=right and all(each.is_equal for each in found))


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _show(compared: Sequence[Compared]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True, width=1000)
    for each in compared:
        found = each.parity
        console.print(Text(f"\n{printable(each.name)}", style="bold"))
        table = Table(
            "metric",
            *found.statuses,
            "samples",
            "scorer",
            "",
            box=None,
            padding=(0, 3, 0, 0),
            header_style="dim",
        )
        for column in table.columns[1:-2]:
            column.justify = "right"
        for metric in found.metrics:
            # As many digits as it takes to see a difference.
            values = ["–" if value is None else f"{value:.4g}" for value in metric.values.values()]
            if not metric.is_equal and len(set(values)) == 1:
                values = [repr(value) for value in metric.values.values()]
            mark = "" if metric.is_equal else "differs"
            counts = " / ".join(dict.fromkeys(map(str, metric.num_scored.values())))
            cells = [
                Text(cell) for cell in (printable(metric.name), *values, counts, metric.scorer_key, mark)
            ]
            table.add_row(*cells, style=None if metric.is_equal else "red")
        if any(status != "success" for status in found.statuses.values()):
            table.add_row("status", *(printable(status) for status in found.statuses.values()), "", "", "")
        if table.row_count:
            console.print(table)
        console.print(Text(_verdict(found), style="" if found.is_equal else "red"))
        for problem in (*_metric_problems(found), *each.problems):
            console.print(Text(f"  {problem}", style="yellow"))
    console.print()


def _metric_problems(found: Parity) -> Iterator[str]:
    """Why metrics have no value: one line for each reason, with the engines that give it where not all do."""
    names: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for metric in found.metrics:
        for problem in dict.fromkeys(metric.problems.values()):
            engines = tuple(engine for engine, said in metric.problems.items() if said == problem)
            names.setdefault((metric.scorer_key, problem, engines), []).append(metric.name)
    for (_, problem, engines), (first, *others) in names.items():
        who = "" if len(engines) == len(found.statuses) else f"{', '.join(engines)}: "
        more = f" and {len(others)} more" if others else ""
        yield f"{who}{printable(first)}{more}: {printable(problem)}"


def _verdict(found: Parity) -> str:
    if len(found.statuses) == 1:
        return "only one engine has run"
    if found.is_equal:
        # Metrics of systems come from the author's code alone: their results have no samples.
        what = (
            f"{found.num_samples} samples"
            if found.num_samples or not found.metrics
            else f"{len(found.metrics)} metrics"
        )
        return f"the engines agree on {what}"
    parts: list[str] = []
    if found.num_differing:
        named = ", ".join(printable(str(sample_id)) for sample_id in found.first_differing)
        more = ", …" if found.num_differing > len(found.first_differing) else ""
        parts.append(f"{found.num_differing} of {found.num_samples} samples ({named}{more})")
    unequal = sum(not metric.is_equal for metric in found.metrics)
    if unequal:
        parts.append(f"{unequal} of {len(found.metrics)} metrics")
    if len(set(found.statuses.values())) > 1:
        parts.append("the status")
    return f"the engines differ in {', '.join(parts)}"
