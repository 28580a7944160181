"""A server refuses calls for a while: waiting is reported for every way to call a model."""

from __future__ import annotations

import json
from collections import Counter
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


@pytest.fixture
def busy(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Server that answers a question at the fourth request (OpenAI's client tries three times), with short waits."""
    impatient(monkeypatch)
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"q": f"q{n}"}) + "\n" for n in range(4)))
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "m.yaml").write_text(MODEL_FILE % endpoint.url)
    asked: Counter[str] = Counter()

    def answer(body: Any) -> Any:
        question = json.dumps(body["messages"])
        asked[question] += 1
        if asked[question] > 3:
            return 200, completion("yes")
        said = json.dumps({"error": {"message": "Rate limit reached"}}).encode()
        return Raw((said,), status=429, headers={"Retry-After": "0"})

    endpoint.answer = answer
    return endpoint


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
@pytest.mark.parametrize("model", ["openai-api/local/m", "m.yaml"])
def test_retried_calls_are_reported(aigo: Run, busy: Endpoint, engine: str, model: str) -> None:
    done = aigo("run", "task.yaml", "--model", model, "--engine", engine)

    assert done.code == 0, done.err
    told = [line for line in done.err.splitlines() if "retrying in" in line]
    assert told
    assert "429" in told[0]
    assert "Rate limit reached" in told[0]
    assert "(attempt 2)" in told[0]


def test_retried_calls_of_benchmarks_are_reported(aigo: Run, busy: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes


@task
def t():
    return Task([Sample("q0", target="yes")], scorer=includes())
"""
    )
    done = aigo("run", "inspect:own.py", "--model", "openai-api/local/m")

    assert done.code == 0, done.err
    assert "Rate limit reached: retrying in" in done.err


def test_refused_connection_is_reported_with_the_address(aigo: Run, busy: Endpoint, tmp_path: Path) -> None:
    """After the usual number of attempts."""
    busy.stop()
    address = busy.url.removeprefix("http://").removesuffix("/v1")

    for model in ("openai-api/local/m", "m.yaml"):
        done = aigo("run", "task.yaml", "-n", 1, "--model", model)

        assert done.code == 1
        told = [line for line in done.err.splitlines() if "retrying in" in line]
        assert "onnect" in told[0], told
        if model == "m.yaml":
            assert address in told[0]


@pytest.mark.parametrize("model", ["openai-api/local/m", "model.yaml"])
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_oversized_answer_fails_only_its_sample(
    aigo: Run, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, engine: str
) -> None:
    """With the own client and with an Inspect provider."""
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    monkeypatch.setenv("AIGO_BRIDGE_ANSWER_MIB", "0.5")
    monkeypatch.setenv("MODEL_KEY", "none")
    (tmp_path / "rows.jsonl").write_text('{"q": "1"}\n{"q": "2"}\n')
    (tmp_path / "t.yaml").write_text(TOO_LONG)
    (tmp_path / "model.yaml").write_text(
        f"key: m\ndisplay_name: M\nconfig:\n  url: {endpoint.url}/chat/completions\n  api_key: none\n"
        "  model_key: m\n  adapter: {key: latticeflow$openai}\n"
    )
    endpoint.answer = lambda body: (
        200, completion("x" * (1_000_000 if body["messages"][0]["content"] == "2" else 10)),
    )  # fmt: skip

    done = aigo("run", "t.yaml", "--model", model, "--engine", engine, "--json")

    assert done.code == 1
    assert (done.json["samples"]["scored"], done.json["samples"]["failed"]) == (1, 1)
    result = (tmp_path / "out" / "t.tasklog.json").read_text()
    assert "the answer is longer than 524,288 bytes" in result
    assert "AIGO_BRIDGE_ANSWER_MIB" in result


TOO_LONG = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "xxxxxxxxxx"}
"""
