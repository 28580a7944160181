"""How long a run took: Inspect's own times are whole seconds, and a scripted run is over in less."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run

from aigo_inspect.clock import running_time

Load = Callable[[Path], dict[str, Any]]
CAPITALS = REPOSITORY / "examples" / "capitals"


def test_a_quick_run_took_some_time(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """The same in the evidence of the run, and in that of its log, imported."""
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


def test_a_foreign_log_of_a_quick_run_took_some_time(aigo: Run, tmp_path: Path, result_of: Load) -> None:
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
def test_times_of_samples_stand_in_for_those_of_the_run(
    times: tuple[str | None, str | None, str | None, str | None], seconds: float
) -> None:
    assert running_time(*times) == seconds
