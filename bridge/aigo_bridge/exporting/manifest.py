"""`export.json`: manifest of an exported task, to rebuild, check and describe it without its source."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any, Literal

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.version import __version__

FILE = "export.json"
FORMAT = 1

Form = Literal["hosted", "native"]


@dataclass(frozen=True)
class PackedDataset:
    """Facts about the exported dataset that its rows do not contain."""

    key: str
    display_name: str
    total: int | None
    """Number of rows in the source before selection; `None` if unknown."""
    keys: tuple[str, ...]
    """Keys by which the task names the dataset; several if the task uses several datasets together."""
    tags: tuple[str, ...] = ()
    """Tags that the dataset file declared."""


@dataclass(frozen=True)
class ExportManifest:
    """Content of an export, its origin, and the commands to run it."""

    module: str
    """Name of the task file (without `.py`) and of its folder."""
    form: Form
    engine: str
    key: str
    """Key of the task."""
    display_name: str
    description: str
    digest: str
    """Digest of the exported plan."""
    task_digest: str
    """SHA-256 checksum of the task as read, before its config is bound."""
    num_samples: int
    """Number of samples in the folder."""
    num_trials: int
    """Number of trials of each sample."""
    calls_model: bool
    """Whether a model is called; `False` for dataset tasks, system tasks and recorded traces."""
    model_keys: tuple[str, ...]
    """Keys of the other models that the task calls."""
    requirements: tuple[str, ...]
    """Required packages, in the form of pip."""
    imports: tuple[str, ...]
    """Additional packages that the author's code imports. Only the author knows the required versions."""
    commands: tuple[str, ...]
    """Commands to run the task in the folder of the task file."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Values of the parameters at the time of the export."""
    arguments: tuple[Mapping[str, str], ...] = ()
    """Parameters as arguments of the task function: `name`, `key`, `annotation`, `default`, `doc`."""
    limit: int | None = None
    """Requested number of samples; `None` for all."""
    subsampling: Literal["head", "random"] = "head"
    trials_asked: int | None = None
    """Requested number of trials; `None` for the number of the task."""
    release: str = __version__
    """Release of aigo-bridge that exported the task."""
    task_file: str | None = None
    """YAML file of the task in its folder; `None` in the native form."""
    dataset: PackedDataset | None = None
    sample_ids: tuple[str | int, ...] | None = None
    """Ids of the samples in order, if they differ from the ids derived from the rows; `None` otherwise."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Path in the folder → SHA-256 checksum of the text with line feeds as line ends."""

    def write(self, folder: Path) -> None:
        """Write the manifest to the folder of the task."""
        content = {"format": FORMAT, **asdict(self)}
        (folder / FILE).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")


def read_manifest(folder: Path) -> ExportManifest:
    """Return the manifest of an exported task.

    Raises:
        UsageError: the manifest is missing, damaged, or from a newer release.
    """
    path = folder / FILE
    try:
        content = orjson.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise UsageError(
                f"{str(path)!r} has format {content['format']!r}, this release reads format {FORMAT}",
                code=Code.OTHER_RELEASE,
            )
        values = {name: content[name] for name in ExportManifest.__dataclass_fields__}
        dataset = values["dataset"] and PackedDataset(
            **{
                **values["dataset"],
                "keys": tuple(values["dataset"]["keys"]),
                "tags": tuple(values["dataset"].get("tags", ())),
            }
        )
        for name in ("model_keys", "requirements", "imports", "commands", "arguments", "sample_ids"):
            values[name] = None if values[name] is None else tuple(values[name])
        return ExportManifest(**{**values, "dataset": dataset})
    except FileNotFoundError as error:
        raise UsageError(
            f"{str(folder)!r} does not contain an exported task: {FILE} is missing", code=Code.OTHER_EXPORT
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"{str(path)!r} is damaged: {error} (remove its folder and export again)", code=Code.OTHER_EXPORT
        ) from error


def checksum(path: Path) -> str:
    """Return the SHA-256 checksum of a text file, independent of its line ends."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for line in file:
            digest.update(line[:-2] + b"\n" if line.endswith(b"\r\n") else line)
    return digest.hexdigest()


def check_files(folder: Path, manifest: ExportManifest) -> None:
    """Check that the exported files are unchanged.

    Raises:
        UsageError: files are missing or changed; lists all of them.
    """
    problems = []
    for name, expected in manifest.files.items():
        path = folder / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif checksum(path) != expected:
            problems.append(f"{name} has changed")
    if problems:
        raise UsageError(
            f"the files of task {manifest.key!r} were changed after the export: "
            f"{', '.join(problems)} (export the task again)",
            code=Code.OTHER_EXPORT,
        )


# Manifest of a plan


def manifest_of(
    plan: TaskPlan,
    module: str,
    form: Form,
    *,
    engine: str,
    requirements: Sequence[str],
    commands: Sequence[str],
) -> ExportManifest:
    """Return the manifest of a plan before its files are written."""
    return ExportManifest(
        module=module,
        form=form,
        engine=engine,
        key=plan.task.key,
        display_name=plan.task.display_name,
        description=plan.task.description,
        digest=plan.digest,
        task_digest="",
        num_samples=len(plan.samples),
        num_trials=plan.num_trials,
        calls_model=plan.calls_model,
        model_keys=plan.model_keys,
        requirements=tuple(requirements),
        imports=snippet_imports(plan) if form == "hosted" else (),
        commands=tuple(commands),
        config=dict(plan.config),
    )


def import_notes(plan: TaskPlan) -> tuple[str, ...]:
    """Return notes about packages that the user must install, because only the author knows the versions."""
    imports = snippet_imports(plan)
    names = ", ".join(imports)
    return (f"the author's code imports {names}, which requirements.txt does not name",) if imports else ()


OWN = frozenset({"aigo_bridge", "latticeflow"})
"""Packages from aigo-bridge that a snippet may import: its types, also under AI GO's name."""


def snippet_imports(plan: TaskPlan) -> tuple[str, ...]:
    """Return the sorted top-level packages that snippets import, except those of Python and aigo-bridge."""
    definition = plan.definition.model_dump(mode="json")
    packages = {name for source in _snippets(definition) for name in _imported(source)}
    return tuple(sorted(packages - OWN - _dependencies() - sys.stdlib_module_names))


def _dependencies() -> set[str]:
    """Return the import names of aigo-bridge's dependencies, usually the names of their distributions."""
    try:
        lines = requires("aigo-bridge") or []
    except PackageNotFoundError:
        return set()
    names = [re.split(r"[^\w.-]", line)[0] for line in lines if "extra ==" not in line]
    return {name.lower().replace("-", "_") for name in names}


def _snippets(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.endswith("_snippet") and isinstance(inner, str):
                yield inner
            else:
                yield from _snippets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _snippets(inner)


def _imported(source: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # The error is reported when the snippet runs.
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
