"""`openai/…` against a server with the OpenAI protocol: the evidence contains all data of the Inspect
provider."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.inspect.models.test_models_from_files import (
    TASK,
    add_judge,
    judged,
    trials,
    word_of,
    written,
)
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, Raw, completion

from aigo_inspect.logs.reader import open_log

Load = Callable[[Path], dict[str, Any]]
SECRET = "sk-not-for-anybodys-eyes"


@pytest.fixture
def folder(tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"word": f"word{n}"}) + "\n" for n in range(3)))
    endpoint.answer = lambda body: (200, completion(word_of(body)))
    return tmp_path


def run_openai(aigo: Run, *args: object) -> Any:
    return aigo("run", "task.yaml", "--model", "openai/gpt-4o-mini", "--out", "out", *args)


def test_transient_failures_of_openai_are_retried(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    """Too many requests, a server error and a closed connection each affect one sample once."""
    first: dict[str, Any] = {
        "word0": (429, {"error": {"message": "slow down", "type": "requests"}}),
        "word1": (500, {"error": {"message": "oops"}}),
        "word2": Raw((b'{"choi',), cut=True),
    }
    endpoint.answer = lambda body: first.pop(word_of(body), None) or (200, completion(word_of(body)))
    done = run_openai(aigo, "--json")
    assert done.code == 0, done.err
    assert done.json["metrics"][0]["value"] == 1.0
    assert len(endpoint.requests) == 6


def test_all_fields_of_the_answer_are_in_the_evidence(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    """The fields are log probabilities, cached and reasoning tokens, a tool call and the stop reason."""
    answer = completion("word0", prompt_tokens=100, completion_tokens=20)
    answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 64}
    answer["usage"]["completion_tokens_details"] = {"reasoning_tokens": 7}
    (choice,) = answer["choices"]
    choice["finish_reason"] = "length"
    choice["message"]["tool_calls"] = [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    ]
    choice["logprobs"] = {
        "content": [{"token": "word0", "logprob": -0.25, "bytes": [119], "top_logprobs": []}]
    }
    endpoint.answer = lambda _: (200, answer)
    (folder / "task.yaml").write_text(
        TASK.replace(
            '      type: chat_completion\n      input_messages: [{role: user, content: "say {{ sample.word }}"}]\n',
            '      type: generic\n      template: \'{"messages": [{"role": "user", "content": "say"}],'
            ' "temperature": 0, "logprobs": true, "max_tokens": 3}\'\n',
        )
    )
    done = run_openai(aigo, "-n", 1)
    assert done.code == 0, done.err
    (body,) = endpoint.requests
    assert (body["temperature"], body["logprobs"]) == (0, True)
    result = result_of(folder / "out" / "echo.tasklog.json")
    assert result["execution"]["model_usage"]["num_prompt_tokens"] == 100
    (trial,) = trials(result)
    _, said, call = trial["solver"]["output"]["trace"]["items"]
    assert said["status"] == "incomplete"
    assert said["content"][0]["logprobs"][0]["logprob"] == -0.25
    assert (call["name"], json.loads(call["arguments"])) == ("look", {"a": 1})
    with open_log(next((folder / "out").glob("*.eval"))) as log:
        (sample,) = log.samples()
    output = next(event for event in sample.data["events"] if event["event"] == "model")["output"]
    assert output["usage"]["input_tokens_cache_read"] == 64
    assert output["choices"][0]["stop_reason"] == "max_tokens"


def test_structured_output_is_requested_from_openai(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    add_judge(folder, "use_structured_outputs: true")
    endpoint.answer = lambda body: (200, completion(judged(body)))
    done = run_openai(aigo, "--model-map", "judge=openai/gpt-4o", "--json")
    assert done.code == 0, done.err
    assert [metric["value"] for metric in done.json["metrics"]] == [1.0, 1.0]
    forms = [body["response_format"] for body in endpoint.requests if "response_format" in body]
    assert [form["json_schema"]["schema"]["properties"]["prediction"]["enum"] for form in forms] == [
        ["good", "bad"]
    ] * 3


@pytest.mark.parametrize("answer", [(200, {"choices": []}), (400, {"error": {"message": "no such model"}})])
def test_an_invalid_answer_fails_the_sample(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load, answer: Any
) -> None:
    endpoint.answer = lambda body: answer if word_of(body) == "word1" else (200, completion(word_of(body)))
    assert run_openai(aigo).code == 1
    result = result_of(folder / "out" / "echo.tasklog.json")
    assert result["evidence"]["failures"] == {"num_errors": 1, "num_total": 3}
    assert trials(result)[1]["errors"][0]["stage"] == "solver"
    assert SECRET not in written(folder)
