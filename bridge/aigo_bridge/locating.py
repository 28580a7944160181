"""Find what a user names: shipped tasks, task files, data sets beside a task."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import yaml

from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.roots import is_below, project_of

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

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # without libyaml there is only the slow one

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
    """The task file that a user means: a path, a folder with a `task.yaml` or `tasks.jsonl`, or the name of a shipped task.

    Raises:
        UsageError: there is no such file or task.
    """
    path = Path(name)
    if (file := _task_in(path)) is not None:
        return file
    if path.is_file():
        return path
    shipped = shipped_tasks()
    if name in shipped:
        return shipped[name]
    if name.startswith(f"{SHIPPED}/"):
        package = shipped_folder()
        if package is not None and (file := _task_in(package.parent / name)) is not None:
            return file
        # Without the folder that all of them share: it would make any short name a near one.
        names = [each.removeprefix(f"{SHIPPED}/") for each in shipped]
        near = difflib.get_close_matches(name.removeprefix(f"{SHIPPED}/"), names, n=1)
        hint = f"did you mean '{SHIPPED}/{near[0]}'?" if near else "`aigo-bridge list` shows them"
        raise UsageError(f"there is no shipped task {name!r} ({hint})")
    if path.is_dir():
        raise UsageError(f"folder {name!r} holds no {' and no '.join(TASK_FILES)}; name the task file")
    raise UsageError(f"there is no file {name!r}; `aigo-bridge list` shows the shipped tasks")


def _task_in(folder: Path) -> Path | None:
    return next((folder / name for name in TASK_FILES if (folder / name).is_file()), None)


def find_task_with_key(key: str, run_file: Path) -> Path | None:
    """The file of a task by its key: one that lies beside the run file (see `find_dataset`), else a shipped one; `None`: there is none.

    Raises:
        SpecError: several files declare the key.
    """
    found = _declaring(
        key, _beside(run_file, "tasks"), TASK_KEYS, f"task {key!r}", "list the right one under 'tasks'"
    )
    return found if found is not None else shipped_tasks().get(f"{SHIPPED}/{key}")


def find_dataset(key: str, given: Mapping[str, str], task: Path) -> Path:
    """The file of a data set: the one given for its key, else the one that lies beside the task.

    Beside the task means: in its folder, or in `datasets/` there or in a folder above, up to the project's (without a
    project: `datasets/` next to the task's folder). A data set file (YAML with this `key`) comes before a data file that
    is named after the key.

    Raises:
        UsageError: the given file does not exist.
        SpecError: nothing was found; the message says where it was looked for and how to give it.
    """
    if key in given:
        path = Path(given[key])
        if not path.is_file():
            raise UsageError(f"data set {key!r}: there is no file {given[key]!r}")
        return path
    folders = _beside(task, "datasets")
    hint = f"--dataset {key}=FILE"
    if (
        entity := _declaring(key, folders, DATASET_KEYS, f"data set {key!r}", f"say which: {hint}")
    ) is not None:
        return entity
    for folder in folders:
        for suffix in DATA_SUFFIXES:
            if (path := folder / f"{key}{suffix}").is_file():
                return path
    looked = ", ".join(str(folder) for folder in folders if folder.is_dir())
    message = (
        f"data set {key!r} was not found; looked for a data set file with that key, or"
        f" {key}.jsonl/.csv/.json/.parquet, in {looked}"
    )
    raise SpecError(
        [Issue(message, path=("definition", "dataset", "key"), hint=f"give it: {hint}", option="--dataset")]
    )


def find_generator(key: str, dataset: Path) -> Path:
    """The file of a data set generator that lies beside the data set's file: in its folder, or in `dataset_generators/`, see `find_dataset`.

    Raises:
        SpecError: nothing was found, or several files declare the key.
    """
    folders = _beside(dataset, "dataset_generators")
    found = _declaring(key, folders, GENERATOR_KEYS, f"generator {key!r}", "give one of them another key")
    if found is not None:
        return found
    looked = ", ".join(str(folder) for folder in folders if folder.is_dir())
    path = ("generator_specification", "dataset_generator_key")
    raise SpecError(
        [Issue(f"generator {key!r} was not found; looked for a file with that key in {looked}", path=path)]
    )


def find_hub_datasets(task: Path) -> dict[str, Path]:
    """Key → file of the data sets beside a task whose rows are on the Hugging Face hub.

    Of the folders that `find_dataset` goes through, the first that has any.
    """
    for folder in _beside(task, "datasets"):
        found: dict[str, Path] = {}
        for entity in _entities(folder):
            top = _top_level(entity)
            key, kind = top.get("key"), _fields(top.get("source")).get("type")
            if isinstance(key, yaml.ScalarNode) and isinstance(kind, yaml.ScalarNode) and kind.value == HUB:
                found[str(key.value)] = entity
        if found:
            return found
    return {}


def _beside(file: Path, name: str) -> list[Path]:
    """Folders in which something is looked for that a file names by its key: nearest first, never outside of its project."""
    folder = file.absolute().parent
    project = project_of(folder)
    if project is None:
        return [folder, folder / name, folder.parent / name]
    above = [place / name for place in (folder, *folder.parents) if is_below(place, project)]
    return [folder, *above]


def _declaring(key: str, folders: list[Path], marks: set[str], what: str, hint: str) -> Path | None:
    """The one YAML file of the first folder that declares a key; `None` when no folder has one."""
    for folder in folders:
        declaring = [entity for entity in _entities(folder) if _declared_key(entity, marks) == key]
        if len(declaring) > 1:
            names = ", ".join(entity.name for entity in declaring)
            raise SpecError([Issue(f"{what} is declared by several files in {folder}: {names}", hint=hint)])
        if declaring:
            return declaring[0]
    return None


def _entities(folder: Path) -> Iterator[Path]:
    for suffix in ENTITY_SUFFIXES:
        yield from sorted(folder.glob(f"*{suffix}"))


def _declared_key(path: Path, marks: set[str]) -> str | None:
    """The top-level `key` of a YAML file that has one of the marks; `None` for every other file."""
    top = _top_level(path)
    key = top.get("key")
    if not isinstance(key, yaml.ScalarNode) or not marks & set(top):
        return None
    return str(key.value)


def _top_level(path: Path) -> dict[str, yaml.Node]:
    """The top-level fields of a YAML file; none of a file that is not a mapping, or cannot be read."""
    try:
        if path.stat().st_size > LONGEST_ENTITY:
            return {}
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError):
        return {}  # somebody else's file; if it is meant, the user will name it and be told what is wrong
    return _fields(node)


def _fields(node: object) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
