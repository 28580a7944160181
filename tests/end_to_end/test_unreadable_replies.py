"""A server that answers HTTP 200 with an unreadable reply is called again, and named if this continues."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, Raw, completion
from tests.support.impatient import impatient

TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "yes"}
"""
MODEL_FILE = """
key: m
display_name: M
config:
  connection_type: custom_connection
  url: %s/chat/completions
  api_key: none
  model_key: m
  adapter: {key: latticeflow$openai_chat_completion}
"""
BENCHMARK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match


@task
def t():
    return Task([Sample("q0", target="yes"), Sample("q1", target="yes")], scorer=match())
"""
WHOLE = json.dumps(completion("yes")).encode()
REPLIES = {
    "cut JSON": Raw((WHOLE[: len(WHOLE) // 2],)),
    "cut body": Raw((WHOLE[: len(WHOLE) // 2],), cut=True),
    "empty": Raw((b"",)),
    "text": Raw((b"upstream timed out",), headers={"Content-Type": "text/plain"}),
    "not text": Raw((b"\xff\xfe\x00\x01",)),
}
PATHS = {
    "inspect": ("task.yaml", "--model", "openai-api/local/m"),
    "inspect, model file": ("task.yaml", "--model", "m.yaml"),
    "lighteval": ("task.yaml", "--model", "openai-api/local/m", "--engine", "lighteval"),
    "lighteval, model file": ("task.yaml", "--model", "m.yaml", "--engine", "lighteval"),
    "benchmark": ("inspect:own.py", "--model", "openai-api/local/m"),
}
Load = Callable[[Path], dict[str, Any]]


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
    return endpoint


@pytest.mark.engine
@pytest.mark.parametrize("path", list(PATHS))
def test_unreadable_reply_is_requested_again(aigo: Run, server: Endpoint, path: str) -> None:
    """Each kind of unreadable reply once, then the answer."""
    asked: Counter[str] = Counter()
    kinds = list(REPLIES.values())

    def answer(body: Any) -> Any:
        question = json.dumps(body["messages"])
        asked[question] += 1
        return kinds[asked[question] - 1] if asked[question] <= len(kinds) else (200, completion("yes"))

    server.answer = answer
    done = aigo("run", *PATHS[path], "--json")

    assert done.code == 0, done.err
    assert set(asked.values()) == {len(kinds) + 1}
    assert "failed" not in done.err


@pytest.mark.engine
@pytest.mark.parametrize("path", list(PATHS))
def test_failing_server_is_reported_with_model_cause_and_fix(
    aigo: Run, server: Endpoint, tmp_path: Path, path: str
) -> None:
    server.answer = lambda _: REPLIES["cut JSON"]
    done = aigo("run", *PATHS[path])

    assert done.code == 1
    place = server.url.removeprefix("http://").removesuffix("/v1")
    (line,) = {line for line in done.out.splitlines() if "cannot be read" in line}
    (file,) = (tmp_path / "out").glob("*.tasklog.json")
    for text in (line, file.read_text()):
        assert place in text
        assert "--resume" in text
    assert "m" in line
    assert "RetryError" not in done.out + done.err

    server.answer = lambda _: (200, completion("yes"))
    assert aigo("run", *PATHS[path], "--resume").code == 0


@pytest.mark.engine
@pytest.mark.parametrize("path", [path for path in PATHS if path != "benchmark"])
def test_keys_in_unreadable_replies_are_not_written(
    aigo: Run, server: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    key = "correct-horse-battery-9"
    monkeypatch.setenv("LOCAL_API_KEY", key)
    (tmp_path / "m.yaml").write_text(
        MODEL_FILE.replace("none", "<< secrets.KEY >>") % server.url + "secrets: {KEY: $LOCAL_API_KEY}\n"
    )
    server.answer = lambda _: Raw((f"welcome {key}".encode(),), headers={"Content-Type": "text/plain"})
    done = aigo("run", *PATHS[path])

    assert done.code == 1, done.err
    assert key not in done.out + done.err
    assert [
        file for file in (tmp_path / "out").rglob("*") if file.is_file() and key.encode() in file.read_bytes()
    ] == []
    assert "[secret]" in next((tmp_path / "out").glob("*.tasklog.json")).read_text()
