"""Every option of `run` that changes the run: `verify` proves the honest result with and without the task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.commands import Run

pytestmark = pytest.mark.engine

TASK = """
key: quiz
display_name: Quiz
description: Capitals.
config_spec:
  - {type: string, key: tone, display_name: Tone, default_value: plain}
  - {type: dataset, key: rows, display_name: Rows, default_value: five}
definition:
  trials: {num_trials: 3}
  dataset: {key: "<< config.rows >>"}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {role: user, content: "<< config.tone >>: What is the capital of {{ sample.country }}?"}
  scorers:
    - type: string_equals
      ground_truth: "{{ sample.capital }}"
      metrics:
        - {type: mean, field: is_correct, name: Accuracy}
"""
DATA_TASK = """
key: rows-only
display_name: Rows
description: No model.
definition:
  scorers:
    - type: string_equals
      value: "{{ sample.country }}"
      ground_truth: "{{ sample.capital }}"
      metrics:
        - {type: mean, field: is_correct, name: Accuracy}
"""
RESULT_TASK = DATA_TASK.replace("rows-only", "second").replace(
    "definition:\n", "definition:\n  dataset: {source: task_result, key: first}\n"
)
RUN_FILE = """
models: [{$provider: scripted/answers.jsonl}]
tasks: [{$ref: task.yaml}, {$ref: second.yaml}]
evaluation:
  key: evaluation
  display_name: Capitals
  description: Twice.
  config_spec:
    - {type: string, key: mood, display_name: Mood, default_value: kind}
  task_specifications:
    - key: first
      task_key: quiz
      model_key: scripted$answers-jsonl
      task_config: {tone: "<< config.mood >>"}
      repeatability: {num_runs: 2}
    - {key: second, task_key: second}
"""
RECORD = {
    "category": "arithmetic",
    "prompt": "17 + 24\nAnswer:",
    "metric_name": "exact_match",
    "post_process": "strip_whitespace",
}
BENCHMARK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match

@task
def countries(word="?"):
    rows = [("a", "France", "Paris"), ("b", "Italy", "Rome"), ("c", "Peru", "Lima")]
    return Task([Sample(id=key, input=text + word, target=target) for key, text, target in rows], scorer=match())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tasks, rows, a run file, a benchmark and a scripted model."""
    rows = [
        {"country": "France", "capital": "Paris"},
        {"country": "Italy", "capital": "Rome"},
        {"country": "Peru", "capital": "Lima"},
        {"country": "Chad", "capital": "N'Djamena"},
        {"country": "Spain", "capital": "Madrid"},
    ]
    records: list[dict[str, Any]] = [
        {**RECORD, "task_id": "one", "targets": ["41"]},
        {**RECORD, "task_id": "bad"},
    ]
    replies: list[dict[str, Any]] = [
        {"match": {"contains": "France"}, "reply": "Paris"},
        {"default": True, "reply": "Lima"},
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "five": rows,
        "other": [{"country": "Cuba", "capital": "Havana"}, *rows[:2]],
        "records": records,
        "answers": replies,
    }
    for name, lines in tables.items():
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "data.yaml").write_text(DATA_TASK)
    (tmp_path / "second.yaml").write_text(RESULT_TASK)
    (tmp_path / "run.yaml").write_text(RUN_FILE)
    (tmp_path / "bench.py").write_text(BENCHMARK)
    return tmp_path


@dataclass(frozen=True)
class Case:
    """Run with the files that its results are verified with."""

    options: str
    """What is run, and how; of a second run after ` && `."""
    task: str | None = "task.yaml"
    """For `--task`; `None`: the run has no task of AI GO."""
    rows: str = ""
    """Options of `verify` that name the rows of the run; without them the rows cannot be compared."""

    def __str__(self) -> str:
        return self.options


TASKS = [
    Case("task.yaml"),
    Case("task.yaml -n 2"),
    Case("task.yaml -n 2 --subsampling random"),
    Case("task.yaml --num-trials 1"),
    Case("task.yaml --num-trials 2 --engine lighteval"),
    Case("task.yaml -n 3 --subsampling random --engine lighteval"),
    Case("task.yaml --config tone=rude"),
    Case("task.yaml --config rows=other"),
    Case("task.yaml --vary tone=rude,kind --num-trials 1"),
    Case("task.yaml --num-trials 1 && task.yaml --num-trials 1 --cache reuse"),
    Case("task.yaml --num-trials 1 && task.yaml --num-trials 1 --resume"),
    Case("task.yaml --dataset five=other.jsonl", rows="--dataset five=other.jsonl"),
    Case("data.yaml --dataset mine=other.jsonl", "data.yaml", "--dataset mine=other.jsonl"),
    Case("records.jsonl --allow-bad-tasks --num-trials 2", "records.jsonl"),
    Case("run.yaml#first", "run.yaml#first"),
    Case("run.yaml#first -n 2 --subsampling random", "run.yaml"),
    Case("run.yaml#first --num-trials 1", "run.yaml"),
    Case("run.yaml#first --config mood=odd", "run.yaml"),
    Case("run.yaml#first --config mood=odd --num-trials 2", "task.yaml"),
    Case("run.yaml#first --dataset five=other.jsonl", "run.yaml", "--dataset five=other.jsonl"),
    Case("run.yaml --num-trials 1", "run.yaml", "--dataset first=out/first.tasklog.json"),
    Case("inspect:bench.py@countries -n 2 --epochs 2", None),
    Case("inspect:bench.py@countries --sample-id b -T word=x", None),
]


def _verified(aigo: Run, folder: Path, case: Case, out: Path) -> None:
    """Check that no result of a folder fails, and that task and rows are proved with all materials."""
    results = sorted(out.rglob("*.tasklog.json"))
    assert results
    for result in results:
        by_itself = aigo("verify", result, "--json").json["levels"]
        verdicts = {level["level"]: level["verdict"] for level in by_itself}
        assert (verdicts["log"], verdicts["metrics"], verdicts["digests"]) == (
            "proved",
        ) * 3 or case.task is None
        assert "failed" not in verdicts.values(), by_itself
        if case.task is None:
            continue
        for rows in {"", case.rows}:
            of_others = "first" in case.rows and result.name.startswith("first")
            options = [] if of_others else rows.split()
            checked = aigo("verify", result, "--task", case.task, "--rerun-scorers", *options, "--json").json
            found = {level["level"]: level for level in checked["levels"]}
            assert all(level["verdict"] != "failed" for level in found.values()), found
            assert found["scores"]["verdict"] == "proved", found
            assert rows != case.rows or found["digests"]["verdict"] == "proved", found


@pytest.mark.slow
@pytest.mark.parametrize("case", TASKS, ids=str)
def test_honest_run_is_proved_with_and_without_its_task(aigo: Run, folder: Path, case: Case) -> None:
    for options in case.options.split(" && "):
        finished = aigo("run", *options.split(), "--model", "scripted/answers.jsonl")
        assert finished.code in (0, 3), finished
    _verified(aigo, folder, case, folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", ["--num-trials 1", "-n 4 --subsampling random", "--dataset five=other.jsonl"]
)
@pytest.mark.parametrize("is_whole", [True, False])
def test_honest_merge_of_shards_is_proved(aigo: Run, folder: Path, options: str, is_whole: bool) -> None:
    for shard in ("1/2", "2/2")[: 2 if is_whole else 1]:
        aigo("run", "task.yaml", "--model", "scripted/answers.jsonl", "--shard", shard, *options.split())
    aigo("merge", "out", "--out", "merged", "--partial")
    rows = options if options.startswith("--dataset") else ""
    _verified(aigo, folder, Case("", rows=rows), folder / "merged")
    (result,) = (folder / "merged").glob("*.tasklog.json")
    log = min((folder / "out").rglob("*.eval"))
    assert "FAILED" not in aigo("verify", result, "--log", log).out


@pytest.mark.slow
def test_honest_score_result_is_proved_with_the_origin_of_its_rows(aigo: Run, folder: Path) -> None:
    aigo("run", "task.yaml", "--model", "scripted/answers.jsonl", "-n", "2", "--num-trials", "1")
    aigo("score", "task.yaml", "out/quiz.tasklog.json", "--out", "scored")
    _verified(aigo, folder, Case(""), folder / "scored")
    (folder / "five.jsonl").write_bytes((folder / "other.jsonl").read_bytes())
    finished = aigo("verify", "scored/quiz.tasklog.json", "--task", "task.yaml")
    assert finished.code == 3
    assert "the rows come from the scored result" in finished.out


def test_supplied_rows_are_compared_only_if_named(aigo: Run, folder: Path) -> None:
    aigo("run", "task.yaml", "--model", "scripted/answers.jsonl", "--dataset", "five=other.jsonl")
    result = "out/quiz.tasklog.json"
    assert "--dataset five=other.jsonl" in aigo("verify", result, "--task", "task.yaml").out
    wrong = aigo("verify", result, "--task", "task.yaml", "--dataset", "five=five.jsonl")
    assert wrong.code == 1
    assert "the dataset" in wrong.out


def test_task_changed_after_the_run_fails_verification(aigo: Run, folder: Path) -> None:
    aigo("run", "task.yaml", "--model", "scripted/answers.jsonl", "--dataset", "five=other.jsonl")
    (folder / "task.yaml").write_text(TASK.replace("What is", "What was"))
    finished = aigo("verify", "out/quiz.tasklog.json", "--task", "task.yaml")
    assert finished.code == 1
    assert "What was" in finished.out
