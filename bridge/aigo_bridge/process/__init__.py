"""Services of this process: clock, garbage collection, and install commands for missing packages.

Install commands name the packages themselves. `pip install 'aigo-bridge[…]'` would require aigo-bridge on a
package index and would replace an editable installation. The packages come from the installed metadata.
"""

from __future__ import annotations

import atexit
import gc
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_BEGINNING = time.time() - time.monotonic()


def steady_time() -> float:
    """Return Unix time in seconds that never decreases, even if the machine's clock is changed."""
    return _BEGINNING + time.monotonic()


_START = 400_000


def collect_late() -> None:
    """Postpone the first garbage collection of this process until it has created 400,000 objects.

    Loading modules creates many objects and hardly any garbage: scanning them takes a tenth of the time of a
    short command, and three scans at its end take a quarter.
    """
    gc.callbacks.append(_collect_as_usual)
    gc.set_threshold(_START)
    atexit.register(_end_without_scans)


def _end_without_scans() -> None:
    # In a short command, nothing was collected. DuckDB prints what it finds uncollected.
    if gc.get_threshold()[0] == _START and "duckdb" not in sys.modules:
        gc.freeze()


def _collect_as_usual(*_: object) -> None:
    with suppress(ValueError):  # a collection during the removal comes here again
        gc.callbacks.remove(_collect_as_usual)
    if gc.get_threshold()[0] == _START:
        gc.set_threshold(*_USUAL)


_USUAL = gc.get_threshold()
_FREEZING: list[bool] = []
"""Contains an entry during a block that has frozen objects."""


@contextmanager
def fewer_collections(young: int, middle: int, old: int) -> Iterator[None]:
    """Raise the thresholds of garbage collection in this block, and exclude all objects that exist at its
    start, for the whole process.

    A run keeps hundreds of thousands of objects alive (modules, rows, samples in progress). Scanning all of
    them again and again finds almost no garbage but takes much time. Short-lived cycles are still found.

    Args:
        young: number of new objects before the youngest generation is scanned.
        middle: number of scans of the youngest generation before the middle one is scanned.
        old: number of scans of the middle generation before all objects are scanned.
    """
    _collect_as_usual()
    thresholds = gc.get_threshold()
    gc.set_threshold(*map(max, thresholds, (young, middle, old)))
    # Otherwise an outer block or the program has frozen its objects. Counting a million takes 0.1 seconds.
    freezes = not _FREEZING and gc.get_freeze_count() == 0
    if freezes:
        gc.freeze()
        _FREEZING.append(True)
    try:
        yield
    finally:
        if freezes:
            _FREEZING.pop()
            gc.collect()  # before the frozen objects are scanned again
            gc.unfreeze()
        gc.set_threshold(*thresholds)


@contextmanager
def no_collections() -> Iterator[None]:
    """Disable garbage collection in this block: for work on trees, which contain no cycles."""
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
    """Return the command that installs the packages of an extra; `None` if the extra is unknown."""
    packages = [requirement for requirement, name in _declared() if name == extra]
    return pip_install(*packages) if packages else None


def core_command(package: str) -> str:
    """Return the command that installs a required package in a compatible release."""
    for requirement, extra in _declared():
        name = _NAME.match(requirement)
        if extra is None and name is not None and _canonical(name[0]) == _canonical(package):
            return pip_install(requirement)
    return pip_install(package)


def pip_install(*requirements: str) -> str:
    """Return a `pip install` command, quoted for a shell."""
    return f"pip install {shlex.join(requirements)}"


def _declared() -> list[tuple[str, str | None]]:
    """Return the requirements, each with its extra; `None` for requirements of the core."""
    import importlib.metadata  # Imported late because it is slow.

    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []  # Source code without an installation.
    declared: list[tuple[str, str | None]] = []
    for line in lines:
        parts = _REQUIREMENT.fullmatch(line)
        if parts is not None:
            extra = _EXTRA.search(parts["marker"] or "")
            declared.append((parts["requirement"], None if extra is None else extra["name"]))
    return declared


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
