"""Killed runs leave no broken files and are continued by `--resume` and by Inspect's `eval-retry`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.forked import start
from tests.support.running import finished_samples, wait_until

from aigo_bridge.results.counts import Counts
from aigo_inspect.logs.reader import open_log

Load = Callable[[Path], dict[str, Any]]
SAMPLES = 12

ALL_SCORED = {
    **asdict(Counts(samples=SAMPLES, scored=SAMPLES, trials=SAMPLES, scored_trials=SAMPLES)),
    "planned": SAMPLES,
    "missing": 0,
    "reused": SAMPLES - 1,
}
"""Counts of a run that asked for one sample again."""


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """Task whose model answers after 0.25 s and is right for odd numbers."""
    (tmp_path / "q.jsonl").write_text(
        "".join(json.dumps({"n": str(n), "odd": "yes" if n % 2 else "no"}) + "\n" for n in range(SAMPLES))
    )
    (tmp_path / "slow.jsonl").write_text('{"default": true, "reply": {"text": "yes", "delay": 0.25}}\n')
    (tmp_path / "task.yaml").write_text(
        """
key: counted
display_name: Counted
description: ""
definition:
  dataset: {key: q}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.n }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.odd }}"}
"""
    )
    return tmp_path


def kill_in_the_middle(arguments: list[str], cwd: Path, logs: Path) -> None:
    """Start a command, wait until a few samples are in the log buffer, and kill it with `kill -9`."""
    process = start(
        arguments, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_until(process, lambda: any(finished_samples(log) >= 3 for log in logs.glob("*.eval")))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def sample_ids(log: Path) -> list[Any]:
    with open_log(log) as reader:
        return sorted(sample.id for sample in reader.samples())


def newest(folder: Path) -> Path:
    return max(folder.glob("*.eval"), key=lambda path: path.stat().st_mtime)


def test_killed_run_is_resumed(counted: Path, command: Run, result_of: Load) -> None:
    """After `kill -9` there is no result file; `--resume` calls the model only for missing samples."""
    out = counted / "out"
    arguments = [
        "run",
        "task.yaml",
        "--model",
        "scripted/slow.jsonl",
        "--out",
        "out",
        "--max-connections",
        "1",
    ]
    kill_in_the_middle(["aigo-bridge", *arguments], counted, out)
    # Until the run has finished, received answers are stored next to the log.
    assert sorted(path.suffix for path in out.iterdir()) == [".eval", ".jsonl"]

    done = command("aigo-bridge", *arguments, "--resume", "--json", cwd=counted)
    assert "Unable to recompute" not in done.err

    assert done.code == 0, done.err
    samples = done.json["samples"]
    assert 1 <= samples["reused"] < SAMPLES
    assert samples["scored"] == SAMPLES
    result = result_of(out / "counted.tasklog.json")
    assert result["status"] == "success"
    assert result["evidence"]["metrics"][0]["values"] == {"accuracy": 0.5}
    assert [sample["sample_id"] for sample in result["evidence"]["samples"]] == list(range(SAMPLES))
    fresh = done.err.count("samples")
    assert f"0/{SAMPLES - samples['reused']} samples" in done.err or fresh == 0
    assert sorted(path.suffix for path in out.iterdir()) == [
        ".eval",
        ".eval",
        ".json",
        ".json",
    ]  # and its provenance


def test_interrupted_run_keeps_its_finished_samples(counted: Path, command: Run, result_of: Load) -> None:
    """After ctrl-C the evidence has the finished samples, the log is marked incomplete, and `--resume` continues."""
    arguments = [
        "run",
        "task.yaml",
        "--model",
        "scripted/slow.jsonl",
        "--out",
        "out",
        "--max-connections",
        "1",
    ]
    process = start(
        ["aigo-bridge", *arguments],
        cwd=counted,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    logs = counted / "out"
    wait_until(process, lambda: any(finished_samples(log) >= 3 for log in logs.glob("*.eval")))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Traceback" not in out
    assert "the run did not finish" in out
    result = result_of(counted / "out" / "counted.tasklog.json")
    assert result["status"] == "failure"
    assert "cancelled" in result["errors"][0]["message"]
    done = command("aigo-bridge", *arguments, "--resume", "--json", cwd=counted)
    assert done.code == 0, done.err
    assert done.json["samples"]["scored"] == SAMPLES


def test_resume_does_not_mix_different_plans(counted: Path, aigo: Run) -> None:
    """Another dataset with the same key is another plan; no earlier sample is reused."""
    (counted / "fast.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    aigo("run", "task.yaml", "--model", "scripted/fast.jsonl", "--out", "out")
    (counted / "q.jsonl").write_text('{"n": "1", "odd": "yes"}\n{"n": "x", "odd": "?"}\n')

    done = aigo("run", "task.yaml", "--model", "scripted/fast.jsonl", "--out", "out", "--resume", "--json")

    assert done.json["samples"]["reused"] == 0
    assert done.json["metrics"][0]["value"] == 0.5


def test_resume_does_not_mix_different_models(counted: Path, aigo: Run) -> None:
    (counted / "a.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    (counted / "b.jsonl").write_text('{"default": true, "reply": "?"}\n')
    aigo("run", "task.yaml", "--model", "scripted/a.jsonl", "--out", "out")

    done = aigo("run", "task.yaml", "--model", "scripted/b.jsonl", "--out", "out", "--resume", "--json")

    assert done.json["samples"]["reused"] == 0
    assert done.json["metrics"][0]["value"] == 0.0


def test_resume_runs_failed_samples_again(counted: Path, aigo: Run) -> None:
    """Only the failed samples of a finished run are repeated."""
    script = counted / "m.jsonl"
    script.write_text(
        '{"match": {"exact": "3"}, "reply": {"error": "down"}}\n{"default": true, "reply": "yes"}\n'
    )
    run = ["run", "task.yaml", "--model", "scripted/m.jsonl", "--out", "out", "--json"]
    assert aigo(*run).json["samples"]["failed"] == 1
    script.write_text(
        '{"match": {"exact": "3"}, "reply": "yes"}\n{"default": true, "reply": {"error": "never asked"}}\n'
    )

    done = aigo(*run, "--resume")

    assert done.code == 0
    assert done.json["samples"] == ALL_SCORED
    assert done.json["metrics"][0]["value"] == 0.5


def test_finished_run_is_not_run_again(counted: Path, aigo: Run) -> None:
    """`--resume` after a complete run rewrites the evidence and calls no model."""
    script = counted / "m.jsonl"
    script.write_text('{"default": true, "reply": "yes"}\n')
    run = ["run", "task.yaml", "--model", "scripted/m.jsonl", "--out", "out", "--json"]
    assert aigo(*run).code == 0
    script.write_text('{"default": true, "reply": {"error": "never asked"}}\n')

    done = aigo(*run, "--resume")

    assert done.code == 0
    assert done.json["samples"]["reused"] == 12
    assert done.json["samples"]["scored"] == 12


def test_resume_rescores_samples_with_a_failed_scorer(counted: Path, aigo: Run) -> None:
    """Inspect considers such a sample finished; aigo-bridge does not."""
    (counted / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    task = (counted / "task.yaml").read_text()
    (counted / "task.yaml").write_text(
        task + "    - {type: model_as_a_judge_scorer, key: j, model_key: j, user_prompt: '{{ sample.n }}'}\n"
    )
    judge = counted / "j.jsonl"
    judge.write_text(
        '{"match": {"contains": "3", "on": "user"}, "reply": {"error": "down"}}\n{"default": true, "reply": "1"}\n'
    )
    run = [
        "run",
        "task.yaml",
        "--model",
        "scripted/m.jsonl",
        "--model-map",
        "j=scripted/j.jsonl",
        "--out",
        "out",
        "--json",
    ]
    assert aigo(*run).json["samples"]["failed"] == 1
    judge.write_text('{"default": true, "reply": "0"}\n')

    done = aigo(*run, "--resume")

    assert done.json["samples"] == ALL_SCORED
    assert done.json["metrics"][1]["value"] == pytest.approx(11 / 12)


def test_inspect_runs_a_task_file_and_retries_a_killed_run(counted: Path, command: Run) -> None:
    """`inspect eval aigo_bridge/task` finds the task by the registry; `inspect eval-retry` finishes a killed one."""
    logs = counted / "logs"
    kill_in_the_middle(
        [
            "inspect", "eval", "aigo_bridge/task", "-T", "task=task.yaml", "--model", "scripted/slow.jsonl",
            "--log-dir", "logs", "--display", "none", "--max-connections", "1",
        ],
        counted, logs,
    )  # fmt: skip

    done = command(
        "inspect", "eval-retry", newest(logs), "--log-dir", "logs", "--display", "none", cwd=counted
    )

    assert done.code == 0, done.err
    log = newest(logs)
    assert sample_ids(log) == list(range(SAMPLES))
    with open_log(log) as reader:
        assert reader.header["status"] == "success"
        (score,) = reader.header["results"]["scores"]
        assert score["metrics"]["accuracy"]["value"] == 0.5


def test_an_eval_set_that_was_killed_is_finished_by_the_same_command(counted: Path, command: Run) -> None:
    logs = counted / "set"
    words = [
        "eval-set", "aigo_bridge/task", "-T", "task=task.yaml", "--model", "scripted/slow.jsonl",
        "--log-dir", "set", "--display", "none", "--max-connections", "1",
    ]  # fmt: skip
    kill_in_the_middle(["inspect", *words], counted, logs)

    done = command("inspect", *words, cwd=counted)

    assert done.code == 0, done.err
    assert sample_ids(newest(logs)) == list(range(SAMPLES))


def test_inspect_takes_config_dataset_and_judge(command: Run, tasks: Path, tmp_path: Path) -> None:
    """The arguments of the registered task are those of `aigo-bridge run`."""
    contacts = tasks / "uniqueness-task" / "contacts.csv"
    done = command(
        "inspect", "eval", "aigo_bridge/task", "-T", "task=aigo_tasks/uniqueness-task", "-T", "config=field=email",
        "-T", f"dataset=contacts={contacts}", "--model", "none", "--log-dir", "a", "--display", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    with open_log(newest(tmp_path / "a")) as reader:
        assert reader.header["results"]["scores"][0]["metrics"]["Uniqueness Rate"]["value"] == 0.8

    trivia = tasks / "hp-trivia"
    done = command(
        "inspect", "eval", "aigo_bridge/task", "-T", "task=aigo_tasks/hp-trivia",
        "--model", f"scripted/{trivia / 'answers.jsonl'}",
        "--model-role", f"openai$gpt-4-1-nano=scripted/{trivia / 'judge.jsonl'}",
        "--log-dir", "b", "--display", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    with open_log(newest(tmp_path / "b")) as reader:
        value = reader.header["results"]["scores"][0]["metrics"]["accuracy"]["value"]
    assert value == pytest.approx(17 / 21)
