"""The user's own task, planned as the run that a result is of was planned: with the options that its
provenance and the result have recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.engine.registry import split_name
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.evaluation.run_files import holds_evaluation, parse_reference
from aigo_bridge.evaluation.task import plan
from aigo_bridge.jsonl_spec import is_record_file
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan, digest_of
from aigo_bridge.reading.locating import find_task
from aigo_trust.verification.materials import Materials

SCORED = "the rows are those of the result that was scored, and the task's dataset has others"


@dataclass(frozen=True)
class OwnTask:
    """The user's own task, to compare a result with."""

    plan: TaskPlan
    """With the rows that were run; with those of the result if the files of the rows are not named."""
    rows: TaskPlan | None
    """The plan that has the rows of the task; `None`: the files of the rows are not named."""
    elsewhere: str | None = None
    """Why the result may have other rows than the task; `None`: it may not."""
    complete: bool = True
    """Whether the result must have every row of the task."""


@dataclass(frozen=True)
class RecordedOptions:
    """Options of the run that a provenance has recorded."""

    made_by: str | None
    specification: str | None
    """Key of the task specification in a run file."""
    config: Mapping[str, Any]
    """Values given for the parameters of a run file's evaluation."""
    num_trials: int | None
    datasets: Mapping[str, str]
    """Dataset key → name of the file that was given for it."""
    dataset: Mapping[str, Any]
    """Key and digest of the rows that were planned."""


def recorded_options(record: Mapping[str, Any] | None) -> RecordedOptions:
    """Return the options that a provenance, a stranger's, has recorded."""
    run, planned = (_mapping((record or {}).get(name)) for name in ("run", "plan"))
    given = _mapping(planned.get("options"))
    num_trials = planned.get("num_trials")
    datasets = {key: str(file) for key, file in _mapping(given.get("datasets")).items()}
    return RecordedOptions(
        _text(run.get("made_by")),
        _text(given.get("specification")),
        _mapping(given.get("config")),
        num_trials if isinstance(num_trials, int) and num_trials > 0 else None,
        datasets,
        _mapping(planned.get("dataset")),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def own_task(
    task: str, result: Path, frame: TaskResultLog, record: Mapping[str, Any] | None, materials: Materials
) -> OwnTask:
    """Plan the user's own task as the run of a result was planned.

    Args:
        task: as for `run`.
        result: the result.
        frame: the result without its samples.
        record: the provenance; `None`: there is none.
        materials: dataset files and the root folder that the user has named.

    Raises:
        UsageError: the task is a run file of several tasks, and the result does not say which of them.
        SpecError, DatasetError: the task cannot be planned with these options.
    """
    options = recorded_options(record)
    origin = _origin(task, frame, options, materials)
    if options.made_by == "score":
        scored = _with_rows_of(result, origin, options)
        try:
            rows = plan(origin)
        except BridgeError:
            rows = None
        return OwnTask(scored, rows, SCORED, complete=False)
    missing = [f"{key}={name}" for key, name in options.datasets.items() if key not in materials.datasets]
    if missing:
        names = " ".join(f"--dataset {name}" for name in missing)
        unchecked = f"the rows cannot be compared: the run was given {names}, name the file here as well"
        return OwnTask(_with_rows_of(result, origin, options), None, unchecked)
    planned = plan(origin)
    return OwnTask(planned, planned, complete=frame.status == "success")


def _origin(task: str, frame: TaskResultLog, options: RecordedOptions, materials: Materials) -> PlanOrigin:
    if split_name(task) is not None:
        raise UsageError(
            f"--task: {task} is an engine's own benchmark, whose results are compared with their native log:"
            " --log LOG",
            code=Code.OPTIONS_APART,
        )
    if parse_reference(task) is None and holds_evaluation(task):
        if options.specification is None:
            raise UsageError(
                f"{task!r} is a run file: name one of its tasks, as {task}#KEY", code=Code.OPTIONS_APART
            )
        task = f"{task}#{options.specification}"
    of_run_file = parse_reference(task) is not None
    run_config = frame.specification.run_config
    num_samples = getattr(run_config, "num_samples", None)
    subsampling = getattr(getattr(run_config, "subsampling", None), "value", None)
    num_trials = options.num_trials or getattr(getattr(run_config, "trials_config", None), "num_trials", None)
    return PlanOrigin(
        task=task,
        config=options.config if of_run_file else dict(frame.specification.config),
        datasets=dict(materials.datasets),
        num_samples=num_samples,
        subsampling=subsampling if num_samples is not None else None,
        num_trials=num_trials,
        root=materials.root,
        # Invalid records are left out by name: the description in the result has their number.
        allow_bad_tasks=not of_run_file and is_record_file(find_task(task)),
    )


def _with_rows_of(result: Path, origin: PlanOrigin, options: RecordedOptions) -> TaskPlan:
    """The plan with the rows of the result, whose digest is that of the rows that were planned."""
    planned = plan(replace(origin, stored=str(result.resolve()), num_samples=None, datasets={}))
    if planned.dataset is None or not options.dataset:
        return planned
    key, digest = (str(options.dataset.get(name)) for name in ("key", "sha256"))
    dataset = replace(planned.dataset, key=key, digest=digest)
    num_trials = options.num_trials or planned.num_trials
    content = digest_of(planned.task, planned.config, dataset, num_trials=num_trials)
    return replace(planned, dataset=dataset, digest=content)
