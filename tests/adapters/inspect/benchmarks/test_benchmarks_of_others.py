"""Patterns of published Inspect tasks: models requested during construction, equal names, caches, early
stopping, unscored samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

IMPORTS = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, exact, scorer
from inspect_ai.solver import generate
"""


def write(path: Path, code: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(IMPORTS + code)


def answers(path: Path, reply: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"default": True, "reply": reply}) + "\n")
    return f"scripted/{path.name}" if path.parent == Path.cwd() else f"scripted/{path}"


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))


def test_a_task_can_request_models_during_construction(aigo: Run, tmp_path: Path) -> None:
    write(
        tmp_path / "t.py",
        """
@scorer(metrics=[accuracy()])
def graded(judge):
    async def score(state, target):
        said = await judge.generate(state.output.completion)
        return Score(value=CORRECT if said.completion == "good" else INCORRECT)
    return score

@task
def asks():
    evaluated, judge = get_model(), get_model(role="grader")
    return Task(dataset=[Sample(input=str(evaluated), target="x")], solver=generate(), scorer=graded(judge))
""",
    )
    model, judge = answers(tmp_path / "m.jsonl", "x"), answers(tmp_path / "j.jsonl", "good")

    done = aigo("run", "inspect:t.py@asks", "--model", model, "--model-map", f"grader={judge}", "--json")

    assert done.code == 0, done.err
    (outcome,) = done.json
    assert outcome["metrics"][0]["value"] == 1.0
    assert outcome["warnings"] == []
    assert aigo("run", "inspect:t.py@asks").code == 2


def test_equal_task_names_in_two_files_are_separate_tasks(aigo: Run, tmp_path: Path) -> None:
    body = """
@task
def quiz({parameter}):
    return Task(dataset=[Sample(input=str(n), target="{target}") for n in range({number})], solver=generate(), scorer=exact())
"""
    write(tmp_path / "all" / "a.py", body.format(parameter="level=1", target="yes", number=1))
    write(tmp_path / "all" / "b.py", body.format(parameter="", target="no", number=2))
    model = answers(tmp_path / "m.jsonl", "yes")

    done = aigo("run", "inspect:all", "-T", "level=2", "--model", model, "--json")

    assert done.code == 0, done.err
    found = {
        Path(outcome["file"]).name: (outcome["samples"]["planned"], outcome["metrics"][0]["value"])
        for outcome in done.json
    }
    assert found == {"a.py": (1, 1.0), "b.py": (2, 0.0)}
    shown = aigo("run", "inspect:all", "--model", model, "--out", "again").out
    assert "a.py" in shown
    assert "b.py" in shown


def test_changed_scripted_answers_are_not_read_from_the_inspect_cache(aigo: Run, tmp_path: Path) -> None:
    write(
        tmp_path / "t.py",
        """
@task
def cached():
    return Task(dataset=[Sample(input="?", target="Paris")], solver=generate(cache=True), scorer=exact())
""",
    )

    def accuracy_with(reply: str, out: str) -> Any:
        model = answers(tmp_path / "m.jsonl", reply)
        return aigo("run", "inspect:t.py@cached", "--model", model, "--out", out, "--json").json[0][
            "metrics"
        ][0]["value"]

    assert accuracy_with("Paris", "one") == 1.0
    assert accuracy_with("Rome", "two") == 0.0
    assert accuracy_with("Paris", "three") == 1.0


def test_samples_stopped_early_by_the_task_are_not_missing(aigo: Run, tmp_path: Path) -> None:
    write(
        tmp_path / "t.py",
        """
from inspect_ai.util import EarlyStop

class AfterTwo:
    async def start_task(self, task, samples, epochs):
        return "after two"
    async def schedule_sample(self, id, epoch):
        return EarlyStop(id=id, epoch=epoch, reason="enough") if id > 2 else None
    async def complete_sample(self, id, epoch, scores):
        pass
    async def complete_task(self):
        return {}

@task
def stops():
    samples = [Sample(id=n, input="?", target="x") for n in range(1, 6)]
    return Task(dataset=samples, solver=generate(), scorer=exact(), early_stopping=AfterTwo())
""",
    )
    model = answers(tmp_path / "m.jsonl", "x")

    done = aigo("run", "inspect:t.py@stops", "--model", model, "--json")

    assert done.code == 0, done.out + done.err
    samples = done.json[0]["samples"]
    assert (samples["scored"], samples["missing"], samples["stopped"]) == (2, 0, 3)
    assert (
        "3 stopped early by the task" in aigo("run", "inspect:t.py@stops", "--model", model, "--out", "b").out
    )
    refused = aigo("convert", "inspect:t.py@stops", "--to", "aigo", "--out", "c")
    assert refused.code != 0
    assert "early_stopping" in refused.err


@pytest.mark.parametrize("ungraded", ['Score(value=float("nan"), reason="not readable")', "None"])
def test_unscored_samples_are_reported_and_fail_the_run(ungraded: str, aigo: Run, tmp_path: Path) -> None:
    write(
        tmp_path / "t.py",
        f"""
@scorer(metrics=[accuracy()])
def sometimes():
    async def score(state, target):
        return Score(value=CORRECT) if state.sample_id == 1 else {ungraded}
    return score

@task
def ungraded():
    return Task(dataset=[Sample(id=n, input="?", target="x") for n in (1, 2, 3)], solver=generate(), scorer=sometimes())
""",
    )
    run = ("run", "inspect:t.py@ungraded", "--model", answers(tmp_path / "m.jsonl", "x"))

    done = aigo(*run, "--json")

    assert done.code == 1
    (outcome,) = done.json
    assert outcome["samples"]["unscored"] == 2
    number = {"scorer": "sometimes", "name": "accuracy", "value": 1.0, "num_scored": 1}
    assert number.items() <= outcome["metrics"][0].items()
    assert "2 samples were not scored" in outcome["warnings"][0]
    shown = aigo(*run, "--out", "b", "--fail-on-error", "0.7")
    assert shown.code == 0
    assert "2 not scored" in shown.out


def test_a_model_set_by_the_task_is_reported(aigo: Run, tmp_path: Path) -> None:
    own = answers(tmp_path / "own.jsonl", "x")
    write(
        tmp_path / "t.py",
        f"""
@task
def named():
    return Task(dataset=[Sample(input="?", target="x")], solver=generate(), scorer=exact(), model="{own}")
""",
    )
    given = answers(tmp_path / "given.jsonl", "y")

    done = aigo("run", "inspect:t.py@named", "--model", given, "--json")

    assert done.code == 0, done.err
    assert done.json[0]["metrics"][0]["value"] == 1.0
    (warning,) = done.json[0]["warnings"]
    assert "own.jsonl" in warning
    assert "given.jsonl" in warning
    converted = aigo("convert", "inspect:t.py@named", "--to", "aigo", "--out", "c")
    assert "gap: model" in converted.err


@pytest.mark.parametrize("option", [("--engine", "lighteval"), ("--snippets", "in-process")])
def test_meaningless_options_are_refused(aigo: Run, benchmarks: Path, option: tuple[str, str]) -> None:
    done = aigo("run", f"inspect:{benchmarks / 'others.py'}@no_model", *option)
    assert done.code == 2
    assert option[0] in done.err


def test_the_evaluated_model_is_created_once(aigo: Run, tmp_path: Path) -> None:
    """Creating a model loads its weights, and its output must not appear on standard output."""
    write(
        tmp_path / "t.py",
        """
from inspect_ai.model import ModelAPI, ModelOutput, modelapi

@modelapi("counted")
class Counted(ModelAPI):
    def __init__(self, model_name, base_url=None, api_key=None, config=None, **rest):
        super().__init__(model_name, base_url, api_key, [], config)
        print("MADE")
    async def generate(self, input, tools, tool_choice, config):
        return ModelOutput.from_content("counted", "x")

@task
def one():
    return Task(dataset=[Sample(input="?", target="x")], solver=generate(), scorer=exact())

@task
def two():
    return Task(dataset=[Sample(input="?", target="x")], solver=generate(), scorer=exact())
""",
    )
    aigo("run", "inspect:t.py", "--model", "mockllm/model", "--out", "first")  # registers the provider

    done = aigo("run", "inspect:t.py", "--model", "counted/m", "--json")

    assert done.code == 0, done.err
    assert "MADE" not in done.out
    assert done.err.count("MADE") == 1
    assert [outcome["warnings"] for outcome in done.json] == [[], []]
