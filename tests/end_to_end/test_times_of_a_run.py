"""Duration of a run: Inspect's times are whole seconds, and a scripted run is shorter."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log, write_eval_log
from tests.support.commands import REPOSITORY, Run

from aigo_bridge.engine.protocol import Execution
from aigo_inspect.logs.parsing import running_time

Load = Callable[[Path], dict[str, Any]]
CAPITALS = REPOSITORY / "examples" / "capitals"


def test_quick_run_has_a_positive_duration(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """The duration is equal in the evidence of the run and of its imported log."""
    began = time.time()
    assert aigo("run", CAPITALS, "--model", f"scripted/{CAPITALS / 'answers.jsonl'}").code == 0
    ended = time.time()
    assert aigo("import", "out", "--out", "imported").code == 0

    ran = result_of(tmp_path / "out" / "capitals.tasklog.json")["execution"]
    (file,) = (tmp_path / "imported").glob("*.tasklog.json")
    for execution in (ran, result_of(file)["execution"]):
        assert execution["runtime"] == pytest.approx(ran["runtime"])
        # Where the second changed while it ran, its time is a whole one.
        assert 0 < execution["runtime"] < ended - began + 1
        assert int(began) <= execution["started_at"] <= execution["ended_at"] <= int(ended) + 1


def test_foreign_log_of_a_quick_run_has_a_positive_duration(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "light"}\n')
    riddles = REPOSITORY / "examples" / "riddles" / "riddles.py"

    done = aigo("run", f"inspect:{riddles}", "-T", "difficulty=hard", "--model", "scripted/m.jsonl")

    assert done.code == 0, done.err
    assert result_of(tmp_path / "out" / "riddles.tasklog.json")["execution"]["runtime"] > 0


SECOND = "2026-01-01T00:00:05+00:00"


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ((SECOND, "2026-01-01T00:00:07+00:00", None, None), 2.0),
        ((SECOND, SECOND, "2026-01-01T00:00:05.250000+00:00", "2026-01-01T00:00:05.750000+00:00"), 0.5),
        # Samples that were taken over from an earlier run are no part of this one.
        ((SECOND, SECOND, "2025-12-31T00:00:00.000000+00:00", "2026-01-01T00:00:05.750000+00:00"), 0.75),
        ((SECOND, SECOND, "2025-12-31T00:00:00.000000+00:00", "2025-12-31T00:00:01.000000+00:00"), 0.0),
        ((SECOND, None, None, None), 0.0),
        ((None, None, "2026-01-01T00:00:05.250000Z", "2026-01-01T00:00:05.750000Z"), 0.5),
        ((SECOND, SECOND, "no time", None), 0.0),
    ],
)
def test_missing_run_times_are_taken_from_the_samples(
    times: tuple[str | None, str | None, str | None, str | None], seconds: float
) -> None:
    assert running_time(*times) == seconds


# A clock that is set while a run is under way


BACK = """
import itertools, time
wall, calls = time.time, itertools.count()
# The clock is put back by a day, and forward again, now and then.
time.time = lambda: wall() - (86_400 if next(calls) % 7 > 2 else 0)
from aigo_bridge.cli import main
main()
"""


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_no_run_ends_before_it_began(tmp_path: Path, result_of: Load, engine: str) -> None:
    words = ["run", CAPITALS, "--model", f"scripted/{CAPITALS / 'answers.jsonl'}", "--engine", engine]
    done = subprocess.run(
        [sys.executable, "-c", BACK, *map(str, words)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    result = result_of(tmp_path / "out" / "capitals.tasklog.json")
    execution = result["execution"]
    assert execution["started_at"] <= execution["ended_at"]
    assert execution["runtime"] >= 0
    times = [
        value
        for text in json.dumps(result).split('"total_time": ')[1:]
        if (value := json.loads(text.partition(",")[0].rstrip("}] "))) is not None
    ]
    assert times
    assert min(times) >= 0


@pytest.mark.parametrize(
    ("started", "ended", "expected"),
    [
        (5.0, 7.0, (5.0, 7.0)),
        (7.0, 5.0, (7.0, 7.0)),
        (-7.0, 5.0, (0.0, 5.0)),
        (5.0, math.nan, (5.0, 5.0)),
        (math.nan, math.inf, (0.0, 0.0)),
    ],
)
def test_impossible_execution_times_are_corrected(
    started: float, ended: float, expected: tuple[float, float]
) -> None:
    execution = Execution("success", started, ended)
    assert (execution.started_at, execution.ended_at) == expected


def test_a_foreign_log_that_ends_before_it_begins_is_imported(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    """The evidence uses the start as the end, and the report counts the change."""
    assert aigo("run", CAPITALS, "--model", f"scripted/{CAPITALS / 'answers.jsonl'}").code == 0
    (log,) = (tmp_path / "out").glob("*.eval")
    native = read_eval_log(str(log))
    native.eval.metadata = {}
    native.stats.started_at, native.stats.completed_at = (
        "2026-05-02T00:00:00+00:00",
        "2026-05-01T00:00:00+00:00",
    )
    for sample in native.samples or []:
        sample.started_at, sample.completed_at = sample.completed_at, sample.started_at
    write_eval_log(native, str(tmp_path / "back.eval"))

    done = aigo("import", "back.eval", "--out", "imported", "--verbose")

    (file,) = (tmp_path / "imported").glob("*.tasklog.json")
    execution = result_of(file)["execution"]
    assert execution["started_at"] == execution["ended_at"] == 1_777_680_000
    assert execution["runtime"] == 0
    assert "before its start" in done.out + done.err
