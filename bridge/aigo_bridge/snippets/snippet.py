"""A snippet: what is called, what a call may use, and the vendor's module names that it imports; in a worker
they resolve to ours, so that published snippets run unchanged.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType


@dataclass(frozen=True)
class Snippet:
    """A piece of author's code and the function in it that is called."""

    source: str
    function: str
    """Name of the function that the snippet must define, e.g. `compute_scores`."""
    label: str
    """Names the snippet in errors: the field it stands in."""
    origin: str | None = None
    """File that the code stands in, named in errors and tracebacks; `None` where it is not known."""
    first_line: int = 1
    """Line of that file where the code begins, from 1: errors tell lines of the file."""

    def at(self, place: tuple[str, int] | None) -> Snippet:
        """The snippet with file and line of its code, as plans keep them; `None`: not known."""
        return self if place is None else replace(self, origin=place[0], first_line=place[1])

    @property
    def where(self) -> str:
        """The label, and where the code stands if that is known."""
        return self.label if self.origin is None else f"{self.label} ({self.origin}, line {self.first_line})"

    def told(self, problem: str) -> str:
        """A problem with the code as a message that names its file, once: exceptions say themselves in which
        line they were raised.
        """
        names_it = self.origin is not None and self.origin in problem
        return f"{self.label if names_it else self.where}: {problem}"


@dataclass(frozen=True)
class SnippetLimits:
    """What one call may use."""

    seconds: float = 120.0
    """Wall-clock time of one call, compiling included; waiting for callbacks and for its turn are not."""
    memory_bytes: int = 4 * 1024**3
    """Address space of the worker process."""
    network: bool = False
    """Whether the jail lets it connect."""


OLD_SCORES = ("sample", "model_input", "model_output")
"""Parameters of `compute_scores` in older snippets."""

OLD_METRICS = "aggregate"
"""What `compute_metrics` was called in older snippets; it got the scores of the samples as plain mappings."""


@lru_cache(maxsize=512)
def positional_parameters(source: str) -> dict[str, tuple[str, ...]]:
    """The functions that a module defines at its top level, with the positional parameters that have no
    default; none if it is not Python.

    The older parameters of `compute_scores` count also with a default: nothing else could be meant for them.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an author's invalid escape is no concern of ours
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    functions: dict[str, tuple[str, ...]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = statement.args
            names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
            required = tuple(names[: len(names) - len(arguments.defaults)])
            all_old = tuple(names[: len(OLD_SCORES)]) == OLD_SCORES and len(required) <= len(OLD_SCORES)
            functions[statement.name] = OLD_SCORES if all_old else required
    return functions


def has_old_scores(source: str) -> bool:
    """Whether `compute_scores` takes what the model was given and what it gave, one by one.

    It is known by the very names: three parameters that are called otherwise might mean anything.
    """
    return positional_parameters(source).get("compute_scores") == OLD_SCORES


def metrics_function(source: str) -> str:
    """The function that computes metrics: `compute_metrics`, in older snippets `aggregate`."""
    defined = positional_parameters(source)
    return OLD_METRICS if OLD_METRICS in defined and "compute_metrics" not in defined else "compute_metrics"


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
