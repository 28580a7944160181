"""A response that never ends: the waiting call is reported, and `--attempt-timeout` repeats it."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.test_unreadable_replies import BENCHMARK, MODEL_FILE, PATHS, TASK, WHOLE
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, Raw, completion
from tests.support.impatient import impatient

from aigo_bridge.cli import progress

HALF = WHOLE[: len(WHOLE) // 2]


@pytest.fixture
def server(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Server and task with two questions, with short waits between attempts."""
    impatient(monkeypatch)
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    (tmp_path / "rows.jsonl").write_text('{"q": "q0"}\n{"q": "q1"}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "own.py").write_text(BENCHMARK)
    (tmp_path / "m.yaml").write_text(MODEL_FILE % endpoint.url)
    (tmp_path / "rows").mkdir()
    for split in ("train", "test"):
        row = {"question": "q0", "answer": "5 #### 5"}
        (tmp_path / "rows" / f"{split}.jsonl").write_text(json.dumps(row) + "\n")
    return endpoint


LIGHTEVAL = ("lighteval:gsm8k", "--data-dir", "rows", "--model", "openai-api/local/m")


@pytest.mark.engine
@pytest.mark.parametrize("path", [*PATHS.values(), LIGHTEVAL], ids=[*PATHS, "lighteval benchmark"])
def test_call_over_the_time_limit_is_repeated(aigo: Run, server: Endpoint, path: tuple[str, ...]) -> None:
    asked: Counter[str] = Counter()

    def answer(body: Any) -> Any:
        question = json.dumps(body["messages"])
        asked[question] += 1
        return Raw((HALF,), stall=60) if asked[question] == 1 else (200, completion("yes"))

    server.answer = answer
    began = time.monotonic()
    done = aigo("run", *path, "--attempt-timeout", "1")

    assert done.code == 0, done.err
    assert set(asked.values()) == {2}
    assert time.monotonic() - began < 45
    assert "retrying in" in done.err


@pytest.mark.engine
@pytest.mark.parametrize("path", [*PATHS.values(), LIGHTEVAL], ids=[*PATHS, "lighteval benchmark"])
def test_waiting_call_is_reported(
    aigo: Run, server: Endpoint, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    assert progress.CALL_WAIT + progress.TICK < 30
    monkeypatch.setattr(progress, "CALL_WAIT", 0.5)
    monkeypatch.setattr(progress, "TICK", 0.1)
    server.answer = lambda _: Raw((WHOLE,), stall=2)
    done = aigo("run", *path, "-n", 1)

    assert done.code == 0, done.err
    lines = [line for line in done.err.splitlines() if line.startswith("waiting ")]
    assert lines
    assert "s for an answer of" in lines[0]
    assert "sample " in lines[0] or path is LIGHTEVAL
    assert "--attempt-timeout SECONDS" in lines[0]
