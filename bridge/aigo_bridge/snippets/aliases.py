"""The vendor's module names inside a snippet worker, so that published snippets import unchanged."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

MODULES = ("latticeflow.core.dtypes", "latticeflow.assessment.dtypes")
"""The name that is documented today, and the one of older snippets."""

PACKAGES = tuple(
    dict.fromkeys(name.rsplit(".", depth)[0] for name in MODULES for depth in range(1, name.count(".") + 1))
)
"""The packages that hold them."""

_INSTALLED_HERE: set[str] = set()


def offered_names() -> tuple[str, ...]:
    """The names that these modules have here."""
    import aigo_bridge.dtypes as ours

    return tuple(ours.__all__)


def is_installed(name: str) -> bool:
    """Whether a module of that name is installed, and not put there by us."""
    return name not in _INSTALLED_HERE and _exists(name)


def install_aliases() -> None:
    """Let the vendor's names for the core types resolve to ours, where nothing is installed under them.

    For worker processes that run snippets only: it changes which modules the process can import.
    """
    for name in MODULES:
        if not _exists(name):
            _install(name)


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # of a package above it, or a module of ours
        return False


def _install(name: str) -> None:
    import aigo_bridge.dtypes as ours

    parent: ModuleType | None = None
    packages = name.split(".")[:-1]
    for depth in range(1, len(packages) + 1):
        package = ".".join(packages[:depth])
        parent = _package(package, parent)
    # A module of its own, not ours under another name: with our search path, an import of a submodule would
    # load our code a second time, as other classes.
    module = ModuleType(name, ours.__doc__)
    for public in ours.__all__:
        setattr(module, public, getattr(ours, public))
    module.__dict__["__all__"] = list(ours.__all__)
    sys.modules[name] = module
    _INSTALLED_HERE.add(name)
    assert parent is not None
    parent.__dict__["dtypes"] = module


def _package(name: str, parent: ModuleType | None) -> ModuleType:
    """The package, an empty one if there is none."""
    if _exists(name):
        return importlib.import_module(name)
    package = ModuleType(name, "An empty package that holds the core types.")
    package.__path__ = []
    sys.modules[name] = package
    _INSTALLED_HERE.add(name)
    if parent is not None:
        parent.__dict__[name.rpartition(".")[2]] = package
    return package
