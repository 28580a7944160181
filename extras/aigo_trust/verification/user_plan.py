"""User's own task, planned with the recorded options of the result's run."""

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

SCORED = "the rows come from the scored result and differ from the task's dataset"


@dataclass(frozen=True)
class OwnTask:
    """User's own task for comparison with a result."""

    plan: TaskPlan
    """Plan with the rows that were run. If the dataset files are not named, it has the rows of the result."""
    rows: TaskPlan | None
    """Plan with the rows of the task; `None` if the dataset files are not named."""
    elsewhere: str | None = None
    """Reason why the result may have other rows than the task; `None` if it may not."""
    complete: bool = True
    """Whether the result must contain every row of the task."""


@dataclass(frozen=True)
class RecordedOptions:
    """Recorded options of the run in a provenance."""

    made_by: str | None
    specification: str | None
    """Key of the task specification in a run file."""
    config: Mapping[str, Any]
    """Parameter values in a run file's evaluation."""
    num_trials: int | None
    datasets: Mapping[str, str]
    """Name of the replacement file for each dataset key."""
    dataset: Mapping[str, Any]
    """Key and digest of the planned rows."""


def recorded_options(record: Mapping[str, Any] | None) -> RecordedOptions:
    """Return the recorded options in a provenance, which may be untrusted."""
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
    """Plan the user's own task in the same way as the run of a result.

    Args:
        task: task name or file, as for `run`.
        result: path of the result.
        frame: result without its samples.
        record: provenance of the result; `None` if missing.
        materials: dataset files and root folder that the user named.

    Raises:
        UsageError: the task is a run file with several tasks, and the result does not identify one of them.
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
        # Invalid records are skipped. Their number is in the task description, so it is compared as well.
        allow_bad_tasks=not of_run_file and is_record_file(find_task(task)),
    )


def _with_rows_of(result: Path, origin: PlanOrigin, options: RecordedOptions) -> TaskPlan:
    """Return the plan with the rows of the result and the recorded digest of the planned rows."""
    planned = plan(replace(origin, stored=str(result.resolve()), num_samples=None, datasets={}))
    if planned.dataset is None or not options.dataset:
        return planned
    key, digest = (str(options.dataset.get(name)) for name in ("key", "sha256"))
    dataset = replace(planned.dataset, key=key, digest=digest)
    num_trials = options.num_trials or planned.num_trials
    content = digest_of(planned.task, planned.config, dataset, num_trials=num_trials)
    return replace(planned, dataset=dataset, digest=content)
