"""Short soak test, and detection of growth and lost samples."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.soak.__main__ import growth
from tests.soak.rounds import Ground, Held, LossError
from tests.soak.serving import BadDays
from tests.support.commands import REPOSITORY, Run

HELD = Held(mebibytes=500, descriptors=12, threads=3, processes=0, temporary=1)


def test_short_soak_loses_no_samples() -> None:
    """Run three rounds, one of them killed twice. `make soak` repeats this for hours."""
    words = ["--minutes", "0", "--samples", "48", "--seed", "1", "--engines", "inspect", "--warm", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr
    rounds = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    assert [each["kind"] for each in rounds] == ["here", "killed", "here"]


@pytest.mark.parametrize(
    ("what", "much"),
    [("mebibytes", 600), ("descriptors", 14), ("threads", 5), ("processes", 2), ("temporary", 3)],
)
def test_growth_is_reported(what: str, much: int) -> None:
    grown = replace(HELD, **{what: much})
    assert len(growth([HELD] * 3 + [grown] * 6)) == 1
    assert growth([grown] * 6 + [HELD] * 3) == []
    assert growth([HELD, grown, HELD] * 3) == []
    assert growth([HELD, grown]) == []


def test_lost_and_wrong_samples_are_reported(tmp_path: Path, aigo: Run) -> None:
    server = BadDays(1, 0.0)
    server.endpoint.start()
    try:
        ground = Ground(tmp_path, server, 5)
        ground.prepare()
        assert aigo(*ground.words("inspect")).code == 0
    finally:
        server.endpoint.stop()
    ground.check()
    file = tmp_path / "out" / "t.tasklog.json"
    whole = file.read_text()
    result = json.loads(whole)
    samples = result["evidence"]["samples"]
    for wrong in (samples[1:], [*samples, samples[0]], [{**samples[0], "sample_id": 9}, *samples[1:]]):
        file.write_text(json.dumps({**result, "evidence": {**result["evidence"], "samples": wrong}}))
        with pytest.raises(LossError):
            ground.check()
    file.write_text(whole.replace("odd", "even"))
    with pytest.raises(LossError):
        ground.check()
    file.write_text(whole)
    (file.parent / ".answers-0.jsonl").touch()
    with pytest.raises(LossError, match="left behind"):
        ground.check()
