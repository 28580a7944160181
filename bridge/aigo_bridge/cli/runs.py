"""Flow of `aigo-bridge run`: plan, run on each engine, show, return an exit code. A single task is an
evaluation with one task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from aigo_bridge.cli.error_handling import exit_code, reported, show_differences, show_issues, shown
from aigo_bridge.cli.hooks import RunReport
from aigo_bridge.cli.options import cache_policy
from aigo_bridge.cli.outcomes import (
    EngineResults,
    compared,
    note_other_result,
    show_evaluation,
    show_next,
    show_outcome,
    show_parity,
)
from aigo_bridge.cli.progress import progress
from aigo_bridge.cli.run_options import RunOptions
from aigo_bridge.cli.summaries import benchmark_json, evaluation_json, task_json
from aigo_bridge.cli.terminal import name_of, note, print_json, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkRun
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import RunSettings
from aigo_bridge.engine.registry import (
    benchmarks_of,
    load_benchmarks,
    load_engine,
    refuse_local_rows,
    split_name,
)
from aigo_bridge.errors import EngineError, EvidenceError, Issue, UsageError
from aigo_bridge.evaluation.recordings import refuse_recordings, run_recording
from aigo_bridge.evaluation.run_files import names_run_file
from aigo_bridge.evaluation.running import EvaluationOutcome, ReadyEvaluation, prepare, run_evaluation
from aigo_bridge.evaluation.summary import FILE as SUMMARY
from aigo_bridge.evaluation.summary import write_summary
from aigo_bridge.evaluation.task import evaluations_of
from aigo_bridge.execution.progress import tolerated
from aigo_bridge.exit_codes import CANCELLED, ExitCode, of_runs
from aigo_bridge.hooks import load_hook
from aigo_bridge.planning.row_locks import compare_rows
from aigo_bridge.process.signals import stop_here

Outcomes = Mapping[str, EvaluationOutcome]
"""Engine → outcome of one evaluation."""


@dataclass
class RunOutputs:
    """What runs came to that are shown together."""

    contents: list[Any] = field(default_factory=list)
    """JSON summaries, one for each run."""
    results: list[Path] = field(default_factory=list)
    """Results that the report covers."""


def run_one(options: RunOptions, gathered: RunOutputs | None = None) -> ExitCode:
    """Run a task, a run file or a benchmark. Summaries and results are collected, or printed and written."""
    benchmark = split_name(options.task)
    if benchmark is None:
        return run_tasks(options, gathered)
    return run_benchmark(benchmark[0], options.benchmark(*benchmark), options, gathered)


def run_tasks(options: RunOptions, gathered: RunOutputs | None = None) -> ExitCode:
    """Run a task or run file on one or several engines, and show the results.

    Evaluations of an assessment plan run one after the other, each in its own folder below `options.out`.
    """
    options.refuse_those_of_benchmarks()
    cache = cache_policy(options.cache)
    origin = options.origin()
    is_task = not names_run_file(options.task)
    names, settings, models = options.engine_names(), options.settings(), options.models()
    is_alone = len(names) == 1
    report = _Report(options) if is_alone else _Comparison(options)
    passed, statuses, num_reused = True, set[str](), 0
    show_progress = partial(
        progress, enabled=is_alone and not options.as_json, display=options.display(), several=not is_task
    )
    with ExitStack() as stack, ExitStack() as in_progress:
        settings = replace(settings, on_progress=in_progress.enter_context(show_progress()))
        engines = [load_engine(name) for name in names]
        if options.replay is not None:
            cache = "update"  # Answers of a cassette must never be reused as results.
        evaluations = evaluations_of(origin, cache=cache, model=models.model)
        show_issues(issue for evaluation in evaluations for issue in evaluation.warnings)
        resumes = options.resume or options.cache == "reuse"
        files = {"record": options.record, "replay": options.replay}
        refuse_recordings(files, engines, resumes=resumes, option="--{}".format)
        recording = stack.enter_context(run_recording(**files, append=options.resume, show=show_issues))
        prepared = prepare(evaluations, engines, models, resume=options.resume, recorded=recording.models)
        plans = [plan for one in evaluations for entry in one.entries for plan in entry.plans]
        for text in compare_rows(plans, settings.out):
            typer.echo(f"note: {printable(text)}", err=True)
        if is_alone and prepared and prepared[0].model_is_unused:
            message = "--model is ignored: no specification evaluates a model"
            show_issues([Issue(message, severity="warning", code=Code.UNUSED_OPTION)])
        for number, one in enumerate(prepared):
            if number:
                settings = replace(settings, on_progress=in_progress.enter_context(show_progress()))
            own_settings = (
                settings if len(prepared) == 1 else replace(settings, out=settings.out / one.evaluation.key)
            )
            outcomes: dict[str, EvaluationOutcome] = {}
            for engine in engines:
                stop_here()
                recorded = replace(own_settings, recording=recording.of_engine(engine.name))
                outcome = _run(one, engine, recorded, options, is_alone=is_alone)
                outcomes[engine.name] = outcome
                num_reused += sum(result.num_reused for result in outcome.results)
                statuses |= outcome.statuses
                passed &= outcome.passed
                if CANCELLED in statuses:
                    break
            # A bar would be redrawn between the lines of the results.
            in_progress.close()
            passed &= report.add(outcomes)
            if CANCELLED in statuses:
                break
        content = report.end(several=len(prepared) > 1)
        in_progress.close()
        for line in recording.notes(num_reused):
            typer.echo(line, err=True)
        passed &= recording.problem is None
        if gathered is not None:
            gathered.contents += [content]
            gathered.results += report.results
        elif content is not None:
            print_json(content)
        if options.report:
            passed &= shown(options.out, partial(write_report, options, report.results))
    left_out = is_task and any(plan.num_invalid for plan in evaluations[0].entries[0].plans)
    return of_runs(statuses, passed=passed, left_out=left_out, stopped=exit_code())


def _run(
    prepared: ReadyEvaluation,
    engine: Engine,
    settings: RunSettings,
    options: RunOptions,
    *,
    is_alone: bool,
) -> EvaluationOutcome:
    """Run an evaluation on an engine. With several engines, each has its own folder."""
    with progress(enabled=not is_alone and not options.as_json, display=options.display()) as on_progress:
        if not is_alone:
            settings = replace(settings, out=settings.out / engine.name, on_progress=on_progress)
            if not options.as_json:
                note(f"{engine.name} …")
        try:
            return run_evaluation(prepared, engine, settings, fail_on_error=options.fail_on_error)
        except (EngineError, EvidenceError) as error:
            with reported(ExitCode.FAILED):
                raise (
                    error if is_alone else EngineError(f"{engine.name}: {error}", code=Code.FAILED_ENGINE)
                ) from error


@dataclass
class _Report:
    """What is shown of the evaluations of one engine, each as it ends."""

    options: RunOptions
    summaries: list[dict[str, Any]] = field(default_factory=list)
    results: list[Path] = field(default_factory=list)
    """Results that the report covers."""

    def add(self, outcomes: Outcomes) -> bool:
        """Show an evaluation; return whether that succeeded."""
        (outcome,) = outcomes.values()
        self.results += _results_of(outcome)
        show = self._task if outcome.evaluation.is_task else self._evaluation
        return shown(outcome.out, partial(show, outcome))

    def _task(self, evaluation: EvaluationOutcome) -> None:
        (outcome,) = evaluation.results
        _note_earlier_run(outcome, evaluation.out, resume=self.options.resume)
        note_other_result(outcome.result, outcome.key)
        if self.options.as_json:
            self.summaries.append(task_json(outcome))
        else:
            show_outcome(outcome)
            show_next(outcome)
        show_differences(outcome)

    def _evaluation(self, outcome: EvaluationOutcome) -> None:
        written = write_summary(outcome)
        _note_earlier_runs(outcome, resume=self.options.resume)
        for result in outcome.results:
            show_differences(result)
        if self.options.as_json:
            self.summaries.append({**evaluation_json(outcome), "out": str(outcome.out)})
        else:
            show_evaluation(outcome, written)

    def end(self, *, several: bool) -> Any:
        """Return the JSON summary, if requested; `several`: whether the run is an assessment plan."""
        return None if not self.summaries else self.summaries if several else self.summaries[0]


@dataclass
class _Comparison:
    """Comparison of the evaluations of several engines, shown when all have ended."""

    options: RunOptions
    tasks: list[EngineResults] = field(default_factory=list)
    outcomes: list[Outcomes] = field(default_factory=list)
    results: list[Path] = field(default_factory=list)
    """Results that the report covers."""

    def add(self, outcomes: Outcomes) -> bool:
        """Compare an evaluation; return whether all engines agree."""
        self.results += [path for outcome in outcomes.values() for path in _results_of(outcome)]
        for outcome in outcomes.values():
            for result in outcome.results:
                show_differences(result)
            if not outcome.evaluation.is_task:
                write_summary(outcome)
        tasks = compared(outcomes)
        self.tasks += tasks
        self.outcomes.append(outcomes)
        return all(task.parity.is_equal for task in tasks)

    def end(self, *, several: bool) -> Any:
        """Show the comparison, or return its JSON summary."""
        is_task = not names_run_file(self.options.task)
        if not self.options.as_json:
            show_parity(self.tasks)
            for name in self.options.engine_names():
                self._show_place(name, is_task=is_task)
            return None
        parities: Any = {task.name: task.parity.to_json() for task in self.tasks}
        engines: dict[str, Any] = {name: [] for name in self.options.engine_names()}
        for outcomes in self.outcomes:
            for name, outcome in outcomes.items():
                content = task_json(outcome.results[0]) if is_task else evaluation_json(outcome)
                engines[name].append(content)
        if is_task:
            (parities,) = parities.values()
            engines = {name: summaries[0] for name, summaries in engines.items() if summaries}
        return {"parity": parities, "engines": engines}

    def _show_place(self, engine: str, *, is_task: bool) -> None:
        if not is_task:
            typer.echo(f"{engine:12}{short_path(self.options.out / engine)}")
        elif engine in self.outcomes[0]:
            (outcome,) = self.outcomes[0][engine].results
            typer.echo(f"{engine:12}{outcome.result and short_path(outcome.result)}")


def _results_of(outcome: EvaluationOutcome) -> list[Path]:
    """Return the summary of an evaluation, or the result of a single task."""
    if not outcome.evaluation.is_task:
        return [outcome.out / SUMMARY]
    return [result.result for result in outcome.results if result.result is not None]


def write_report(options: RunOptions, results: Sequence[Path]) -> None:
    """Write the report of a run, if the run has a result."""
    if results:
        load_hook("report", RunReport).write(results, options.out, options.as_json)


def _note_earlier_run(outcome: Outcome, out: Path, *, resume: bool) -> None:
    """Print what a single task reuses from an earlier run, to standard error."""
    (log,) = outcome.logs
    if resume and log.earlier is None:
        note(_nothing_to_resume(out))
    elif outcome.origin == "reused":
        note("the earlier run is complete; no sample was run again")
    elif outcome.origin == "rescored" and log.earlier is not None:
        note(
            f"scored the answers in {short_path(log.earlier)} again; the model was only "
            "called for failed samples"
        )
    if log.other_model:
        message = (
            "warning: a model file has changed since the earlier run; reused answers are from the old model"
        )
        typer.echo(message, err=True)


def _nothing_to_resume(out: Path) -> str:
    return f"nothing to resume in {short_path(out)} for this task and model; started a new run"


def _note_earlier_runs(outcome: EvaluationOutcome, *, resume: bool) -> None:
    """Print what is reused from earlier runs, to standard error."""
    counts = Counter(
        "begun anew" if result.earlier is None else "complete" if result.origin == "reused" else "continued"
        for result in outcome.results
        if result.origin != "stored"
    )
    if resume and counts:
        if set(counts) == {"begun anew"}:
            where = short_path(outcome.out)
            note(f"nothing to resume in {where} for these specifications")
        elif set(counts) == {"complete"}:
            note(f"nothing to resume: all {counts['complete']} are complete")
        else:
            parts = [
                f"{counts[word]} {word}" for word in ("complete", "continued", "begun anew") if counts[word]
            ]
            note(f"resumed: {', '.join(parts)}")
    for result in outcome.results:
        if result.origin != "stored":
            note_other_result(result.result, result.key)
        if not resume and result.earlier is not None and result.origin != "stored":
            log = short_path(result.earlier)
            how = {
                "reused": "taken from",
                "rescored": "scored again, from",
            }.get(result.origin, "continued from")
            note(f"{name_of(result.key)}: {how} {log} (use --cache update to run it again)")


def _note(text: str) -> None:
    note(f"note: {printable(text)}")


def run_benchmark(
    engine: str, request: BenchmarkRun, options: RunOptions, gathered: RunOutputs | None = None
) -> ExitCode:
    """Run one benchmark, or several from a file or folder, and show the results."""
    as_json = options.as_json
    benchmarks, runner = benchmarks_of(engine), load_benchmarks(engine)
    refuse_local_rows(engine, request.data_dir, request.custom_tasks)
    if request.resume and not benchmarks.resumes:
        raise UsageError(f"--resume: not supported for {engine} benchmarks", code=Code.OPTIONS_APART)
    stop_here()
    enabled = benchmarks.reports_progress and not as_json
    with reported(ExitCode.FAILED, (EngineError,)):
        with progress(
            enabled=enabled, display=options.display(), several=True, resumable=benchmarks.resumes
        ) as on_progress:
            outcomes = runner.run(replace(request, on_progress=on_progress, on_note=_note))
        outcomes = [outcome.compared() for outcome in outcomes]
    for outcome in outcomes:
        task = name_of(outcome.task)
        for doubt in outcome.doubts:
            typer.echo(f"warning: {task}: {printable(doubt)}", err=True)
        note_other_result(outcome.result)
        if request.resume:
            number = outcome.num_reused
            taken_over = f"{number} finished trials were reused"
            note(f"{task}: {taken_over if number else _nothing_to_resume(request.out)}")
    content = [benchmark_json(outcome) for outcome in outcomes] if as_json else None
    if gathered is not None:
        gathered.contents += [content]
        gathered.results += [outcome.result for outcome in outcomes if outcome.result is not None]
    elif as_json:
        print_json(content)
    if not as_json:
        for outcome in outcomes:
            show_outcome(outcome)
            show_next(outcome)
    for outcome in outcomes:
        show_differences(outcome)
    if options.report:
        results = [outcome.result for outcome in outcomes if outcome.result is not None]
        shown(request.out, partial(write_report, options, results))
    passed = bool(outcomes) and all(
        outcome.passed(tolerated(request.fail_on_error, outcome.num_planned)) for outcome in outcomes
    )
    return of_runs({outcome.status for outcome in outcomes}, passed=passed, stopped=exit_code())
