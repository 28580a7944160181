"""Extensions that other packages add through entry points: verbs, formats, scorers, solvers and so on.

Installed packages are searched only for a name that aigo-bridge does not have itself, so its own names cost
nothing. A plug-in that cannot be loaded stops only the command that asks for it by name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal["verbs", "formats", "scorers", "solvers", "metrics", "engines"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DISTRIBUTION = "aigo-bridge"


class PluginError(BridgeError, ImportError):
    """A plug-in that cannot be loaded, or is not of the kind that its entry point says."""

    usual_code = Code.MISSING_PACKAGE


@dataclass(frozen=True)
class Plugin:
    """One entry point of another package."""

    kind: Kind
    name: str
    """Name that users type: a verb, or the `type` of a scorer."""
    package: str
    """Distribution and version that it comes from, for people."""
    target: str
    """Module and object, e.g. `my_package.scorers:CONTAINS`."""

    def load(self, expected: type = object) -> Any:
        """Return the object, which must be an instance of a class.

        Raises:
            PluginError: the import failed, or it is of another class; the message names the package.
        """
        from importlib.metadata import EntryPoint

        try:
            value = EntryPoint(self.name, self.target, group_of(self.kind)).load()
        except Exception as error:  # a stranger's module may raise anything
            raise PluginError(
                f"plug-in {self.name!r} ({self.kind}) of {self.package} cannot be loaded:"
                f" {type(error).__name__}: {error}"
            ) from error
        if not isinstance(value, expected):
            raise PluginError(
                f"plug-in {self.name!r} ({self.kind}) of {self.package} is a {type(value).__name__}, expected"
                f" {expected.__name__}"
            )
        return value


def group_of(kind: Kind) -> str:
    """Return the entry-point group of a kind, e.g. `aigo_bridge.scorers`."""
    return f"aigo_bridge.{kind}"


def entry_points(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of a group, those of aigo-bridge included.

    Reading the metadata of all installed packages takes milliseconds, so it is read again only after a
    change of the path or of a folder on it.
    """
    return _entry_points(group, tuple((folder, _modified(folder)) for folder in sys.path))


@lru_cache(maxsize=16)
def _entry_points(group: str, _path: tuple[tuple[str, int], ...]) -> Sequence[EntryPoint]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _modified(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def plugins(kind: Kind, name: str | None = None) -> Iterator[Plugin]:
    """Yield the plug-ins of a kind in order of their names; with `name` only those of that name."""
    entries = entry_points(group_of(kind))
    for entry in sorted(entries, key=lambda entry: entry.name):
        if name not in (None, entry.name):
            continue
        package = entry.dist
        if package is None or package.name != DISTRIBUTION:
            version = "an unknown package" if package is None else f"{package.name} {package.version}"
            yield Plugin(kind, entry.name, version, entry.value)


def all_plugins() -> Iterator[Plugin]:
    """Yield the plug-ins of all kinds."""
    for kind in KINDS:
        yield from plugins(kind)


def load(kind: Kind, name: str, expected: type) -> Any:
    """Return the object that a plug-in adds under a name; `None` if no plug-in has that name.

    Args:
        kind: group that is searched.
        name: name of the plug-in.
        expected: class that the object must be an instance of.

    Raises:
        PluginError: it cannot be loaded, is of another class, or two packages have a plug-in of that name.
    """
    named = list(plugins(kind, name))
    if not named:
        return None
    if len(named) > 1:
        packages = " and ".join(plugin.package for plugin in named)
        raise PluginError(f"{packages} both have a plug-in {name!r} ({kind}); uninstall one of them")
    return named[0].load(expected)
