"""A file of task records as one AI GO task, in memory: what `convert` writes, and what a run of the file itself carries out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from yaml import Mark
from yaml.nodes import MappingNode

from aigo_bridge import spec
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.jsonl_spec.files import validate_file
from aigo_bridge.jsonl_spec.recognising import ENDINGS, other_content
from aigo_bridge.jsonl_spec.records import RecordError
from aigo_bridge.jsonl_spec.to_aigo import Converted, task_yaml, to_aigo
from aigo_bridge.reading import Document

MOST_ERRORS = 50
"""Errors of a file that a run tells; `validate` tells all of them."""

_NO_KEY = re.compile(r"[^a-zA-Z0-9_\-]+")


@dataclass(frozen=True)
class TaskFile:
    """The task that the records of a file are."""

    file: Path
    converted: Converted
    num_invalid: int
    """Records that are not valid and were left out."""
    issues: tuple[Issue, ...]
    """What is wrong with those, as warnings."""

    def document(self) -> Document[spec.TaskSpec]:
        """The task as if it had been read from a YAML file beside the records.

        Places in it are those of the file of records: there is no other to look at.
        """
        written = self.file.with_name(f"{self.converted.task['key']}.yaml")
        mark = Mark(str(self.file), 0, 0, 0, None, 0)
        return Document(
            spec.validate_task(self.converted.task),
            self.converted.task,
            written,
            self.file.parent,
            self.issues,
            node=MappingNode("tag:yaml.org,2002:map", [], mark, mark),
            texts={str(written): task_yaml(self.converted.task)},
        )


def read_task_file(path: Path, *, key: str | None = None, allow_bad_tasks: bool = False) -> TaskFile:
    """The task of a file of records; its key and name are made of the file's name.

    Args:
        path: the file.
        key: key of the task, in place of one made of the file's name.
        allow_bad_tasks: whether invalid records are left out when there are valid ones (`--allow-bad-tasks`).

    Raises:
        SpecError: records are invalid and that was not allowed, there is no valid one, or the file holds something else.
        UsageError: the key is none.
    """
    if (issue := other_content(path)) is not None:
        raise SpecError([issue])
    tasks, errors = validate_file(path)
    invalid = len({error.line for error in errors})
    counted = f"{invalid} of {invalid + len(tasks)} records {'is' if invalid == 1 else 'are'} invalid"
    if errors and not (allow_bad_tasks and tasks):
        hint = "mend them, or run the valid ones with --allow-bad-tasks" if tasks else None
        raise SpecError([*_issues(errors, path), Issue(counted, file=str(path), hint=hint)])
    if not tasks:
        raise SpecError([no_records(path)])
    name = _name(path)
    left_out = f"{counted} and left out" if invalid else ""
    converted = to_aigo(
        tasks,
        key=key or _NO_KEY.sub("-", name).strip("-")[:240] or "jsonl-tasks",
        display_name=name or None,
        description=f"{len(tasks)} tasks of {path.name}" + (f"; {left_out}" if invalid else ""),
    )
    issues = [*_issues(errors, path), Issue(left_out, file=str(path))] if invalid else []
    return TaskFile(path, converted, invalid, tuple(replace(each, severity="warning") for each in issues))


def no_records(path: Path) -> Issue:
    """What is wrong with an empty file."""
    return Issue("the file has no task records, expected at least one", file=str(path))


def _issues(errors: Sequence[RecordError], path: Path) -> list[Issue]:
    issues = [error.to_issue(path) for error in errors[:MOST_ERRORS]]
    if (more := len(errors) - MOST_ERRORS) > 0:
        hint = f"all of them: aigo-bridge validate {path.name}"
        issues.append(Issue(f"and {more:,} more problems", file=str(path), hint=hint))
    return issues


def _name(path: Path) -> str:
    """The file's name without its ending."""
    ending = next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), None)
    return path.stem if ending is None else path.name[: -len(ending)]
