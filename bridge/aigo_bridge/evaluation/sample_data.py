"""Sample data of shipped tasks: a few rows that a task uses unless it gets its full data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from aigo_bridge.access.opening import YAML_SUFFIXES
from aigo_bridge.errors import BridgeError
from aigo_bridge.plan.plan import bind_task
from aigo_bridge.reading import Document
from aigo_bridge.reading.locating import find_dataset, find_hub_datasets
from aigo_bridge.reading.reader import peek
from aigo_bridge.spec.base import mapping
from aigo_bridge.spec.datasets import is_sample_data
from aigo_bridge.spec.parameters import resolve_config
from aigo_bridge.spec.task import BenchmarkDefinition, TaskSpec


@dataclass(frozen=True)
class DefaultSampleData:
    """Sample data that a task uses by default."""

    full: tuple[str, ...]
    """Keys of the full datasets for the sample data; empty without full datasets."""


def sample_data(document: Document[TaskSpec]) -> DefaultSampleData | None:
    """Return the sample data that a task uses by default; `None` if it uses other data."""
    try:
        key = dataset_key(document, resolve_config(document.spec.config_spec, {}))
        if key is None:
            return None
        file = find_dataset(key, {}, document.file)
        tags = mapping(peek(file)[1]).get("tags") if file.suffix in YAML_SUFFIXES else None
        if not isinstance(tags, list) or not is_sample_data(map(str, tags)):
            return None
    except (BridgeError, ValidationError):
        return None  # The task lacks a default dataset, or one of its files is invalid, which a run reports.
    return DefaultSampleData(tuple(find_hub_datasets(document.file)))


def dataset_key(document: Document[TaskSpec], config: Mapping[str, Any]) -> str | None:
    """Return the key of the task's only dataset; `None` for several, none, or rows of a result."""
    definition = bind_task(document.data, config).definition
    if not isinstance(definition, BenchmarkDefinition) or definition.dataset is None:
        return None
    return None if definition.dataset.source == "task_result" else definition.dataset.key
