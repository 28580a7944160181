"""Differences between the current task and the plan that a log carries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from aigo_bridge.errors import dotted
from aigo_bridge.plan.logged_plan import LoggedPlan, has_mask
from aigo_bridge.plan.plan import TaskPlan, deciding_content
from aigo_bridge.redaction.secrets import learn_environment, redact_value

_LONGEST = 60
"""Characters of a value that is shown."""


def plan_differences(task_plan: TaskPlan, logged: LoggedPlan) -> Iterator[str]:
    """Yield each place in which the current task differs from the plan in a log, with both values."""
    content: Any = deciding_content(
        task_plan.document, task_plan.config, task_plan.dataset, task_plan.num_trials
    )
    outline: Any = task_plan.outline.to_json()
    if has_mask(logged.content):
        # The log was written without secrets, so secrets of this machine are removed here as well.
        learn_environment()
        content = redact_value(content)
    yield from _unequal(orjson.loads(orjson.dumps(content)), logged.content, ())
    yield from _unequal(outline, logged.outline.to_json(), ("outline",))


def _unequal(task: Any, logged: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    """Where two plans differ, each with both values."""
    if isinstance(task, Mapping) and isinstance(logged, Mapping):
        for name in dict.fromkeys([*task, *logged]):
            if name in task and name in logged:
                yield from _unequal(task[name], logged[name], (*path, name))
            else:
                yield f"{dotted((*path, name))} is only in the {'task' if name in task else 'log'}"
        return
    if isinstance(task, list) and isinstance(logged, list | tuple) and len(task) == len(logged):
        for number, pair in enumerate(zip(task, logged, strict=True)):
            yield from _unequal(*pair, (*path, number))
        return
    if task != logged or isinstance(task, bool) is not isinstance(logged, bool):
        where = "the rows" if path == ("dataset", "digest") else dotted(path)
        yield f"{where}: the task has {_short(task)}, the log {_short(logged)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
