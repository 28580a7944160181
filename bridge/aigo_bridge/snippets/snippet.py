"""Snippets: code and function, limits of a call, and the vendor's module names. In a worker, these names
resolve to aigo-bridge's types, so that published snippets run unchanged.
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
    """Author's code with the function that is called."""

    source: str
    function: str
    """Name of the function that the snippet must define, e.g. `compute_scores`."""
    label: str
    """Name of the snippet in errors: its field."""
    origin: str | None = None
    """File that contains the code, for errors and tracebacks; `None` if unknown."""
    first_line: int = 1
    """First line of the code in that file, from 1, so that errors show lines of the file."""

    def at(self, place: tuple[str, int] | None) -> Snippet:
        """Return the snippet with file and line of its code, as stored in plans; `None`: unknown."""
        return self if place is None else replace(self, origin=place[0], first_line=place[1])

    @property
    def where(self) -> str:
        """Label, and the position of the code if known."""
        return self.label if self.origin is None else f"{self.label} ({self.origin}, line {self.first_line})"

    def told(self, problem: str) -> str:
        """Return a message about a problem that names the file once; exceptions may already contain their
        line.
        """
        names_it = self.origin is not None and self.origin in problem
        return f"{self.label if names_it else self.where}: {problem}"


@dataclass(frozen=True)
class SnippetLimits:
    """Limits of one call."""

    seconds: float = 120.0
    """Maximum seconds of wall clock time of a call, including compilation, without waiting for callbacks
    and for its turn.
    """
    memory_bytes: int = 4 * 1024**3
    """Maximum address space of the worker process."""
    network: bool = False
    """Whether the sandbox allows network connections."""


OLD_SCORES = ("sample", "model_input", "model_output")
"""Parameters of `compute_scores` in deprecated snippets."""

OLD_METRICS = "aggregate"
"""Name of `compute_metrics` in deprecated snippets; it got the scores of the samples as plain mappings."""


@lru_cache(maxsize=512)
def positional_parameters(source: str) -> dict[str, tuple[str, ...]]:
    """Return the functions at the top level of a module with their positional parameters that have no
    default; empty if the text is not Python.

    The deprecated parameters of `compute_scores` also count with a default, because they have no other
    meaning.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # Warnings about an author's invalid escapes are not relevant here.
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
    """Return whether `compute_scores` takes the model input and output as separate arguments.

    The parameter names must match exactly, because three other parameters could mean anything.
    """
    return positional_parameters(source).get("compute_scores") == OLD_SCORES


def metrics_function(source: str) -> str:
    """Return the function that computes metrics: `compute_metrics`, or the deprecated `aggregate`."""
    defined = positional_parameters(source)
    return OLD_METRICS if OLD_METRICS in defined and "compute_metrics" not in defined else "compute_metrics"


MODULES = ("latticeflow.core.dtypes", "latticeflow.assessment.dtypes")
"""Currently documented name, and the name in deprecated snippets."""

PACKAGES = tuple(
    dict.fromkeys(name.rsplit(".", depth)[0] for name in MODULES for depth in range(1, name.count(".") + 1))
)
"""Packages that contain these modules."""

_INSTALLED_HERE: set[str] = set()


def offered_names() -> tuple[str, ...]:
    """Return the names in these modules."""
    import aigo_bridge.dtypes as ours

    return tuple(ours.__all__)


def is_installed(name: str) -> bool:
    """Return whether a module is installed, other than as an alias."""
    return name not in _INSTALLED_HERE and _exists(name)


def install_aliases() -> None:
    """Make the vendor's module names resolve to aigo-bridge's types, unless the vendor's modules are
    installed.

    Call it only in worker processes: it changes which modules the process can import.
    """
    for name in MODULES:
        if not _exists(name):
            _install(name)


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # The parent package is missing, or the module is an alias.
        return False


def _install(name: str) -> None:
    import aigo_bridge.dtypes as ours

    parent: ModuleType | None = None
    packages = name.split(".")[:-1]
    for depth in range(1, len(packages) + 1):
        package = ".".join(packages[:depth])
        parent = _package(package, parent)
    # A separate module instead of an alias of the real one: with the real search path, importing a submodule
    # would load its code a second time, with different classes.
    module = ModuleType(name, ours.__doc__)
    for public in ours.__all__:
        setattr(module, public, getattr(ours, public))
    module.__dict__["__all__"] = list(ours.__all__)
    sys.modules[name] = module
    _INSTALLED_HERE.add(name)
    assert parent is not None
    parent.__dict__["dtypes"] = module


def _package(name: str, parent: ModuleType | None) -> ModuleType:
    """Return the package, or create an empty one."""
    if _exists(name):
        return importlib.import_module(name)
    package = ModuleType(name, "An empty package that holds the core types.")
    package.__path__ = []
    sys.modules[name] = package
    _INSTALLED_HERE.add(name)
    if parent is not None:
        parent.__dict__[name.rpartition(".")[2]] = package
    return package
