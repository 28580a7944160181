"""What belongs to this process: its clock, its memory, and the packages that it lacks.

What an optional part needs is named by a command with the packages themselves: `pip install 'aigo-bridge[…]'`
would need aigo-bridge on an index, and would put a wheel in place of an editable installation; the packages
are right for both. Which they are, the installation's own metadata say.
"""

from __future__ import annotations

import gc
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager

_BEGINNING = time.time() - time.monotonic()


def steady_time() -> float:
    """Unix time in seconds that never goes back, whatever is done to the machine's clock: what ends never
    ends before it began.
    """
    return _BEGINNING + time.monotonic()


@contextmanager
def fewer_collections(young: int, middle: int, old: int) -> Iterator[None]:
    """Inside, no generation is looked at more often than these thresholds say; set for the whole process.

    A run keeps hundreds of thousands of objects alive (modules, rows, samples under way), and looking through
    all of them again and again, for next to nothing, takes a good part of its time. Cycles that die young are
    still found.

    Args:
        young: new objects before the youngest are looked at.
        middle: how often that is done before those that survived are.
        old: how often that is done before all are.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*map(max, thresholds, (young, middle, old)))
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def no_collections() -> Iterator[None]:
    """Inside, nobody looks for cycles: for work on trees, which die with their last reference."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


DISTRIBUTION = "aigo-bridge"

_REQUIREMENT = re.compile(r"(?P<requirement>[^;]+?)\s*(?:;\s*(?P<marker>.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["'](?P<name>[^"']+)["']""")
_NAME = re.compile(r"[\w.-]+")


def install_command(extra: str) -> str | None:
    """The command that installs the packages of an extra; `None` where there is no such extra."""
    packages = [requirement for requirement, name in _declared() if name == extra]
    return pip_install(*packages) if packages else None


def core_command(package: str) -> str:
    """The command that installs a package that aigo-bridge needs, in a release that suits."""
    for requirement, extra in _declared():
        name = _NAME.match(requirement)
        if extra is None and name is not None and _canonical(name[0]) == _canonical(package):
            return pip_install(requirement)
    return pip_install(package)


def pip_install(*requirements: str) -> str:
    """`pip install` of requirements, quoted for a shell."""
    return f"pip install {shlex.join(requirements)}"


def _declared() -> list[tuple[str, str | None]]:
    """Requirements, each with the extra that it belongs to; `None` for those of the core."""
    import importlib.metadata  # it takes as long as all else here, and is for messages

    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []  # the source alone, without an installation
    declared: list[tuple[str, str | None]] = []
    for line in lines:
        parts = _REQUIREMENT.fullmatch(line)
        if parts is not None:
            extra = _EXTRA.search(parts["marker"] or "")
            declared.append((parts["requirement"], None if extra is None else extra["name"]))
    return declared


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
