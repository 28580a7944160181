"""`run --shard` and `merge` on a real engine: killed shards are resumed, run files are merged, wrong use writes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.sharding import normalised
from tests.support.commands import Run
from tests.support.forked import start
from tests.support.running import finished_samples, wait_until

from aigo_inspect.logs.reader import open_log

Load = Callable[[Path], dict[str, Any]]

ROWS = 7
TASK = """
key: counted
display_name: Counted
description: ""
definition:
  dataset: {key: q}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.n }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.odd }}", metrics: [{type: mean, field: is_correct, name: accuracy}]}
"""
RUN = """
models: [{$provider: scripted/m.jsonl}]
tasks: [{$ref: task.yaml}]
policies:
  - key: good
    display_name: Good
    rules:
      - key: half
        display_name: Half
        definition: {type: threshold, metric: accuracy, operator: ">=", threshold: 0.3}
        scope: {task_specification_keys: [twice]}
evaluation:
  key: ev
  display_name: Ev
  description: ""
  task_specifications:
    - {key: once, task_key: counted, model_key: scripted$m-jsonl}
    - {key: twice, task_key: counted, model_key: scripted$m-jsonl, repeatability: {num_runs: 2}, trials: {num_trials: 2}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Task whose model is right for odd numbers and fails for one row."""
    rows = [{"n": f"<{n}>", "odd": "yes" if n % 2 else "no"} for n in range(ROWS)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rules = [
        {"match": {"exact": "<3>"}, "reply": {"error": "down"}},
        {"default": True, "reply": {"text": "yes"}},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    (tmp_path / "slow.jsonl").write_text('{"default": true, "reply": {"text": "yes", "delay": 0.2}}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "run.yaml").write_text(RUN)
    return tmp_path


def test_sharded_task_is_shown_and_written_as_one_run(folder: Path, aigo: Run) -> None:
    model = ("--model", "scripted/m.jsonl")
    whole = aigo("run", "task.yaml", *model, "--out", "whole", "--json")
    for number in (2, 1):
        part = aigo("run", "task.yaml", *model, "--out", "parts", "--shard", f"{number}/2", "--json")
        assert part.code == (1 if number == 2 else 0), part.err  # the row that fails is in the second
    assert part.json["parts"][0]["rows"] == [0, 3]
    merged = aigo("merge", "parts", "--out", "merged", "--json")
    assert merged.code == whole.code == 1
    assert merged.json["metrics"] == whole.json["metrics"]
    assert merged.json["errors"][0]["message"] == whole.json["errors"][0]["message"]
    assert normalised(folder / "merged" / "counted.tasklog.json") == normalised(
        folder / "whole" / "counted.tasklog.json"
    )
    shown = aigo("merge", "parts", "--out", "merged", "--fail-on-error", "1")
    assert shown.code == 0, shown.err
    assert "6 of 7 samples scored, 1 failed" in shown.out


def test_merged_shards_of_a_run_file_equal_one_run(folder: Path, aigo: Run) -> None:
    """Repeated runs, trials and policies, from two shards."""
    whole = aigo("run", "run.yaml", "--out", "whole", "--json", "--fail-on-error", "2")
    for number in (1, 2):
        part = aigo(
            "run", "run.yaml", "--out", "parts", "--shard", f"{number}/2", "--json", "--fail-on-error", "2"
        )
        assert part.code == 0, part.err
    assert aigo("merge", "parts", "--out", "merged").code == 2  # its policies need the run file
    merged = aigo("merge", "parts", "--out", "merged", "--task", "run.yaml", "--json", "--fail-on-error", "2")
    assert merged.code == whole.code, merged.err
    for name in ("once", "twice"):
        assert normalised(folder / "merged" / f"{name}.tasklog.json") == normalised(
            folder / "whole" / f"{name}.tasklog.json"
        )
    log = json.loads((folder / "merged" / "twice.tasklog.json").read_bytes())
    assert [len(run["samples"]) for run in log["evidence"]["runs"]] == [ROWS, ROWS]
    for verdict, expected in zip(merged.json["policies"], whole.json["policies"], strict=True):
        assert verdict == expected
    assert (folder / "merged" / "evaluation.json").is_file()


def test_a_killed_shard_continues_and_merges_as_one_run(folder: Path, command: Run) -> None:
    arguments = ["run", "task.yaml", "--model", "scripted/slow.jsonl", "--max-connections", "1"]
    own = folder / "parts" / "shard-2-of-2"
    process = start(
        ["aigo-bridge", *arguments, "--out", "parts", "--shard", "2/2"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(process, lambda: any(finished_samples(log) >= 2 for log in own.glob("*.eval")))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    first = command("aigo-bridge", *arguments, "--out", "parts", "--shard", "1/2", cwd=folder)
    assert first.code == 0, first.err
    early = command("aigo-bridge", "merge", "parts", "--out", "merged", cwd=folder)
    assert early.code == 2
    assert "shard 2 of 2 is incomplete" in early.err
    part = command("aigo-bridge", "merge", "parts", "--out", "part", "--partial", "--json", cwd=folder)
    assert part.code == 3, part.err
    assert part.json["samples"]["missing"] == 4
    again = command(
        "aigo-bridge", *arguments, "--out", "parts", "--shard", "2/2", "--resume", "--json", cwd=folder
    )
    assert again.code == 0, again.err
    assert again.json["parts"][0]["samples"]["reused"] >= 1
    merged = command("aigo-bridge", "merge", "parts", "--out", "merged", "--json", cwd=folder)
    assert merged.code == 0, merged.err
    result = json.loads((folder / "merged" / "counted.tasklog.json").read_bytes())
    assert result["status"] == "success"
    assert [sample["sample_id"] for sample in result["evidence"]["samples"]] == list(range(ROWS))
    whole = command("aigo-bridge", *arguments, "--out", "whole", cwd=folder)
    assert whole.code == 0, whole.err
    merged_log, whole_log = (folder / out / "counted.tasklog.json" for out in ("merged", "whole"))
    assert normalised(merged_log, was_recovered=True) == normalised(whole_log, was_recovered=True)


def test_a_log_of_one_shard_is_an_incomplete_result(folder: Path, aigo: Run, result_of: Load) -> None:
    aigo("run", "task.yaml", "--model", "scripted/m.jsonl", "--out", "parts", "--shard", "1/2")
    (log,) = (folder / "parts" / "shard-1-of-2").glob("*.eval")
    with open_log(log) as reader:
        assert reader.header["eval"]["task_args"]["shard"] == "1/2"  # for `inspect eval-retry`
    assert aigo("import", log, "--out", "imported").code == 0
    (path,) = (folder / "imported").glob("*.tasklog.json")
    result = result_of(path)
    assert result["status"] == "failure"
    assert "the result contains 3 of 7 samples" in result["errors"][0]["message"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--shard", "17/16"], "expected K/N with K from 1 to N"),
        (["--shard", "0/4"], "expected K/N with K from 1 to N"),
        (["--shard", "3"], "expected K/N with K from 1 to N"),
        (["--shard", "1/2", "--report"], "--report: cannot be combined with --shard"),
        (
            ["--shard", "1/2", "--engine", "inspect,lighteval"],
            "--engine inspect,lighteval: cannot be combined with --shard",
        ),
        (["--shard", "1/2", "--cache", "reuse"], "--cache reuse: cannot be combined with --shard"),
    ],
)
def test_wrong_use_is_refused_and_writes_nothing(
    options: list[str], told: str, folder: Path, aigo: Run
) -> None:
    done = aigo("run", "task.yaml", "--model", "scripted/m.jsonl", "--out", "parts", *options)
    assert done.code == 2
    assert told in done.err
    assert not (folder / "parts").exists()


def test_options_of_a_task_need_the_task(folder: Path, aigo: Run) -> None:
    done = aigo("merge", "parts", "--out", "merged", "--config", "a=b", "-n", "3")
    assert done.code == 2
    assert "--config, --num-samples: only with --task" in done.err
    assert aigo("merge", "parts", "--out", "merged").code == 2
    assert not (folder / "merged").exists()
