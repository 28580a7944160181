"""Validate any file that this project knows, its kind recognised by what is in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from aigo_bridge.errors import EvidenceError, Issue, SpecError, UsageError
from aigo_bridge.jsonl_spec import is_like_log, is_record_file, no_records, other_content, validate_file
from aigo_bridge.reading import Dialect, environment
from aigo_bridge.reading.validating import FileReport, validate_paths
from aigo_bridge.results import validate_log
from aigo_bridge.results.log_files import open_for_reading
from aigo_bridge.run_file_checks import planning_issues

YAML_SUFFIXES = (".yaml", ".yml")
JSON_ENDINGS = tuple(name + packed for name in (".json", ".jsonl") for packed in ("", ".gz", ".zst"))
HEAD = 64 * 1024
"""Bytes of a JSON file that are looked at to tell what it is."""


@dataclass(frozen=True)
class Report:
    """What is wrong with one file."""

    file: Path
    kind: str
    """What it is: `task`, `run`, `tasklog`, `jsonl` …; `unknown` when it could not be told."""
    issues: tuple[Issue, ...]

    def is_valid(self, *, strict: bool) -> bool:
        """Whether nothing is wrong; with `strict`, warnings count."""
        return not any(strict or issue.severity == "error" for issue in self.issues)


def validate(
    paths: Iterable[Path], *, root: Path | None = None, dialect: Dialect = "default"
) -> Iterator[Report]:
    """One report per file; folders are gone through for YAML files and result logs (`*.tasklog.json…`).

    Args:
        paths: files and folders.
        root: folder that includes may reach; `None`: each file's project, as when it is run.
        dialect: rules for YAML files.

    Raises:
        UsageError: a path does not exist.
    """
    for path in paths:
        if path.is_dir():
            yield from _folder(path, root, dialect)
        elif path.is_file():
            yield _file(path, root, dialect)
        else:
            raise UsageError(f"there is no file or folder {str(path)!r}")


def _folder(folder: Path, root: Path | None, dialect: Dialect) -> Iterator[Report]:
    for report in validate_paths([folder.absolute()], root=root, dialect=dialect, env=environment()):
        if not report.skipped:
            yield _yaml(report, root, dialect)
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if ".tasklog.json" in name:
                yield _log(Path(directory, name))


def _file(path: Path, root: Path | None, dialect: Dialect) -> Report:
    name = path.name.lower()
    if name.endswith(JSON_ENDINGS) and _is_log(path):
        return _log(path)
    if is_record_file(path):
        return _jsonl_spec(path)
    (report,) = validate_paths([path.absolute()], root=root, dialect=dialect, env=environment())
    return _yaml(report, root, dialect)


def _yaml(report: FileReport, root: Path | None, dialect: Dialect) -> Report:
    """A YAML file's report; of a valid one also whether it can be run.

    In the 3.17 dialect that is a warning: the vendor's loader does not look at data.
    """
    issues = report.issues
    if report.kind is not None and report.document is not None:
        found = planning_issues(report.kind, report.document, root)
        if dialect != "default":
            found = [replace(issue, severity="warning") for issue in found]
        issues = tuple(dict.fromkeys((*issues, *found)))
    return Report(report.file, report.kind or "unknown", issues)


def _is_log(path: Path) -> bool:
    """Whether a JSON or JSONL file is a result log: AI GO entities may be written as JSON, too, and records as JSONL."""
    try:
        with open_for_reading(path) as file:
            head = file.read(HEAD)
    except (OSError, EvidenceError, UsageError):
        return True  # its reader says what is wrong
    if ".tasklog." in path.name:
        return True
    if ".jsonl" in path.name.lower():
        try:
            first = orjson.loads(head.split(b"\n", 1)[0])
        except orjson.JSONDecodeError:
            return False
        return isinstance(first, dict) and is_like_log(first)
    marks = (b'"format_version"', b'"evidence"', b'"specification"', b'"execution"')
    return any(mark in head for mark in marks)


def _log(path: Path) -> Report:
    try:
        issues = validate_log(path)
    except OSError as error:
        issues = [Issue(f"cannot be read: {error.strerror}", file=str(path))]
    return Report(path, "tasklog", tuple(issues))


def _jsonl_spec(path: Path) -> Report:
    try:
        if (issue := other_content(path)) is not None:
            return Report(path, "unknown", (issue,))
        tasks, errors = validate_file(path)
    except SpecError as error:
        return Report(path, "jsonl", error.issues)
    issues = [error.to_issue(path) for error in errors]
    if not tasks and not issues:
        issues = [no_records(path)]
    return Report(path, "jsonl", tuple(issues))
