"""Logs of four runs: two tasks and two models, one with a name that is not a valid path."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.lakes import make_log


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a folder with the logs."""
    folder = tmp_path / "logs"
    make_log(folder / "a.eval", run="run-a")
    make_log(folder / "b.eval", run="run-b", samples=3)
    make_log(folder / "deep" / "c.eval", run="run-c", model="m/two")
    make_log(folder / "d.eval", run="run-d", model="odd/=% né")
    return folder
