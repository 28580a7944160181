"""Where a metric's code can be had again: whether it is one that lighteval has itself, with the very same settings."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass
from typing import Any

from lighteval.metrics.metrics import Metrics

from aigo_lighteval.native_registry import built_in


@dataclass(frozen=True)
class Origin:
    """One of lighteval's own metrics, as Python code finds it."""

    imports: str
    """The module to import."""
    expression: str
    """The metric, in the module `origin`."""


def origin_of(metric: Any, task: str, number: int) -> Origin | None:
    """Where lighteval has a metric; `None` when it has none like it.

    Args:
        metric: the metric.
        task: name of the task that it belongs to.
        number: its place among the task's metrics.
    """
    registry = built_in()
    own = registry.configs.get(task)
    if own is not None and number < len(own.metrics) and is_same(metric, own.metrics[number]):
        table = f"next(config for config in origin.TASKS_TABLE if config.name == {task!r})"
        return Origin(registry.modules[task].__name__, f"{table}.metrics[{number}]")
    for member in Metrics:
        if is_same(metric, member.value):
            return Origin(Metrics.__module__, f"origin.Metrics[{member.name!r}].value")
    return None


def why_unknown(metric: Any) -> str:
    """Why a metric that lighteval does not have cannot be had again."""
    if type(metric.sample_level_fn).__module__.startswith("lighteval."):
        return "is lighteval's with other parameters than lighteval has itself, which an AI GO task does not carry"
    return "its code stands in a file of yours, which an AI GO task does not carry"


def is_same(one: Any, other: Any) -> bool:
    """Whether two metrics would measure the same: of the same classes, with the same settings, however deep."""
    return _same(one, other, set())


def _same(one: Any, other: Any, seen: set[tuple[int, int]]) -> bool:
    pair = (id(one), id(other))
    if one is other or pair in seen:
        # Objects that hold each other are the same unless something else of them differs.
        return True
    if type(one) is not type(other):
        return False
    seen.add(pair)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key], seen) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(
            _same(left, right, seen) for left, right in zip(one, other, strict=True)
        )
    if isinstance(one, functools.partial):
        return _same(one.__reduce__(), other.__reduce__(), seen)
    if isinstance(one, types.MethodType):
        return one.__func__ is other.__func__ and _same(one.__self__, other.__self__, seen)
    if isinstance(one, types.FunctionType | type | types.ModuleType):
        # The same code is the same object, also in copies.
        return False
    if hasattr(one, "__dict__"):
        return _same(vars(one), vars(other), seen)
    return bool(one == other)
