"""Functions that exported task files call to get an Inspect task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai._util.error import PrerequisiteError  # the error that Inspect shows without a traceback
from inspect_ai.solver import Generate, Solver, TaskState, solver
from rich.markup import escape

from aigo_bridge.errors import BridgeError
from aigo_bridge.execution.progress import ProgressCounter
from aigo_bridge.exporting.packing import packed_plan
from aigo_inspect.models.models import role_models
from aigo_inspect.models.registration import in_namespace
from aigo_inspect.running.translate import native_task


def exported_task(folder: Path, config: Mapping[str, Any], *, num_samples: int | None = None) -> Task:
    """Return the Inspect task of a folder that `aigo-bridge export` wrote.

    Args:
        folder: the task folder, which is next to the task file.
        config: values of the task parameters, by key.
        num_samples: run only the first samples. `None` runs all exported samples.

    Raises:
        PrerequisiteError: a value does not fit its parameter, or the files were changed after the export.
    """
    try:
        plan = packed_plan(folder, config, num_samples=num_samples)
    except BridgeError as error:
        raise PrerequisiteError(escape(str(error))) from error
    task = native_task(plan, {}, ProgressCounter(None, len(plan.samples) * plan.num_trials))
    if plan.model_keys:
        task.setup = roles_given(plan.model_keys)
    return task


@solver(name="roles_given")
@in_namespace
def roles_given(keys: tuple[str, ...]) -> Solver:
    """Return a solver that fails a sample if a judge model is missing. The evaluated model has not been
    called yet at that point.
    """
    models = role_models({})

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for key in keys:
            models(key)
        return state

    return solve
