"""`run --record` and `run --replay`: model calls are recorded in a file, and other runs are answered from it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, TASKS, Run
from tests.support.endpoint import Endpoint, completion
from tests.support.forked import start
from tests.support.running import wait_until

from aigo_bridge.redaction.secrets import MASK as SECRET
from aigo_trust.recording.replay import Cassette

pytestmark = pytest.mark.xdist_group("lighteval")

Load = Callable[[Path], dict[str, Any]]
CAPITALS = REPOSITORY / "examples" / "capitals"
RECORD = ("run", CAPITALS, "--model", f"scripted/{CAPITALS / 'answers.jsonl'}", "--record", "c.cassette")
TRIVIA = TASKS / "hp-trivia"


def judged(result: dict[str, Any]) -> Any:
    """Return the samples of a result without ids, times and names."""
    found = []
    for sample in result["evidence"]["samples"]:
        for trial in sample["trials"]:
            scores = [(score["scorer_key"], score["values"]) for score in trial["scores"] or []]
            items = (trial["solver"] or {"output": {"trace": {"items": []}}})["output"]["trace"]["items"]
            found.append((sample["sample_id"], scores, [item.get("content") for item in items]))
    return found, [metric["values"] for metric in result["evidence"]["metrics"]]


def test_judge_and_solver_calls_are_replayed_on_the_other_engine(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    models = ("--model", f"scripted/{TRIVIA / 'answers.jsonl'}")
    judge = ("--model-map", f"openai$gpt-4-1-nano=scripted/{TRIVIA / 'judge.jsonl'}")
    recorded = aigo("run", TRIVIA, *models, *judge, "--record", "c.cassette", "--out", "a")
    assert recorded.code == 0, recorded.err
    assert "recorded " in recorded.err

    played = aigo("run", TRIVIA, "--replay", "c.cassette", "--engine", "lighteval", "--out", "b")

    assert played.code == 0, played.err
    assert "answered from c.cassette: " in played.err
    assert "not found" not in played.err
    assert "not used" not in played.err
    both = [result_of(tmp_path / out / "hp-trivia.tasklog.json") for out in "ab"]
    assert judged(both[0]) == judged(both[1])
    # No log says that the model itself has answered.
    assert "cassette/scripted/" in json.dumps(both[1]["specification"])


def test_changed_prompt_fails_its_sample_with_the_difference(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    task = shutil.copytree(CAPITALS, tmp_path / "task")
    assert aigo(*RECORD, "--out", "a").code == 0
    rows = task / "capitals.jsonl"
    rows.write_text(rows.read_text().replace("Norway", "Norge"))

    done = aigo("run", task, "--replay", "c.cassette", "--out", "b", "--json")

    assert done.code == 1
    assert done.json["samples"]["failed"] == 1
    samples = result_of(tmp_path / "b" / "capitals.tasklog.json")["evidence"]["samples"]
    text = json.dumps(
        [trial["errors"] for sample in samples for trial in sample["trials"]], ensure_ascii=False
    )
    assert "this call is not in the cassette (sample 0, solver)" in text
    assert "Norway" in text
    assert "Norge" in text
    assert "3 calls, 1 not found, 1 recorded but not used" in done.err


def test_replay_works_with_another_scorer(aigo: Run, tmp_path: Path) -> None:
    task = shutil.copytree(CAPITALS, tmp_path / "task")
    assert aigo(*RECORD, "--out", "a").code == 0
    file = task / "task.yaml"
    assert "- type: string_equals" in file.read_text()
    text = file.read_text().replace("- type: string_equals", "- type: bleu")
    file.write_text(text.replace("field: is_correct", "field: bleu_score"))
    done = aigo("run", task, "--replay", "c.cassette", "--out", "b", "--json")
    assert done.code == 0, done.err + done.out
    assert done.json["metrics"][0]["scorer"] == "bleu"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--record", "new", "--replay", "c.cassette"), "cannot be recorded again"),
        (("--record", "c.cassette"), "already exists"),
        (("--record", "new", "--engine", "inspect,lighteval"), "on one engine"),
        (("--replay", "c.cassette", "--resume"), "cannot be combined with --resume"),
        (("--replay", "c.cassette", "--cache", "reuse"), "cannot be combined with --resume or --cache reuse"),
        (("--replay", "none"), "the file does not exist"),
        (("--record", "no/folder/c"), "cannot be written"),
    ],
)
def test_wrong_use_is_reported_before_the_run(
    aigo: Run, tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "c.cassette").write_bytes(b"")
    done = aigo(*RECORD[:4], *words, "--out", "out")
    assert done.code == 2
    assert problem in done.err
    assert not (tmp_path / "out").exists()


def test_a_benchmark_of_an_engine_is_not_recorded(aigo: Run) -> None:
    done = aigo("run", "inspect:x.py", "--record", "c")
    assert done.code == 2
    assert "--record: not for engine benchmarks" in done.err


def test_cassette_model_is_refused_without_replay(aigo: Run) -> None:
    done = aigo("run", CAPITALS, "--model", "cassette/openai/m", "--out", "out")
    assert done.code == 1
    assert "only answers in runs with --replay" in done.out


def test_full_disk_loses_the_cassette_but_not_the_run(aigo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from aigo_trust.recording.tail import TailWriter

    def full(self: TailWriter, text: bytes) -> None:
        if self.num_bytes:
            raise OSError(28, "No space left on device")
        self.num_bytes += os.write(self._file, text)

    monkeypatch.setattr(TailWriter, "put", full)
    done = aigo(*RECORD, "--out", "out")
    assert "4 of 4 samples scored" in done.out
    assert done.code == 1
    assert "cannot write the cassette, so calls are missing (No space left on device)" in done.err


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
    - {type: string_equals, ground_truth: "even"}
"""
SAMPLES = 60


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_kill_9_while_recording_loses_no_finished_call(
    endpoint: Endpoint, aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """The cassette has all answered calls; the resumed run adds the others."""
    key = "sk-0123456789abcdefghij"
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", key)
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({"q": f"q{n} {key}"}) + "\n" for n in range(SAMPLES))
    )
    (tmp_path / "task.yaml").write_text(TASK)

    def answer(body: Any) -> Any:
        if len(endpoint.requests) > SAMPLES // 2:
            time.sleep(0.05)
        return 200, completion("even")

    endpoint.answer = answer
    words = [
        "run",
        "task.yaml",
        "--model",
        "openai-api/local/m",
        "--engine",
        engine,
        "--max-connections",
        "4",
    ]
    words += ["--max-samples", "4", "--record", "c.cassette", "--out", "out"]
    process = start(
        ["aigo-bridge", *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(process, lambda: len(endpoint.requests) >= SAMPLES * 2 // 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = len(endpoint.requests)
    cut = Cassette(tmp_path / "c.cassette")
    assert before - 4 <= cut.num_calls <= before
    assert not cut.is_complete
    cut.close()

    done = aigo(*words, "--resume")

    assert done.code == 0, done.err
    whole = Cassette(tmp_path / "c.cassette")
    assert whole.is_complete
    assert whole.num_calls == SAMPLES
    assert key not in json.dumps([whole.line(number) for number in range(SAMPLES)])
    assert SECRET in whole.line(0)["request"]["messages"][0]["content"]
    whole.close()
    asked = len(endpoint.requests)
    played = aigo("run", "task.yaml", "--replay", "c.cassette", "--engine", engine, "--out", "again")
    assert played.code == 0, played.err
    assert f"answered from c.cassette: {SAMPLES} calls" in played.err
    assert len(endpoint.requests) == asked
