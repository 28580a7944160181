"""Model files run on Inspect against a real server through the command line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.endpoint import Endpoint, Raw, completion, delta, events
from tests.support.impatient import impatient
from tests.support.jobs import run_task

from aigo_inspect.logs.reader import open_log

Load = Callable[[Path], dict[str, Any]]
SECRET = "sk-not-for-anybodys-eyes"

TASK = """key: echo
display_name: Echo
description: Does the model say what it is asked to say?
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "say {{ sample.word }}"}]
  scorers:
    - type: string_equals
      ground_truth: "{{ sample.word }}"
      metrics: [{type: mean, field: is_correct, name: Accuracy}]
"""
MODEL = """key: local
display_name: Local
secrets: {{K: $MODEL_KEY}}
{more}config:
  url: {url}/chat/completions
  api_key: << secrets.K >>
  model_key: m-1
  adapter: {{key: {adapter}}}
"""


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aigo_bridge.execution.progress.FIRST_WAIT", 0.02)
    monkeypatch.setenv("MODEL_KEY", SECRET)


@pytest.fixture
def folder(tmp_path: Path, endpoint: Endpoint) -> Path:
    """Write a task with 6 rows, and `model.yaml` for an endpoint that repeats the requested word."""
    (tmp_path / "task.yaml").write_text(TASK)
    rows = [{"sample_id": f"s{number}", "word": f"word{number}"} for number in range(6)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_model(tmp_path, endpoint)
    endpoint.answer = lambda body: (200, completion(word_of(body)))
    return tmp_path


def write_model(
    folder: Path, endpoint: Endpoint, more: str = "", adapter: str = "latticeflow$openai_chat_completion"
) -> None:
    (folder / "model.yaml").write_text(MODEL.format(url=endpoint.url, more=more, adapter=adapter))


def word_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"]).removeprefix("say ")


def trials(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [sample["trials"][0] for sample in result["evidence"]["samples"]]


def written(folder: Path) -> str:
    """Return all files of a run as text."""
    text = "".join(path.read_text() for path in folder.rglob("*.tasklog.json"))
    for path in folder.rglob("*.eval"):
        with open_log(path) as log:
            text += repr(log.header) + "".join(repr(sample.data) for sample in log.samples())
    return text


def run_echo(aigo: Run, *args: object) -> Any:
    return aigo("run", "task.yaml", "--model", "model.yaml", "--out", "out", *args)


def test_a_model_file_runs_as_a_model(aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load) -> None:
    done = run_echo(aigo, "--json")
    assert done.code == 0, done.err
    assert done.json["metrics"][0]["value"] == 1.0
    # The version identifies the content of the model file.
    assert re.fullmatch(r"aigo_bridge/model\.yaml@[0-9a-f]{8}", done.json["models"][""])
    result = result_of(folder / "out" / "echo.tasklog.json")
    assert result["execution"]["model_usage"] == {
        "num_samples": 6, "num_prompt_tokens": 66, "num_completion_tokens": 18,
    }  # fmt: skip
    assert sorted(word_of(body) for body in endpoint.requests) == [f"word{n}" for n in range(6)]
    (io,) = trials(result)[0]["solver"]["output"]["direct_ios"]
    assert json.loads(io["direct_input"]["body"]) == {
        "model": "m-1", "messages": [{"role": "user", "content": "say word0"}],
    }  # fmt: skip
    assert io["direct_output"]["status_code"] == 200
    assert json.loads(io["direct_output"]["body"])["choices"][0]["message"]["content"] == "word0"


def test_inspect_eval_accepts_a_model_file(command: Run, folder: Path, endpoint: Endpoint) -> None:
    done = command(
        "inspect", "eval", "aigo_bridge/task", "-T", "task=task.yaml", "--model", "aigo_bridge/model.yaml",
        "--display", "none", "--log-dir", "logs", MODEL_KEY=SECRET,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len(endpoint.requests) == 6
    log = next((folder / "logs").glob("*.eval"))
    again = command("inspect", "eval-retry", log, "--display", "none", MODEL_KEY=SECRET)
    assert again.code == 0, again.err
    text = (folder / "model.yaml").read_text()
    (folder / "model.yaml").write_text(text.replace("m-1", "m-2"))
    other = command("inspect", "eval-retry", log, "--display", "none", MODEL_KEY=SECRET)
    assert other.code != 0
    assert "has changed since this run began" in other.err + other.out


def test_transient_failures_are_retried(aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load) -> None:
    """Each sample fails once and is then answered. No sample is lost or scored twice."""
    seen: set[str] = set()

    def answer(body: dict[str, Any]) -> Any:
        word = word_of(body)
        if word not in seen:
            seen.add(word)
            status = 429 if word in ("word0", "word1", "word2") else 500
            return Raw((b"busy",), status=status, headers={"Retry-After": "0.05"})
        return 200, completion(word)

    endpoint.answer = answer
    done = run_echo(aigo)
    assert done.code == 0, done.err
    assert len(endpoint.requests) == 12
    result = result_of(folder / "out" / "echo.tasklog.json")
    assert result["evidence"]["metrics"][0]["values"] == {"Accuracy": 1.0}


def test_the_requested_retry_delay_is_observed(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if len(endpoint.requests) == 1:
            return Raw((b"busy",), status=429, headers={"Retry-After": "0.8"})
        return 200, completion(word_of(body))

    endpoint.answer = answer
    assert run_echo(aigo, "-n", 1).code == 0
    first, second = endpoint.times
    assert 0.8 <= second - first < 3


def test_a_permanent_failure_fails_the_sample(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if word_of(body) == "word1":
            return Raw((b'{"error": {"message": "on fire"}}',), status=503, headers={"Retry-After": "0"})
        return 200, completion(word_of(body))

    endpoint.answer = answer
    done = run_echo(aigo, "-n", 3)
    assert done.code == 1
    assert len(endpoint.requests) == 2 + 9
    result = result_of(folder / "out" / "echo.tasklog.json")
    assert result["evidence"]["failures"] == {"num_errors": 1, "num_total": 3}
    (error,) = trials(result)[1]["errors"]
    assert error == {
        "error_type": "ModelError",
        "message": "model 'local': the endpoint answered 503: on fire",
        "stage": "solver",
    }
    assert result["evidence"]["metrics"][0]["values"] == {"Accuracy": 1.0}


def test_a_refusal_is_recorded_and_not_retried(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    endpoint.answer = lambda _: (400, {"error": {"message": "no such model"}})
    done = run_echo(aigo, "-n", 1)
    assert done.code == 1
    assert len(endpoint.requests) == 1
    (trial,) = trials(result_of(folder / "out" / "echo.tasklog.json"))
    assert "no such model" in trial["errors"][0]["message"]
    assert "Request" not in trial["errors"][0]["message"]


def test_an_incomplete_answer_is_never_scored(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    """The first answer to each row is a cut stream, a stream without an end, or a cut body."""
    halves = {
        "word0": events(delta("wor"), done=False, cut=True),
        "word1": events(delta("wor"), done=False),
        "word2": Raw((b'{"choi',), cut=True),
    }

    def answer(body: dict[str, Any]) -> Any:
        word = word_of(body)
        return halves.pop(word, None) or events(*map(delta, word), delta(finish="stop"))

    endpoint.answer = answer
    done = run_echo(aigo, "-n", 3, "--json")
    assert done.json["metrics"][0]["value"] == 1.0
    assert sorted(map(word_of, endpoint.requests)) == sorted(["word0", "word1", "word2"] * 2)


def test_malformed_bodies_fail_the_sample(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that is not JSON may be complete the next time, so the request is retried."""
    impatient(monkeypatch)
    bodies = {"word0": b"", "word1": b"<html>", "word2": b'{"choices": []}', "word3": b"\xff\xfe"}
    endpoint.answer = lambda body: Raw((bodies[word_of(body)],))
    assert run_echo(aigo, "-n", 4).code == 1
    failed = trials(result_of(folder / "out" / "echo.tasklog.json"))
    assert len(failed) == 4
    for trial in failed:
        assert trial["errors"][0]["error_type"] == "ModelError"
        assert trial["errors"][0]["message"].startswith("model 'local': ")
    requests = Counter(map(word_of, endpoint.requests))
    assert [word for word in bodies if requests[word] == 1] == ["word1", "word2"]


def test_requests_to_a_silent_endpoint_time_out_and_are_retried(
    folder: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timeout is retried, and an answer in time is used."""
    from aigo_bridge.evaluation.task import plan
    from aigo_bridge.plan.plan import PlanOrigin
    from aigo_inspect.engine import InspectEngine

    monkeypatch.chdir(folder)
    endpoint.answer = lambda body: Raw(
        (json.dumps(completion(word_of(body))).encode(),), delay=1.6 if len(endpoint.requests) == 1 else 0
    )
    made = plan(PlanOrigin(task="task.yaml", num_samples=1))
    outcome = run_task(InspectEngine(), made, Path("out"), model="model.yaml", attempt_timeout=1)
    assert outcome.metrics[0].value == 1.0
    assert len(endpoint.requests) == 2


def test_concurrent_requests_respect_the_model_limit(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    write_model(folder, endpoint, "max_concurrent_requests: 2\n")
    endpoint.answer = lambda body: Raw((json.dumps(completion(word_of(body))).encode(),), delay=0.1)
    assert run_echo(aigo, "--max-connections", 20, "--max-samples", 20).code == 0
    assert endpoint.most_in_flight == 2


def test_a_judge_and_a_model_in_one_file_share_its_limit(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    write_model(folder, endpoint, "max_concurrent_requests: 1\n")
    add_judge(folder)
    endpoint.answer = lambda body: Raw((json.dumps(completion(judged(body))).encode(),), delay=0.05)
    assert run_echo(aigo, "--model-map", "judge=model.yaml").code == 0
    assert len(endpoint.requests) == 12
    assert endpoint.most_in_flight == 1


def test_requests_per_minute_respect_the_model_limit(
    aigo: Run, folder: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a minute of one second, at most 2 requests start in it, including retries."""
    monkeypatch.setattr("aigo_bridge.models.connections.connection.WINDOW", 1.0)
    write_model(folder, endpoint, "rate_limit: 2\n")

    failed: list[str] = []

    def answer(body: dict[str, Any]) -> Any:
        if word_of(body) == "word1" and not failed:
            failed.append("word1")
            return Raw((b"",), status=500, headers={"Retry-After": "0"})
        return 200, completion(word_of(body))

    endpoint.answer = answer
    assert run_echo(aigo, "-n", 4).code == 0
    assert len(endpoint.times) == 5
    for first, third in zip(endpoint.times, endpoint.times[2:], strict=False):
        assert third - first > 0.9


def test_a_judge_with_a_model_file_uses_structured_output(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    add_judge(folder, "use_structured_outputs: true")
    endpoint.answer = lambda body: (200, completion(judged(body)))
    done = run_echo(aigo, "--model-map", "judge=model.yaml", "--json")
    assert done.code == 0, done.err
    assert set(done.json["models"]) == {"", "judge"}
    assert done.json["models"]["judge"] == done.json["models"][""]
    assert [metric["value"] for metric in done.json["metrics"]] == [1.0, 1.0]
    requests = [body for body in endpoint.requests if "response_format" in body]
    assert len(requests) == 6
    form = requests[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert form["json_schema"]["schema"]["properties"]["prediction"]["enum"] == ["good", "bad"]


def add_judge(folder: Path, more: str = "") -> None:
    text = (folder / "task.yaml").read_text() + (
        "    - type: model_as_a_judge_classifier\n      model_key: judge\n"
        "      user_prompt: 'judge {{ sample.word }}'\n"
        "      correct_labels: [good]\n      incorrect_labels: [bad]\n"
        "      metrics: [{type: mean, field: is_correct, name: Judged}]\n"
    )
    (folder / "task.yaml").write_text(text + (f"      {more}\n" if more else ""))


def judged(body: dict[str, Any]) -> str:
    last = str(body["messages"][-1]["content"])
    if last.startswith("say "):
        return word_of(body)
    return '{"reasoning": "r", "prediction": "good", "confidence": 1.0}'


def test_logprobs_cached_tokens_tool_calls_and_stop_reason_are_recorded(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    """The items, the usage and the log of Inspect contain all data of the endpoint."""
    (folder / "task.yaml").write_text(
        TASK.replace(
            '      type: chat_completion\n      input_messages: [{role: user, content: "say {{ sample.word }}"}]\n',
            '      type: generic\n      template: \'{"messages": [{"role": "user", "content":'
            ' {{ sample.word | tojson }}}], "temperature": 0, "logprobs": true, "top_logprobs": 1, "max_tokens": 3}\'\n',
        )
    )
    usage = {
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 7},
    }  # fmt: skip
    top = {"token": "wurd", "logprob": -2.5, "bytes": None}
    token = {"token": "word0", "logprob": -0.25, "bytes": [119], "top_logprobs": [top]}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "word0", "reasoning_content": "because", "tool_calls": [call]}
    choice = {"message": message, "finish_reason": "length", "logprobs": {"content": [token]}}
    endpoint.answer = lambda _: (200, {"model": "m-1-2026", "choices": [choice], "usage": usage})

    done = run_echo(aigo, "-n", 1)
    assert done.code == 0, done.err
    (body,) = endpoint.requests
    assert {name: body[name] for name in ("temperature", "logprobs", "top_logprobs", "max_tokens")} == {
        "temperature": 0, "logprobs": True, "top_logprobs": 1, "max_tokens": 3,
    }  # fmt: skip
    result = result_of(folder / "out" / "echo.tasklog.json")
    assert result["execution"]["model_usage"]["num_prompt_tokens"] == 100
    assert result["execution"]["model_usage"]["num_completion_tokens"] == 20
    (trial,) = trials(result)
    user, reasoning, answer, function_call = trial["solver"]["output"]["trace"]["items"]
    assert user["role"] == "user"
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "because"}]
    assert answer["status"] == "incomplete"
    (part,) = answer["content"]
    assert part["text"] == "word0"
    assert part["logprobs"][0]["logprob"] == -0.25
    assert part["logprobs"][0]["top_logprobs"][0]["token"] == "wurd"
    assert (function_call["name"], json.loads(function_call["arguments"])) == ("look", {"a": 1})
    assert trial["scores"][0]["values"] == {"is_correct": 1.0}
    with open_log(next((folder / "out").glob("*.eval"))) as log:
        (sample,) = log.samples()
    output = next(event for event in sample.data["events"] if event["event"] == "model")["output"]
    assert output["usage"]["input_tokens"] == 36
    assert output["usage"]["input_tokens_cache_read"] == 64
    assert output["usage"]["reasoning_tokens"] == 7
    assert output["choices"][0]["stop_reason"] == "max_tokens"


def test_the_api_key_is_sent_and_never_written(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    """This includes endpoints that repeat the key in an answer or in an error."""

    def answer(body: dict[str, Any]) -> Any:
        if word_of(body) == "word0":
            return 401, {"error": {"message": f"wrong key {SECRET}"}}
        if word_of(body) == "word1":
            message = f"no place for {SECRET}".encode()
            return Raw((message,), status=503, headers={"Retry-After": "0", "X-Request-Id": SECRET})
        return 200, completion(f"{word_of(body)} {SECRET}")

    endpoint.answer = answer
    done = run_echo(aigo, "-n", 3)
    assert done.code == 1
    assert {headers["authorization"] for headers in endpoint.headers} == {f"Bearer {SECRET}"}
    text = written(folder)
    assert "wrong key [secret]" in text
    assert SECRET not in text + done.out + done.err


def test_an_interrupted_run_continues(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    answer = endpoint.answer
    endpoint.answer = lambda body: (
        (400, {"error": "down"}) if word_of(body) in ("word2", "word3") else answer(body)
    )
    assert run_echo(aigo).code == 1
    endpoint.answer = answer
    endpoint.requests.clear()
    done = run_echo(aigo, "--resume", "--json")
    assert done.code == 0, done.err
    assert done.json["samples"]["reused"] == 4
    assert sorted(map(word_of, endpoint.requests)) == ["word2", "word3"]


def test_a_changed_model_does_not_resume_the_run_of_another(
    aigo: Run, folder: Path, endpoint: Endpoint
) -> None:
    answer = endpoint.answer
    endpoint.answer = lambda body: (400, {"error": "down"}) if word_of(body) == "word2" else answer(body)
    assert run_echo(aigo).code == 1
    text = (folder / "model.yaml").read_text()
    (folder / "model.yaml").write_text(text.replace("m-1", "m-2"))
    endpoint.requests.clear()
    endpoint.answer = answer
    done = run_echo(aigo, "--resume", "--json")
    assert done.json["samples"]["reused"] == 0
    assert {body["model"] for body in endpoint.requests} == {"m-2"}
    assert len(endpoint.requests) == 6


def test_a_custom_adapter_returns_references(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    (folder / "model_adapters").mkdir()
    (folder / "model_adapters" / "rag.yaml").write_text(
        "key: rag\ndisplay_name: RAG\n"
        "process_input: {language: jinja, source_code: '{\"question\": {{ input.messages[-1].content | tojson }}}'}\n"
        "process_output:\n  language: jinja\n  source_code: |\n"
        "    {% set found = body | fromjson %}\n"
        '    {"choices": [{"message": {"role": "assistant", "content": {{ found.answer | tojson }}},'
        ' "references": {{ found.passages | tojson }}}],\n'
        '     "usage": {"num_prompt_tokens": 7, "num_completion_tokens": 2}}\n'
    )
    write_model(folder, endpoint, adapter="rag")
    endpoint.answer = lambda body: (
        200, {"answer": body["question"].removeprefix("say "), "passages": [{"content": "über p"}]},
    )  # fmt: skip
    done = run_echo(aigo, "-n", 2)
    assert done.code == 0, done.err
    (trial, _) = trials(result_of(folder / "out" / "echo.tasklog.json"))
    (raw,) = trial["solver"]["output"]["raw_outputs"]
    assert raw["choices"][0]["references"] == [{"content": "über p"}]
    assert raw["usage"] == {"num_prompt_tokens": 7, "num_completion_tokens": 2}


def test_a_stateless_responses_endpoint_gets_the_whole_conversation(
    aigo: Run, folder: Path, endpoint: Endpoint
) -> None:
    (folder / "task.yaml").write_text(
        """key: echo
display_name: Echo
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: multi_turn_solver
    message_builders:
      - {type: chat_message, role: user, content: "first"}
      - {type: generate}
      - {type: chat_message, role: user, content: "{{ sample.word }}"}
      - {type: generate}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.word }}"}
"""
    )
    write_model(folder, endpoint, adapter="latticeflow$openai_responses")

    def answer(body: dict[str, Any]) -> Any:
        part = {"type": "output_text", "text": body["input"][-1]["content"], "annotations": []}
        return 200, {"status": "completed", "output": [{"type": "message", "content": [part]}]}

    endpoint.answer = answer
    done = run_echo(aigo, "-n", 1, "--json")
    assert done.code == 0, done.err
    assert done.json["metrics"][0]["value"] == 1.0
    assert endpoint.requests[1]["input"] == [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "first"},
        {"role": "user", "content": "word0"},
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("key: local\n", "kee: local\n"), "model.yaml:1:1: error: unknown key 'kee'"),
        (("adapter: {key: latticeflow$openai_chat_completion}", "adapter: {key: nobodys}"), "model.yaml:8:12: error: no model adapter 'nobodys'"),
        (("$MODEL_KEY", "$NOT_SET_AT_ALL"), "'api_key': environment variable 'NOT_SET_AT_ALL' is not set"),
        (("url: http://", "url: htp://"), "model.yaml:5:8: error: 'url': expected an address"),
    ],
)  # fmt: skip
def test_problems_of_a_model_file_are_reported_before_the_run(
    aigo: Run, folder: Path, endpoint: Endpoint, change: tuple[str, str], message: str
) -> None:
    text = (folder / "model.yaml").read_text()
    (folder / "model.yaml").write_text(text.replace(*change))
    for given in (["--model", "model.yaml"], ["--model", "aigo_bridge/model.yaml"]):
        done = aigo("run", "task.yaml", *given, "--out", "out")
        assert done.code == 2
        assert message in done.err
    assert endpoint.requests == []


def test_a_missing_model_file_is_reported(aigo: Run, folder: Path) -> None:
    done = aigo("run", "task.yaml", "--model", "nothing.yaml")
    assert (done.code, done.err) == (2, "error: model file 'nothing.yaml' does not exist [AB403]\n")


def test_models_in_a_run_file_are_referenced_by_key(aigo: Run, folder: Path, endpoint: Endpoint) -> None:
    entity = "".join(f"    {line}\n" for line in (folder / "model.yaml").read_text().splitlines())
    (folder / "run.yaml").write_text("models:\n  -" + entity[3:] + "  - $provider: openai/gpt-4.1-nano\n")
    done = aigo("run", "task.yaml", "--model", "run.yaml#local", "--out", "out", "--json")
    assert done.code == 0, done.err
    assert done.json["models"][""].startswith("aigo_bridge/run.yaml#local@")


def test_a_provider_connection_uses_the_inspect_provider(
    aigo: Run, folder: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, result_of: Load
) -> None:
    (folder / "model.yaml").write_text(
        "key: m\ndisplay_name: M\nmax_concurrent_requests: 2\n"
        "config: {connection_type: provider_connection, provider_id: openai, model_key: gpt-4o-mini}\n"
    )
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    endpoint.answer = lambda body: Raw((json.dumps(completion(word_of(body))).encode(),), delay=0.05)
    done = run_echo(aigo, "--json")
    assert done.code == 0, done.err
    assert done.json["models"][""].startswith("aigo_bridge/model.yaml@")
    assert {body["model"] for body in endpoint.requests} == {"gpt-4o-mini"}
    assert set(endpoint.paths) == {"/v1/chat/completions"}
    assert endpoint.most_in_flight <= 2
    assert SECRET not in written(folder)


@pytest.mark.parametrize(
    ("provider", "message"), [("latticeflow", "is not supported here"), ("novita", "NOVITA")]
)
def test_unavailable_providers_are_reported(
    aigo: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, provider: str, message: str
) -> None:
    monkeypatch.delenv("NOVITA_API_KEY", raising=False)
    (folder / "model.yaml").write_text(
        f"key: m\ndisplay_name: M\nconfig: {{connection_type: provider_connection, provider_id: {provider}, model_key: x}}\n"
    )
    done = run_echo(aigo)
    assert done.code == 2
    assert message in done.err


INFERENCE = """key: coded
display_name: Coded
config:
  connection_type: custom_inference
  timeout: 20
  environment: {SUFFIX: "", TOKEN: << secrets.K >>}
  adapter: {key: latticeflow$openai_chat_completion}
  run_inference_snippet: |
    import json, os

    def run_inference(body, environment%s):
        assert environment["TOKEN"] and "MODEL_KEY" not in os.environ
        said = json.loads(body)["messages"][-1]["content"].removeprefix("say ")
        %s
        return json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]})
secrets: {K: $MODEL_KEY}
"""


# Each concurrent call of a model's code has a worker of its own.
ONE_WORKER = ("--max-samples", 1)


def test_a_model_called_by_custom_code_runs(aigo: Run, folder: Path) -> None:
    (folder / "model.yaml").write_text(INFERENCE % ("", "pass"))
    done = run_echo(aigo, "--json", "--max-samples", 2)
    assert done.code == 0, done.err
    assert done.json["metrics"][0]["value"] == 1.0
    assert SECRET not in written(folder)


def test_custom_code_receives_the_row(aigo: Run, folder: Path) -> None:
    (folder / "model.yaml").write_text(INFERENCE % (", *, sample", 'said = sample["word"]'))
    assert run_echo(aigo, "--json", "-n", 1).json["metrics"][0]["value"] == 1.0


def test_failing_custom_code_fails_its_sample(aigo: Run, folder: Path, result_of: Load) -> None:
    failures = {
        "word1": (
            'raise ValueError("no luck")',
            "ValueError: no luck (model.yaml, line 14, in run_inference",
        ),
        "word2": ("return 3", "run_inference returned a int, expected text"),
        "word3": ("os._exit(1)", "its process ended without an answer"),
        "word4": ('return "not json"', "the response is not JSON"),
    }
    code = "".join(f'if said == "{word}": {statement}\n        ' for word, (statement, _) in failures.items())
    (folder / "model.yaml").write_text(INFERENCE % ("", code))
    done = run_echo(aigo, *ONE_WORKER)
    assert done.code == 1
    right, *failed, last_right = trials(result_of(folder / "out" / "echo.tasklog.json"))
    for trial, (_, message) in zip(failed, failures.values(), strict=True):
        assert message in trial["errors"][0]["message"]
    assert right["errors"] == last_right["errors"] == []


def test_secrets_printed_by_custom_code_are_redacted(aigo: Run, folder: Path) -> None:
    show = 'if said == "word1": raise ValueError(environment["TOKEN"])\n        said += environment["TOKEN"]'
    (folder / "model.yaml").write_text(INFERENCE % ("", show))
    done = run_echo(aigo, "-n", 3, *ONE_WORKER)
    assert done.code == 1
    text = written(folder)
    assert "ValueError: [secret]" in text
    assert "word0[secret]" in text
    assert SECRET not in text + done.out + done.err


def test_chat_with_an_embeddings_model_is_refused(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    write_model(folder, endpoint, "task: embeddings\n")
    done = run_echo(aigo, "-n", 1)
    assert done.code != 0
    assert "creates embeddings and cannot hold the conversation" in done.err + done.out
    assert endpoint.requests == []


IN_PROCESS = ("--snippets", "in-process")
PYTHON_SOLVER = """key: vectors
display_name: Vectors
description: ""
tasks: [%s]
definition:
  dataset: {key: rows}
  solver:
    type: python
    run_solver_snippet: |
      async def run_solver(sample, model, trace):
          trace.append_custom_task_input_message(%s)
          trace.add_model_response(await model.predict(trace.items))
          return trace
  scorers:
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"found": %s}
      metrics: [{type: mean, field: found, name: Found}]
"""


def test_a_python_solver_can_request_embeddings(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    write_model(folder, endpoint, "task: embeddings\n", "latticeflow$openai")
    (folder / "task.yaml").write_text(
        PYTHON_SOLVER
        % ("embeddings", '[sample["word"], "b"]', "solver_output.raw_outputs[0].embeddings[1][0]")
    )
    endpoint.answer = lambda body: (
        200,
        {
            "data": [{"index": index, "embedding": [index, 1]} for index, _ in enumerate(body["input"])],
            "usage": {"prompt_tokens": 4},
        },
    )
    done = run_echo(aigo, "-n", 2, "--json", *IN_PROCESS)
    assert done.code == 0, done.err
    assert done.json["metrics"][0]["value"] == 1.0
    assert endpoint.requests[0]["model"] == "m-1"
    assert sorted(body["input"] for body in endpoint.requests) == [["word0", "b"], ["word1", "b"]]
    trial = trials(result_of(folder / "out" / "vectors.tasklog.json"))[0]
    (raw,) = trial["solver"]["output"]["raw_outputs"]
    assert raw["embeddings"] == [[0.0, 1.0], [1.0, 1.0]]


def test_a_python_solver_can_call_a_custom_model(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    write_model(folder, endpoint, "task: custom\n", "latticeflow$identity_custom")
    (folder / "task.yaml").write_text(
        PYTHON_SOLVER
        % ("custom", '{"q": sample["word"], "n": [1, None]}', 'float(solver_output.raw_outputs[0]["n"])')
    )
    endpoint.answer = lambda body: (200, {"n": len(body["n"]), "q": body["q"]})
    done = run_echo(aigo, "-n", 1, "--json", *IN_PROCESS)
    assert done.code == 0, done.err
    assert done.json["metrics"][0]["value"] == 2.0
    assert endpoint.requests == [{"q": "word0", "n": [1, None]}]
    (trial,) = trials(result_of(folder / "out" / "vectors.tasklog.json"))
    items = trial["solver"]["output"]["trace"]["items"]
    assert [(item["type"], item["content"]) for item in items] == [
        ("custom_task_input_message", {"q": "word0", "n": [1, None]}),
        ("custom_task_output_message", {"n": 2, "q": "word0"}),
    ]


def test_options_dropped_by_an_adapter_are_refused(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load
) -> None:
    (folder / "adapter.yaml").write_text(
        'key: plain\ndisplay_name: P\nprocess_input: {language: jinja, source_code: "{{ input | tojson }}"}\n'
        'process_output: {language: jinja, source_code: "{{ body }}"}\n'
    )
    write_model(folder, endpoint, adapter="plain")
    (folder / "task.yaml").write_text(
        TASK.replace(
            '      type: chat_completion\n      input_messages: [{role: user, content: "say {{ sample.word }}"}]\n',
            '      type: generic\n      template: \'{"messages": [], "temperature": 0}\'\n',
        )
    )
    done = run_echo(aigo, "-n", 1)
    assert done.code == 1
    (trial,) = trials(result_of(folder / "out" / "echo.tasklog.json"))
    assert "receives temperature, which its adapter 'plain' does not pass on" in trial["errors"][0]["message"]
    assert endpoint.requests == []


def test_the_documents_example_works(
    aigo: Run, folder: Path, endpoint: Endpoint, result_of: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example is the model with its adapter in docs/reference/models.md."""
    document = (REPOSITORY / "docs" / "reference" / "models.md").read_text()
    model, adapter = re.findall(r"^```yaml\n(key: .*?)^```$", document, re.DOTALL | re.MULTILINE)
    (folder / "model.yaml").write_text(re.sub(r"url: .*", f"url: {endpoint.url}", model))
    (folder / "adapter.yaml").write_text(adapter)
    monkeypatch.setenv("ASSISTANT_KEY", SECRET)

    def answer(body: dict[str, Any]) -> Any:
        said = body["question"].removeprefix("say ")
        return 200, {"answer": said, "passages": [{"content": "p"}], "tokens_in": 5, "tokens_out": 1}

    endpoint.answer = answer
    done = run_echo(aigo, "-n", 1, "--json")
    assert done.code == 0, done.err
    assert done.json["metrics"][0]["value"] == 1.0
    assert endpoint.requests == [{"model": "assistant-2", "question": "say word0"}]
    (trial,) = trials(result_of(folder / "out" / "echo.tasklog.json"))
    assert trial["solver"]["output"]["raw_outputs"][0]["choices"][0]["references"] == [{"content": "p"}]
