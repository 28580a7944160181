"""Lookup of shipped tasks, task files, and datasets in the project of a task."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from aigo_bridge.access.existence import is_file, is_folder
from aigo_bridge.access.grants import record_file
from aigo_bridge.codes import Code
from aigo_bridge.errors import SpecError, UsageError
from aigo_bridge.reading.neighbours import Neighbours, neighbours_of

SHIPPED = "aigo_tasks"
"""Import package that contains the shipped tasks as data, one folder each."""

TASK_FILES = ("task.yaml", "tasks.jsonl")
"""File names of the task in a folder."""

DATA_SUFFIXES = (".jsonl", ".csv", ".json", ".parquet")
_DATASET_KEY = ("definition", "dataset", "key")
"""Path of the dataset key in a task."""

DATASET_KEYS = {"source", "generator_specification", "file_path"}
"""Top-level keys that only dataset files have."""

TASK_KEYS = {"definition"}
"""Top-level keys of task files (and of generators, which have other entity keys)."""

HUB = "huggingface"
"""Type of a source on the Hugging Face hub."""

GENERATOR_KEYS = {"definition"}
"""Top-level keys of generators (and of tasks, which have other entity keys)."""


def shipped_folder() -> Path | None:
    """Return the folder of the shipped tasks; `None` if the package is not installed."""
    spec = find_spec(SHIPPED)
    locations = list(spec.submodule_search_locations or []) if spec is not None else []
    return Path(locations[0]) if locations else None


def shipped_tasks() -> dict[str, Path]:
    """Return name (`aigo_tasks/<folder>`) → task file, sorted by name."""
    folder = shipped_folder()
    if folder is None:
        return {}
    return {f"{SHIPPED}/{path.parent.name}": path for path in sorted(folder.glob("*/task.yaml"))}


def find_task(name: str) -> Path:
    """Return the task file for a path, a folder with a `task.yaml` or `tasks.jsonl`, or the name of a shipped
    task.

    Raises:
        UsageError: the file or task does not exist.
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
        # Compare without the common folder, which would make any short name similar.
        names = [shipped_name.removeprefix(f"{SHIPPED}/") for shipped_name in shipped]
        near = difflib.get_close_matches(name.removeprefix(f"{SHIPPED}/"), names, n=1)
        hint = f"did you mean '{SHIPPED}/{near[0]}'?" if near else "`aigo-bridge list` shows them"
        raise UsageError(f"no shipped task {name!r} ({hint})", code=Code.UNKNOWN_CHOICE)
    if is_folder(path):
        raise UsageError(
            f"folder {name!r} contains neither {' nor '.join(TASK_FILES)}; name the task file",
            code=Code.NOTHING_THERE,
        )
    raise UsageError(
        f"file {name!r} does not exist; `aigo-bridge list` shows the shipped tasks", code=Code.NOTHING_THERE
    )


def _task_in(folder: Path) -> Path | None:
    return next((folder / name for name in TASK_FILES if is_file(folder / name)), None)


def find_task_with_key(key: str, run_file: Path, *, root: Path | None = None) -> Path | None:
    """Return the file of a task by its key: in the project of the run file (see `find_dataset`), otherwise a
    shipped task. Return `None` if it is not found.

    Raises:
        SpecError: several files declare the key.
    """
    file = _declaring(
        key,
        neighbours_of(run_file, "tasks", root),
        TASK_KEYS,
        f"task {key!r}",
        "list the right one under 'tasks'",
    )
    return file if file is not None else shipped_tasks().get(f"{SHIPPED}/{key}")


def find_dataset(key: str, given: Mapping[str, str], task: Path, *, root: Path | None = None) -> Path:
    """Return the file of a dataset: the file given for its key, otherwise a file in the task's project.

    These folders are searched: the folder of the task, and `datasets/` in it and in its parent folders, up
    to the project folder (without a project: `datasets/` next to the task's folder). A dataset file (YAML
    with this `key`) takes precedence over a data file named after the key. The file must be in the
    project, after following links, or in `root`.

    Raises:
        UsageError: the given file does not exist.
        SpecError: no file or several files were found; the message names the folders and the option to
            pass one.
    """
    if key in given:
        path = Path(given[key])
        if not is_file(path):
            raise UsageError(f"dataset {key!r}: file {given[key]!r} does not exist", code=Code.NOTHING_THERE)
        return path
    beside = neighbours_of(task, "datasets", root)
    hint = f"--dataset {key}=FILE"
    if (
        entity := _declaring(key, beside, DATASET_KEYS, f"dataset {key!r}", f"say which: {hint}")
    ) is not None:
        return entity
    for folder in beside.folders:
        paths = [folder / f"{key}{suffix}" for suffix in DATA_SUFFIXES]
        files = [file for file in paths if is_file(file)]
        if files:
            return beside.require(
                _single(
                    files,
                    folder,
                    f"contain the rows of dataset {key!r}",
                    f"choose one with {hint}",
                    _DATASET_KEY,
                )
            )
    message = (
        f"dataset {key!r} was not found; looked for a dataset file with that key, or"
        f" {key}.jsonl/.csv/.json/.parquet, in {beside.looked}"
    )
    raise SpecError(
        message,
        path=_DATASET_KEY,
        hint=f"pass it with {hint}",
        option="--dataset",
        code=Code.DATASET_NOT_GIVEN,
    )


def find_generator(key: str, dataset: Path, *, root: Path | None = None) -> Path:
    """Return the file of a dataset generator: in the folder of the dataset's file, or in
    `dataset_generators/` (see `find_dataset`).

    Raises:
        SpecError: no file was found, or several files declare the key.
    """
    beside = neighbours_of(dataset, "dataset_generators", root)
    file = _declaring(key, beside, GENERATOR_KEYS, f"generator {key!r}", "give one of them another key")
    if file is not None:
        return file
    path = ("generator_specification", "dataset_generator_key")
    raise SpecError(
        f"generator {key!r} was not found; looked for a file with that key in {beside.looked}",
        path=path,
        code=Code.UNKNOWN_ENTITY,
    )


def find_hub_datasets(task: Path) -> dict[str, Path]:
    """Return key → file of the datasets in a task's project whose rows are on the Hugging Face hub.

    Only the first folder of the `find_dataset` search with such a dataset is used.
    """
    beside = neighbours_of(task, "datasets", None)
    for folder in beside.folders:
        entities = beside.entities(folder)
        on_hub = {entity.key: entity.path for entity in entities if entity.source == HUB and entity.key}
        if on_hub:
            return on_hub
    return {}


def _declaring(key: str, beside: Neighbours, marks: set[str], what: str, hint: str) -> Path | None:
    """Return the YAML file in the first folder that declares a key; `None` if it is not found."""
    for folder in beside.folders:
        declaring = [entity.path for entity in beside.declaring(folder, key) if entity.marks & marks]
        if declaring:
            file = _single(declaring, folder, f"declare {what}", hint)
            record_file(file)
            return file
    return None


def _single(files: list[Path], folder: Path, what: str, hint: str, at: tuple[str, ...] = ()) -> Path:
    if len(files) == 1:
        return files[0]
    names = ", ".join(file.name for file in files)
    message = f"several files in {folder} {what}: {names}"
    raise SpecError(message, path=at, hint=hint, code=Code.SEVERAL_DECLARATIONS)
