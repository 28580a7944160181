"""Merge of shards into the results of one run, using only their trials.

Without the task, all data comes from the logs, and their code and templates are not executed. Some results
need task code over all samples: Python metrics, action rules, and scorers that see all samples. Policies of a
run file also judge all results. For these the user must name the task, which must have the same plan as the
shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import Evidence, Job, LogRef
from aigo_bridge.engine.provenance import write_run_provenance
from aigo_bridge.errors import EngineError, EvidenceError, Issue, UsageError
from aigo_bridge.evaluation.bridge_logs import own_plan
from aigo_bridge.evaluation.planning import Evaluation
from aigo_bridge.evaluation.run_files import names_run_file
from aigo_bridge.evaluation.running import EvaluationOutcome, ReadyEntry, entry_outcome, judged_outcome
from aigo_bridge.evaluation.task import evaluations_of
from aigo_bridge.evaluation.task import plan as plan_of
from aigo_bridge.evaluation.writing import outcome_of, total_usage, uncomputed, write_result
from aigo_bridge.execution.jobs import make_folder
from aigo_bridge.execution.permissions import resolve_permissions
from aigo_bridge.plan.logged_plan import LoggedPlan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.results.result_files import identity_of, result_file, with_logs
from aigo_bridge.results.specification import specification_of
from aigo_bridge.spec.scorers import SCORERS
from aigo_scale.sharding.evidence import (
    check_seen_together,
    merged_engine,
    merged_evidence,
    shard_logs,
)
from aigo_scale.sharding.manifest import plan_identity, sole
from aigo_scale.sharding.shard_matching import Shards

LOCK = ".merge.lock"


@dataclass(frozen=True)
class MergeResult:
    """Results of a merge."""

    outcomes: tuple[Outcome, ...] = ()
    """Outcome of a single task."""
    evaluations: tuple[EvaluationOutcome, ...] = ()
    """Outcomes of a run file."""


def merge(
    shards: Shards,
    engine: Engine,
    out: Path,
    origin: PlanOrigin | None = None,
    *,
    fail_on_error: str | None = None,
) -> MergeResult:
    """Write the results of shards that belong together to `out`.

    Args:
        shards: shards from `find_shards`.
        engine: engine of the shards.
        out: folder of the results.
        origin: the user's task or run file, with the options of the shards; `None`: use the logs only.
        fail_on_error: number of failed samples that each specification may have.

    Raises:
        UsageError: the task is required, or another merge uses the same folder.
        EvidenceError: a log cannot be read, or the task differs from the shards.
    """
    make_folder(out)
    with sole(out / LOCK, f"another merge writes to {str(out)!r}"):
        if origin is None:
            return MergeResult((_by_logs(shards, engine, out),))
        if shards.first.is_task:
            return MergeResult((_by_task(shards, engine, out, origin),))
        return MergeResult(evaluations=_by_run_file(shards, engine, out, origin, fail_on_error))


# Merge from the logs only


def _by_logs(shards: Shards, engine: Engine, out: Path) -> Outcome:
    if not shards.first.is_task:
        raise UsageError(
            "shards of a run file with policies: pass --task RUN_FILE with the options of the shards",
            code=Code.OPTIONS_APART,
        )
    (job,) = shards.first.jobs
    log, evidence = merged_evidence(shards, job.identity, engine)
    plan = evidence.plan
    if why := _needs_task(plan):
        raise UsageError(
            f"metrics of {plan.name!r} depend on task code over all samples ({why}); pass "
            "--task TASK and the --dataset files of the run",
            code=Code.OPTIONS_APART,
        )
    specification = specification_of(plan, model=evidence.models.get(""), engine=engine.name)
    served = {key: name for key, name in evidence.models.items() if key}
    path = result_file(out, plan.name, identity_of(specification, served, None), with_logs(list))
    run = write_result(evidence, path, engine=engine.name, planned=job.total)
    merged = merged_engine(engine, {}, {log.path: shard_logs(shards, job.identity, engine)})
    write_run_provenance(plan, path, merged, [log], evidence.models, datasets=_given_datasets(log, engine))
    execution, tally = evidence.execution, run.tally
    return Outcome(
        task=str(plan.document["key"]),
        status=execution.status,
        error=execution.error,
        key=plan.name,
        display_name=plan.display_name,
        result=path,
        logs=(log,),
        models=evidence.models,
        num_planned=job.total,
        counts=tally.counts,
        stop_reasons=tally.stop_reasons,
        metrics=run.metrics.rows,
        uncomputed=uncomputed(run.metrics, tally),
        data=run.metrics.data,
        first_errors=tuple(tally.first_errors),
        faults=tuple(fault.message for fault in run.faults.errors),
        usage=total_usage([execution]),
        started_at=execution.started_at,
        ended_at=execution.ended_at,
        is_sample_data=plan.dataset is not None and plan.dataset.is_sample,
    )


def _given_datasets(log: LogRef, engine: Engine) -> Mapping[str, str]:
    """Return the dataset files of a shard, by dataset key."""
    runs = engine.capabilities.logged_runs(log.path.parent)
    return next((run.datasets for run in runs if run.log.resolve() == log.path.resolve()), {})


def _needs_task(plan: LoggedPlan) -> str | None:
    """Return the part of a plan for which the logs are not sufficient."""
    outline = plan.outline
    if outline.rules:
        return "action rules"
    if outline.needs_code:
        return "metrics in Python"
    together = [scorer.type for scorer in outline.scorers if _sees_all(scorer.type)]
    return f"scorer {together[0]}" if together else None


def _sees_all(scorer: str) -> bool:
    spec = SCORERS.get(scorer)
    return spec is None or spec.sees_all_samples


# Merge with the user's task


def _by_task(shards: Shards, engine: Engine, out: Path, origin: PlanOrigin) -> Outcome:
    (job,) = shards.first.jobs
    log, evidence = merged_evidence(shards, job.identity, engine)
    if names_run_file(origin.task):
        raise UsageError(
            "--task: these are shards of a single task; pass its task file", code=Code.OPTIONS_APART
        )
    # Options that are not given again are read from the log.
    given = (origin.config, origin.num_samples, origin.num_trials, origin.allow_bad_tasks or None)
    if any(value is not None and value != {} for value in given):
        plan = plan_of(origin)
        _check_digest(plan, job.digest)
    else:
        plan = own_plan(origin.task, evidence.plan, datasets=origin.datasets, root=origin.root)
    plan = resolve_permissions(plan)
    check_seen_together(evidence, plan)
    files = {log.path: shard_logs(shards, job.identity, engine)}
    merged = merged_engine(engine, {log.path: evidence}, files)
    return outcome_of(plan, log, merged, out)


def _by_run_file(
    shards: Shards, engine: Engine, out: Path, origin: PlanOrigin, fail_on_error: str | None
) -> tuple[EvaluationOutcome, ...]:
    evaluations = evaluations_of(origin, cache=None)
    _check_jobs(shards, evaluations)
    outcomes: list[EvaluationOutcome] = []
    for evaluation in evaluations:
        folder = out if len(evaluations) == 1 else out / evaluation.key
        make_folder(folder)
        outcomes.append(_evaluation(shards, engine, folder, evaluation, fail_on_error))
    return tuple(outcomes)


def _check_jobs(shards: Shards, evaluations: Sequence[Evaluation]) -> None:
    """Check that the run file has exactly the plans of the shards.

    Raises:
        EvidenceError: the plans differ. The error contains all differences.
    """
    jobs = {job.identity: job for job in shards.first.jobs}
    problems: list[Issue] = []
    for evaluation in evaluations:
        for plan in (plan for entry in evaluation.entries for plan in entry.plans):
            job = jobs.pop(plan_identity(evaluation, plan), None)
            if job is None:
                problems.append(
                    Issue(
                        f"the shards do not contain {plan.name!r} of {evaluation.key!r}",
                        code=Code.SHARDS_APART,
                    )
                )
                continue
            try:
                _check_digest(plan, job.digest)
            except EvidenceError as error:
                problems.append(Issue(str(error), code=Code.SHARDS_APART))
    problems += [
        Issue(f"the shards contain {job.key!r}, which the run file does not contain", code=Code.SHARDS_APART)
        for job in jobs.values()
    ]
    if problems:
        raise EvidenceError(list(dict.fromkeys(problems)))


def _check_digest(plan: TaskPlan, digest: str) -> None:
    if plan.digest != digest:
        raise EvidenceError(
            f"{plan.name!r}: the task, its data or its options differ from the shards: its "
            f"plan has the digest {plan.digest:.12}, theirs has {digest:.12}",
            code=Code.SHARDS_APART,
        )


def _evaluation(
    shards: Shards, engine: Engine, out: Path, evaluation: Evaluation, fail_on_error: str | None
) -> EvaluationOutcome:
    results: list[Outcome] = []
    for entry in evaluation.entries:
        plans = tuple(resolve_permissions(plan) for plan in entry.plans)
        merged: dict[Path, Evidence] = {}
        files: dict[Path, list[Path]] = {}
        logs: list[LogRef | EngineError] = []
        models: list[dict[str, str]] = []
        for plan in plans:
            try:
                log, evidence = merged_evidence(shards, plan_identity(evaluation, plan), engine)
            except EvidenceError as error:
                # A job that failed in every shard lacks a result. This does not affect other jobs.
                logs.append(EngineError(str(error), code=Code.FAILED_ENGINE))
                continue
            check_seen_together(evidence, plan)
            merged[log.path] = evidence
            files[log.path] = shard_logs(shards, plan_identity(evaluation, plan), engine)
            models.append(dict(evidence.models))
            logs.append(log)
        ready = ReadyEntry(
            replace(entry, plans=plans),
            tuple(Job(plan, model=_evaluated(models), model_map=_others(models)) for plan in plans),
        )
        results.append(entry_outcome(ready, logs, merged_engine(engine, merged, files), out))
    return judged_outcome(evaluation, results, out, fail_on_error)


def _evaluated(models: Sequence[dict[str, str]]) -> str | None:
    return models[0].get("") if models else None


def _others(models: Sequence[dict[str, str]]) -> dict[str, str]:
    return {key: name for key, name in (models[0] if models else {}).items() if key}
