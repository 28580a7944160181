"""Every stored seed and former crash is accepted or rejected with an error."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.fuzz.targets import CORPUS, CRASHES, REPOSITORY, TARGETS


@pytest.fixture(scope="module")
def replayed() -> subprocess.CompletedProcess[str]:
    """Process that has tried all stored inputs; it may crash."""
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz.child", "replay"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=150,
    )


@pytest.mark.parametrize("name", TARGETS)
def test_stored_inputs_are_accepted_or_rejected_without_a_crash(
    replayed: subprocess.CompletedProcess[str], name: str
) -> None:
    lines = [line for line in map(json.loads, replayed.stdout.splitlines()) if line["target"] == name]
    assert [line["problem"] for line in lines if "problem" in line] == []
    assert lines[-1:] == [{"target": name, "end": True}], (
        lines[-1:],
        replayed.returncode,
        replayed.stderr[-2_000:],
    )
    assert len(lines) > 1


def test_every_stored_input_belongs_to_a_target() -> None:
    assert {path.name for folder in (CORPUS, CRASHES) for path in folder.glob("*")} <= set(TARGETS)
