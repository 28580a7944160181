"""`export.json`: what an exported task is, so that it can be made again, checked and described without its
source.
"""

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
    """The dataset whose rows are in the folder; what the rows alone do not say."""

    key: str
    display_name: str
    total: int | None
    """Rows in the source, of which some were selected; `None` when not known."""
    keys: tuple[str, ...]
    """Keys by which the task names it; several, where it runs on several datasets together."""
    tags: tuple[str, ...] = ()
    """As its file declared them."""


@dataclass(frozen=True)
class Manifest:
    """What was exported, by whom, and how it is run."""

    module: str
    """Name of the task's file (without `.py`) and of its folder."""
    form: Form
    engine: str
    key: str
    """Key of the task."""
    display_name: str
    description: str
    digest: str
    """Digest of the plan that was exported."""
    task_digest: str
    """SHA-256 of the task as read, config not bound."""
    num_samples: int
    """Samples in the folder."""
    num_trials: int
    """How often each is run."""
    calls_model: bool
    """Whether a model is asked; `False` for data-set and system tasks and recorded traces."""
    model_keys: tuple[str, ...]
    """Keys of the other models that the task asks."""
    requirements: tuple[str, ...]
    """What has to be installed, in pip's form."""
    imports: tuple[str, ...]
    """Packages that the author's code imports besides; only the author knows which release it needs."""
    commands: tuple[str, ...]
    """How the task is run, from inside the folder that holds the task's file."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Values of the parameters at the time of the export."""
    arguments: tuple[Mapping[str, str], ...] = ()
    """The parameters as arguments of the task function: `name`, `key`, `annotation`, `default`, `doc`."""
    limit: int | None = None
    """Number of samples that was asked for; `None`: all."""
    subsampling: Literal["head", "random"] = "head"
    trials_asked: int | None = None
    """Number of trials that was asked for; `None`: as the task says."""
    release: str = __version__
    """The aigo-bridge that exported it."""
    task_file: str | None = None
    """The task's YAML, in its folder; `None` in the native form."""
    dataset: PackedDataset | None = None
    sample_ids: tuple[str | int, ...] | None = None
    """Ids of the samples in order, where the rows alone would give others; `None`: as the rows say."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Path in the folder → SHA-256 of the text, its line ends as line feeds."""

    def write(self, folder: Path) -> None:
        """Write it into the task's folder."""
        content = {"format": FORMAT, **asdict(self)}
        (folder / FILE).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an exported task.

    Raises:
        UsageError: there is none, or it is damaged or of a newer release.
    """
    path = folder / FILE
    try:
        content = orjson.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise UsageError(
                f"{str(path)!r} has format {content['format']!r}, this release reads format {FORMAT}",
                code=Code.OTHER_RELEASE,
            )
        values = {name: content[name] for name in Manifest.__dataclass_fields__}
        dataset = values["dataset"] and PackedDataset(
            **{
                **values["dataset"],
                "keys": tuple(values["dataset"]["keys"]),
                "tags": tuple(values["dataset"].get("tags", ())),
            }
        )
        for name in ("model_keys", "requirements", "imports", "commands", "arguments", "sample_ids"):
            values[name] = None if values[name] is None else tuple(values[name])
        return Manifest(**{**values, "dataset": dataset})
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
    """SHA-256 of a text file; a checkout that changed the line ends does not matter."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for line in file:
            digest.update(line[:-2] + b"\n" if line.endswith(b"\r\n") else line)
    return digest.hexdigest()


def check_files(folder: Path, manifest: Manifest) -> None:
    """Refuse files that are not those that were exported.

    Raises:
        UsageError: some are missing or changed; all are named.
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


# A plan's manifest


def manifest_of(
    plan: TaskPlan,
    module: str,
    form: Form,
    *,
    engine: str,
    requirements: Sequence[str],
    commands: Sequence[str],
) -> Manifest:
    """The manifest of a plan before its files are written."""
    return Manifest(
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
    """What the user has to install besides, which nobody but the author knows."""
    imports = snippet_imports(plan)
    names = ", ".join(imports)
    return (f"the author's code imports {names}, which requirements.txt does not name",) if imports else ()


OWN = frozenset({"aigo_bridge", "latticeflow"})
"""What a snippet may import that comes with aigo-bridge: its types, also under the platform's name."""


def snippet_imports(plan: TaskPlan) -> tuple[str, ...]:
    """Top-level packages that the snippets of a task import and that come neither with Python nor with
    aigo-bridge, sorted.
    """
    definition = plan.definition.model_dump(mode="json")
    packages = {name for source in _snippets(definition) for name in _imported(source)}
    return tuple(sorted(packages - OWN - _dependencies() - sys.stdlib_module_names))


def _dependencies() -> set[str]:
    """Packages installed with aigo-bridge, by their names in Python (mostly those of the distributions)."""
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
        return  # it will fail in every run, and say so there
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
