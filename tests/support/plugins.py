"""Tests see Inspect without inspect-evals' two hundred benchmarks, as most users have it, but for those that ask for them.

Inspect loads whatever package has registered with it, in each process that makes a model: inspect-evals takes as long as Inspect itself. A
folder before all others has a distribution of the same name that registers nothing; its modules can be imported as ever.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

NOTHING_REGISTERED = str(Path(__file__).with_name("nothing_registered"))


def hide_benchmarks() -> None:
    """For this process and those that it starts."""
    others = [path for path in sys.path if path != NOTHING_REGISTERED]
    sys.path[:] = [NOTHING_REGISTERED, *others]
    os.environ["PYTHONPATH"] = _search_path(NOTHING_REGISTERED)


def _search_path(*before: str) -> str:
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([*before, *(path for path in paths if path not in ("", NOTHING_REGISTERED))])


def with_benchmarks(environment: dict[str, str]) -> dict[str, str]:
    """An environment in which inspect-evals registers its benchmarks."""
    return {**environment, "PYTHONPATH": _search_path()}
