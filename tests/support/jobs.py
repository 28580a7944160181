"""Run one plan on an engine, with job and run options in one call."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import Job, LogRef, RunSettings
from aigo_bridge.errors import EngineError
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.evaluation.planning import of_task
from aigo_bridge.evaluation.running import ReadyEvaluation, prepare, run_evaluation
from aigo_bridge.plan.plan import TaskPlan

_OF_JOB = {field.name for field in fields(Job)}


def job_and_settings(plan: TaskPlan, out: Path, **options: Any) -> tuple[Job, RunSettings]:
    """Return a job and its run settings, each with its own options."""
    job = Job(plan, **{name: value for name, value in options.items() if name in _OF_JOB})
    settings = {name: value for name, value in options.items() if name not in _OF_JOB}
    return job, RunSettings(out, **settings)


def run_job(engine: Engine, plan: TaskPlan, out: Path, **options: Any) -> LogRef:
    """The log of one plan.

    Raises:
        EngineError: there is none.
    """
    job, settings = job_and_settings(plan, out, **options)
    (log,) = engine.run([job], settings)
    if isinstance(log, EngineError):
        raise log
    return log


def ready_task(engine: Engine, plan: TaskPlan, **options: Any) -> ReadyEvaluation:
    """The plan as an evaluation with its models.

    Raises:
        BridgeError: the engine rejects the plan, or models are missing.
    """
    choice = ModelChoice(options.get("model"), options.get("model_map"))
    return prepare([of_task(plan)], [engine], choice, resume=False)[0]


def run_task(engine: Engine, plan: TaskPlan, out: Path, **options: Any) -> Outcome:
    """The outcome of one plan, with its evidence in the folder."""
    prepared = ready_task(engine, plan, **options)
    (entry,) = prepared.entries
    job, settings = job_and_settings(entry.jobs[0].plan, out, **options)
    with_job = replace(prepared, entries=(replace(entry, jobs=(job,)),))
    return run_evaluation(with_job, engine, settings).results[0]
