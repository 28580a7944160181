"""Validation of many files and folders at once, without stopping at the first bad one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading.document import Dialect, Document
from aigo_bridge.reading.kinds import MODELS, Kind
from aigo_bridge.reading.reader import UnknownKindError, read_any
from aigo_bridge.roots import root_of_folder


@dataclass(frozen=True)
class FileReport:
    """What validation says about one file, and the files that it refers to."""

    file: Path
    """The file."""
    kind: Kind | None
    """What it is; `None` when it could not be read or told."""
    issues: tuple[Issue, ...]
    """Errors and warnings, in file order."""
    skipped: bool = False
    """Whether it was found in a folder and is no AI GO entity by itself (a part that others refer to, or foreign YAML)."""
    document: Document[Any] | None = field(default=None, repr=False)
    """What was read; `None` when it is not valid."""

    def is_valid(self, *, strict: bool = False) -> bool:
        """Whether nothing is wrong; with `strict`, warnings are errors."""
        return not any(strict or issue.severity == "error" for issue in self.issues)


def validate_paths(
    paths: Iterable[Path],
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Iterator[FileReport]:
    """One report per file, files of a folder in the order of their names.

    Args:
        paths: files of any kind, and folders whose `.yaml` and `.yml` files are all looked at.
        root: folder that includes may not leave; `None`: each file's project, as when it is run.
        dialect: see `Dialect`.
        env: environment variables; `None`: those of the process.
    """
    roots = cache(root_of_folder)  # looked for once per folder, not once per file
    for path in paths:
        if path.is_dir():
            for file in yaml_files(path):
                reach = root if root is not None else roots(file.parent)
                yield _report(file, reach, dialect, env, in_folder=True)
        else:
            yield _report(path, root, dialect, env, in_folder=False)


def yaml_files(folder: Path) -> Iterator[Path]:
    """YAML files of a folder and its subfolders, sorted; hidden folders and links to folders are left out."""
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith((".yaml", ".yml")) and not name.startswith("."):
                yield Path(directory, name)


def _report(
    path: Path, root: Path | None, dialect: Dialect, env: Mapping[str, str] | None, *, in_folder: bool
) -> FileReport:
    try:
        document = read_any(path, root=root, dialect=dialect, env=env)
    except UnknownKindError as error:
        return FileReport(path, None, () if in_folder else error.issues, skipped=in_folder)
    except SpecError as error:
        return FileReport(path, None, error.issues)
    kind = next(kind for kind, model in MODELS.items() if type(document.spec) is model)
    return FileReport(path, kind, document.issues, document=document)
