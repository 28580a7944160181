"""The same three tasks with a real HTTP endpoint: equal scores and correct requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, completion

Load = Callable[[Path], dict[str, Any]]


def answers(path: Path) -> Callable[[dict[str, Any]], str]:
    """Read the task's script as a lookup table, independent of the scripted model."""
    rules = [json.loads(line) for line in path.read_text().splitlines()]

    def answer(body: dict[str, Any]) -> str:
        last = body["messages"][-1]["content"]
        for rule in rules:
            wanted = rule.get("match", {})
            if rule.get("default") or wanted.get("exact") == last or wanted.get("contains", "\0") in last:
                reply = rule["reply"]
                return str(reply if isinstance(reply, str) else reply["text"])
        raise AssertionError(last)

    return answer


@pytest.fixture
def local(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "key-of-the-test")
    return endpoint


def scores(result: dict[str, Any]) -> list[Any]:
    return [sample["trials"][0]["scores"][0]["values"] for sample in result["evidence"]["samples"]]


def test_generic_input_is_scored_over_http(
    aigo: Run, tasks: Path, local: Endpoint, tmp_path: Path, result_of: Load
) -> None:
    """The request has the template's messages; the evidence has the endpoint's usage and 18 of 22."""
    folder = tasks / "singleturn-generic-input"
    reply = answers(folder / "answers.jsonl")
    local.answer = lambda body: (200, completion(reply(body), prompt_tokens=21, completion_tokens=2))

    done = aigo("run", folder, "--model", "openai-api/local/some-model", "--out", "http")
    assert done.code == 0, done.err
    aigo("run", folder, "--model", f"scripted/{folder / 'answers.jsonl'}", "--out", "script")

    over_http = result_of(tmp_path / "http" / "singleturn-generic-input.tasklog.json")
    scripted = result_of(tmp_path / "script" / "singleturn-generic-input.tasklog.json")
    assert scores(over_http) == scores(scripted)
    assert over_http["evidence"]["metrics"] == scripted["evidence"]["metrics"]
    assert over_http["execution"]["model_usage"] == {
        "num_samples": 22,
        "num_prompt_tokens": 22 * 21,
        "num_completion_tokens": 22 * 2,
    }
    assert len(local.requests) == 22
    request = next(r for r in local.requests if "Norway" in r["messages"][1]["content"])
    assert request["model"] == "some-model"
    assert request["messages"] == [
        {"role": "system", "content": "You are a helpful assistant. Answer with no punctuation."},
        {"role": "user", "content": "What is the capital of Norway?"},
    ]
    assert local.headers[0]["authorization"] == "Bearer key-of-the-test"


def test_trivia_is_judged_over_http(
    aigo: Run, tasks: Path, local: Endpoint, tmp_path: Path, result_of: Load
) -> None:
    """Judge requests contain the JSON schema of a structured output; 17 of 21 are correct."""
    folder = tasks / "hp-trivia"
    model, judge = answers(folder / "answers.jsonl"), answers(folder / "judge.jsonl")
    local.answer = lambda body: (200, completion((judge if body["model"] == "judge" else model)(body)))

    done = aigo(
        "run", folder, "--model", "openai-api/local/trivia", "--out", "http",
        "--model-map", "openai$gpt-4-1-nano=openai-api/local/judge",
    )  # fmt: skip

    assert done.code == 0, done.err
    result = result_of(tmp_path / "http" / "hp-trivia.tasklog.json")
    assert [number for number, values in enumerate(scores(result)) if not values["is_correct"]] == [
        7,
        8,
        15,
        18,
    ]
    request = next(r for r in local.requests if r["model"] == "judge")
    schema = request["response_format"]["json_schema"]
    assert request["response_format"]["type"] == "json_schema"
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["prediction"]["enum"] == ["correct", "incorrect"]
    assert schema["schema"]["required"] == ["reasoning", "prediction", "confidence"]
    assert schema["schema"]["additionalProperties"] is False
    assert all("response_format" not in r for r in local.requests if r["model"] == "trivia")


def test_uniqueness_calls_no_endpoint(aigo: Run, tasks: Path, local: Endpoint) -> None:
    contacts = tasks / "uniqueness-task" / "contacts.csv"
    done = aigo(
        "run", "aigo_tasks/uniqueness-task", "--dataset", f"c={contacts}", "--config", "field=email", "--json"
    )

    assert done.json["metrics"][0]["value"] == 0.8
    assert local.requests == []


def test_refused_request_fails_its_sample(
    aigo: Run, tasks: Path, local: Endpoint, tmp_path: Path, result_of: Load
) -> None:
    """HTTP 400 fails the sample with the endpoint's message; the others continue."""

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "Norway" in body["messages"][1]["content"]:
            return 400, {"error": {"message": "no such thing as Norway", "type": "invalid_request_error"}}
        return 200, completion("ok")

    local.answer = answer
    done = aigo(
        "run", tasks / "singleturn-generic-input", "--model", "openai-api/local/m", "-n", 3, "--out", "o"
    )

    assert done.code == 1
    result = result_of(tmp_path / "o" / "singleturn-generic-input.tasklog.json")
    (error,) = result["evidence"]["samples"][0]["trials"][0]["errors"]
    assert error["stage"] == "solver"
    assert "no such thing as Norway" in error["message"]
    assert result["evidence"]["failures"] == {"num_errors": 1, "num_total": 3}


def test_api_key_is_in_no_written_file(aigo: Run, tasks: Path, local: Endpoint, tmp_path: Path) -> None:
    aigo("run", tasks / "singleturn-generic-input", "--model", "openai-api/local/m", "-n", 2, "--out", "o")

    from aigo_inspect.logs.reader import open_log

    (log,) = (tmp_path / "o").glob("*.eval")
    with open_log(log) as reader:
        text = repr(reader.header) + "".join(repr(sample.data) for sample in reader.samples())
    text += (tmp_path / "o" / "singleturn-generic-input.tasklog.json").read_text()
    assert "key-of-the-test" not in text
