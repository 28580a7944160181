"""Read, plan, refuse or run, read back, write: the main job as functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aigo_bridge import __version__
from aigo_bridge.dtypes import (
    MetricData,
    ModelUsageStats,
    TaskExecution,
    TaskResultError,
    TaskResultErrorStage,
    TaskResultEvidence,
    TaskResultLog,
)
from aigo_bridge.engine import Engine, Evidence, Execution, Gap, LogRef, RunSettings
from aigo_bridge.engines import require_exact
from aigo_bridge.errors import BridgeError, EvidenceError, Issue, Stage, UsageError
from aigo_bridge.evaluation.naming import parse_reference
from aigo_bridge.evaluation.planning import plan_reference
from aigo_bridge.evaluation.run_files import holds_evaluation
from aigo_bridge.fingerprints import fingerprint_of
from aigo_bridge.jsonl_spec import is_record_file
from aigo_bridge.locating import find_task
from aigo_bridge.plan import PlanOrigin, TaskPlan
from aigo_bridge.planning import config_from_text, plan_origin
from aigo_bridge.planning_answers import faulty_choices
from aigo_bridge.planning_data import Surroundings
from aigo_bridge.reading import read_task
from aigo_bridge.results import write_log
from aigo_bridge.results.agreement import Shown, ShownMetric, differences
from aigo_bridge.results.assembling import (
    MetricRow,
    Metrics,
    Tally,
    metrics_for,
    sample_stream,
    system_metrics,
)
from aigo_bridge.results.faults import Faults, error_of, explained
from aigo_bridge.results.first_errors import FirstError
from aigo_bridge.results.result_files import SUFFIX, LoggedRun, identity_of, result_file, with_logs
from aigo_bridge.results.specification import bare_specification, specification_of
from aigo_bridge.results.writing import encoded_frame
from aigo_bridge.scoring import scorer_keys
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.trace_sources import trace_reader

APP_VERSION = f"aigo-bridge {__version__}"


@dataclass(frozen=True)
class Outcome:
    """What a run came to, for the terminal and for scripts."""

    plan: TaskPlan
    log: LogRef
    """The engine's native log."""
    result: Path
    """The `TaskResultLog` file."""
    execution: Execution
    metrics: tuple[MetricRow, ...]
    num_samples: int
    """Samples in the result."""
    num_failed: int
    """Samples with an error in the solver or in a scorer."""
    num_excluded: int
    """Samples that action rules keep out of the metrics."""
    first_errors: tuple[FirstError, ...]
    """The first few of their errors."""
    gaps: tuple[Gap, ...] = ()
    """Approximations that were allowed."""
    models: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key (`""` for the evaluated model) → the engine's model name."""
    data: tuple[MetricData, ...] = ()
    """The metrics as they stand in the result."""
    uncomputed: tuple[MetricRow, ...] = ()
    """Metrics without a value although there were scores to compute them from."""
    doubts: tuple[str, ...] = ()
    """What counted against the model and may be no fault of its answers, as far as planning did not know: one line each."""
    faults: tuple[TaskResultError, ...] = ()
    """What of the evidence could not be put together."""
    differences: tuple[str, ...] = ()
    """How the written evidence differs from all this, which it never should."""

    @property
    def num_missing(self) -> int:
        """Planned samples that are not in the result, because the run ended early."""
        return len(self.plan.samples) - self.num_samples

    def is_right(self, tolerated: int) -> bool:
        """Whether the run ended, with every metric and no more failed samples than are tolerated."""
        failed = self.num_failed + self.num_missing
        whole = not (self.uncomputed or self.faults or self.differences)
        return self.execution.status == "success" and failed <= tolerated and whole


def plan(origin: PlanOrigin) -> TaskPlan:
    """Make a plan from plain arguments: of a task, or of one task specification of a run file.

    Raises:
        UsageError: a name or option makes no sense.
        SpecError: a file or the config is invalid; carries every issue.
        DatasetError: the rows cannot be read.
    """
    reference = parse_reference(origin.task)
    if reference is not None:
        return plan_reference(reference, origin, read_traces=trace_reader)
    return plan_origin(origin, Surroundings(read_traces=trace_reader))


def parse_config(task: str, given: Mapping[str, Any], *, root: str | None = None) -> dict[str, Any]:
    """Config values of which some are texts from a command line, typed by the task's parameters."""
    texts = {key: value for key, value in given.items() if isinstance(value, str)}
    if not texts or parse_reference(task) is not None or holds_evaluation(task):
        return dict(given)  # a run file's own parameters are typed when it is read
    file = find_task(task)
    if is_record_file(file):
        return dict(given)  # records have no parameters: planning says so
    document = read_task(file, root=None if root is None else Path(root))
    return {**given, **config_from_text(document.spec, texts)}


def run(
    made: TaskPlan,
    engine: Engine,
    settings: RunSettings,
    *,
    allow_approximate: bool = False,
) -> Outcome:
    """Run a plan on an engine and write its evidence to `settings.out`.

    Raises:
        UnsupportedPlanError: the engine cannot run the plan as written.
        UsageError: a model of the task was not given.
        EvidenceError: the evidence cannot be written, on a full disk say.
        EngineError: the engine failed; what it has logged stays in `settings.out`.
    """
    gaps = require_exact(engine.gaps(made), engine=engine.name, allow_approximate=allow_approximate)
    check_models(made, settings)
    made = replace(made, fingerprints=_fingerprints(made, settings))
    log = engine.run(made, settings)
    try:
        return outcome_of(made, log, engine, settings.out, gaps)
    except BridgeError:
        raise
    except Exception as error:
        message = f"the outcome of the run cannot be told: {explained(error)}"
        raise EvidenceError([Issue(message, hint=f"the native log stays: {log.path}")]) from error


def outcome_of(made: TaskPlan, log: LogRef, engine: Engine, out: Path, gaps: Sequence[Gap] = ()) -> Outcome:
    """Read a native log back and write its evidence to `out`, under the name of the plan (see `results.result_files`).

    Raises:
        EvidenceError: the log cannot be read, or the evidence cannot be written.
    """
    evidence, unread = _read(made, log, engine)
    # Named after its log where names that are taken cannot be told: it replaces none, and what was paid for is written.
    result = unread.attempt(
        "the other results in the folder could not be looked at",
        "dataset",
        lambda: result_path(made, evidence, engine, out, log.path),
        out / f"{made.name}@{log.path.stem}{SUFFIX}",
    )
    try:
        written = write_result(
            evidence, result, engine=engine.name, planned=len(made.samples), salvage=True, faults=unread
        )
    except OSError as error:
        complete = (
            "the native log is complete" if evidence.execution.status == "success" else "the native log stays"
        )
        hint = f"{complete}; when there is room: aigo-bridge import {log.path} --out {out}"
        message = f"the evidence cannot be written: {error.strerror or error}"
        raise EvidenceError([Issue(message, file=str(result), hint=hint)]) from error
    tally = written.tally
    outcome = Outcome(
        plan=made,
        log=log,
        result=result,
        execution=evidence.execution,
        metrics=written.metrics.rows,
        num_samples=tally.num_samples,
        num_failed=tally.num_failed,
        num_excluded=tally.num_excluded,
        first_errors=tuple(tally.first_errors),
        gaps=tuple(gaps),
        models=evidence.models,
        data=written.metrics.data,
        uncomputed=uncomputed(written.metrics, tally),
        doubts=doubts_of(made, [tally]),
        faults=written.faults,
    )
    return replace(outcome, differences=differences(_shown(outcome), result))


def _shown(outcome: Outcome) -> Shown:
    return Shown(
        metrics=shown_metrics(outcome.metrics),
        succeeded=outcome.execution.status == "success" and not outcome.num_missing,
        num_samples=outcome.num_samples,
        num_failed=outcome.num_failed,
        num_missing=outcome.num_missing,
        counts_rows=scores_rows(outcome.plan),
    )


def scores_rows(made: TaskPlan) -> bool:
    """Whether rows that a post-processor makes of the samples are scored, and not the samples."""
    return made.entity != "system" and getattr(made.benchmark.solver, "postprocessor", None) is not None


def shown_metrics(rows: Sequence[MetricRow]) -> list[ShownMetric]:
    """Rows of a table as what is compared with the evidence."""
    return [ShownMetric(row.scorer_key, (row.name, row.metric_key), row.value) for row in rows]


def _read(made: TaskPlan, log: LogRef, engine: Engine) -> tuple[Evidence, Faults]:
    """What a native log says; of one that cannot be read, that."""
    faults = Faults()
    nothing = Evidence(made, Execution("error", 0.0, 0.0), {}, lambda: iter(()))
    evidence = faults.attempt(
        f"the native log {log.path.name!r} could not be read back",
        "dataset",
        lambda: engine.read(log.path),
        nothing,
    )
    reason = faults.errors[0].message if faults.errors else log.error
    if reason is not None and evidence.execution.status != "success" and evidence.execution.error is None:
        evidence = replace(evidence, execution=replace(evidence.execution, error=reason))
    return evidence, faults


def doubts_of(made: TaskPlan, tallies: Sequence[Tally]) -> tuple[str, ...]:
    """What the runs of a plan leave to doubt, each once."""
    if made.entity == "system":
        return ()
    keys = scorer_keys(made.benchmark.scorers)
    told = {keys[number] for number in faulty_choices(made.warnings) if number < len(keys)}
    rules = made.benchmark.actions or ()
    return tuple(dict.fromkeys(line for tally in tallies for line in tally.doubts.lines(told, rules)))


def result_path(made: TaskPlan, evidence: Evidence, engine: Engine, out: Path, log: Path) -> Path:
    """The file that takes the evidence of a plan; never that of another run."""
    specification = Faults().attempt(
        "the specification could not be written",
        "configuration",
        lambda: specification_of(evidence.plan, model=evidence.models.get(""), engine=engine.name),
        bare_specification(evidence.plan),
    )
    run = identity_of(
        specification,
        {key: name for key, name in evidence.models.items() if key},
        {} if made.origin is None else made.origin.datasets,
    )

    def others() -> list[LoggedRun]:
        return [each for each in engine.logged_runs(out) if each.log.resolve() != log.resolve()]

    return result_file(out, made.name, run, with_logs(others))


def _fingerprints(made: TaskPlan, settings: RunSettings) -> dict[str, str]:
    used = {key: settings.model_map[key] for key in made.model_keys}
    if made.calls_model and settings.model is not None:
        used[""] = settings.model
    return {key: fingerprint_of(name) for key, name in used.items()}


def uncomputed(metrics: Metrics, tally: Tally) -> tuple[MetricRow, ...]:
    """Metrics that have no value although there is something to compute them from.

    Where a scorer failed on every sample, its metrics are missing because of that, which is told (and tolerated, or not) as failed samples.
    """
    return tuple(row for row in metrics.rows if row.value is None and tally.scores.get(row.scorer_key))


def check_models(made: TaskPlan, settings: RunSettings) -> None:
    """Every model that the task names was given, and no other.

    Raises:
        UsageError: it was not so; all missing ones are named.
    """
    missing = [key for key in made.model_keys if key not in settings.model_map]
    if missing:
        names = " ".join(f"--model-map '{key}=PROVIDER/MODEL'" for key in missing)
        raise UsageError(f"the task uses {', '.join(map(repr, missing))}; say which model that is: {names}")
    surplus = [key for key in settings.model_map if key not in made.model_keys]
    if surplus:
        used = ", ".join(map(repr, made.model_keys)) or "no other model"
        raise UsageError(f"--model-map: the task has no model {surplus[0]!r}; it uses {used}")
    if made.calls_model and settings.model is None:
        raise UsageError(
            "the task evaluates a model; say which: --model PROVIDER/MODEL, e.g. --model openai/gpt-4.1-nano"
        )


def unused_options(made: TaskPlan, settings: RunSettings) -> list[Issue]:
    """Warnings about options that have no effect on this task."""
    found: list[Issue] = []
    if settings.model is not None and made.entity != "model":
        message = f"--model is not used: task {made.task.key!r} evaluates no model"
        found.append(Issue(message, severity="warning"))
    if made.entity == "system" and made.origin is not None:
        given = {
            "--num-samples": made.origin.num_samples,
            "--subsampling": made.origin.subsampling,
            "--num-trials": made.origin.num_trials,
        }
        found += [
            Issue(f"{name} is not used: a system task has no samples", severity="warning")
            for name, value in given.items()
            if value is not None
        ]
    return found


def write_evidence(
    evidence: Evidence, path: Path, *, engine: str, planned: int | None = None
) -> tuple[Tally, tuple[MetricRow, ...]]:
    """As `write_result`; returns what the samples add up to, and the metrics as shown."""
    written = write_result(evidence, path, engine=engine, planned=planned)
    return written.tally, written.metrics.rows


@dataclass(frozen=True)
class Written:
    """What a result log that was written adds up to."""

    tally: Tally
    metrics: Metrics
    faults: tuple[TaskResultError, ...] = ()
    """What could not be put together."""


def write_result(
    evidence: Evidence,
    path: Path,
    *,
    engine: str,
    planned: int | None = None,
    salvage: bool = False,
    faults: Faults | None = None,
) -> Written:
    """Stream an engine's evidence into a result log.

    Args:
        evidence: from `Engine.read`.
        path: the file; it appears when complete.
        engine: name of the engine.
        planned: samples that there should be; `None` takes what the log has.
        salvage: write what can be read where the log cannot be read to its end; without it, that is raised.
        faults: what has gone wrong before.

    What fails while the result is put together is left out, and told in it; a result with such a fault is a failure.
    """
    tally = Tally(evidence.plan)
    faults = Faults() if faults is None else faults
    kept: list[Metrics] = []

    def finish(compute: Callable[[], Metrics]) -> TaskResultLog:
        metrics = faults.attempt("the metrics could not be computed", "metric", compute, None)
        frame, written = _frame(evidence, metrics, tally, faults, engine, planned)
        kept.append(written or Metrics((), (), ()))
        return frame

    samples = sample_stream(evidence.trials(), tally)
    encoded = (text for _, text in faults.samples(samples)) if salvage else samples
    if evidence.plan.entity == "system":
        # The one sample that the engine saw is no evidence: the metrics that it gave are.
        only = [sample for sample, _ in faults.samples(samples)] if salvage else list(samples)
        write_log(path, [], finish=lambda: finish(lambda: system_metrics(only)))
    else:
        host = SnippetHost()
        try:
            write_log(path, encoded, finish=lambda: finish(lambda: metrics_for(tally, host)))
        finally:
            host.close()
    return Written(tally, kept[0], tuple(faults.errors))


def _frame(
    evidence: Evidence,
    metrics: Metrics | None,
    tally: Tally,
    faults: Faults,
    engine: str,
    planned: int | None,
) -> tuple[TaskResultLog, Metrics | None]:
    """All of a result but its samples, as much of it as can be written, and the metrics that are in it."""
    plan, execution, model = evidence.plan, evidence.execution, evidence.models.get("")

    def made(kept: Metrics | None, errors: Sequence[TaskResultError], *, whole: bool) -> TaskResultLog:
        of_metrics = [error for error in errors if error.stage is TaskResultErrorStage.metric]
        others = [error for error in errors if error not in of_metrics]
        ended = whole and not errors and came_to_an_end(execution, tally, planned)
        frame = TaskResultLog(
            format_version="v1",
            app_version=APP_VERSION,
            status="success" if ended else "failure",
            evidence=TaskResultEvidence(
                metrics=None if kept is None else list(kept.data),
                samples=[],
                errors=[*(() if kept is None else kept.errors), *of_metrics],
                failures=tally.failures,
            ),
            specification=specification_of(plan, model=model, engine=engine)
            if whole
            else bare_specification(plan),
            execution=execution_of(execution, model, tally.num_samples) if whole else NEVER,
            errors=[*(run_errors(execution, tally.num_samples, planned) if whole else ()), *others],
        )
        encoded_frame(frame)  # what cannot be written is found here, where something else can be
        return frame

    without: tuple[tuple[Metrics | None, bool, str, Stage], ...] = (
        (None, True, "the metrics could not be written", "metric"),
        (metrics, False, "the specification could not be written", "configuration"),
        (None, False, "neither metrics nor specification could be written", "configuration"),
    )
    try:
        return made(metrics, faults.errors, whole=True), metrics
    except Exception as error:  # whatever it is: evidence that was paid for is written
        for kept, whole, what, stage in without:
            told = [*faults.errors, error_of(what, stage, error)]
            with contextlib.suppress(Exception):
                frame = made(kept, told, whole=whole)
                faults.errors = told
                return frame, kept
        raise


NEVER = TaskExecution(runtime=0.0, started_at=0, ended_at=0)
"""Stands where times are not known."""


def came_to_an_end(execution: Execution, tally: Tally, planned: int | None) -> bool:
    """Whether a run ended by itself, has all its samples, and scored at least one of them."""
    complete = execution.status == "success" and (planned is None or tally.num_samples >= planned)
    nothing_scored = tally.num_samples > 0 and tally.num_failed == tally.num_samples
    return complete and not nothing_scored


def execution_of(execution: Execution, model: str | None, num_samples: int) -> TaskExecution:
    """When a run took place and what the evaluated model used, as AI GO keeps it."""
    usage = execution.model_usage.get(model or "")
    fields: dict[str, Any] = {
        "runtime": max(0.0, execution.ended_at - execution.started_at),
        "started_at": int(execution.started_at),
        "ended_at": int(execution.ended_at),
    }
    if usage is not None:
        fields["model_usage"] = ModelUsageStats(num_samples=num_samples, **usage)
    return TaskExecution(**fields)


def run_errors(execution: Execution, num_samples: int, planned: int | None) -> list[TaskResultError]:
    """What is wrong with a run as a whole: that it ended early, and where."""
    missing = planned is not None and num_samples < planned
    if execution.status == "success" and not missing:
        return []
    message = execution.error or f"the run did not finish (status {execution.status!r})"
    if execution.status == "success":
        message = "the run ended without an error, but not with every sample"
    if missing:
        message += f"; {num_samples} of {planned} samples are there"
    return [TaskResultError(error_type="IncompleteRun", message=message, stage=TaskResultErrorStage.solver)]
