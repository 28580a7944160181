"""Answers received before a run was killed are not requested again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, completion
from tests.support.forked import start
from tests.support.loggers import heard
from tests.support.running import wait_until

from aigo_bridge.execution.checkpoint import Checkpoint

Load = Callable[[Path], dict[str, Any]]
SAMPLES = 60
CONNECTIONS = 8
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
    - {type: string_equals, ground_truth: "{{ sample.right }}"}
"""


@pytest.fixture
def folder(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Task with sixty questions."""
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    rows = [{"q": f"q{n}", "right": "even" if n % 3 else "odd"} for n in range(SAMPLES)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "task.yaml").write_text(TASK)
    return tmp_path


def asked(body: Any) -> str:
    return str(body["messages"][-1]["content"])


def answer_to(question: str) -> dict[str, Any]:
    number = int(question.removeprefix("q"))
    return {**completion("odd" if number % 2 else "even"), "id": f"é {number}"}


def values_of(result: dict[str, Any]) -> list[Any]:
    """Return a result without times and ids."""
    found = []
    for sample in result["evidence"]["samples"]:
        for trial in sample["trials"]:
            scores = [(score["scorer_key"], score["values"]) for score in trial["scores"] or []]
            bodies = [io["direct_output"]["body"] for io in trial["solver"]["output"]["direct_ios"]]
            found.append((sample["sample_id"], trial["index"], scores, bodies))
    return [result["status"], [metric["values"] for metric in result["evidence"]["metrics"]], found]


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_resumed_killed_run_repeats_no_model_call(
    folder: Path, endpoint: Endpoint, aigo: Run, command: Run, result_of: Load, engine: str
) -> None:
    """The run is killed with `kill -9`; the resumed result equals the result of an uninterrupted run."""
    answered: Counter[str] = Counter()

    def answer(body: Any) -> Any:
        question = asked(body)
        if sum(answered.values()) >= SAMPLES // 2 + len(question) % 7:
            time.sleep(0.1)
        answered[question] += 1
        return 200, answer_to(question)

    endpoint.answer = answer
    words = ["run", "task.yaml", "--model", "openai-api/local/m", "--max-connections", str(CONNECTIONS)]
    words += ["--max-samples", str(CONNECTIONS), "--engine", engine]
    process = start(
        ["aigo-bridge", *words, "--out", "out"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(process, lambda: len(endpoint.requests) >= SAMPLES * 3 // 4)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (checkpoint,) = (folder / "out").glob(".answers-*")
    kept = len(checkpoint.read_bytes().splitlines())
    time.sleep(0.2)
    before = len(endpoint.requests)
    assert before < SAMPLES
    # Those that were under way when the run was killed.
    assert before - CONNECTIONS <= kept <= before

    done = command("aigo-bridge", *words, "--out", "out", "--resume", "--json", cwd=folder)

    assert done.code == 0, done.err
    assert done.json["samples"]["scored"] == SAMPLES
    assert len(endpoint.requests) == SAMPLES + before - kept
    assert not list((folder / "out").glob(".answers-*"))
    assert aigo(*words, "--out", "whole").code == 0
    resumed = result_of(folder / "out" / "t.tasklog.json")
    assert values_of(resumed) == values_of(result_of(folder / "whole" / "t.tasklog.json"))


# Stored answers by kind of call


FEW = 6
TRIALS = """
    - {type: model_as_a_judge_scorer, key: j, model_key: j, user_prompt: 'judge {{ sample.q }}'}
    - {type: model_as_a_judge_scorer, key: again, model_key: j, user_prompt: 'judge {{ sample.q }}'}
"""
BOTH = ("--model", "openai-api/local/m", "--model-map", "j=openai-api/local/m")


@pytest.fixture
def killed(folder: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Output folder of a killed run that contains only the checkpoint."""
    (folder / "task.yaml").write_text(TASK + TRIALS)
    (folder / "rows.jsonl").write_text("".join(f'{{"q": "q{n}", "right": "even"}}\n' for n in range(FEW)))

    def run(*words: str, out: str = "out") -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Checkpoint, "remove", Checkpoint.close)
            aigo("run", "task.yaml", *BOTH, *words, "--out", out)
        for path in sorted((folder / out).rglob("*"), reverse=True):
            if path.is_file() and not path.name.startswith(".answers"):
                path.unlink()

    return run


def numbered(endpoint: Endpoint) -> Any:
    """Server with a different answer for every call; judges answer 0 and 1 in turn."""

    def answer(body: Any) -> Any:
        number = len(endpoint.requests)
        said = str(number % 2) if asked(body).startswith("judge") else f"answer {number}"
        return 200, completion(said)

    return answer


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_answers_are_stored_by_trial_and_scorer(
    folder: Path, endpoint: Endpoint, aigo: Run, killed: Callable[..., None], result_of: Load, engine: str
) -> None:
    """Three trials and two judges send identical requests."""
    endpoint.answer = numbered(endpoint)
    words = ("--num-trials", "3", "--engine", engine)
    killed(*words)
    assert len(endpoint.requests) == FEW * 3 * 3
    (checkpoint,) = (folder / "out").glob(".answers-*")
    lines = [json.loads(line[9:]) for line in checkpoint.read_text().splitlines()]
    by_trial = Counter(line["trial"] for line in lines)
    assert by_trial == {f"{trial}/{n}": 3 for trial in range(3) for n in range(FEW)}

    done = aigo("run", "task.yaml", *BOTH, *words, "--resume", "--json")

    assert len(endpoint.requests) == FEW * 3 * 3
    assert done.json["samples"]["scored"] == FEW
    result = result_of(folder / "out" / "t.tasklog.json")
    said = [
        json.loads(io["direct_output"]["body"])["choices"][0]["message"]["content"]
        for sample in result["evidence"]["samples"]
        for trial in sample["trials"]
        for io in trial["solver"]["output"]["direct_ios"]
    ]
    assert len(set(said)) == FEW * 3
    assert result["evidence"]["metrics"][1]["values"] != {}


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_failed_trial_calls_the_model_again(
    folder: Path, endpoint: Endpoint, aigo: Run, killed: Callable[..., None], engine: str
) -> None:
    """Otherwise the cause of the failure would be permanent."""
    endpoint.answer = lambda body: (
        (400, {"error": {"message": "no"}}) if asked(body) == "judge q2" else (200, completion("1"))
    )
    killed("--engine", engine)
    before = len(endpoint.requests)
    endpoint.answer = lambda _: (200, completion("1"))

    done = aigo("run", "task.yaml", *BOTH, "--engine", engine, "--resume", "--json")

    assert done.json["samples"]["failed"] == 0
    again = [asked(body) for body in endpoint.requests[before:]]
    assert sorted(again) == ["judge q2", "judge q2", "q2"]


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_run_without_resume_repeats_all_model_calls(
    endpoint: Endpoint, aigo: Run, killed: Callable[..., None], engine: str
) -> None:
    endpoint.answer = lambda _: (200, completion("1"))
    killed("--engine", engine)
    endpoint.requests.clear()
    aigo("run", "task.yaml", *BOTH, "--engine", engine)
    assert len(endpoint.requests) == FEW * 3


def test_finished_run_deletes_its_stored_answers(folder: Path, endpoint: Endpoint, aigo: Run) -> None:
    endpoint.answer = lambda _: (200, completion("odd"))
    aigo("run", "task.yaml", "--model", "openai-api/local/m", "-n", 3)
    assert {path.suffix for path in (folder / "out").iterdir()} == {".eval", ".json"}


def test_answer_with_a_secret_is_not_stored(
    folder: Path, endpoint: Endpoint, killed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", "sk-Zq81kkQ0vbB7ehx2M4tyWc")
    endpoint.answer = lambda body: (
        200, completion("sk-Zq81kkQ0vbB7ehx2M4tyWc" if asked(body) == "q2" else "1"),
    )  # fmt: skip
    killed()
    assert all(b"Zq81kkQ0vbB7" not in path.read_bytes() for path in (folder / "out").rglob(".answers-*"))


def test_full_disk_does_not_stop_the_run(
    folder: Path,
    endpoint: Endpoint,
    aigo: Run,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The checkpoint is abandoned with a warning."""
    endpoint.answer = lambda _: (200, completion("odd"))
    written = os.write

    def full(file: int, data: bytes) -> int:
        if Path(f"/proc/self/fd/{file}").readlink().name.startswith(".answers"):
            return written(file, data[:40])
        return written(file, data)

    monkeypatch.setattr("aigo_bridge.execution.checkpoint.os.write", full)
    with heard("aigo_bridge.execution.checkpoint", caplog, monkeypatch):
        done = aigo("run", "task.yaml", "--model", "openai-api/local/m", "-n", 5, "--json")
    assert done.json["samples"]["scored"] == 5
    (line,) = {line for line in caplog.messages if "when you resume it" in line}
    assert "cannot be written (No space left on device)" in line
