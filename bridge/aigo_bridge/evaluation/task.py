"""Plans and evaluations of a name that the user typed, and sample data of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aigo_bridge.access.snapshot import Snapshot
from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, Issue, TemplateError, UsageError
from aigo_bridge.evaluation.planning import (
    Evaluation,
    of_task,
    plan_evaluations,
    plan_reference,
    trace_reader,
)
from aigo_bridge.evaluation.run_files import holds_evaluation, names_run_file, parse_reference
from aigo_bridge.jsonl_spec import is_record_file
from aigo_bridge.plan.plan import CachePolicy, PlanOrigin, TaskPlan, bind_task
from aigo_bridge.planning.planning import config_from_text, plan_origin
from aigo_bridge.planning.rows import Surroundings
from aigo_bridge.reading import Document, read
from aigo_bridge.reading.locating import find_hub_datasets, find_task
from aigo_bridge.spec.base import SAMPLE_NOTE
from aigo_bridge.spec.parameters import resolve_config
from aigo_bridge.spec.task import TaskSpec


def plan(origin: PlanOrigin) -> TaskPlan:
    """Plan a task, or one task specification of a run file, from plain arguments.

    Raises:
        UsageError: a name or option is invalid.
        SpecError: a file or the config is invalid; contains every issue.
        DatasetError: the rows cannot be read.
    """
    reference = parse_reference(origin.task)
    if reference is not None:
        return plan_reference(reference, origin)
    with Snapshot():
        return plan_origin(origin, Surroundings(read_traces=trace_reader))


def evaluations_of(
    origin: PlanOrigin, *, cache: CachePolicy | None, model: str | None = None
) -> list[Evaluation]:
    """Return the evaluations for a name: all evaluations of a run file, one specification of it, or a single
    task as an evaluation.

    Args:
        origin: as for `plan`.
        cache: cache policy that overrides the file.
        model: model to evaluate; a warning is added if nothing evaluates a model.

    Raises:
        UsageError, SpecError, DatasetError: as for `plan`.
    """
    reference = parse_reference(origin.task)
    if reference is None and not holds_evaluation(origin.task):
        task_plan = replace(plan(origin), cache=cache or "update")
        return [of_task(task_plan, _unused_options(task_plan, model))]
    only = None
    if reference is not None:
        origin, only = replace(origin, task=str(reference.file)), reference.key
    return plan_evaluations(origin, cache=cache, only=only)


def scored_again(origin: PlanOrigin, log: Path) -> PlanOrigin:
    """Return the origin of a plan that scores the outputs in a result log."""
    return replace(origin, stored=str(log.resolve()), num_samples=None, datasets={})


def parse_config(task: str, values: Mapping[str, Any], *, root: str | None = None) -> dict[str, Any]:
    """Convert config values that are texts from a command line to the types of the task parameters."""
    texts = {key: value for key, value in values.items() if isinstance(value, str)}
    if not texts or names_run_file(task):
        return dict(values)  # The parameters of a run file are converted when it is read.
    file = find_task(task)
    if is_record_file(file):
        return dict(values)  # Records do not have parameters; planning reports this.
    document = read(TaskSpec, file, root=None if root is None else Path(root))
    return {**values, **config_from_text(document.spec, texts)}


def _unused_options(plan: TaskPlan, model: str | None) -> Iterator[Issue]:
    """Yield warnings about options that have no effect on this task."""
    if model is not None and plan.entity != "model":
        message = f"--model is ignored: task {plan.task.key!r} does not evaluate a model"
        yield Issue(message, severity="warning", code=Code.UNUSED_OPTION)
    if plan.entity == "system" and plan.origin is not None:
        sampling = {
            "--num-samples": plan.origin.num_samples,
            "--subsampling": plan.origin.subsampling,
            "--num-trials": plan.origin.num_trials,
        }
        for name, value in sampling.items():
            if value is not None:
                yield Issue(
                    f"{name} is ignored: system tasks do not use samples",
                    severity="warning",
                    code=Code.UNUSED_OPTION,
                )


# Sample data and full data


def sample_note(plan: TaskPlan) -> str | None:
    """Return a note about the metrics of a plan; `None` if its rows are not sample data."""
    if plan.dataset is None or not plan.dataset.is_sample:
        return None
    real = [] if plan.origin is None or plan.origin.stored else _real_datasets(plan.origin.task)
    return f"{SAMPLE_NOTE} (use --full for the real rows)" if real else SAMPLE_NOTE


def full_origin(origin: PlanOrigin, copy: Path | None = None) -> PlanOrigin:
    """Return the origin of a plan on the full data: the parameter that names the dataset has another value.

    Args:
        origin: origin that the user gave.
        copy: folder with a copy of the rows; `None` to read them from the hub.

    Raises:
        UsageError: the task has several full datasets or none, or does not choose its dataset by a parameter.
        SpecError: the task or its config is invalid.
    """
    if names_run_file(origin.task):
        raise UsageError(
            (
                "--full: only for a single task; name the dataset in the run file, e.g. "
                "task_config: {dataset_key: …}"
            ),
            code=Code.NO_FULL_DATASET,
        )
    document = read(TaskSpec, find_task(origin.task), root=None if origin.root is None else Path(origin.root))
    task = document.spec
    config = resolve_config(task.config_spec, origin.config)
    try:
        key = _dataset_key(document, config)
    except (TemplateError, ValidationError):
        return origin  # Planning reports the error with its position.
    if key is None:
        raise UsageError(f"--full: task {task.key!r} does not have a dataset", code=Code.NO_FULL_DATASET)
    real = find_hub_datasets(document.file)
    if key in real:
        return _with_copy(origin, key, copy)
    if key in origin.datasets:
        raise UsageError(
            f"--full, --dataset {key}=…: both select the rows; use one of them",
            code=Code.OPTIONS_APART,
        )
    if not real:
        raise UsageError(
            f"--full: task {task.key!r} does not have a dataset file with a source of type "
            f"'huggingface'; pass your own rows with --dataset {key}=FILE",
            code=Code.NO_FULL_DATASET,
        )
    name = _parameter(document, config, next(iter(real)))
    if name is None:
        (file, *_) = real.values()
        raise UsageError(
            f"--full: task {task.key!r} names its dataset {key!r} without a parameter; pass "
            f"the full dataset with --dataset {key}={file}",
            code=Code.NO_FULL_DATASET,
        )
    if len(real) > 1:
        choices = " or ".join(f"--config {name}={dataset}" for dataset in real)
        raise UsageError(
            (f"--full: task {task.key!r} has {len(real)} full datasets; choose one with {choices}"),
            code=Code.NO_FULL_DATASET,
        )
    (key,) = real
    return _with_copy(replace(origin, config={**origin.config, name: key}), key, copy)


def _with_copy(origin: PlanOrigin, key: str, copy: Path | None) -> PlanOrigin:
    if copy is None:
        return origin
    if not copy.is_dir():
        raise UsageError(f"--data-dir: the folder {str(copy)!r} does not exist", code=Code.NOTHING_THERE)
    if key in origin.datasets:
        raise UsageError(
            f"--data-dir, --dataset {key}=…: both select the rows; use one of them",
            code=Code.OPTIONS_APART,
        )
    return replace(origin, datasets={**origin.datasets, key: str(copy.resolve())})


def _real_datasets(task: str) -> dict[str, Path]:
    try:
        return find_hub_datasets(find_task(task))
    except BridgeError:
        return {}  # For example, the values of a run file.


def _parameter(document: Document[TaskSpec], config: Mapping[str, Any], key: str) -> str | None:
    """Return the parameter that selects the task's dataset; `None` if it lacks such a parameter."""
    for parameter in document.spec.config_spec:
        if parameter.type == "dataset":
            with suppress(TemplateError, ValidationError):
                if _dataset_key(document, {**config, parameter.key: key}) == key:
                    return parameter.key
    return None


def _dataset_key(document: Document[TaskSpec], config: Mapping[str, Any]) -> str | None:
    """Return the key of the task's only dataset; `None` for several, none, or rows of a result."""
    definition = bind_task(document.data, config).definition
    if definition.type == "system_task" or definition.dataset is None:
        return None
    return None if definition.dataset.source == "task_result" else definition.dataset.key
