"""What the user of this process has allowed to files that others may have written: variables, addresses on
the network, and private files.

Grants are the process's own and never a part of a plan: a plan is written into logs, and what a log says of
itself allows nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aigo_bridge.access.opening import is_below
from aigo_bridge.access.presence import is_present
from aigo_bridge.access.settings import SettingsError, project_settings
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError


@dataclass(frozen=True)
class Grants:
    """Nothing, unless it is said."""

    variables: frozenset[str] = frozenset()
    """Environment variables that tasks, and what belongs to them, may be given."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values of variables in place of the process's."""
    network: bool = False
    """Whether rows may be fetched from public addresses."""
    addresses: tuple[str, ...] = ()
    """Hosts (`data.example`) and origins (`http://127.0.0.1:8000`) that rows may be fetched from whatever
    network they are in."""
    files: frozenset[str] = frozenset()
    """Real paths of hidden files, key files and files ignored by git that tasks may read, and of folders with
    such files."""


@dataclass(frozen=True)
class VariableUse:
    """A place in a file that names an environment variable."""

    name: str
    file: str
    line: int
    column: int
    is_set: bool
    """Whether its value was put in; otherwise the text stayed as it was."""


@dataclass
class Uses:
    """What files have asked for while they were read."""

    variables: dict[VariableUse, None] = field(default_factory=dict)
    """In the order of reading, each once."""
    addresses: dict[str, None] = field(default_factory=dict)
    """Addresses and datasets of hubs that rows are fetched from, or would be."""
    files: dict[str, None] = field(default_factory=dict)
    """Real paths of files and folders that are read because a task names them."""


_granted: list[Grants] = [Grants()]
_recorded: list[Uses] = []


def granted() -> Grants:
    """What is allowed now."""
    return _granted[-1]


@contextmanager
def granting(grants: Grants) -> Iterator[None]:
    """Allow this, and nothing else, for a while."""
    _granted.append(grants)
    try:
        yield
    finally:
        _granted.remove(grants)


@contextmanager
def recording() -> Iterator[Uses]:
    """Take note of what files ask for."""
    uses = Uses()
    _recorded.append(uses)
    try:
        yield uses
    finally:
        _recorded.remove(uses)


def allows_variable(name: str) -> bool:
    """Whether the user has named a variable: on the command line, or in the project of the current folder.

    Raises:
        UsageError: as `project_variables`.
    """
    return name in granted().variables or name in project_variables()


def process_variables() -> dict[str, str]:
    """Return the variables of the process, with the values that the user gives in place of them."""
    return {**os.environ, **granted().values}


def record_variables(uses: Iterable[VariableUse]) -> None:
    """Note variables that a file names."""
    for use in uses:
        for record in _recorded:
            record.variables[use] = None


def record_address(address: str) -> None:
    """Note an address that rows come from."""
    for record in _recorded:
        record.addresses[address] = None


def real_paths(paths: Iterable[str | os.PathLike[str]]) -> frozenset[str]:
    """Return files and folders that a user names, as `Grants.files` has them.

    Raises:
        UsageError: there is no such file.
    """
    names = [os.fspath(path) for path in paths]
    for name in names:
        if not is_present(name):
            raise UsageError(f"--allow-file: there is no file {name!r}", code=Code.NOTHING_THERE)
    return frozenset(map(os.path.realpath, names))


def allows_file(path: Path) -> bool:
    """Return whether the user has named a file, or a folder around it: on the command line, or in the project
    of the current folder.

    Raises:
        UsageError: as `project_files`.
    """
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(entry) for entry in granted().files | project_files())


def record_file(path: Path) -> None:
    """Note a file or folder that is read because a task names it."""
    if _recorded:
        real = os.path.realpath(path)
        for record in _recorded:
            record.files[real] = None


def outside_files(files: Iterable[str], folder: Path) -> list[str]:
    """Return the files that are not in a task's own folder, each once."""
    own = os.path.realpath(folder)
    return [file for file in dict.fromkeys(files) if not Path(file).is_relative_to(own)]


def project_files(folder: Path | None = None) -> frozenset[str]:
    """Return the real paths of files that the user's own project allows: `files = ["data/rows.jsonl"]`, see
    `project_variables`. All of them lie in that project.

    Raises:
        UsageError: the file has settings, and they cannot be used.
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
    """Variables that the user's own project allows: `env = ["NAME"]` in the `aigo-bridge.toml`, or under
    `[tool.aigo-bridge]` in the `pyproject.toml`, of the current folder's project.

    Not that of a task's project: whoever hands over a task does not say what it may be given.

    Raises:
        UsageError: the file has settings, and they cannot be used.
    """
    settings = project_settings(folder)
    names = settings.values.get("env", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        message = f"{settings.name('env')}: found {names!r}, expected a list of names of variables"
        raise SettingsError(settings.issue(message, "env"))
    return frozenset(names)
