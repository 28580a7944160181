"""One plan on an engine, with the options of its job and of the run in one call."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.protocol import Job, LogRef, RunSettings
from aigo_bridge.errors import EngineError
from aigo_bridge.plan.plan import TaskPlan

_OF_JOB = {field.name for field in fields(Job)}


def job_and_settings(plan: TaskPlan, out: Path, **options: Any) -> tuple[Job, RunSettings]:
    """A job and the settings of its run; each takes the options that it has."""
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
