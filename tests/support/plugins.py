"""Hide the two hundred benchmarks of inspect-evals from Inspect in tests, except those that need them.

Inspect loads every registered package in each process that creates a model, and inspect-evals takes as long as Inspect itself. A folder
early on the path has a distribution with the same name that registers nothing; its modules can still be imported.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

NOTHING_REGISTERED = str(Path(__file__).with_name("nothing_registered"))


def hide_benchmarks() -> None:
    """Hide benchmarks for this process and its children."""
    others = [path for path in sys.path if path != NOTHING_REGISTERED]
    sys.path[:] = [NOTHING_REGISTERED, *others]
    os.environ["PYTHONPATH"] = _search_path(NOTHING_REGISTERED)


def _search_path(*before: str) -> str:
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([*before, *(path for path in paths if path not in ("", NOTHING_REGISTERED))])


def with_benchmarks(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment in which inspect-evals registers its benchmarks."""
    return {**environment, "PYTHONPATH": _search_path()}
