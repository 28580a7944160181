"""The shipped records: ten valid ones, two of every category, and a file that trips every rule of the validator once."""

from __future__ import annotations

from pathlib import Path

from aigo_bridge.errors import UsageError
from aigo_bridge.jsonl_spec.files import load_tasks
from aigo_bridge.jsonl_spec.records import TaskSpec
from aigo_bridge.locating import shipped_folder

FOLDER = "jsonl-fixture"
"""Folder of the shipped tasks that holds them."""


def fixture_file(name: str = "tasks.jsonl") -> Path:
    """A shipped file: the valid records `tasks.jsonl`, the invalid ones `tasks_bad.jsonl`, or `answers.jsonl` for the valid ones.

    Raises:
        UsageError: the shipped tasks are not installed, or there is no such file among them.
    """
    shipped = shipped_folder()
    if shipped is None:
        raise UsageError("the shipped tasks are not installed")
    path = shipped / FOLDER / name
    if not path.is_file():
        known = ", ".join(sorted(repr(each.name) for each in path.parent.glob("*.jsonl")))
        raise UsageError(f"there is no shipped file {name!r} (known: {known})")
    return path


def load_fixtures() -> tuple[TaskSpec, ...]:
    """The ten shipped tasks.

    Raises:
        UsageError: the shipped tasks are not installed.
    """
    return load_tasks(fixture_file())
