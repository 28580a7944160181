"""Conversion of task and group files of lm-evaluation-harness: selecting, converting and writing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aigo_bridge.access.private import refusal
from aigo_bridge.codes import Code
from aigo_bridge.engine.formats import Conversion, ConversionOptions
from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.text.plurals import plural
from aigo_formats.conversions import ConvertedTask, all_of, write_conversion
from aigo_formats.definitions import Definition
from aigo_formats.lm_eval.tasks.conversion import convert, name_of
from aigo_formats.lm_eval.tasks.definition import read_definition

MOST_FILES = 5_000
"""Maximum number of files in a folder that are searched for a group's tasks."""
ENDINGS = frozenset({".yaml", ".yml"})


def convert_tasks(path: Path, out: Path, options: ConversionOptions) -> Conversion:
    """Write the tasks of a file, a group or a folder as AI GO tasks. See `TaskConverter`."""
    tasks = converted_tasks(path, root=options.root, key=options.key, allow=options.allow_gaps)
    return write_conversion(tasks, out, "lm-evaluation-harness", force=options.force)


def converted_tasks(
    path: Path, *, root: Path | None = None, key: str | None = None, allow: bool = False
) -> tuple[ConvertedTask, ...]:
    """Return the tasks of a file, a group or a folder as AI GO tasks.

    Args:
        path: a task, a group, or a folder with tasks.
        root: folder that includes must not leave; `None`: the path's own folder.
        key: key of the AI GO task, if there is only one.
        allow: whether to convert tasks that lose parts.

    Raises:
        SpecError: a file cannot be read or is not a harness file.
        UnsupportedPlanError: tasks cannot be converted, or would lose parts. The message lists all
            reasons.
        UsageError: a task is missing, or a key was given for several tasks.
    """
    around = root or (path if path.is_dir() else path.parent)
    definitions = list(_definitions(path, around))
    if not definitions:
        raise UsageError(f"{str(path)!r} contains no lm-evaluation-harness task", code=Code.NOTHING_THERE)
    if key is not None and len(definitions) > 1:
        raise UsageError(f"--key: there are {plural(len(definitions), 'task')}", code=Code.OPTIONS_APART)
    return all_of(convert(definition, key=key, allow=allow) for definition in definitions)


# Selection


def _definitions(path: Path, root: Path) -> Iterator[Definition]:
    if path.is_dir():
        for definition in _all(path, root):
            if isinstance(definition.values.get("task"), str):
                yield definition
        return
    definition = read_definition(path, root)
    if not _is_group(definition):
        yield definition
        return
    definitions = [definition, *_all(path.parent, root)]
    yield from {member.path: member for member in _members(definition, definitions, set())}.values()


def _is_group(definition: Definition) -> bool:
    return isinstance(definition.values.get("task"), list)


def _all(folder: Path, root: Path) -> list[Definition]:
    """Return all definitions in a folder that name a task or a group. Templates for includes do not name
    any.
    """
    files: list[Path] = []
    for file in sorted(folder.rglob("*")):
        if file.suffix in ENDINGS and file.is_file() and refusal(file, root, file.name, own=folder) is None:
            files.append(file)
            if len(files) > MOST_FILES:
                raise UsageError(f"{str(folder)!r} has more than {MOST_FILES:,} files", code=Code.TOO_MUCH)
    definitions, issues = list[Definition](), list[Issue]()
    for file in files:
        try:
            definition = read_definition(file, root)
        except SpecError as error:
            issues += error.issues
            continue
        if "task" in definition.values or "group" in definition.values:
            definitions.append(definition)
    if issues:
        raise SpecError(issues)
    return definitions


def _members(group: Definition, definitions: Sequence[Definition], seen: set[Path]) -> Iterator[Definition]:
    """Yield each task of a group once. Entries are names, tags or other groups."""
    if group.path in seen:
        return
    seen.add(group.path)
    issues: list[Issue] = []
    for number, entry in enumerate(group.values["task"]):
        if not isinstance(entry, str):
            message = "found a task defined inside a group, expected its name"
            hint = "move it to a separate file"
            issues.append(group.issue(("task", number), message, Code.UNTRANSLATED, hint))
            continue
        tasks = [each for each in definitions if not _is_group(each) and name_of(each) == entry]
        tasks = tasks or [each for each in definitions if not _is_group(each) and entry in _tags(each)]
        groups = [each for each in definitions if _is_group(each) and each.values.get("group") == entry]
        if not tasks and not groups:
            message = f"task, tag or group {entry!r} is missing from {str(group.path.parent)!r}"
            issues.append(group.issue(("task", number), message, Code.UNKNOWN_ENTITY))
        yield from tasks
        for inner in groups:
            yield from _members(inner, definitions, seen)
    if issues:
        raise SpecError(issues)


def _tags(definition: Definition) -> list[Any]:
    tags = definition.values.get("tag") or []
    return tags if isinstance(tags, list) else [tags]
