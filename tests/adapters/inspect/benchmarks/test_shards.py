"""Merged shards of `run inspect:…` equal a single run in samples, metrics and log, except for ids and times."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log
from tests.conformance.sharding import normalised
from tests.support.commands import Run
from tests.support.forked import start
from tests.support.running import finished_samples, wait_until

TASKS = """
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, accuracy, grouped, includes, mean, scorer, std, stderr
from inspect_ai.solver import generate, solver


@scorer(metrics=[mean(), std(), grouped(mean(), "kind")])
def length():
    async def score(state, target):
        return Score(value=len(state.output.completion) / 7, metadata={"n": 1})
    return score


@scorer(metrics={"a": [mean()], "b": [accuracy(), stderr()]})
def two():
    async def score(state, target):
        return Score(value={"a": len(str(state.sample_id)) * 0.1, "b": state.epoch % 2})
    return score


@solver
def scoring():
    async def solve(state, generate):
        state.scores = {"own": Score(value=0.5)}
        return state
    return solve


def samples(n, word):
    return [
        Sample(
            id=f"ä{i}/x" if i % 3 else None,
            input="crash" if i == 5 else f"question {i}",
            target=word,
            metadata={"kind": f"k{i % 4}"},
        )
        for i in range(n)
    ]


@task
def many(n: int = 11, word: str = "yes"):
    return Task(
        MemoryDataset(samples(n, word), name="questions"),
        solver=[generate(), scoring()],
        scorer=[includes(), includes(), length(), two()],
        epochs=Epochs(2, ["mean", "at_least_1"]),
    )


@task
def few():
    return Task([Sample(id=1, input="question 7", target="yes")], solver=generate(), scorer=includes())
"""

ODD = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.util import EarlyStopping


class Never(EarlyStopping):
    async def start_task(self, task, samples, epochs):
        return "never"

    async def schedule_sample(self, id, epoch):
        return None

    async def complete_sample(self, id, epoch, scores):
        pass

    async def complete_task(self):
        return {}


@task
def stops():
    return Task([Sample(input="a", target="x")], scorer=includes(), early_stopping=Never())
"""

MODEL = ("--model", "scripted/answers.jsonl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a file with two tasks and a model that fails for one of their questions."""
    (tmp_path / "tasks.py").write_text(TASKS, "utf-8")
    (tmp_path / "odd.py").write_text(ODD, "utf-8")
    rules: list[dict[str, Any]] = [
        {"match": {"contains": "crash"}, "reply": {"error": "bad request", "status": 400}},
        {"match": {"contains": "7"}, "reply": "yes, certainly"},
        {"match": {"contains": "1"}, "reply": "no"},
        {"default": True, "reply": "well yes"},
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), "utf-8")
    return tmp_path


def run_shards(aigo: Run, count: int, *words: str) -> None:
    for number in range(count, 0, -1):
        done = aigo("run", *words, *MODEL, "--shard", f"{number}/{count}", "--out", "shards", "--json")
        assert done.code in (0, 1), done.err


def evidence(result: Path) -> Any:
    """Return a result without ids, times and the name of the log, which differ between runs."""
    log = json.loads(re.sub(rb'(whole|merged)/[^"]*?\.eval', b"LOG", normalised(result)))
    log["specification"]["task"].pop("id")
    log["specification"]["task"].pop("created_at")
    header = log["specification"]["config"]["inspect"]
    for name in ("eval_id", "run_id", "task_id", "created"):
        header["eval"].pop(name)
    header.pop("stats")
    return log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "name", "options"),
    [
        (3, "inspect:tasks.py", ["--limit", "5"]),
        (4, "inspect:tasks.py@many", ["--limit", "4-7", "-T", "word=maybe"]),
        (2, "inspect:tasks.py@many", ["--sample-shuffle", "7", "--epochs", "1"]),
    ],
)
def test_merged_shards_equal_a_single_run(
    folder: Path, aigo: Run, count: int, name: str, options: list[str]
) -> None:
    """One of the two tasks is smaller than the number of shards.

    They have trials, reducers, grouped and named metrics, scores of a solver and a failed sample.
    """
    whole = aigo("run", name, *options, *MODEL, "--out", "whole", "--json")
    run_shards(aigo, count, name, *options)

    merged = aigo("merge", "shards", "--task", name, *options, "--out", "merged", "--json")

    assert merged.code == whole.code, merged.err
    outcomes = merged.json if isinstance(merged.json, list) else [merged.json]
    for one, other in zip(outcomes, whole.json, strict=True):
        assert one["metrics"] == other["metrics"]
        assert one["samples"] == other["samples"]
        assert evidence(Path(one["result"])) == evidence(Path(other["result"]))
        logs = [read_eval_log(each["native_log"]) for each in (one, other)]
        merged_log, whole_log = logs
        assert merged_log.results == whole_log.results
        assert merged_log.reductions == whole_log.reductions
        assert merged_log.eval.dataset == whole_log.eval.dataset
        assert merged_log.eval.config == whole_log.eval.config
        assert merged_log.stats.model_usage == whole_log.stats.model_usage
        assert [(s.id, s.epoch, s.scores) for s in merged_log.samples or []] == [
            (s.id, s.epoch, s.scores) for s in whole_log.samples or []
        ]


@pytest.mark.slow
def test_a_killed_shard_continues(folder: Path, aigo: Run) -> None:
    slow = {"default": True, "reply": {"text": "yes", "delay": 0.3}}
    (folder / "slow.jsonl").write_text(json.dumps(slow) + "\n", "utf-8")
    name = "inspect:tasks.py@many"
    words = ["run", name, "--model", "scripted/slow.jsonl", "--max-connections", "1", "--out", "shards"]
    own = folder / "shards" / "shard-1-of-2"
    with start(
        ["aigo-bridge", *words, "--shard", "1/2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_until(process, lambda: any(finished_samples(log) >= 2 for log in own.glob("*.eval")))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert aigo(*words, "--shard", "2/2").code == 0
    early = aigo("merge", "shards", "--task", name, "--out", "merged")
    assert early.code == 2
    assert "shard 1 of 2 is incomplete" in early.err

    again = aigo(*words, "--shard", "1/2", "--resume", "--json")

    assert again.code == 0, again.err
    assert again.json["parts"][0]["samples"]["reused"] >= 1
    assert "complete; no sample was run again" in aigo(*words, "--shard", "1/2", "--resume").err
    merged = aigo("merge", "shards", "--task", name, "--out", "merged", "--json")
    assert merged.code == 0, merged.err
    assert merged.json["samples"]["scored"] == 11
    (log,) = (folder / "merged").glob("*.eval")
    trials = [(sample.id, sample.epoch) for sample in read_eval_log(str(log)).samples or []]
    assert len(set(trials)) == len(trials) == 22


@pytest.mark.slow
def test_shards_of_different_runs_are_refused(folder: Path, aigo: Run) -> None:
    name = "inspect:tasks.py@many"
    run_shards(aigo, 2, name, "-n", "4")
    merge = ["merge", "shards", "--out", "merged"]

    def told(*words: str) -> str:
        done = aigo(*merge, *words)
        assert done.code == 2, done.out
        assert not list((folder / "merged").glob("*.*log*"))
        return done.err

    assert f"pass --task {name} with the options" in told()
    assert "2 trials were requested, the shards have 4 and 2" in told("--task", name)
    assert "data or arguments differ" in told("--task", name, "-n", "4", "-T", "word=maybe")
    assert "the shards do not contain 'few'" in told("--task", "inspect:tasks.py@few")
    assert "these are shards of inspect:tasks.py@many" in told("--task", "lighteval:gsm8k")
    assert "--config: only for shards of a task" in told("--task", name, "--config", "a=b")
    other = folder / "elsewhere"
    shutil.move(folder / "shards" / "shard-2-of-2", other)
    assert "missing: shard 2 of 2" in told("--task", name, "-n", "4")
    assert aigo("run", name, "-n", "4", "--model", "scripted/few.jsonl", *SECOND).code == 2
    (folder / "few.jsonl").write_text('{"default": true, "reply": "yes"}\n', "utf-8")
    assert aigo("run", name, "-n", "4", "--model", "scripted/few.jsonl", *SECOND).code == 0
    assert "the model was" in told("--task", name, "-n", "4")
    shutil.rmtree(folder / "shards" / "shard-2-of-2")
    shutil.move(other, folder / "shards" / "shard-2-of-2")
    (log,) = (folder / "shards" / "shard-2-of-2").glob("*.eval")
    log.write_bytes(log.read_bytes()[:-40])
    assert "was cut off or changed since the shard ended" in told("--task", name, "-n", "4")


SECOND = ("--shard", "2/2", "--out", "shards")


@pytest.mark.slow
def test_a_partial_merge_counts_missing_samples(folder: Path, aigo: Run) -> None:
    name = "inspect:tasks.py@many"
    run_shards(aigo, 2, name, "-n", "5")
    shutil.rmtree(folder / "shards" / "shard-1-of-2")

    done = aigo(
        *("merge", "shards", "--task", name, "-n", "5", "--partial", "--out", "merged", "--json"),
    )

    assert done.code == 3, done.err
    assert {name: number for name, number in done.json["samples"].items() if number} == {
        "planned": 5,
        "samples": 3,
        "scored": 3,
        "missing": 2,
        "trials": 6,
        "scored_trials": 6,
    }
    result = json.loads(Path(done.json["result"]).read_bytes())
    assert result["status"] == "failure"
    assert "shard 1 of 2 not there; 3 of 5 samples are complete" in result["errors"][0]["message"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["inspect:tasks.py@many", "--model", "scripted/answers.jsonl,mockllm/model"], "one model at a time"),
        (["inspect:tasks.py@many", *MODEL, "--sample-shuffle"], "set a seed with --sample-shuffle"),
        (["inspect:tasks.py@many", "inspect:tasks.py@few", *MODEL], "one benchmark at a time"),
        (["inspect:odd.py@stops", *MODEL], "stops early depending on all of its samples"),
        (["inspect:tasks.py@many", *MODEL, "--report"], "--report: cannot be combined with --shard"),
    ],
)
def test_an_indivisible_benchmark_is_refused_before_model_calls(
    folder: Path, aigo: Run, words: list[str], told: str
) -> None:
    done = aigo("run", *words, "--shard", "1/2", "--out", "shards")
    assert done.code == 2, done.out
    assert told in done.err
    assert not list(folder.glob("shards/*/*.eval"))
