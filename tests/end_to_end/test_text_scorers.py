"""`bleu`, `function_call_coverage` and `rag_checker` end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from tests.support.commands import Run

Load = Callable[[Path], dict[str, Any]]

HEAD = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
"""


def test_bleu_equals_sacrebleu(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    said, truth = "The cat sat on the mat.", "The cat is on the mat."
    (tmp_path / "d.jsonl").write_text(json.dumps({"q": "one", "a": truth}) + "\n")
    (tmp_path / "t.yaml").write_text(
        HEAD + "  scorers:\n    - {type: bleu, ground_truth: '{{ sample.a }}'}\n"
    )
    (tmp_path / "m.jsonl").write_text(json.dumps({"default": True, "reply": said}) + "\n")

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "out")

    assert done.code == 0, done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    expected = sacrebleu.sentence_bleu(said, [truth]).score / 100
    assert result["evidence"]["metrics"][0]["values"] == {"bleu_score_mean": pytest.approx(expected)}
    (score,) = result["evidence"]["samples"][0]["trials"][0]["scores"]
    assert "tok:13a" in score["metadata"]["signature"]


def test_function_calls_of_the_answer_are_counted(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """The model calls `search` twice and `book` once; `search` and `pay` are required: one of two."""
    (tmp_path / "d.jsonl").write_text(json.dumps({"q": "go", "calls": ["search", "pay"]}) + "\n")
    (tmp_path / "t.yaml").write_text(
        HEAD
        + "  scorers:\n    - type: function_call_coverage\n      function_calls: '{{ sample.calls | tojson }}'\n"
        "      metrics: [{type: mean, field: required_calls_coverage}, {type: mean, field: num_unrequired_calls}]\n"
    )
    calls = [
        {"name": "search", "arguments": {}},
        {"name": "search", "arguments": {}},
        {"name": "book", "arguments": {}},
    ]
    (tmp_path / "m.jsonl").write_text(json.dumps({"default": True, "reply": {"tool_calls": calls}}) + "\n")

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "out")

    assert done.code == 0, done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    values = {
        name: value for metric in result["evidence"]["metrics"] for name, value in metric["values"].items()
    }
    assert values == {"required_calls_coverage_mean": 0.5, "num_unrequired_calls_mean": 2}
