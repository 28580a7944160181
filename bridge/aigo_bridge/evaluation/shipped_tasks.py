"""Shipped tasks as `list` shows them, without reading their specifications, which would take much longer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from aigo_bridge.reading.locating import HUB
from aigo_bridge.reading.nodes import TooLarge, compose, construct
from aigo_bridge.spec.base import is_sample_data, mapping, mappings, texts

_NAMES = ("key", "display_name", "description")
_PARAMETER = re.compile(r"\s*<<\s*config\.([\w-]+)\s*>>\s*")


@dataclass(frozen=True)
class ShippedTask:
    """Task of `aigo_tasks`."""

    key: str
    display_name: str
    description: str
    tags: tuple[str, ...]
    parameters: tuple[str, ...]
    """Keys of its parameters."""
    is_sample: bool
    """Whether it uses sample data by default."""
    full: tuple[str, ...]
    """Keys of the full datasets for the sample data; empty without them."""


def shipped_task(file: Path) -> ShippedTask:
    """Return a shipped task without the checks of `validate`: only valid tasks are shipped.

    Raises:
        SpecError: the task was edited and is not valid.
    """
    task = _document(file)
    if not all(isinstance(task.get(name), str) for name in _NAMES):
        from aigo_bridge.reading import read
        from aigo_bridge.spec.task import TaskSpec

        task = read(TaskSpec, file).data
    parameters = {str(entry.get("key")): entry for _, entry in mappings(task.get("config_spec"))}
    datasets = [_document(path) for path in sorted(file.parent.glob("*.yaml"))]
    key = _default_dataset(task, parameters)
    is_sample = key is not None and any(
        dataset.get("key") == key and is_sample_data(texts(dataset.get("tags"))) for dataset in datasets
    )
    full = (str(data.get("key")) for data in datasets if mapping(data.get("source")).get("type") == HUB)
    return ShippedTask(
        **{name: str(task[name]) for name in _NAMES},
        tags=tuple(texts(task.get("tags"))),
        parameters=tuple(parameters),
        is_sample=is_sample,
        full=tuple(full) if is_sample else (),
    )


def _document(file: Path) -> dict[str, Any]:
    """Return the content of a YAML file without included files; empty if it cannot be read."""
    try:
        node = compose(file.read_text("utf-8"), str(file))
    except (OSError, ValueError, TooLarge, yaml.YAMLError):
        return {}
    return {} if node is None else mapping(construct(node, []))


def _default_dataset(task: Mapping[str, Any], parameters: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the key of the task's only dataset; `None` if it has several or none."""
    key = mapping(mapping(task.get("definition")).get("dataset")).get("key")
    parameter = _PARAMETER.fullmatch(key) if isinstance(key, str) else None
    return key if parameter is None else parameters.get(parameter[1], {}).get("default_value")
