"""A converted task sends the same messages and gives the same sample scores as the native task for every
answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import value_to_float
from tests.support.commands import Run

MODEL = ("--model", "scripted/answers.jsonl")
IN_PROCESS = ("--snippets", "in-process")
"""Included code without a worker, which would load Inspect. One test starts one, as for users."""


@pytest.fixture(autouse=True)
def another_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let included code start an event loop, as in a worker, although one is running in this process."""
    run = asyncio.run

    def run_in_thread(coroutine: Coroutine[Any, Any, Any]) -> Any:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: run(coroutine)).result()

    monkeypatch.setattr(asyncio, "run", run_in_thread)


def run(aigo: Run, *args: object) -> tuple[EvalLog, Any]:
    """Return the native log and the summary of a run."""
    done = aigo("run", *args, *MODEL, "--json")
    assert done.code == 0, done.err
    summary = done.json[0] if isinstance(done.json, list) else done.json
    return read_eval_log(summary["native_log"]), summary


def asked(log: EvalLog) -> dict[str, list[tuple[str, str]]]:
    """Return the messages sent to the model for each sample."""
    found: dict[str, list[tuple[str, str]]] = {}
    for sample in log.samples or []:
        (call,) = [event for event in sample.events if event.event == "model"]
        found[str(sample.id)] = [(message.role, message.text) for message in call.input]
    return found


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("matching", ()),
        ("numbers", ()),
        ("choices", ("-T", "cot=true")),
        ("several_correct", ()),
        ("few_shot", ()),
    ],
    ids=["matching", "numbers", "choices", "several_correct", "few_shot"],
)
def test_converted_tasks_have_the_same_messages_and_sample_scores(
    task: str, options: tuple[str, ...], aigo: Run, benchmarks: Path
) -> None:
    name = f"inspect:{benchmarks / 'converted.py'}@{task}"
    done = aigo("convert", name, "--to", "aigo", "--out", "aigo", *options)
    assert done.code == 0, done.err
    assert aigo("validate", "aigo").code == 0

    native, native_summary = run(aigo, name, *options, "--out", "native")
    # One sample at a time needs one worker.
    snippets = ("--max-samples", "1") if task == "matching" else IN_PROCESS
    own, own_summary = run(aigo, "aigo", "--out", "own", *snippets)

    assert asked(own) == asked(native)
    assert len(asked(own)) == 24
    number = value_to_float()
    expected = {
        (str(sample.id), key): number(score.value)
        for sample in native.samples or []
        for key, score in (sample.scores or {}).items()
    }
    found = {
        (str(sample.id), key): number(score.value)
        for sample in own.samples or []
        for key, score in (sample.scores or {}).items()
    }
    assert found == expected
    assert len(set(expected.values())) > 1
    assert values(own_summary) == pytest.approx(values(native_summary), abs=1e-12)


def values(summary: Any) -> dict[tuple[str, str], float]:
    """Return the metrics of a run by scorer and name."""
    return {(row["scorer"], row["name"].rpartition(".")[2]): row["value"] for row in summary["metrics"]}


def test_an_inexpressible_benchmark_is_refused_with_all_reasons(aigo: Run, benchmarks: Path) -> None:
    done = aigo("convert", f"inspect:{benchmarks / 'others.py'}@judged", "--out", "aigo")

    assert done.code == 1
    for reason in ("self_critique", "model_graded_qa"):
        assert reason in done.err
    assert not Path("aigo").exists()


def test_shuffled_choices_are_refused(aigo: Run, benchmarks: Path) -> None:
    done = aigo("convert", f"inspect:{benchmarks / 'others.py'}@shuffled", "--out", "aigo")

    assert done.code == 1
    assert "shuffles" in done.err


def test_a_converted_task_is_not_overwritten_unless_forced(aigo: Run, benchmarks: Path) -> None:
    name = f"inspect:{benchmarks / 'converted.py'}@numbers"
    assert aigo("convert", name, "--out", "aigo").code == 0
    assert aigo("convert", name, "--out", "aigo").code == 2
    assert aigo("convert", name, "--out", "aigo", "--force").code == 0


OWN = """
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, accuracy, exact, f1, mean, scorer, stderr
from inspect_ai.scorer import score_reducer
from inspect_ai.solver import generate, solver, system_message
from html import unescape

ROWS = [Sample(id=n, input=f"q{n}", target=["a b", "c"], metadata={"group": str(n % 2)}) for n in range(6)]

def mine(text):
    return text

@scorer(metrics=[accuracy()])
def asking():
    async def score(state, target):
        await get_model().generate(state.output.completion)
        return Score(value="C")
    return score

@task
def squad():
    metrics = [mean(), stderr(cluster="group")]
    return Task(dataset=MemoryDataset(ROWS), solver=[system_message("x"), generate()], scorer=[f1(), exact()], metrics=metrics)

@task
def drop():
    return Task(dataset=MemoryDataset(ROWS), solver=generate(), scorer=f1(unescape))

@task
def reduced(reducers="mean,pass_at_2,at_least_2,max"):
    epochs = Epochs(3, reducers if isinstance(reducers, list) else reducers.split(","))
    return Task(dataset=MemoryDataset(ROWS), solver=generate(), scorer=[exact(), f1()], epochs=epochs)

@score_reducer
def mine_too():
    return lambda scores: scores[0]

@solver
def twice():
    async def solve(state, generate):
        return await generate(await generate(state))
    return solve

@task
def asks_twice():
    return Task(dataset=MemoryDataset(ROWS), setup=system_message("x"), solver=twice(), scorer=exact())

@task
def own():
    return Task(dataset=MemoryDataset(ROWS), solver=generate(), scorer=[f1(mine), asking()])
"""

SAID = ["a b", "&#97; b", "a", "", "the a b c", "Answer: a b"]


@pytest.mark.parametrize("task", ["squad", "drop"])
def test_scorer_functions_and_task_metrics_are_included(task: str, aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    rules = [{"match": {"exact": f"q{n}"}, "reply": {"text": text}} for n, text in enumerate(SAID)]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    done = aigo("convert", f"inspect:own.py@{task}", "--out", "aigo")
    assert done.code == 0, done.err

    _, native = run(aigo, f"inspect:own.py@{task}", "--out", "native")
    _, own = run(aigo, "aigo", "--out", "own", *IN_PROCESS)

    assert {name for _, name in values(native)} == {"mean", "stderr"}
    assert values(own) == pytest.approx(values(native), abs=1e-12)


def test_epochs_with_other_reducers_become_rows(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    right = [
        {"match": {"exact": f"q{n}"}, "times": n % 4, "reply": "a b"} for n in range(6) if n % 4
    ]  # none, one, two or all of the three epochs are right
    rules = [*right, {"match": {"exact": "q5"}, "times": 1, "reply": "a"}, {"default": True, "reply": "z"}]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    done = aigo("convert", "inspect:own.py@reduced", "--out", "aigo")
    assert done.code == 0, done.err
    assert "each of its 3 epochs becomes a separate row" in done.err

    native_log, _ = run(aigo, "inspect:own.py@reduced", "--out", "native")
    own_log, own = run(aigo, "aigo", "--out", "own", *IN_PROCESS)

    assert native_log.results is not None
    expected = {
        (score.name, f"{name}_{score.reducer}"): metric.value
        for score in native_log.results.scores
        for name, metric in score.metrics.items()
    }
    assert values(own) == pytest.approx(expected, abs=1e-12)
    assert len(expected) == 16
    assert len(set(expected.values())) > 5
    assert [sample.id for sample in own_log.samples or []][:4] == ["0-1", "0-2", "0-3", "1-1"]


def test_metrics_over_requested_trials_match_inspect(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    rules = [{"match": {"exact": f"q{n}"}, "times": 1, "reply": "a b"} for n in range(3)]
    lines = [json.dumps(rule) + "\n" for rule in (*rules, {"default": True, "reply": "a"})]
    (tmp_path / "answers.jsonl").write_text("".join(lines))
    assert aigo("convert", "inspect:own.py@drop", "--out", "aigo").code == 0
    assert aigo("convert", "inspect:own.py@squad", "--out", "grouped").code == 0

    _, native = run(aigo, "inspect:own.py@drop", "--out", "native", "--num-trials", "2")
    _, own = run(aigo, "aigo", "--out", "own", "--num-trials", "2", *IN_PROCESS)
    grouped = aigo("run", "grouped", *MODEL, "--out", "grouped-out", "--num-trials", "2", *IN_PROCESS)

    assert values(own) == pytest.approx(values(native), abs=1e-12)
    assert len(values(own)) == 2
    assert grouped.code == 1
    assert "need more of each trial than its score" in grouped.out + grouped.err


def test_custom_reducers_and_solvers_are_refused(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    reduced = aigo("convert", "inspect:own.py@reduced", "-T", "reducers=mine_too", "--out", "aigo")
    twice = aigo("convert", "inspect:own.py@asks_twice", "--out", "aigo")

    assert (reduced.code, twice.code) == (1, 1)
    assert "the reducer 'mine_too' is not an unmodified reducer of Inspect" in reduced.err
    assert "solver: calls the model more than once (" in twice.err


def test_code_that_cannot_be_included_is_refused(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    done = aigo("convert", "inspect:own.py@own", "--out", "aigo")
    assert done.code == 1
    assert "scorer[0] (inspect_ai/f1): cannot be copied" in done.err
    assert (
        "scorer[1] (asking): needs more than question, answer and target: its code uses get_model" in done.err
    )
