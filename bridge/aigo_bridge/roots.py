"""Which folder the files that a task (data set, run file …) refers to may not leave.

By default it is the project: the nearest folder, from the file's own upwards, that has `.git`, `pyproject.toml` or a
run file. A run file is known by its content: YAML with `evaluation`, `evaluations`, `evaluation_specifications` or
`task_specifications` at its top level. Those in a folder `evaluations` (or `evaluation`) mark the folder around it;
those further down in there mark their own, unless the one around `evaluations` is marked, too. Where there is no
project, the file's own folder is the root.

Nobody's project are: the root of the file system, the home folder and what lies above it, and folders in which
everybody may write (`/tmp`). No project is looked for above a mount point, a hidden folder or installed packages.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from aigo_bridge.errors import Issue

PROJECT_FILES = (".git", "pyproject.toml")
EVALUATION_FOLDERS = ("evaluations", "evaluation")
YAML_SUFFIXES = (".yaml", ".yml")

LONGEST_RUN_FILE = 1_000_000
"""Bytes of a YAML file that is looked into."""

_RUN_FILE = re.compile(
    rb"^(?:evaluations?|evaluation_specifications|task_specifications)[ \t]*:(?:[ \t\r\n]|$)", re.MULTILINE
)


def root_of(file: Path) -> Path:
    """The project of a file, else the folder that it lies in; absolute, links resolved."""
    return root_of_folder(file.parent)


def root_of_folder(folder: Path) -> Path:
    """The root of all files in a folder."""
    project = project_of(folder)
    return _real(folder) if project is None else project


def project_of(folder: Path) -> Path | None:
    """The project that a folder belongs to, links resolved; `None` when there is none."""
    for place in _upwards(_real(folder)):
        if _is_marked(place):
            return place if _has_project_file(place) else _around_evaluations(place) or place
        if any(_holds_run_file(place / name) for name in EVALUATION_FOLDERS):
            return place
    return None


def _upwards(folder: Path) -> Iterator[Path]:
    """A folder and those above it, as far as they can be projects."""
    for place in (folder, *folder.parents):
        if _is_shared(place):
            return
        yield place
        if place.name.startswith(".") or place.name == "site-packages" or os.path.ismount(place):
            return


def _around_evaluations(folder: Path) -> Path | None:
    """The folder around `evaluations` that run files in (or below) that belong to."""
    places = list(_upwards(folder))
    for place, above in itertools.pairwise(places):
        if place.name in EVALUATION_FOLDERS:
            return above if place == folder or _is_marked(above) or _holds_run_file(place) else None
    return None


def is_below(path: Path, root: Path) -> bool:
    """Whether a path lies in a root folder, after all links."""
    return _real(path).is_relative_to(_real(root))


def outside(shown: str, path: Path, root: Path, file: str | None = None) -> Issue:
    """What is said of a path that leaves the root folder.

    Args:
        shown: the path as a message shows it.
        path: the path.
        root: the folder that it leaves.
        file: the file that the issue is about.
    """
    base = _real(root)
    around = Path(os.path.commonpath([_real(path).parent, base]))
    wider = "DIR" if _is_shared(around) else str(around)
    hint = f"if that is meant, name a wider root: --root {wider}"
    if wider != "DIR":
        hint += f"; for good: a run file, pyproject.toml or .git in {wider}"
    return Issue(f"{shown} leads out of the root folder {str(base)!r}", file=file, hint=hint)


def _real(path: Path) -> Path:
    """Absolute, links resolved as far as that goes: links in a circle stay."""
    return Path(os.path.realpath(path))


def _is_shared(folder: Path) -> bool:
    """Whether a folder is nobody's project, whatever lies in it."""
    try:
        home = _real(Path.home())
    except RuntimeError:  # no user, no home
        home = Path(folder.anchor)
    if home.is_relative_to(folder) or folder == folder.parent:
        return True
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH)


def _is_marked(folder: Path) -> bool:
    return _has_project_file(folder) or _holds_run_file(folder)


def _has_project_file(folder: Path) -> bool:
    return any((folder / name).exists() for name in PROJECT_FILES)


def _holds_run_file(folder: Path) -> bool:
    return any(map(_is_run_file, _yaml_files(folder)))


def _yaml_files(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(YAML_SUFFIXES))
    except OSError:  # not there, or not for us
        return
    # Most run files are called so: they come first, and the others need not be read.
    for name in sorted(names, key=lambda name: not name.startswith(("run", "eval"))):
        yield folder / name


def _is_run_file(path: Path) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > LONGEST_RUN_FILE:
            return False
        return _RUN_FILE.search(path.read_bytes()) is not None
    except OSError:
        return False
