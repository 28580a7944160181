"""Result log of a task, written from an engine log. If parts of the log are damaged, the rest is written."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.access.display_paths import display_path
from aigo_bridge.access.opening import from_here
from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    ModelUsageStats,
    SampleEvidence,
    TaskExecution,
    TaskResultError,
    TaskResultErrorStage,
    TaskResultEvidence,
    TaskResultLog,
    TaskResultSpecification,
)
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import Evidence, Execution, LogRef
from aigo_bridge.engine.provenance import cassette_digests, write_run_provenance
from aigo_bridge.errors import EvidenceError, Stage
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.execution.progress import is_spent_tolerance
from aigo_bridge.plan.logged_plan import AnyPlan, LoggedPlan
from aigo_bridge.results.assembling import (
    MAX_FIRST_ERRORS,
    MetricRow,
    Metrics,
    RunningTotals,
    metrics_for,
    sample_stream,
    system_metrics,
)
from aigo_bridge.results.counts import Counts
from aigo_bridge.results.internal_errors import Faults, error_of
from aigo_bridge.results.records import StoredNumbers
from aigo_bridge.results.result_files import SUFFIX, LoggedRun, identity_of, result_file, with_logs
from aigo_bridge.results.specification import bare_specification, specification_of
from aigo_bridge.results.writing import Sample, encoded_frame, write_log
from aigo_bridge.text.plurals import plural
from aigo_bridge.version import __version__

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import Engine
    from aigo_bridge.engine.recording import Recording
    from aigo_bridge.plan.plan import TaskPlan

APP_VERSION = f"aigo-bridge {__version__}"

NO_METRICS = Metrics((), (), ())


def outcome_of(
    plan: TaskPlan,
    log: LogRef,
    engine: Engine,
    out: Path,
    recording: Recording | None = None,
) -> Outcome:
    """Read a native log and write its evidence to `out`, named after the plan (see `results.result_files`).

    Raises:
        EvidenceError: the log cannot be read, or the evidence cannot be written.
    """
    evidence, unread = _read(plan, log, engine)
    # If existing names cannot be read, name the result after its log. It then replaces no other result, and
    # paid work is not lost.
    result = unread.attempt(
        "the other results in the folder could not be read",
        "dataset",
        lambda: result_path(plan, evidence, engine, out, log.path),
        out / f"{plan.name}@{log.path.stem}{SUFFIX}",
    )
    try:
        run = write_result(
            evidence,
            result,
            engine=engine.name,
            planned=len(plan.samples),
            salvage=True,
            faults=unread,
            own=plan,
            store=partial(engine.capabilities.store_numbers, log.path),
        )
    except OSError as error:
        is_complete = evidence.execution.status == "success"
        complete = "the engine log is complete" if is_complete else "the engine log is kept"
        command = f"aigo-bridge import {from_here(Path(log.path))} --out {from_here(Path(out))}"
        hint = f"{complete}; free some space, then run: {command}"
        message = f"the evidence cannot be written: {error.strerror or error}"
        raise EvidenceError(message, file=str(result), hint=hint, code=Code.EVIDENCE_NOT_WRITTEN) from error
    cassette = cassette_digests(recording, [plan])
    write_run_provenance(plan, result, engine, [log], evidence.models, cassette=cassette)
    return outcome_of_runs(plan, [run], result, (log,)).compared()


def outcome_of_runs(
    plan: TaskPlan, runs: Sequence[WrittenRun], result: Path, logs: tuple[LogRef, ...]
) -> Outcome:
    """Return the combined outcome of a plan's runs, with status, error and metrics of the first."""
    tallies, executions = [run.tally for run in runs], [run.evidence.execution for run in runs]
    status, metrics = executions[0].status, runs[0].metrics
    error = None if status == "success" else executions[0].error
    return Outcome(
        task=plan.task.key,
        status=status,
        error=error,
        code=Code.TOO_MANY_FAILURES if error is not None and is_spent_tolerance(error) else None,
        key=plan.name,
        display_name=plan.display_name,
        plan=plan,
        result=result,
        logs=logs,
        models=runs[0].evidence.models,
        num_planned=len(plan.samples),
        counts=sum((tally.counts for tally in tallies), Counts()),
        stop_reasons=sum((tally.stop_reasons for tally in tallies), Counter()),
        metrics=metrics.rows,
        uncomputed=tuple(row for run in runs for row in uncomputed(run.metrics, run.tally)),
        data=metrics.data,
        first_errors=tuple(error for tally in tallies for error in tally.first_errors)[:MAX_FIRST_ERRORS],
        warnings=plan.warnings,
        doubts=doubts_of(plan, tallies),
        faults=tuple(fault.message for fault in runs[0].faults.errors),
        usage=total_usage(executions),
        started_at=min(execution.started_at for execution in executions),
        ended_at=max(execution.ended_at for execution in executions),
        is_sample_data=plan.dataset is not None and plan.dataset.is_sample,
    )


def total_usage(executions: Sequence[Execution]) -> dict[str, dict[str, int]]:
    """Return the model name for the engine → tokens of all runs."""
    total: dict[str, dict[str, int]] = {}
    for execution in executions:
        for model, usage in execution.model_usage.items():
            tokens = total.setdefault(model, {})
            for name, number in usage.items():
                tokens[name] = tokens.get(name, 0) + number
    return total


def _read(plan: TaskPlan, log: LogRef, engine: Engine) -> tuple[Evidence, Faults]:
    """Return the evidence of a native log, or an error as evidence if the log cannot be read."""
    faults = Faults()
    nothing = Evidence(LoggedPlan.of(plan), Execution("error", 0.0, 0.0), {}, lambda: iter(()))
    evidence = faults.attempt(
        f"the engine log {log.path.name!r} could not be read",
        "dataset",
        lambda: engine.read(log.path),
        nothing,
    )
    reason = faults.errors[0].message if faults.errors else log.error
    if reason is not None and evidence.execution.status != "success" and evidence.execution.error is None:
        evidence = replace(evidence, execution=replace(evidence.execution, error=reason))
    return evidence, faults


def doubts_of(plan: TaskPlan, tallies: Sequence[RunningTotals]) -> tuple[str, ...]:
    """Return the doubts about the runs of a plan, without duplicates."""
    if plan.entity == "system":
        return ()
    from aigo_bridge.planning.answers import faulty_choices
    from aigo_bridge.scoring.registry import scorer_keys

    keys = scorer_keys(plan.benchmark.scorers)
    reported = {keys[number] for number in faulty_choices(plan.warnings) if number < len(keys)}
    rules = plan.benchmark.actions or ()
    return tuple(dict.fromkeys(line for tally in tallies for line in tally.doubts.lines(reported, rules)))


def result_path(plan: TaskPlan, evidence: Evidence, engine: Engine, out: Path, log: Path) -> Path:
    """Return the result file of a plan. It never belongs to another run."""
    specification = Faults().attempt(
        "the specification could not be written",
        "configuration",
        lambda: specification_of(evidence.plan, model=evidence.models.get(""), engine=engine.name),
        bare_specification(evidence.plan),
    )
    run = identity_of(
        specification,
        {key: name for key, name in evidence.models.items() if key},
        {}
        if plan.origin is None
        else {key: display_path(file) for key, file in plan.origin.datasets.items()},
    )

    def others() -> list[LoggedRun]:
        return [run for run in engine.capabilities.logged_runs(out) if run.log.resolve() != log.resolve()]

    return result_file(out, plan.name, run, with_logs(others))


def uncomputed(metrics: Metrics, tally: RunningTotals) -> tuple[MetricRow, ...]:
    """Return the metrics without a value although some scores exist.

    If a scorer failed on every sample, its metrics are missing for that reason. This is reported (and may
    be tolerated) as failed samples.
    """
    return tuple(row for row in metrics.rows if row.value is None and tally.scores.get(row.scorer_key))


@dataclass
class WrittenRun:
    """Run whose samples are written while its log is read, followed by its metrics."""

    evidence: Evidence
    own: TaskPlan | None = None
    """Plan of the user, whose code and action rules run; `None` to take their results from the log."""
    faults: Faults = field(default_factory=Faults)
    """Errors while creating the result."""
    store: Callable[[StoredNumbers], None] | None = None
    """Function that stores the results of code and action rules in the log."""
    tally: RunningTotals = field(init=False)
    metrics: Metrics = NO_METRICS
    """Metrics in the result."""
    _system: list[SampleEvidence] = field(default_factory=list)

    def __post_init__(self) -> None:
        evidence, own = self.evidence, self.own
        self.tally = RunningTotals(evidence.plan, evidence.numbers) if own is None else RunningTotals(own)

    def samples(self, *, salvage: bool) -> Iterator[tuple[SampleEvidence, Sample]]:
        """Yield the samples, each also in its written form. With `salvage`, damage in the log is recorded and
        ends the samples; otherwise it is raised.
        """
        stream = sample_stream(self.evidence.trials(), self.tally)
        samples: Iterator[tuple[SampleEvidence, Sample]] = self.faults.samples(stream) if salvage else stream
        if self.evidence.plan.entity == "system":
            # The only sample that the engine saw is not evidence. Its metrics are.
            self._system = [sample for sample, _ in samples]
        else:
            yield from samples

    def compute(self, what: str = "the metrics could not be computed") -> Metrics | None:
        """Return the metrics after all samples were read; `None` after an error, recorded as `what`."""
        host = None if self.own is None else snippet_host(self.own)
        is_system = self.evidence.plan.entity == "system"
        try:
            metrics = self.faults.attempt(
                what,
                "metric",
                lambda: system_metrics(self._system) if is_system else metrics_for(self.tally, host),
                None,
            )
        finally:
            if host is not None:
                host.close()
        if metrics is not None and self.own is not None and self.store is not None:
            self._keep(metrics, self.store)
        return metrics

    def _keep(self, metrics: Metrics, store: Callable[[StoredNumbers], None]) -> None:
        """Store results in the log that readers cannot recompute, unless they are stored already."""
        numbers = StoredNumbers(metrics.of_code, self.tally.exclusions)
        stored = None if self.evidence.numbers is None else self.evidence.numbers.to_json()
        if not self.tally.outline.needs_code or numbers.to_json() == stored:
            return
        what = "the Python metrics and the exclusions of action rules could not be stored in the engine log"
        self.faults.attempt(what, "metric", partial(store, numbers), None)


def write_result(
    evidence: Evidence,
    path: Path,
    *,
    engine: str,
    planned: int | None = None,
    salvage: bool = False,
    faults: Faults | None = None,
    own: TaskPlan | None = None,
    store: Callable[[StoredNumbers], None] | None = None,
) -> WrittenRun:
    """Stream an engine's evidence into a result log.

    If a part of the result cannot be created, it is left out and the result contains an error. The status
    of such a result is failure.

    Args:
        evidence: output of `Engine.read`.
        path: result file; it appears when it is complete.
        engine: name of the engine.
        planned: expected number of samples; `None` for the samples in the log, or for all shards if the
            log belongs to a shard.
        salvage: whether to write the readable samples of a damaged log. Otherwise, an error is raised.
        faults: earlier errors.
        own: plan of the user (see `WrittenRun`).
        store: function that stores numbers in the log (see `WrittenRun`).
    """
    run = WrittenRun(evidence, own, Faults() if faults is None else faults, store)
    if planned is None and evidence.plan.shard is not None:
        planned = evidence.plan.shard.total  # A single shard is part of a run, and its result is incomplete.

    def finish() -> TaskResultLog:
        frame, metrics = _frame(run, run.compute(), engine, planned)
        run.metrics = metrics or NO_METRICS
        return frame

    write_log(path, (sample for _, sample in run.samples(salvage=salvage)), finish=finish)
    return run


def _frame(
    run: WrittenRun, metrics: Metrics | None, engine: str, planned: int | None
) -> tuple[TaskResultLog, Metrics | None]:
    """Return the result without its samples, as far as it can be written, and the metrics in it."""
    evidence, tally, faults = run.evidence, run.tally, run.faults
    plan, execution, model = evidence.plan, evidence.execution, evidence.models.get("")

    def frame_of(
        metrics: Metrics | None, errors: Sequence[TaskResultError], *, is_whole: bool
    ) -> TaskResultLog:
        of_metrics, other_errors = by_stage(errors)
        ended = is_whole and not errors and not plan.damage and came_to_an_end(execution, tally, planned)
        specification = (
            specification_of(plan, model=model, engine=engine) if is_whole else bare_specification(plan)
        )
        frame = result_frame(
            plan,
            TaskResultEvidence(
                metrics=None if metrics is None else list(metrics.data),
                samples=[],
                errors=[*(() if metrics is None else metrics.errors), *of_metrics],
                failures=tally.failures,
            ),
            specification,
            execution_of(execution, model, [tally]) if is_whole else NEVER,
            [
                *(run_errors(execution, tally.counts.samples, planned) if is_whole else ()),
                *map(_edited, plan.damage),
                *other_errors,
            ],
            is_success=ended,
        )
        encoded_frame(frame)  # Data that cannot be encoded is found here, while it can still be replaced.
        return frame

    without: tuple[tuple[Metrics | None, bool, str, Stage], ...] = (
        (None, True, "the metrics could not be written", "metric"),
        (metrics, False, "the specification could not be written", "configuration"),
        (None, False, "neither metrics nor specification could be written", "configuration"),
    )
    try:
        return frame_of(metrics, faults.errors, is_whole=True), metrics
    except Exception as error:  # Catch every exception, because paid evidence must be written.
        for kept_metrics, is_whole, what, stage in without:
            reported = [*faults.errors, error_of(what, stage, error)]
            with contextlib.suppress(Exception):
                frame = frame_of(kept_metrics, reported, is_whole=is_whole)
                faults.errors = reported
                return frame, kept_metrics
        raise


def result_frame(
    plan: AnyPlan,
    evidence: TaskResultEvidence,
    specification: TaskResultSpecification,
    execution: TaskExecution,
    errors: list[TaskResultError],
    *,
    is_success: bool,
) -> TaskResultLog:
    """Return a result log of aigo-bridge without its samples."""
    return TaskResultLog(
        format_version="v1",
        # Program that wrote the log, and confinement level of the author's code.
        app_version=APP_VERSION if plan.snippets is None else f"{APP_VERSION} (snippets {plan.snippets})",
        status="success" if is_success else "failure",
        evidence=evidence,
        specification=specification,
        execution=execution,
        errors=errors,
    )


def by_stage(errors: Sequence[TaskResultError]) -> tuple[list[TaskResultError], list[TaskResultError]]:
    """Split errors into metric errors, for the evidence, and other errors, for the log."""
    of_metrics = [error for error in errors if error.stage is TaskResultErrorStage.metric]
    return of_metrics, [error for error in errors if error.stage is not TaskResultErrorStage.metric]


def _edited(problem: str) -> TaskResultError:
    return TaskResultError(error_type="DamagedLog", message=problem, stage=TaskResultErrorStage.configuration)


NEVER = TaskExecution(runtime=0.0, started_at=0, ended_at=0)
"""Placeholder for unknown times."""


def came_to_an_end(execution: Execution, tally: RunningTotals, planned: int | None) -> bool:
    """Return whether a run ended normally, has all samples, and scored at least one of them."""
    counts = tally.counts
    complete = execution.status == "success" and (planned is None or counts.samples >= planned)
    nothing_scored = counts.samples > 0 and counts.failed == counts.samples
    return complete and not nothing_scored


def execution_of(execution: Execution, model: str | None, tallies: Sequence[RunningTotals]) -> TaskExecution:
    """Return when a run took place and the usage of the evaluated model, which the engine calls `model`."""
    fields: dict[str, Any] = {
        "runtime": max(0.0, execution.ended_at - execution.started_at),
        "started_at": int(execution.started_at),
        "ended_at": int(execution.ended_at),
    }
    callers: Counter[str] = sum((tally.callers for tally in tallies), Counter())
    name = model or ""
    usage = execution.model_usage.get(name)
    if usage is not None:
        # Traces without model calls do not record the samples that made them.
        num_samples = callers[name] or sum(tally.counts.samples for tally in tallies)
        fields["model_usage"] = ModelUsageStats(num_samples=num_samples, **usage)
    elif model is not None and not callers[name] and (callers or execution.model_usage):
        # Only judges and other models were called. Stored outputs that are scored again have no such model.
        fields["model_usage"] = ModelUsageStats(num_samples=0, num_completion_tokens=0, num_prompt_tokens=0)
    return TaskExecution(**fields)


def run_errors(execution: Execution, num_samples: int, planned: int | None) -> list[TaskResultError]:
    """Return the errors of a run as a whole, for example that it ended early."""
    missing = planned is not None and num_samples < planned
    if execution.status == "success" and not missing:
        return []
    message = execution.error or f"the run did not finish (status {execution.status!r})"
    if execution.status == "success":
        message = "the run ended without an error, but some samples are missing"
    if planned is not None and missing:
        message += f"; the result contains {num_samples} of {plural(planned, 'sample')}"
    return [TaskResultError(error_type="IncompleteRun", message=message, stage=TaskResultErrorStage.solver)]
