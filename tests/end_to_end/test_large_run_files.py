"""Run files with many specifications: neighbouring files are not searched again for each specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_bridge.reading import nodes

SPECIFICATIONS = 40
TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
"""


def test_run_file_is_composed_a_fixed_number_of_times(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Composing it twice for each specification took 64 s for 1,200 specifications."""
    specifications = [
        {"key": f"s{n}", "task_key": "t", "model_key": "scripted$m-jsonl"} for n in range(SPECIFICATIONS)
    ]
    evaluation = {"key": "e", "display_name": "E", "description": "", "task_specifications": specifications}
    run = {
        "models": [{"$provider": "scripted/m.jsonl"}],
        "tasks": [{"$ref": "t.yaml"}],
        "evaluation": evaluation,
    }
    (tmp_path / "run.yaml").write_text(json.dumps(run))
    (tmp_path / "t.yaml").write_text(TASK)
    (tmp_path / "d.jsonl").write_text('{"q": "x", "a": "y"}\n')
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "y"}\n')
    composed: list[str] = []
    compose = nodes.compose

    def counted(text: str, *more: Any) -> Any:
        composed.append(text)
        return compose(text, *more)

    monkeypatch.setattr("aigo_bridge.reading.loading.compose", counted)
    monkeypatch.chdir(tmp_path)

    done = aigo("validate", "run.yaml")

    assert done.code == 0, done.out
    assert 0 < len(composed) < 8
