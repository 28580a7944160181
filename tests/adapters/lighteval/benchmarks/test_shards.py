"""Merged shards of `run lighteval:…` have the same metrics as a single run."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.sharding import normalised
from tests.support.commands import Run
from tests.support.forked import start
from tests.support.tiny_model import save_tiny_model

pytestmark = pytest.mark.xdist_group("lighteval")

TASKS = """
from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc


def written(line, task_name=None):
    return Doc(task_name=task_name, query=line["q"], choices=[line["a"]], gold_index=0)


def weighed(line, task_name=None):
    return Doc(task_name=task_name, query=line["q"], choices=[" yes", " no it is"], gold_index=0)


def task(name, prompt, metrics):
    return LightevalTaskConfig(
        name=name,
        prompt_function=prompt,
        hf_repo=name,
        hf_subset="default",
        hf_avail_splits=["test", "train"],
        evaluation_splits=["test"],
        few_shots_split="train",
        few_shots_select="random",
        generation_size=20,
        metrics=metrics,
    )


TASKS_TABLE = [
    task("written", written, [Metrics.exact_match, Metrics.f1_score, Metrics.bleu]),
    task("weighed", weighed, [Metrics.loglikelihood_acc]),
]
"""

ROWS = ("--custom-tasks", "own.py", "--data-dir", "rows")
WRITTEN = "lighteval:written|2"
MODEL = ("--model", "scripted/answers.jsonl,max_tokens=7")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two tasks with seven documents and a model that fails for one of them."""
    (tmp_path / "own.py").write_text(TASKS, "utf-8")
    (tmp_path / "rows").mkdir()
    for split, count in (("test", 7), ("train", 5)):
        rows = [{"q": f"{split} ä{number}?", "a": ("yes it is", "no")[number % 2]} for number in range(count)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "rows" / f"{split}.jsonl").write_text(lines, "utf-8")
    failing = {"match": {"contains": "test ä4"}, "reply": {"error": "bad request", "status": 400}}
    rules = [
        failing,
        {"match": {"contains": "test ä1"}, "reply": "no"},
        {"default": True, "reply": "yes it is"},
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), "utf-8")
    return tmp_path


def evidence(result: str) -> Any:
    """Return a result without times, the name of the log and memory addresses, which differ between runs."""
    text = re.sub(rb'(whole|merged)/[^"]*?\.json"', b'LOG"', normalised(Path(result)))
    log = json.loads(re.sub(rb" at 0x[0-9a-f]+", b"", text))
    log["specification"]["task"].pop("created_at")
    general = log["specification"]["config"]["lighteval"]["config_general"]
    for name in ("start_time", "end_time", "total_evaluation_time_secondes"):
        general.pop(name)
    return log


def run_shards(aigo: Run, count: int, *words: str) -> None:
    for number in range(count, 0, -1):
        done = aigo("run", *words, *ROWS, "--shard", f"{number}/{count}", "--out", "shards", "--json")
        assert done.code in (0, 1), done.err


@pytest.mark.parametrize(("count", "options"), [(3, []), (9, ["-n", "4"])])
def test_merged_shards_equal_a_single_run(folder: Path, aigo: Run, count: int, options: list[str]) -> None:
    """The run has few-shot examples, a metric over all answers, model settings and a failed document."""
    whole = aigo("run", WRITTEN, *ROWS, *options, *MODEL, "--out", "whole", "--json")
    run_shards(aigo, count, WRITTEN, *options, *MODEL)

    merged = aigo("merge", "shards", "--task", WRITTEN, *ROWS, *options, "--out", "merged", "--json")

    assert merged.code == whole.code, merged.err
    assert merged.json["metrics"] == whole.json[0]["metrics"]
    assert merged.json["samples"] == whole.json[0]["samples"]
    assert merged.json["errors"] == whole.json[0]["errors"]
    assert evidence(merged.json["result"]) == evidence(whole.json[0]["result"])


@pytest.mark.slow
def test_likelihoods_of_a_local_model_are_merged(folder: Path, aigo: Run) -> None:
    model = ("--model", f"transformers/{save_tiny_model(folder / 'model', chat=False)},batch_size=1")
    whole = aigo("run", "lighteval:weighed|0", *ROWS, *model, "--out", "whole", "--json")
    run_shards(aigo, 2, "lighteval:weighed|0", *model)

    merged = aigo("merge", "shards", "--task", "lighteval:weighed|0", *ROWS, "--out", "merged", "--json")

    assert merged.code == whole.code == 0, merged.err
    assert merged.json["metrics"] == whole.json[0]["metrics"]
    assert evidence(merged.json["result"]) == evidence(whole.json[0]["result"])


def test_a_resumed_shard_repeats_no_model_call(folder: Path, aigo: Run) -> None:
    slow = {"match": {"contains": "test ä2"}, "reply": {"text": "yes", "delay": 600}}
    (folder / "answers.jsonl").write_text(
        "".join(json.dumps(rule) + "\n" for rule in (slow, {"default": True, "reply": "yes it is"})), "utf-8"
    )
    words = ["run", WRITTEN, *ROWS, "--model", "scripted/answers.jsonl", "--shard", "1/1", "--out", "shards"]
    own = folder / "shards" / "shard-1-of-1"
    with start(["aigo-bridge", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 150
        while sum(path.read_bytes().count(b"\n") for path in own.glob(".answers-*.jsonl")) < 6:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    (folder / "answers.jsonl").write_text('{"default": true, "reply": "no"}\n', "utf-8")

    again = aigo(*words, "--resume", "--json")

    assert again.code == 0, again.err
    assert again.json["parts"][0]["samples"]["reused"] == 6
    assert not list(own.glob(".answers-*"))
    assert "complete; no sample was run again" in aigo(*words, "--resume").err


def test_a_partial_merge_counts_missing_samples(folder: Path, aigo: Run) -> None:
    run_shards(aigo, 2, WRITTEN, *MODEL)
    shutil.rmtree(folder / "shards" / "shard-2-of-2")
    merge = ["merge", "shards", "--task", WRITTEN, *ROWS, "--out", "merged", "--json"]
    assert "missing: shard 2 of 2" in aigo(*merge).err

    done = aigo(*merge, "--partial")

    assert done.code == 3, done.err
    assert done.json["status"] == "error"
    assert done.json["samples"]["planned"] == 7
    assert {row["num_scored"] for row in done.json["metrics"]} == {done.json["samples"]["scored"]}
    assert done.json["samples"]["scored"] <= 3
    assert any("shard 2 of 2 not there" in error["message"] for error in done.json["errors"])


def test_shards_of_different_runs_are_refused(folder: Path, aigo: Run) -> None:
    run_shards(aigo, 2, WRITTEN, *MODEL)
    merge = ["merge", "shards", "--out", "merged"]
    assert f"pass --task {WRITTEN} with the options" in aigo(*merge).err
    assert "the shards do not contain" in aigo(*merge, "--task", "lighteval:written|0", *ROWS).err
    assert "the shards have 7 and 1" in aigo(*merge, "--task", WRITTEN, *ROWS, "-n", "3").err
    row = folder / "rows" / "test.jsonl"
    row.write_text(row.read_text("utf-8").replace("3?", "8?"), "utf-8")
    assert "data or arguments differ" in aigo(*merge, "--task", WRITTEN, *ROWS).err
    assert not list(folder.glob("merged/*.tasklog.json"))


@pytest.mark.parametrize(
    "damage",
    [b"", b"[1]\n", b'{"format": 2}\n', b'{"format": 1, "task": "x"}\n', b"\xff\n", b'{"format": 1'],
)
def test_damaged_answers_are_reported(folder: Path, damage: bytes) -> None:
    from aigo_bridge.errors import EvidenceError
    from aigo_lighteval.benchmarks.answers import read_answers

    (folder / "answers").write_bytes(damage)
    with pytest.raises(EvidenceError, match="the answers cannot be read"):
        read_answers(folder / "answers")
