"""Tasks of lm-evaluation-harness are converted and run; the metrics equal the harness's definition."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.tiny_model import save_tiny_model

TASKS = Path(__file__).resolve().parents[1] / "golden" / "lm_eval_tasks" / "tasks"
SHOTS = (
    "Q: A box has 3 red and 4 blue balls. How many balls are there?\nA: There are 3 + 4 = 7 balls. The answer is 7.\n\n"
    "Q: Ann has <<2*5>> apples; say it in {{braces}}.\nA: The answer is 10.\n\n"
)


def result(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("*.tasklog.json")
    log: dict[str, Any] = json.loads(file.read_text())
    return log


def numbers(log: dict[str, Any]) -> dict[str, float]:
    return {name: value for metric in log["evidence"]["metrics"] for name, value in metric["values"].items()}


@pytest.mark.parametrize(
    "engine", ["inspect", pytest.param("lighteval", marks=pytest.mark.xdist_group("lighteval"))]
)
def test_prompts_and_scores_match_the_harness(engine: str, aigo: Run, tmp_path: Path) -> None:
    rows = [
        {"question": "1 + 1?", "answer": "two\n#### 2"},
        {"question": "500 + 500?", "answer": "sum\n#### 1,000"},
        {"question": "Which {{ one }}?", "answer": "#### 5"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = {
        f"{SHOTS}Q: 1 + 1?\nA:": "The answer is 2.",
        f"{SHOTS}Q: 500 + 500?\nA:": "It is $1000",
        f"{SHOTS}Q: Which {{{{ one }}}}?\nA:": "The answer is 4. Or 5",
    }
    rules = [{"match": {"exact": asked}, "reply": text} for asked, text in answers.items()]
    (tmp_path / "model.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    made = aigo("convert", f"lm-eval:{TASKS / 'gsm8k_shots.yaml'}", "--out", "task")
    assert (made.code, made.err) == (0, "")
    command = ["run", "task/task.yaml", "--dataset", "gsm8k_shots-rows=rows.jsonl", "--engine", engine]
    done = aigo(*command, "--model", "scripted/model.jsonl", "--out", "out")
    assert done.code == 0, done.err
    # strict-match: 2, [invalid], 4; flexible-extract: `2.`, `$1000`, 5, of which dollar signs and last points are ignored.
    assert numbers(result(tmp_path / "out")) == {
        "exact_match,strict-match": pytest.approx(1 / 3),
        "exact_match,flexible-extract": 1.0,
    }


@pytest.mark.xdist_group("lighteval")
def test_choice_scores_match_the_harness(aigo: Run, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"goal": "the moon is", "sol1": "red", "sol2": "the sea é", "label": 0},
        {"goal": "why", "sol1": "yes", "sol2": "no, the other way", "label": 1},
        {"goal": "the the the", "sol1": "éé", "sol2": "the", "label": 1},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = save_tiny_model(tmp_path / "model", chat=False)
    assert aigo("convert", f"lm-eval:{TASKS / 'piqa.yaml'}", "--out", "task").code == 0
    command = ["run", "task/task.yaml", "--dataset", "piqa-rows=rows.jsonl", "--engine", "lighteval"]
    done = aigo(*command, "--model", f"transformers/{model}", "--out", "out")
    assert done.code == 0, done.err
    log = result(tmp_path / "out")
    likelihoods = [[entry["log_likelihood"] for entry in entries] for entries in weighed(log, "acc")]
    lengths: dict[str, Callable[[str], int]] = {
        "acc": lambda _: 1,
        "acc_norm": len,
        "acc_bytes": lambda choice: len(choice.encode()),
    }
    expected = {}
    for name, length in lengths.items():
        right = [
            row["label"]
            == max(
                (0, 1),
                key=[ll / length(row[c]) for ll, c in zip(lls, ("sol1", "sol2"), strict=True)].__getitem__,
            )
            for row, lls in zip(rows, likelihoods, strict=True)
        ]
        expected[name] = sum(right) / len(rows)
    assert numbers(log) == pytest.approx(expected)
    assert all(math.isfinite(value) for lls in likelihoods for value in lls)


def weighed(log: dict[str, Any], scorer: str) -> list[list[dict[str, Any]]]:
    """Return the likelihoods that a scorer compared, by sample."""
    samples = log["evidence"]["samples"]
    return [
        next(
            score["metadata"]["log_likelihoods"]
            for trial in sample["trials"]
            for score in trial["scores"]
            if score["scorer_key"] == scorer
        )
        for sample in samples
    ]


def test_group_is_converted_to_a_run_file(aigo: Run, tmp_path: Path) -> None:
    made = aigo("convert", f"lm-eval:{TASKS / 'mmlu_like_group.yaml'}", "--out", "group")
    assert made.code == 0, made.err
    assert made.out.startswith("2 tasks  group/run.yaml")
    found = aigo("validate", "group/run.yaml", "group/mmlu_like_anatomy/task.yaml")
    assert found.code == 0, found.out + found.err
    again = aigo("convert", f"lm-eval:{TASKS / 'mmlu_like_group.yaml'}", "--out", "group")
    assert again.code == 2
    assert "already exists (replace it with --force) [AB804]" in again.err
    assert aigo("convert", f"lm-eval:{TASKS / 'mmlu_like_group.yaml'}", "--out", "group", "--force").code == 0


def test_inexpressible_task_is_refused_with_positions(aigo: Run, tmp_path: Path) -> None:
    refused = aigo("convert", f"lm-eval:{TASKS / 'hellaswag.yaml'}", "--out", "task")
    assert refused.code == 1
    assert "hellaswag.yaml:6:15: rows are created by 'utils.process_docs', which is not run" in refused.err
    assert "with --allow-gaps" in refused.err
    assert not (tmp_path / "task").exists()
    allowed = aigo("convert", f"lm-eval:{TASKS / 'hellaswag.yaml'}", "--out", "task", "--allow-gaps")
    assert allowed.code == 0
    assert "pass the rows of hellaswag when you run it: --dataset hellaswag-rows=FILE" in allowed.err
    assert "rows are created by 'utils.process_docs'" in (tmp_path / "task/task.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lm-eval:none.yaml", "--out", "x"], "'none.yaml' does not exist"),
        (["lm-eval:", "--out", "x"], "contains no lm-evaluation-harness task"),
        (
            ["rows.jsonl", "--out", "x", "--allow-gaps"],
            "--allow-gaps: only for lm-eval:PATH and inspect-hub:PATH",
        ),
        (
            [f"lm-eval:{TASKS / 'mmlu_like_group.yaml'}", "--out", "x", "--key", "one"],
            "--key: there are 2 tasks",
        ),
    ],
)
def test_wrong_use_is_reported(arguments: list[str], message: str, aigo: Run) -> None:
    done = aigo("convert", *arguments)
    assert done.code == 2
    assert message in done.err
