"""Conversion of an `eval.yaml` with its rows: selecting, converting and finding files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from aigo_bridge.access.opening import read_regular
from aigo_bridge.access.private import refusal
from aigo_bridge.codes import Code
from aigo_bridge.engine.formats import Conversion, ConversionOptions
from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.text.plurals import plural
from aigo_formats.conversions import ConvertedTask, all_of, write_conversion
from aigo_formats.definitions import MOST_BYTES, Definition, Dialect, read_yaml
from aigo_formats.inspect_hub.conversion import RowSource, convert

FILE = "eval.yaml"
MOST_TASKS = 1_000
"""Maximum number of entries in one file."""
ENDINGS = (".jsonl", ".csv", ".parquet", ".json")
"""File extensions of row files."""

_CACHED = re.compile(r"datasets--(?P<organisation>[^/]+?)--(?P<name>[^/]+)/snapshots/(?P<revision>[^/]+)$")
"""Folder in the Hub's cache, whose name contains the repository."""
_REPOSITORY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?\Z", re.ASCII)
_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---", re.DOTALL)


def convert_tasks(path: Path, out: Path, options: ConversionOptions) -> Conversion:
    """Write the tasks of an `eval.yaml` as AI GO tasks. See `TaskConverter`.

    Raises:
        UsageError: as in `converted_tasks`, and for any argument except `repository=ORG/NAME`.
    """
    named = dict(argument.partition("=")[::2] for argument in options.arguments)
    repository = named.pop("repository", None)
    if named:
        raise UsageError(f"-T: found {min(named)!r}, expected repository=ORG/NAME", code=Code.WRONG_OPTION)
    tasks = converted_tasks(path, repository=repository, key=options.key, allow=options.allow_gaps)
    return write_conversion(tasks, out, "Inspect", force=options.force)


def converted_tasks(
    path: Path, *, repository: str | None = None, key: str | None = None, allow: bool = False
) -> tuple[ConvertedTask, ...]:
    """Return the tasks of an `eval.yaml` as AI GO tasks.

    Args:
        path: the file, or a dataset folder that contains it.
        repository: location of the rows on the Hub, `ORG/NAME` or `ORG/NAME@REVISION`; `None`: next to
            the file, or derived from a Hub cache folder.
        key: key of the AI GO task, if there is only one.
        allow: whether to convert tasks that lose parts.

    Raises:
        SpecError: the file cannot be read or does not contain tasks.
        UnsupportedPlanError: tasks cannot be converted, or would lose parts. The message lists all
            reasons.
        UsageError: `repository` is not valid, or a key was given for several tasks.
    """
    if path.is_dir():
        path = path / FILE
    warnings: list[Issue] = []
    values, places = read_yaml(path, str(path), Dialect("Inspect"), warnings)
    definition = Definition(path, values, places, tuple(warnings))
    entries = values.get("tasks")
    if not isinstance(entries, list) or not entries:
        message = f"'tasks': found {entries!r}, expected a list of tasks"
        raise SpecError([definition.issue(("tasks",), message, Code.WRONG_TYPE)])
    if len(entries) > MOST_TASKS:
        message = f"there are more than {MOST_TASKS:,} tasks"
        raise SpecError([definition.issue(("tasks",), message, Code.TOO_MUCH)])
    if issues := list(_wrong_ids(definition, entries)):
        raise SpecError(issues)
    if key is not None and len(entries) > 1:
        raise UsageError(f"--key: there are {plural(len(entries), 'task')}", code=Code.OPTIONS_APART)
    hub = _hub(path, repository)
    return all_of(
        convert(definition, number, _rows(path.parent, entry, hub), key=key, allow=allow)
        for number, entry in enumerate(entries)
    )


def _wrong_ids(definition: Definition, entries: list[Any]) -> Iterator[Issue]:
    if len(entries) == 1:
        return
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        name = entry.get("id") if isinstance(entry, dict) else None
        path = ("tasks", number, "id")
        if name is None:
            yield definition.issue(path, "a file with several tasks needs an 'id' for each", Code.MISSING_KEY)
        elif str(name) in seen:
            yield definition.issue(path, f"the id {name!r} is used twice", Code.REPEATED_KEY)
        seen.add(str(name))


def _hub(path: Path, repository: str | None) -> RowSource:
    if repository is not None:
        match = _REPOSITORY.match(repository)
        if match is None:
            message = f"-T repository: found {repository!r}, expected ORG/NAME or ORG/NAME@REVISION"
            raise UsageError(message, code=Code.WRONG_OPTION)
        return RowSource(repository=match["name"], revision=match["revision"])
    cached = _CACHED.search(path.absolute().parent.as_posix())
    if cached is None:
        return RowSource()
    return RowSource(repository=f"{cached['organisation']}/{cached['name']}", revision=cached["revision"])


def _rows(folder: Path, entry: Any, hub: RowSource) -> RowSource:
    """Return the rows of an entry: on the Hub if known, otherwise in the only matching file."""
    if hub.repository is not None or not isinstance(entry, dict):
        return hub
    config, split = str(entry.get("config", "default")), str(entry.get("split", "test"))
    files = [
        file
        for pattern in _patterns(folder, config, split)
        for file in sorted(folder.glob(pattern))
        if file.suffix in ENDINGS and file.is_file() and refusal(file, folder, file.name) is None
    ]
    return RowSource(file=files[0]) if len(set(files)) == 1 else RowSource()


def _patterns(folder: Path, config: str, split: str) -> list[str]:
    """Return file patterns of a split, from the dataset card or otherwise from the Hub's naming rules."""
    listed = [
        pattern
        for entry in _configs(folder)
        if str(entry.get("config_name", "default")) == config
        for pattern in _data_files(entry.get("data_files"), split)
    ]
    if listed:
        return [pattern for pattern in listed if _is_inside(pattern)]
    name = re.sub(r"[^\w-]", "?", split)
    sub = re.sub(r"[^\w-]", "?", config)
    folders = ("", "data/") if config == "default" else (f"{sub}/",)
    return [f"{place}{name}{rest}" for place in folders for rest in (".*", "-00000-of-00001*.parquet")]


def _is_inside(pattern: str) -> bool:
    return bool(pattern) and not pattern.startswith(("/", "~")) and ".." not in pattern and ":" not in pattern


def _configs(folder: Path) -> list[dict[str, Any]]:
    """Return `configs` of the dataset card; empty if the card is missing or unreadable."""
    try:
        card = _FRONT.match(read_regular(folder / "README.md", MOST_BYTES).decode("utf-8-sig"))
        front = yaml.safe_load(card[1]) if card else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError):
        return []
    configs = front.get("configs") if isinstance(front, dict) else None
    return [entry for entry in configs if isinstance(entry, dict)] if isinstance(configs, list) else []


def _data_files(value: Any, split: str) -> list[str]:
    match value:
        case str():
            return [value] if split == "train" else []
        case list():
            entries = [entry for entry in value if isinstance(entry, dict) and entry.get("split") == split]
            paths = [path for entry in entries for path in _listed(entry.get("path"))]
            return [path for path in paths if isinstance(path, str)]
    return []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
