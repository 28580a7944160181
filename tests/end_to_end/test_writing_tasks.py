"""Examples of the validation page run and give the explained scores."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run

Load = Callable[[Path], dict[str, Any]]


@pytest.fixture(scope="module")
def blocks() -> list[str]:
    text = (REPOSITORY / "docs" / "reference" / "task-format" / "validation.md").read_text()
    return re.findall(r"```(?:yaml|json)\n(.*?)```", text, re.DOTALL)


def test_example_of_a_call_group_has_the_explained_scores(
    aigo: Run, blocks: list[str], tmp_path: Path, result_of: Load
) -> None:
    (tmp_path / "t.yaml").write_text(blocks[0])
    (tmp_path / "pairs.jsonl").write_text('{"a": "tea", "b": "coffee"}\n{"a": "rain", "b": "snow"}\n')
    rules = '{"match": {"contains": "tea"}, "reply": "tea"}\n{"match": {"contains": "rain or"}, "reply": "rain"}\n'
    (tmp_path / "m.jsonl").write_text(rules + '{"default": true, "reply": "snow"}\n')

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 0, done.err
    result = result_of(tmp_path / "out" / "both-orders.tasklog.json")
    assert result["evidence"]["metrics"][0]["values"] == {"accuracy": 0.5}


def test_example_of_a_recorded_trace_has_the_explained_scores(
    aigo: Run, blocks: list[str], tmp_path: Path, result_of: Load
) -> None:
    (tmp_path / "t.yaml").write_text(blocks[1])
    (tmp_path / "traces.jsonl").write_text(blocks[2])

    done = aigo("run", "t.yaml", "-o", "out")

    assert done.code == 0, done.err
    (sample,) = result_of(tmp_path / "out" / "recorded.tasklog.json")["evidence"]["samples"]
    assert sample["sample_id"] == "norway"
    assert sample["trials"][0]["scores"][0]["values"] == {"is_correct": 1.0}
