"""Evals with scorers, solvers and metrics in a user file: conversion includes the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

pytestmark = pytest.mark.engine

EVAL = '''\
"""An eval as people write it."""
import re
from dataclasses import dataclass
from pathlib import Path

import helpers
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, SampleScore, Score, Target, accuracy, metric, scorer, stderr
from inspect_ai.solver import TaskState, chain, generate, solver

NUMBER = re.compile(r"-?\\d+")
WEIGHTS = {}
WEIGHTS["near"] = 0.5
NOTES = Path("not-there.txt").exists()


@dataclass(frozen=True)
class Verdict:
    """A value with a backslash \\\\ and quotes: \'\'\' \\"."""

    value: float


def last_number(text: str) -> str | None:
    found = NUMBER.findall(text)
    return found[-1] if found else None


@metric
def halves():
    def compute(scores: list[SampleScore]) -> float:
        return sum(score.score.value == WEIGHTS["near"] for score in scores) / len(scores)

    return compute


@scorer(metrics=[accuracy(), stderr(), halves()])
def close(tolerance: int = 1):
    async def score(state: TaskState, target: Target) -> Score:
        number = last_number(state.output.completion)
        off = None if number is None else abs(int(number) - int(target.text))
        verdict = Verdict(0.0 if off is None or off > tolerance else 1.0 if off == 0 else WEIGHTS["near"])
        return Score(value=verdict.value, answer=number)

    return score


@scorer(metrics=[accuracy()])
def helped():
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=helpers.grade(state.output.completion, target.text))

    return score


@scorer(metrics=[accuracy()])
def noted():
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=CORRECT if target.text in Path(__file__).read_text() else INCORRECT)

    return score


@scorer(metrics=[accuracy()])
def failing():
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=float(open("grades.txt").read()))

    return score


@solver
def ask_twice():
    async def solve(state: TaskState, generate):
        state.user_prompt.text = "Think. " + state.user_prompt.text
        return await generate(state)

    return solve


SAMPLES = [Sample(input=f"{n}+{n}?", target=str(2 * n)) for n in range(1, 5)]


@task
def sums(tolerance: int = 1):
    return Task(dataset=MemoryDataset(SAMPLES), solver=generate(), scorer=close(tolerance))


@task
def thought():
    return Task(dataset=MemoryDataset(SAMPLES), solver=chain(ask_twice()), scorer=close(2))


@task
def other(scorer_name: str):
    return Task(dataset=MemoryDataset(SAMPLES), solver=generate(), scorer=globals()[scorer_name]())


if __name__ == "__main__":
    from inspect_ai import eval

    eval(sums())
'''
REPLIES = {"1+1?": "It is 2.", "2+2?": "3 or 5", "3+3?": "9", "4+4?": "no idea"}


@pytest.fixture
def evals(tmp_path: Path) -> Path:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "own.py").write_text(EVAL)
    (tmp_path / "evals" / "helpers.py").write_text(
        "def grade(said, right):\n    return float(said == right)\n"
    )
    rules = [{"match": {"contains": asked}, "reply": reply} for asked, reply in REPLIES.items()]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return tmp_path / "evals"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sums", "thought"])
def test_scores_match_the_eval_without_its_file(name: str, aigo: Run, evals: Path, tmp_path: Path) -> None:
    converted = aigo("convert", f"inspect:evals/own.py@{name}", "--out", "aigo")
    assert converted.code == 0, converted.err
    native = aigo(
        "run",
        f"inspect:evals/own.py@{name}",
        "--model",
        "scripted/answers.jsonl",
        "--out",
        "native",
        "--json",
    )
    (evals / "own.py").unlink()

    own = aigo("run", "aigo", "--model", "scripted/answers.jsonl", "--out", "own", "--json")

    def metrics(done: Any) -> dict[str, float]:
        assert done.code == 0, done.err
        summary = done.json[0] if isinstance(done.json, list) else done.json
        return {row["name"]: row["value"] for row in summary["metrics"]}

    assert metrics(own) == pytest.approx(metrics(native), abs=1e-12)
    assert metrics(own)["accuracy"] in (0.375, 0.5)
    assert metrics(own)["halves"] in (0.25, 0.5)
    text = (tmp_path / "aigo" / "task.yaml").read_text()
    assert "def last_number(text: str)" in text
    assert str(tmp_path) not in text
    for left_out in ("SAMPLES", "def sums", "import helpers", "__main__", "NOTES"):
        assert left_out not in text


@pytest.mark.parametrize(
    ("scorer", "reason"),
    [
        (
            "helped",
            "its code is in one of your files, and its code imports 'helpers', which is another file of yours",
        ),
        ("noted", "its code is in one of your files, and its code looks for files next to it (__file__)"),
        ("failing", "grades.txt"),
    ],
)
def test_code_that_needs_other_files_is_refused_with_a_reason(
    scorer: str, reason: str, aigo: Run, evals: Path
) -> None:
    done = aigo("convert", "inspect:evals/own.py@other", "-T", f"scorer_name={scorer}", "--out", "aigo")
    assert done.code == 1
    assert "scorer[0]" in done.err
    assert reason in done.err
    assert not (evals.parent / "aigo" / "task.yaml").exists()
