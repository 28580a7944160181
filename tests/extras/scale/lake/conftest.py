"""Logs of four runs: two tasks, two models, a name that no path can have."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.lakes import make_log


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of them."""
    folder = tmp_path / "logs"
    make_log(folder / "a.eval", run="run-a")
    make_log(folder / "b.eval", run="run-b", samples=3)
    make_log(folder / "deep" / "c.eval", run="run-c", model="m/two")
    make_log(folder / "d.eval", run="run-d", model="odd/=% né")
    return folder
