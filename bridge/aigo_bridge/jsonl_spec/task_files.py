"""Files of task records: recognition, shipped files, and conversion to an AI GO task in memory.

`convert` writes this task, and a run of the file executes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import orjson
from yaml import Mark
from yaml.nodes import MappingNode

from aigo_bridge.access.existence import is_file
from aigo_bridge.access.opening import from_here
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.jsonl_spec.conversion import Converted, task_yaml, to_aigo
from aigo_bridge.jsonl_spec.files import load_tasks, numbered_lines, opened, validate_file
from aigo_bridge.jsonl_spec.records import REQUIRED_FIELDS, RecordError, TaskSpec, no_records
from aigo_bridge.reading import Document
from aigo_bridge.reading.locating import shipped_folder
from aigo_bridge.spec import task
from aigo_bridge.text.plurals import plural

ENDINGS = tuple(f".{name}{packed}" for name in ("jsonl", "ndjson") for packed in ("", ".gz"))
"""Extensions of files with JSON lines."""

Content = Literal["records", "rows", "log", "list", "spread"]
"""Content of a file: records, one per line; other objects, one per line; a result log; a JSON list of
objects; one record over several lines.
"""

_MOST_LINES = 200
_MOST_BYTES = 1024 * 1024
_LARGEST_DOCUMENT = 64 * 1024 * 1024
_REQUIRED = frozenset(REQUIRED_FIELDS)
_SHOWN_COLUMNS = 6


def is_record_file(path: Path) -> bool:
    """Return whether a file is read as task records: it has the extension of JSON lines, or contains records.

    If such a file contains other data, `other_content` reports it on reading.
    """
    if path.name.lower().endswith(ENDINGS):
        return True
    try:
        return _begins_like_json(path) and _holds_records(path)
    except SpecError:
        return False


def other_content(path: Path) -> Issue | None:
    """Return the issue of a file that does not contain one record per line; `None` for records and empty
    files.

    Raises:
        SpecError: the file cannot be read.
    """
    match content_of(path):
        case "rows":
            return _rows(path)
        case "log":
            hint = "its task and `aigo-bridge score TASK LOG` score it again"
            return Issue(
                "this is a result log, not a file of task records",
                file=str(path),
                hint=hint,
                code=Code.OTHER_KIND,
            )
        case "list" | "spread" as content:
            one = ".[]" if content == "list" else "."
            shape = "a list of objects" if content == "list" else "an object over several lines"
            target = f"{path.stem}.jsonl" if path.suffix != ".jsonl" else f"{path.stem}-lines.jsonl"
            hint = f"one record is one line of a .jsonl file: jq -c '{one}' {path.name} > {target}"
            return Issue(
                f"found {shape}, expected one task record a line",
                file=str(path),
                hint=hint,
                code=Code.WRONG_RECORD,
            )
    return None


def content_of(path: Path) -> Content | None:
    """Return the kind of a file's content from its first lines; `None` if unknown (empty or damaged).

    Raises:
        SpecError: the file cannot be read.
    """
    document = _document(path)
    if isinstance(document, list) and any(isinstance(item, dict) for item in document):
        return "list"
    guess: Content | None = None
    for value in _first_objects(path):
        if is_like_record(value):
            return "records"
        guess = guess or ("log" if is_like_log(value) or ".tasklog." in path.name else "rows")
    if guess is None and isinstance(document, dict):
        return "spread" if is_like_record(document) else None
    return guess


def is_like_record(value: dict[str, Any]) -> bool:
    """Return whether an object has at least half of the required fields of a record."""
    return 2 * len(_REQUIRED & value.keys()) >= len(_REQUIRED)


def is_like_log(value: dict[str, Any]) -> bool:
    """Return whether an object is a line of a result log: a sample, or the log without its samples."""
    return "format_version" in value or {"sample_id", "trials"} <= value.keys()


def _holds_records(path: Path) -> bool:
    content = content_of(path)
    if content == "list":
        document = _document(path)
        return any(isinstance(item, dict) and is_like_record(item) for item in document)
    return content in ("records", "spread")


def _begins_like_json(path: Path) -> bool:
    with opened(path) as stream:
        return stream.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _document(path: Path) -> Any:
    """Return the JSON document of a file that is a list or one document over several lines; `None` for
    other files.
    """
    with opened(path) as stream:
        head = stream.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
        first_line = head.split(b"\n", 1)[0].strip()
        if not head.startswith(b"[") and first_line != b"{" and not first_line.endswith(b","):
            return None  # The lines are separate documents, so reading the whole file is not needed.
        stream.seek(0)
        text = stream.read(_LARGEST_DOCUMENT)
    try:
        return orjson.loads(text.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None


def _first_objects(path: Path) -> Iterator[dict[str, Any]]:
    read = 0
    with opened(path) as stream:
        for number, line in numbered_lines(stream):
            read += len(line)
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                value = None
            if isinstance(value, dict):
                yield value
            if number >= _MOST_LINES or read >= _MOST_BYTES:
                return


def _rows(path: Path) -> Issue:
    columns = list(next(_first_objects(path)))
    missing = ", ".join(map(repr, (name for name in REQUIRED_FIELDS if name not in columns)))
    shown = ", ".join(repr(name[:40]) for name in columns[:_SHOWN_COLUMNS]) or "no fields"
    more = ", …" if len(columns) > _SHOWN_COLUMNS else ""
    message = f"found rows with {shown}{more}, expected task records: {missing} are missing"
    hint = (
        f"run rows with a task: aigo-bridge run TASK --dataset KEY={from_here(path)}; `aigo-bridge "
        "schema jsonl` describes records"
    )
    return Issue(message, file=str(path), hint=hint, code=Code.WRONG_RECORD)


FOLDER = "jsonl-fixture"
"""Folder with these files in the shipped tasks."""


def fixture_file(name: str = "tasks.jsonl") -> Path:
    """Return the path of a shipped file: the valid records `tasks.jsonl`, the invalid records
    `tasks_bad.jsonl`, or `answers.jsonl` for the valid ones.

    Raises:
        UsageError: the shipped tasks are not installed, or the file does not exist.
    """
    shipped = shipped_folder()
    if shipped is None:
        raise UsageError("the shipped tasks are not installed", code=Code.MISSING_PACKAGE)
    path = shipped / FOLDER / name
    if not is_file(path):
        names = ", ".join(sorted(repr(file.name) for file in path.parent.glob("*.jsonl")))
        raise UsageError(f"unknown shipped file {name!r} (known: {names})", code=Code.UNKNOWN_CHOICE)
    return path


def load_fixtures() -> tuple[TaskSpec, ...]:
    """Return the ten shipped tasks.

    Raises:
        UsageError: the shipped tasks are not installed.
    """
    return load_tasks(fixture_file())


MOST_ERRORS = 50
"""Maximum errors of a file that a run reports; `validate` reports all of them."""

_NO_KEY = re.compile(r"[^a-zA-Z0-9_\-]+")


@dataclass(frozen=True)
class TaskFile:
    """Task from a file of records."""

    file: Path
    converted: Converted
    num_invalid: int
    """Number of invalid records that were left out."""
    issues: tuple[Issue, ...]
    """Issues of invalid records, as warnings."""

    def document(self) -> Document[task.TaskSpec]:
        """Return the task as if it had been read from a YAML file next to the records.

        Its positions refer to the file of records, because the YAML file does not exist.
        """
        written = self.file.with_name(f"{self.converted.task['key']}.yaml")
        mark = Mark(str(self.file), 0, 0, 0, None, 0)
        return Document(
            task.TaskSpec.model_validate(self.converted.task),
            self.converted.task,
            written,
            self.file.parent,
            self.issues,
            node=MappingNode("tag:yaml.org,2002:map", [], mark, mark),
            texts={str(written): task_yaml(self.converted.task)},
        )


def read_task_file(path: Path, *, key: str | None = None, allow_bad_tasks: bool = False) -> TaskFile:
    """Read the task of a file of records; its key and name are derived from the file name.

    Args:
        path: path of the file.
        key: key of the task; by default, it is derived from the file name.
        allow_bad_tasks: whether invalid records are left out if others are valid (`--allow-bad-tasks`).

    Raises:
        SpecError: records are invalid and that is not allowed, none is valid, or the file contains
            other data.
        UsageError: the key is invalid.
    """
    if (issue := other_content(path)) is not None:
        raise SpecError([issue])
    tasks, errors = validate_file(path)
    invalid = len({error.line for error in errors})
    counted = (
        f"{invalid} of {plural(invalid + len(tasks), 'record')} {'is' if invalid == 1 else 'are'} invalid"
    )
    if errors and not (allow_bad_tasks and tasks):
        hint = "correct them, or run only the valid ones with --allow-bad-tasks" if tasks else None
        raise SpecError(
            [*_issues(errors, path), Issue(counted, file=str(path), hint=hint, code=Code.WRONG_RECORD)]
        )
    if not tasks:
        raise SpecError([no_records(path)])
    name = _name(path)
    left_out = f"{counted} and skipped" if invalid else ""
    converted = to_aigo(
        tasks,
        key=key or _NO_KEY.sub("-", name).strip("-")[:240] or "jsonl-tasks",
        display_name=name or None,
        description=f"{plural(len(tasks), 'task')} of {path.name}" + (f"; {left_out}" if invalid else ""),
    )
    issues = (
        [*_issues(errors, path), Issue(left_out, file=str(path), code=Code.WRONG_RECORD)] if invalid else []
    )
    return TaskFile(path, converted, invalid, tuple(replace(each, severity="warning") for each in issues))


def _issues(errors: Sequence[RecordError], path: Path) -> list[Issue]:
    issues = [error.to_issue(path) for error in errors[:MOST_ERRORS]]
    if (more := len(errors) - MOST_ERRORS) > 0:
        hint = f"all of them: aigo-bridge validate {from_here(path)}"
        issues.append(Issue(f"and {more:,} more problems", file=str(path), hint=hint, code=Code.TOO_MUCH))
    return issues


def _name(path: Path) -> str:
    """Return the file name without its extension."""
    ending = next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), None)
    return path.stem if ending is None else path.name[: -len(ending)]
