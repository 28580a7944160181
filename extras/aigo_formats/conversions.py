"""Conversion of other projects' tasks to AI GO tasks: results, and writing their files."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.engine.formats import Conversion
from aigo_bridge.errors import Issue, UnsupportedPlanError, UsageError
from aigo_bridge.jsonl_spec.conversion import task_yaml
from aigo_bridge.redaction.secrets import open_clean
from aigo_bridge.text.json_text import key_of
from aigo_bridge.text.plurals import plural

Json = dict[str, Any]


@dataclass(frozen=True)
class ConvertedTask:
    """AI GO task with its dataset."""

    task: Json
    """Task document."""
    dataset: Json | None
    """Dataset document; `None` if the user must provide the rows."""
    issues: tuple[Issue, ...]
    """Differences, and omitted parts that were allowed."""
    rows: Path | None = None
    """File with the rows. The dataset refers to a copy next to its own file."""

    @property
    def key(self) -> str:
        """Return the key of the task."""
        key: str = self.task["key"]
        return key


@dataclass(frozen=True)
class Refusal:
    """Reasons why a task cannot be converted."""

    fatal: tuple[Issue, ...]
    """Parts that AI GO cannot express."""
    lost: tuple[Issue, ...]
    """Parts that would be lost. The user can allow this."""

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Return all reasons."""
        return (*self.fatal, *self.lost)


def all_of(outcomes: Iterable[ConvertedTask | Refusal]) -> tuple[ConvertedTask, ...]:
    """Return the converted tasks if all could be converted.

    Raises:
        UnsupportedPlanError: a task could not be converted. The message lists all reasons.
    """
    tasks: list[ConvertedTask] = []
    refusals: list[Refusal] = []
    for outcome in outcomes:
        if isinstance(outcome, Refusal):
            refusals.append(outcome)
        else:
            tasks.append(outcome)
    if refusals:
        issues = [issue for refusal in refusals for issue in refusal.issues]
        raise _refused(issues, can_be_allowed=not any(refusal.fatal for refusal in refusals))
    return tuple(tasks)


def _refused(issues: Sequence[Issue], *, can_be_allowed: bool) -> UnsupportedPlanError:
    lines = [
        f"the task cannot be expressed as an AI GO task: {plural(len(issues), 'gap')}",
        *(f"  - {issue}" for issue in issues),
    ]
    if can_be_allowed:
        lines.append("with --allow-gaps the task is written without these parts, and lists them")
    return UnsupportedPlanError("\n".join(lines), code=Code.UNTRANSLATED)


def write_conversion(
    tasks: Sequence[ConvertedTask], folder: Path, project: str, *, force: bool
) -> Conversion:
    """Write tasks into a folder, and return a summary for the user.

    Raises:
        UsageError: files already exist (without `force`).
    """
    present = [file for file in _planned_files(tasks, folder) if file.exists()]
    if present and not force:
        raise UsageError(
            f"{str(present[0])!r} already exists (replace it with --force)", code=Code.ALREADY_THERE
        )
    return Conversion(
        _write_tasks(tasks, folder, project),
        [task.key for task in tasks],
        [issue for task in tasks for issue in task.issues],
        {task.key: task.task["definition"]["dataset"]["key"] for task in tasks if task.dataset is None},
    )


def _write_tasks(tasks: Sequence[ConvertedTask], folder: Path, project: str) -> Path:
    """Write one task as `task.yaml` with its dataset, or several in separate folders with a run file.

    Returns:
        Path of the file to run.
    """
    if len(tasks) == 1:
        return _write(tasks[0], folder)
    for task in tasks:
        _write(task, folder / task.key)
    run = {
        "tasks": [{"$ref": f"{task.key}/task.yaml"} for task in tasks],
        "evaluation": {
            "key": key_of(folder.name or "tasks"),
            "display_name": folder.name or "tasks",
            "description": f"Tasks of {project}",
            "task_specifications": [
                {"key": task.key, "task_key": task.key, "model_key": "model"} for task in tasks
            ],
        },
    }
    return _put(folder / "run.yaml", run)


def _planned_files(tasks: Sequence[ConvertedTask], folder: Path) -> list[Path]:
    if len(tasks) == 1:
        return [folder / "task.yaml"]
    return [folder / "run.yaml", *(folder / task.key / "task.yaml" for task in tasks)]


def _write(task: ConvertedTask, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if task.dataset is not None:
        _put(folder / f"{task.dataset['key']}.yaml", task.dataset)
        if task.rows is not None:
            with (
                task.rows.open("rb") as rows,
                open_clean(folder / task.dataset["source"]["file_path"]) as copy,
            ):
                shutil.copyfileobj(rows, copy)
    return _put(folder / "task.yaml", task.task)


def _put(path: Path, document: dict[str, Any]) -> Path:
    with open_clean(path) as file:
        file.write(task_yaml(document).encode())
    return path
