"""Runs of built-in lighteval tasks that are interrupted or limited to some documents."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.forked import start

TASKS = """
from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc


def prompt(line, task_name=None):
    return Doc(task_name=task_name, query=line["q"], choices=[line["a"]], gold_index=0)


def task(name):
    return LightevalTaskConfig(
        name=name,
        prompt_function=prompt,
        hf_repo=name,
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        generation_size=20,
        metrics=[Metrics.exact_match],
    )


TASKS_TABLE = [task("first"), task("second")]
"""


@pytest.fixture
def rows(tmp_path: Path) -> tuple[str, ...]:
    """Write two tasks with six documents, and return the options for their rows."""
    (tmp_path / "own.py").write_text(TASKS, encoding="utf-8")
    for name in ("first", "second"):
        (tmp_path / "rows" / name).mkdir(parents=True)
        lines = [json.dumps({"q": f"{name} {number}?", "a": "yes"}) for number in range(6)]
        (tmp_path / "rows" / name / "test.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ("--data-dir", "rows")


def script(path: Path, slow: str | None = None) -> None:
    """Write the answers; one question is never answered."""
    rules: list[dict[str, Any]] = [{"default": True, "reply": "yes"}]
    if slow is not None:
        rules.insert(0, {"match": {"contains": slow}, "reply": {"text": "yes", "delay": 600}})
    path.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")


def answers(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("out/.answers-*.jsonl"))


def samples(result: str) -> list[Any]:
    found: list[Any] = json.loads(Path(result).read_bytes())["evidence"]["samples"]
    return found


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_resumed_run_repeats_no_model_call(
    rows: tuple[str, ...], tmp_path: Path, aigo: Run, stop: signal.Signals
) -> None:
    """The first of two tasks is complete, and the second waits for an answer when the run is stopped."""
    script(tmp_path / "answers.jsonl", slow="second 3")
    words = ["run", "lighteval:own.py@first", "lighteval:own.py@second", *rows]
    words += ["--model", "scripted/answers.jsonl"]
    with (
        (tmp_path / "printed").open("wb") as printed,
        start(["aigo-bridge", *words], stdout=printed, stderr=printed) as process,
    ):
        deadline = time.monotonic() + 150
        while answers(tmp_path) < 11:
            assert time.monotonic() < deadline, (tmp_path / "printed").read_text("utf-8")
            time.sleep(0.1)
        process.send_signal(stop)
        process.wait(60)
    assert (tmp_path / "out" / "first.tasklog.json").exists()
    assert not (tmp_path / "out" / "second.tasklog.json").exists()
    # From now on, any repeated call would give a wrong answer.
    rules = [{"match": {"contains": "second 3"}, "reply": "yes"}, {"default": True, "reply": "no"}]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), "utf-8")

    done = aigo(*words, "--resume", "--json")

    assert done.code == 0, done.err
    assert [outcome["reused"] for outcome in done.json] == [6, 5]
    assert [outcome["metrics"][0]["value"] for outcome in done.json] == [1.0, 1.0]
    assert [len(samples(outcome["result"])) for outcome in done.json] == [6, 6]
    assert answers(tmp_path) == 0
    anew = aigo(*words, "--json")
    assert [outcome["reused"] for outcome in anew.json] == [0, 0]
    assert [round(outcome["metrics"][0]["value"], 3) for outcome in anew.json] == [0.0, 0.167]


def test_only_failed_documents_are_retried(rows: tuple[str, ...], tmp_path: Path, aigo: Run) -> None:
    failing = {"match": {"contains": "first 2"}, "reply": {"error": "bad request", "status": 400}}
    rules = [failing, {"default": True, "reply": "yes"}]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), "utf-8")
    words = ["run", "lighteval:own.py@first", *rows, "--model", "scripted/answers.jsonl", "--json"]
    first = aigo(*words)
    script(tmp_path / "answers.jsonl")

    second = aigo(*words, "--resume")

    assert (first.code, second.code) == (1, 0), second.err
    assert first.json[0]["samples"]["failed"] == 1
    assert second.json[0]["reused"] == 5
    assert second.json[0]["samples"]["scored"] == 6


def test_documents_are_selected_by_number(rows: tuple[str, ...], tmp_path: Path, aigo: Run) -> None:
    script(tmp_path / "answers.jsonl")
    words = ["run", "lighteval:own.py@first", *rows, "--model", "scripted/answers.jsonl"]

    done = aigo(*words, "--sample-id", "4,1", "--json")
    unknown = aigo(*words, "--sample-id", "1,6")
    both = aigo(*words, "--sample-id", "1", "-n", "1")

    assert [sample["sample_id"] for sample in samples(done.json[0]["result"])] == ["1", "4"]
    assert done.json[0]["samples"]["planned"] == 2
    assert (unknown.code, both.code) == (2, 2)
    assert "has no document 6, its 6 documents are numbered from 0" in unknown.err
    assert "--sample-id and -n" in both.err


def test_ai_go_samples_cannot_be_selected_by_id(aigo: Run) -> None:
    done = aigo("run", "gsm8k", "--sample-id", "1")
    assert done.code == 2
    assert "only for engine benchmarks" in done.err
