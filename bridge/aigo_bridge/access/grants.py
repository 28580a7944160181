"""What the user of this process has allowed to files that others may have written: variables, and addresses
on the network.

Grants are the process's own and never a part of a plan: a plan is written into logs, and what a log says of
itself allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aigo_bridge.access.settings import SettingsError, project_settings


@dataclass(frozen=True)
class Grants:
    """Nothing, unless it is said."""

    variables: frozenset[str] = frozenset()
    """Environment variables that tasks, and what belongs to them, may be given."""
    network: bool = False
    """Whether rows may be fetched from public addresses."""
    addresses: tuple[str, ...] = ()
    """Hosts (`data.example`) and origins (`http://127.0.0.1:8000`) that rows may be fetched from whatever
    network they are in."""


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
    """Addresses and data sets of hubs that rows are fetched from, or would be."""


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


def record_variables(uses: Iterable[VariableUse]) -> None:
    """Note variables that a file names."""
    for use in uses:
        for record in _recorded:
            record.variables[use] = None


def record_address(address: str) -> None:
    """Note an address that rows come from."""
    for record in _recorded:
        record.addresses[address] = None


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
