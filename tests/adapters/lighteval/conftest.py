"""Tasks for the lighteval engine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.evaluation.task import plan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan

Rows = list[dict[str, Any]]
MakePlan = Callable[..., TaskPlan]

ASK = """
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
"""
EQUALS = """
  scorers: [{type: string_equals, ground_truth: "{{ sample.a }}"}]
"""


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    """Restore the limit on integer digits, which the command of lighteval raises for the whole process."""
    before = sys.get_int_max_str_digits()
    yield
    sys.set_int_max_str_digits(before)


@pytest.fixture
def make_plan(tmp_path: Path) -> MakePlan:
    """Return a function that plans a task from part of its definition and rows."""

    def make(rows: Rows, definition: str = ASK + EQUALS, key: str = "t") -> TaskPlan:
        folder = tmp_path / "task"
        folder.mkdir(exist_ok=True)
        (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        head = f"key: {key}\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {{key: d}}\n"
        (folder / "t.yaml").write_text(head + definition)
        return plan(PlanOrigin(str(folder / "t.yaml")))

    return make


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a scripted model from its rules."""

    def make(*rules: dict[str, Any], name: str = "m.jsonl") -> str:
        (tmp_path / name).write_text("".join(json.dumps(rule) + "\n" for rule in rules))
        return f"scripted/{tmp_path / name}"

    return make
