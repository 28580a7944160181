"""The real rows behind sample data: which data sets of the Hugging Face hub lie beside a task, and a run on one of them (`--full`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aigo_bridge.errors import BridgeError, TemplateError, UsageError
from aigo_bridge.evaluation.naming import parse_reference
from aigo_bridge.evaluation.run_files import holds_evaluation
from aigo_bridge.locating import ENTITY_SUFFIXES, find_dataset, find_hub_datasets, find_task
from aigo_bridge.parameters import resolve_config
from aigo_bridge.plan import PlanOrigin, TaskPlan, bind_task
from aigo_bridge.reading import Document, read_dataset, read_task
from aigo_bridge.spec import BenchmarkDefinition, TaskSpec
from aigo_bridge.spec.datasets import SAMPLE_NOTE, is_sample_data


@dataclass(frozen=True)
class SampleData:
    """That a task runs on sample data unless it is told otherwise."""

    full: tuple[str, ...]
    """Keys of the data sets that it stands for; empty where there is none."""


def sample_note(plan: TaskPlan) -> str | None:
    """What is to be said of a plan's numbers; `None` when its rows are not sample data."""
    if plan.dataset is None or not plan.dataset.is_sample:
        return None
    real = [] if plan.origin is None or plan.origin.stored else _real_datasets(plan.origin.task)
    return f"{SAMPLE_NOTE} (--full runs on the real rows)" if real else SAMPLE_NOTE


def sample_data(document: Document[TaskSpec]) -> SampleData | None:
    """What a task runs on by default, where that is sample data."""
    try:
        key = _dataset_key(document, resolve_config(document.spec.config_spec, {}))
        if key is None:
            return None
        file = find_dataset(key, {}, document.file)
        if file.suffix not in ENTITY_SUFFIXES or not is_sample_data(read_dataset(file).spec.tags):
            return None
    except (BridgeError, ValidationError):
        return None  # it has no default, or a file of it is wrong, which a run tells
    return SampleData(tuple(find_hub_datasets(document.file)))


def full_origin(origin: PlanOrigin) -> PlanOrigin:
    """The origin of a plan on the real rows: the parameter that names the data set has another value.

    Raises:
        UsageError: the task has no real data set, or several; or it does not say by a parameter which it takes.
        SpecError: the task or its config is invalid.
    """
    if parse_reference(origin.task) is not None or holds_evaluation(origin.task):
        raise UsageError(
            "--full: for a task by itself; a run file names its data set, e.g. task_config: {dataset_key: …}"
        )
    document = read_task(find_task(origin.task), root=None if origin.root is None else Path(origin.root))
    task = document.spec
    config = resolve_config(task.config_spec, origin.config)
    try:
        key = _dataset_key(document, config)
    except (TemplateError, ValidationError):
        return origin  # planning names what is wrong, with its place
    if key is None:
        raise UsageError(f"--full: task {task.key!r} has no data set of its own")
    real = find_hub_datasets(document.file)
    if key in real:
        return origin
    if key in origin.datasets:
        raise UsageError(f"--full, --dataset {key}=…: both say which rows to take; give one of them")
    if not real:
        raise UsageError(
            f"--full: task {task.key!r} has no real data set (no data set file with a source of type 'huggingface' lies beside it);"
            f" rows of your own: --dataset {key}=FILE"
        )
    name = _parameter(document, config, next(iter(real)))
    if name is None:
        (file, *_) = real.values()
        raise UsageError(
            f"--full: task {task.key!r} names its data set {key!r} without a parameter; give the real one: --dataset {key}={file}"
        )
    if len(real) > 1:
        choices = " or ".join(f"--config {name}={each}" for each in real)
        raise UsageError(f"--full: task {task.key!r} has {len(real)} real data sets; say which: {choices}")
    return replace(origin, config={**origin.config, name: next(iter(real))})


def _real_datasets(task: str) -> dict[str, Path]:
    try:
        return find_hub_datasets(find_task(task))
    except BridgeError:
        return {}  # of a run file, say


def _dataset_key(document: Document[TaskSpec], config: Mapping[str, Any]) -> str | None:
    """Key of the one data set that a task runs on; `None` where it has none or several, or takes a result's rows."""
    definition = bind_task(document.data, config).definition
    if not isinstance(definition, BenchmarkDefinition) or definition.dataset is None:
        return None
    return None if definition.dataset.source == "task_result" else definition.dataset.key


def _parameter(document: Document[TaskSpec], config: Mapping[str, Any], key: str) -> str | None:
    """The parameter by which the task runs on a data set; `None` where it has none for that."""
    for parameter in document.spec.config_spec:
        if parameter.type == "dataset":
            with suppress(TemplateError, ValidationError):
                if _dataset_key(document, {**config, parameter.key: key}) == key:
                    return parameter.key
    return None
