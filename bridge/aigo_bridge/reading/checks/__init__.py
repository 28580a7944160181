"""Checks of well-formed documents: syntax inside texts, unknown names, contradictions, duplicates.

AI GO's own loader does not make these checks, so in its dialect all of these problems are warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from aigo_bridge.errors import Issue
from aigo_bridge.reading.checks.entities import (
    check_adapter,
    check_dataset,
    check_evaluation,
    check_generator,
    check_model,
    check_plan,
    check_run,
)
from aigo_bridge.reading.checks.tasks import check_task
from aigo_bridge.reading.document import Document
from aigo_bridge.reading.kinds import Kind

Check = Callable[[dict[str, Any], tuple[str | int, ...]], Iterator[Issue]]

_CHECKS: dict[Kind, Check] = {
    "task": check_task,
    "dataset": check_dataset,
    "generator": check_generator,
    "model": check_model,
    "adapter": check_adapter,
    "evaluation": check_evaluation,
    "run": check_run,
    "plan": check_plan,
}


def check(kind: Kind, document: Document[Any]) -> Iterator[Issue]:
    """Yield every such problem of a document, valid or not, with its position."""
    if kind not in _CHECKS or not isinstance(document.data, dict):
        return
    for problem in _CHECKS[kind](document.data, ()):
        issue = document.place(problem)
        yield replace(issue, severity="warning") if document.dialect == "aigo-3.17" else issue
