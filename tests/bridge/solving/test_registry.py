"""A solver type is one file and one row: reading, checks and runs use its record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.commands import Run
from tests.support.solver_example import SECOND_THOUGHT, SecondThoughtSolver

from aigo_bridge.solving.registry import SOLVER_TYPES, register
from aigo_bridge.spec import task
from aigo_bridge.spec.solvers import SOLVERS

TASK = {
    "key": "twice",
    "display_name": "Twice",
    "description": "",
    "definition": {
        "dataset": {"key": "rows"},
        "solver": {"type": "second_thought", "question": "{{ sample.question }}"},
        "scorers": [{"type": "string_equals", "ground_truth": "{{ sample.answer }}"}],
    },
}


@pytest.fixture(autouse=True)
def second_thought() -> Iterator[None]:
    register(SECOND_THOUGHT)
    yield
    del SOLVERS["second_thought"], SOLVER_TYPES[SecondThoughtSolver]
    task.rebuild()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text('{"question": "One?", "answer": "yes"}\n')
    return with_solver(tmp_path / "task.yaml")


def with_solver(path: Path, **fields: object) -> Path:
    solver = {**TASK["definition"]["solver"], **fields}  # type: ignore[index]
    path.write_text(yaml.safe_dump({**TASK, "definition": {**TASK["definition"], "solver": solver}}))  # type: ignore[dict-item]
    return path


def test_every_solver_type_can_be_run() -> None:
    assert set(SOLVER_TYPES) == set(SOLVERS.values())


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_new_solver_type_runs(engine: str, aigo: Run, written: Path, tmp_path: Path) -> None:
    rules = tmp_path / "model.rules"
    rules.write_text('{"match": {"contains": "sure"}, "reply": "yes"}\n{"default": true, "reply": "no"}\n')
    command = ("run", written, "--engine", engine, "--model", f"scripted/{rules}", "--out", tmp_path / "out")
    run = aigo(*command, "--json")
    assert run.code == 0, run.err
    (result,) = (tmp_path / "out").glob("*.tasklog.json")
    (sample,) = json.loads(result.read_bytes())["evidence"]["samples"]
    items = sample["trials"][0]["solver"]["output"]["trace"]["items"]
    assert [item["content"][0]["text"] for item in items] == ["One?", "no", "Are you sure?", "yes"]
    assert sample["trials"][0]["scores"][0]["values"] == {"is_correct": 1.0}


def test_fields_of_a_new_solver_type_are_validated(aigo: Run, written: Path) -> None:
    assert aigo("validate", written).code == 0
    wrong = aigo("validate", with_solver(written, doubts="?"))
    assert wrong.code == 1
    assert "unknown key 'doubts'" in wrong.out
    assert "did you mean 'doubt'?" in wrong.out


def test_templates_of_a_new_solver_type_are_checked_for_unknown_columns(aigo: Run, written: Path) -> None:
    explained = aigo("explain", with_solver(written, question="{{ sample.questoin }}"))
    assert explained.code == 2
    assert "`sample.questoin` is not a column of the dataset" in explained.err + explained.out


def test_new_solver_type_is_shown_in_the_preview(aigo: Run, written: Path) -> None:
    (sample,) = aigo("explain", written, "--json").json["samples"]
    assert [message["content"] for message in sample["messages"]] == ["One?", "⟨the model's answer⟩"]


@pytest.mark.engine
def test_new_solver_type_is_exported_hosted_but_not_native(aigo: Run, written: Path, tmp_path: Path) -> None:
    hosted = aigo("export", written, "--to", "inspect", "--out", tmp_path / "hosted")
    assert hosted.code == 0, hosted.err
    native = aigo("export", written, "--to", "inspect", "--native", "--out", tmp_path / "native")
    assert native.code == 1
    assert "solver (second_thought)" in native.err
    assert "no native equivalent" in native.err
