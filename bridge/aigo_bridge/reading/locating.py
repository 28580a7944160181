"""Find what a user names: shipped tasks, task files, data sets beside a task."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import yaml

from aigo_bridge.access.grants import record_file
from aigo_bridge.access.opening import is_below, project_of, read_regular
from aigo_bridge.access.presence import is_file, is_folder
from aigo_bridge.access.private import refusal
from aigo_bridge.access.unsaved import unsaved
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError, UsageError

SHIPPED = "aigo_tasks"
"""Import package that holds the shipped tasks as data, one folder each."""

TASK_FILES = ("task.yaml", "tasks.jsonl")
"""How the task of a folder is called."""

DATA_SUFFIXES = (".jsonl", ".csv", ".json", ".parquet")
ENTITY_SUFFIXES = (".yaml", ".yml")
DATASET_KEYS = {"source", "generator_specification", "file_path"}
"""Top-level keys that only data set files have."""

TASK_KEYS = {"definition"}
"""Top-level keys that task files have (and generators, whose keys are others)."""

HUB = "huggingface"
"""Type of a source on the Hugging Face hub."""

GENERATOR_KEYS = {"definition"}
"""Top-level keys of generators (and tasks, whose keys are others)."""

LONGEST_ENTITY = 1_000_000
"""Bytes of a YAML file that is looked into for a data set."""


def shipped_folder() -> Path | None:
    """Folder of the shipped tasks; `None` when the package is not installed."""
    spec = find_spec(SHIPPED)
    locations = list(spec.submodule_search_locations or []) if spec is not None else []
    return Path(locations[0]) if locations else None


def shipped_tasks() -> dict[str, Path]:
    """Name (`aigo_tasks/<folder>`) → task file, sorted by name."""
    folder = shipped_folder()
    if folder is None:
        return {}
    return {f"{SHIPPED}/{path.parent.name}": path for path in sorted(folder.glob("*/task.yaml"))}


def find_task(name: str) -> Path:
    """The task file that a user means: a path, a folder with a `task.yaml` or `tasks.jsonl`, or the name of a
    shipped task.

    Raises:
        UsageError: there is no such file or task.
    """
    path = Path(name)
    if (file := _task_in(path)) is not None:
        return file
    if is_file(path):
        return path
    shipped = shipped_tasks()
    if name in shipped:
        return shipped[name]
    if name.startswith(f"{SHIPPED}/"):
        package = shipped_folder()
        if package is not None and (file := _task_in(package.parent / name)) is not None:
            return file
        # Without the folder that all of them share: it would make any short name a near one.
        names = [shipped_name.removeprefix(f"{SHIPPED}/") for shipped_name in shipped]
        near = difflib.get_close_matches(name.removeprefix(f"{SHIPPED}/"), names, n=1)
        hint = f"did you mean '{SHIPPED}/{near[0]}'?" if near else "`aigo-bridge list` shows them"
        raise UsageError(f"there is no shipped task {name!r} ({hint})", code=Code.UNKNOWN_CHOICE)
    if is_folder(path):
        raise UsageError(
            f"folder {name!r} holds no {' and no '.join(TASK_FILES)}; name the task file",
            code=Code.NOTHING_THERE,
        )
    raise UsageError(
        f"there is no file {name!r}; `aigo-bridge list` shows the shipped tasks", code=Code.NOTHING_THERE
    )


def _task_in(folder: Path) -> Path | None:
    return next((folder / name for name in TASK_FILES if is_file(folder / name)), None)


def find_task_with_key(key: str, run_file: Path, *, root: Path | None = None) -> Path | None:
    """The file of a task by its key: one that lies beside the run file (see `find_dataset`), else a shipped
    one; `None`: there is none.

    Raises:
        SpecError: several files declare the key.
    """
    file = _declaring(
        key, _beside(run_file, "tasks", root), TASK_KEYS, f"task {key!r}", "list the right one under 'tasks'"
    )
    return file if file is not None else shipped_tasks().get(f"{SHIPPED}/{key}")


def find_dataset(key: str, given: Mapping[str, str], task: Path, *, root: Path | None = None) -> Path:
    """The file of a data set: the one given for its key, else the one that lies beside the task.

    Beside the task means: in its folder, or in `datasets/` there or in a folder above, up to the project's
    (without a project: `datasets/` next to the task's folder). A data set file (YAML with this `key`) comes
    before a data file that is named after the key. What lies beside the task is taken when it lies in the
    project, links followed, or in `root`.

    Raises:
        UsageError: the given file does not exist.
        SpecError: nothing was found; the message says where it was looked for and how to give it.
    """
    if key in given:
        path = Path(given[key])
        if not is_file(path):
            raise UsageError(f"data set {key!r}: there is no file {given[key]!r}", code=Code.NOTHING_THERE)
        return path
    beside = _beside(task, "datasets", root)
    hint = f"--dataset {key}=FILE"
    if (
        entity := _declaring(key, beside, DATASET_KEYS, f"data set {key!r}", f"say which: {hint}")
    ) is not None:
        return entity
    for folder in beside.folders:
        for suffix in DATA_SUFFIXES:
            if is_file(path := folder / f"{key}{suffix}"):
                return beside.require(path)
    message = (
        f"data set {key!r} was not found; looked for a data set file with that key, or"
        f" {key}.jsonl/.csv/.json/.parquet, in {beside.looked}"
    )
    raise SpecError(
        [
            Issue(
                message,
                path=("definition", "dataset", "key"),
                hint=f"give it: {hint}",
                option="--dataset",
                code=Code.DATASET_NOT_GIVEN,
            )
        ]
    )


def find_generator(key: str, dataset: Path, *, root: Path | None = None) -> Path:
    """The file of a data set generator that lies beside the data set's file: in its folder, or in
    `dataset_generators/`, see `find_dataset`.

    Raises:
        SpecError: nothing was found, or several files declare the key.
    """
    beside = _beside(dataset, "dataset_generators", root)
    file = _declaring(key, beside, GENERATOR_KEYS, f"generator {key!r}", "give one of them another key")
    if file is not None:
        return file
    path = ("generator_specification", "dataset_generator_key")
    raise SpecError(
        [
            Issue(
                f"generator {key!r} was not found; looked for a file with that key in {beside.looked}",
                path=path,
                code=Code.UNKNOWN_ENTITY,
            )
        ]
    )


def find_hub_datasets(task: Path) -> dict[str, Path]:
    """Key → file of the data sets beside a task whose rows are on the Hugging Face hub.

    Of the folders that `find_dataset` goes through, the first that has any.
    """
    beside = _beside(task, "datasets", None)
    for folder in beside.folders:
        datasets: dict[str, Path] = {}
        for entity in beside.entities(folder):
            outline = _outline_of(entity)
            if outline is not None and outline.key is not None and outline.source == HUB:
                datasets[outline.key] = entity
        if datasets:
            return datasets
    return {}


@dataclass(frozen=True)
class _Beside:
    """Where something is looked for that a file names by its key."""

    folders: tuple[Path, ...]
    """Nearest first."""
    reach: tuple[Path, ...]
    """Folders of which what is found must lie in one, links followed."""
    own: Path
    """Folder of the file that names it."""

    @property
    def looked(self) -> str:
        """The folders, and what in them was left out, for a message."""
        existing = [folder for folder in self.folders if is_folder(folder)]
        files = [path for folder in existing for path in _yaml_files(folder)]
        refused = {path: issue.code for path in files if (issue := self.refusal(path)) is not None}
        reasons = {
            "they lead out of the root folder": [p for p in refused if refused[p] == Code.OUTSIDE_ROOT],
            "they are private, which --allow-file changes": [
                path for path in refused if refused[path] != Code.OUTSIDE_ROOT
            ],
            "they cannot be read as YAML": [
                path for path in files if path not in refused and _outline_of(path) is None
            ],
        }
        notes = [
            f" (left out, since {reason}: {', '.join(map(str, paths))})"
            for reason, paths in reasons.items()
            if paths
        ]
        return ", ".join(map(str, existing)) + "".join(notes)

    def refusal(self, path: Path) -> Issue | None:
        """Return why a file may not be read; `None`: it may."""
        found = [refusal(path, root, repr(path.name), own=self.own, file=str(path)) for root in self.reach]
        return None if None in found else found[-1]

    def entities(self, folder: Path) -> Iterator[Path]:
        """YAML files of one folder that may be read."""
        return (path for path in _yaml_files(folder) if self.refusal(path) is None)

    def require(self, path: Path) -> Path:
        """A file that was found.

        Raises:
            SpecError: it may not be read.
        """
        if (issue := self.refusal(path)) is not None:
            raise SpecError([issue])
        record_file(path)
        return path


def _beside(file: Path, name: str, root: Path | None) -> _Beside:
    """Folders in which something is looked for that a file names by its key, never outside of its project."""
    folder = file.absolute().parent
    project = project_of(folder)
    wider = () if root is None else (root,)
    if project is None:
        # The folder next to the task's own, and not what a link in its place may lead to.
        real = Path(os.path.realpath(folder))
        near = Path(os.path.realpath(folder.parent)) / name
        return _Beside((folder, folder / name, folder.parent / name), (*wider, near, real), folder)
    above = [place / name for place in (folder, *folder.parents) if is_below(place, project)]
    return _Beside((folder, *above), (*wider, project), folder)


def _declaring(key: str, beside: _Beside, marks: set[str], what: str, hint: str) -> Path | None:
    """The one YAML file of the first folder that declares a key; `None` when no folder has one."""
    for folder in beside.folders:
        declaring = [entity for entity in beside.entities(folder) if _declared_key(entity, marks) == key]
        if len(declaring) > 1:
            names = ", ".join(entity.name for entity in declaring)
            raise SpecError(
                [
                    Issue(
                        f"{what} is declared by several files in {folder}: {names}",
                        hint=hint,
                        code=Code.SEVERAL_DECLARATIONS,
                    )
                ]
            )
        if declaring:
            record_file(declaring[0])
            return declaring[0]
    return None


def _yaml_files(folder: Path) -> Iterator[Path]:
    for suffix in ENTITY_SUFFIXES:
        yield from sorted(folder.glob(f"*{suffix}"))


@dataclass(frozen=True)
class _Outline:
    """What a YAML file says of itself at its top level."""

    names: frozenset[str] = frozenset()
    """Its fields; none where it is no mapping."""
    key: str | None = None
    source: str | None = None
    """Type of its source."""


def _declared_key(path: Path, marks: set[str]) -> str | None:
    """The top-level `key` of a YAML file that has one of the marks; `None` for every other file."""
    outline = _outline_of(path)
    return None if outline is None or not marks & outline.names else outline.key


def _outline_of(path: Path) -> _Outline | None:
    """What is at the top of a YAML file; `None` where it cannot be read: it is somebody else's, and no matter
    of a task that does not name it.
    """
    if (edited := unsaved(path)) is not None:
        return _outline(edited)
    try:
        return _outline(read_regular(path, LONGEST_ENTITY).decode("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


@lru_cache(maxsize=32)
def _outline(text: str) -> _Outline | None:
    """By content, which is read each time: each of many specifications looks through the same files, the run
    file first.
    """
    # Late: reading looks for shipped tasks itself.
    from aigo_bridge.reading.nodes import TooLarge, compose

    try:
        top = _fields(compose(text, ""))
    except (yaml.YAMLError, TooLarge):
        return None
    return _Outline(frozenset(top), _scalar(top.get("key")), _scalar(_fields(top.get("source")).get("type")))


def _fields(node: object) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _scalar(node: yaml.Node | None) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None
