"""Tests of the core. They load no engine, so that `make unit` takes seconds.

Tests that need an engine have the marker `engine`. Other slow tests are listed in `tests/durations.toml` and get the marker
`slow`. `make unit` skips both.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.durations import without_parameters

ENGINES = ("inspect_ai", "lighteval")
TESTS = Path(__file__).resolve().parents[1]
SLOW = frozenset(tomllib.loads((TESTS / "durations.toml").read_text("utf-8"))["slow"])
"""Tests of the core without their parameters, and folders, that `make unit` leaves out."""


class _Watch(MetaPathFinder, Loader):
    """Import hook that rejects loading an engine but allows finding it."""

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname) if fullname in ENGINES else None
        if spec is not None:
            spec.loader = self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        self.refused.add(spec.name)
        raise ImportError(f"{spec.name} is not loaded in tests of the core")

    def exec_module(self, module: ModuleType) -> None:
        """Never called."""


@pytest.fixture(autouse=True)
def no_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that loads an engine without the marker, unless an earlier test has already loaded it."""
    watch = _Watch()
    if request.node.get_closest_marker("engine") is not None:
        yield
        return
    sys.meta_path.insert(0, watch)
    yield
    sys.meta_path.remove(watch)
    if watch.refused:
        pytest.fail(f"the test loads {' and '.join(sorted(watch.refused))}: mark it with `engine`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        test, folder = without_parameters(item.nodeid), str(item.path.parent.relative_to(TESTS.parent))
        if SLOW & {test, folder}:
            item.add_marker("slow")
