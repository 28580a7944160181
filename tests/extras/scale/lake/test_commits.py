"""Lake after `kill -9` at any step of an import or compaction: readers find complete results, and the next run repairs the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import ENVIRONMENT, REPOSITORY
from tests.support.lakes import contents, imported, make_log

from aigo_scale.lake.tables import open_lake
from aigo_scale.lake.verifying import problems_of

pytestmark = pytest.mark.slow


def crashes(action: str, lake: Path, logs: Path, *, first: int = 0, stride: int = 1) -> list[Any]:
    """Return the lake content after each crash and after a final complete run."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.lake_crashes", action, lake, logs, str(first), str(stride)],
        cwd=REPOSITORY,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return two logs of one run, the second with more samples, and a log of another run."""
    folder = tmp_path / "logs"
    make_log(folder / "a.eval", run="run-a", samples=1)
    make_log(folder / "b.eval", run="run-a", samples=2)
    make_log(folder / "c.eval", run="run-c", model="m/two")
    return folder


def test_killed_import_is_completed_by_the_next_import(logs: Path, tmp_path: Path) -> None:
    lake, whole = tmp_path / "lake", tmp_path / "whole"
    found = crashes("import", lake, logs, stride=5)
    imported(whole, logs)
    assert len(found) > 5
    assert [one["problems"] for one in found] == [[]] * len(found)
    assert {one["results"] for one in found[:-1]} <= {0, 2}
    assert found[0]["results"] == 0
    assert found[-1]["results"] == 2
    assert contents(lake) == contents(whole)


def test_import_killed_between_tables_is_repaired_by_the_next_import(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs / "a.eval")
    # The run is killed at each data file of the two logs, the table `logs`, each other table and each deletion.
    found = crashes("import", lake, logs, first=11)
    assert [one["problems"] for one in found] == [[]] * len(found)
    assert [one["results"] for one in found] == sorted(one["results"] for one in found)
    imported(tmp_path / "whole", logs)
    assert contents(lake) == contents(tmp_path / "whole")


def test_killed_compaction_neither_loses_nor_duplicates_rows(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    before = contents(lake)
    found = crashes("compact", lake, logs)
    assert len(found) > 8
    assert found == [{"results": 2, "problems": []}] * len(found)
    assert contents(lake) == before
    assert list(problems_of(open_lake(lake))) == []
