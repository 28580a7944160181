"""Permissions of untrusted files in this process: variables, network addresses and private files.

Permissions belong to the process and never to a plan: plans are written into logs, and a log must not grant
permissions to itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aigo_bridge.access.existence import is_present
from aigo_bridge.access.opening import is_below
from aigo_bridge.access.settings import SettingsError, project_settings
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError


@dataclass(frozen=True)
class Grants:
    """Permissions; by default, nothing is allowed."""

    variables: frozenset[str] = frozenset()
    """Environment variables that tasks and their files may read."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values of variables that replace the process's values."""
    network: bool = False
    """Whether rows may be downloaded from public addresses."""
    addresses: tuple[str, ...] = ()
    """Hosts (`data.example`) and origins (`http://127.0.0.1:8000`) that rows may be downloaded from."""
    files: frozenset[str] = frozenset()
    """Real paths of hidden, key and git-ignored files, and folders with them, that tasks may read."""


@dataclass(frozen=True)
class VariableUse:
    """Reference to an environment variable in a file."""

    name: str
    file: str
    line: int
    column: int
    is_set: bool
    """Whether the value was inserted; otherwise the text is unchanged."""


@dataclass
class Uses:
    """Resources that files have requested while they were read."""

    variables: dict[VariableUse, None] = field(default_factory=dict)
    """Variables in the order of reading, without duplicates."""
    addresses: dict[str, None] = field(default_factory=dict)
    """Addresses and hub datasets from which rows are (or would be) downloaded."""
    files: dict[str, None] = field(default_factory=dict)
    """Real paths of files and folders that a task references."""


_granted: list[Grants] = [Grants()]
_recorded: list[Uses] = []


def granted() -> Grants:
    """Return the current permissions."""
    return _granted[-1]


@contextmanager
def granting(grants: Grants) -> Iterator[None]:
    """Grant only these permissions in this block."""
    _granted.append(grants)
    try:
        yield
    finally:
        _granted.remove(grants)


@contextmanager
def recording() -> Iterator[Uses]:
    """Record the resources that files request in this block."""
    uses = Uses()
    _recorded.append(uses)
    try:
        yield uses
    finally:
        _recorded.remove(uses)


def allows_variable(name: str) -> bool:
    """Return whether the user has allowed a variable: on the command line, or in the project of the current
    folder.

    Raises:
        UsageError: as `project_variables`.
    """
    return name in granted().variables or name in project_variables()


def process_variables() -> dict[str, str]:
    """Return the variables of the process, with replaced values where the user set them."""
    return {**os.environ, **granted().values}


def record_variables(uses: Iterable[VariableUse]) -> None:
    """Record variables that a file references."""
    for use in uses:
        for record in _recorded:
            record.variables[use] = None


def record_address(address: str) -> None:
    """Record an address from which rows come."""
    for record in _recorded:
        record.addresses[address] = None


def real_paths(paths: Iterable[str | os.PathLike[str]]) -> frozenset[str]:
    """Return files and folders from the user in the form of `Grants.files`.

    Raises:
        UsageError: the file does not exist.
    """
    names = [os.fspath(path) for path in paths]
    for name in names:
        if not is_present(name):
            raise UsageError(f"--allow-file: file {name!r} does not exist", code=Code.NOTHING_THERE)
    return frozenset(map(os.path.realpath, names))


def allows_file(path: Path) -> bool:
    """Return whether the user has allowed a file or a folder around it: on the command line, or in the
    project of the current folder.

    Raises:
        UsageError: as `project_files`.
    """
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(entry) for entry in granted().files | project_files())


def record_file(path: Path) -> None:
    """Record a file or folder that a task references."""
    if _recorded:
        real = os.path.realpath(path)
        for record in _recorded:
            record.files[real] = None


def outside_files(files: Iterable[str], folder: Path) -> list[str]:
    """Return the files outside a task's own folder, without duplicates."""
    own = os.path.realpath(folder)
    return [file for file in dict.fromkeys(files) if not Path(file).is_relative_to(own)]


def project_files(folder: Path | None = None) -> frozenset[str]:
    """Return the real paths of files that the user's own project allows with `files = ["data/rows.jsonl"]`,
    see `project_variables`. All of them are in that project.

    Raises:
        UsageError: the settings are invalid.
    """
    settings = project_settings(folder)
    names = settings.values.get("files", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        message = f"{settings.name('files')}: found {names!r}, expected a list of paths"
        raise SettingsError(settings.issue(message, "files"))
    around = Path.cwd() if settings.file is None else settings.file.parent
    for name in names:
        if not is_below(around / name, around):
            message = f"{settings.name('files')}: {name!r} is outside the project"
            raise SettingsError(settings.issue(message, "files", hint="use --allow-file instead"))
    return frozenset(os.path.realpath(around / name) for name in names)


def project_variables(folder: Path | None = None) -> frozenset[str]:
    """Return the variables that the user's own project allows: `env = ["NAME"]` in `aigo-bridge.toml`, or
    under `[tool.aigo-bridge]` in `pyproject.toml`, in the project of the current folder.

    The project of a task does not count, because the author of a task must not decide what it may read.

    Raises:
        UsageError: the settings are invalid.
    """
    settings = project_settings(folder)
    names = settings.values.get("env", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        message = f"{settings.name('env')}: found {names!r}, expected a list of names of variables"
        raise SettingsError(settings.issue(message, "env"))
    return frozenset(names)
