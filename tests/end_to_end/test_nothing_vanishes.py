"""The evidence contains all samples, and metrics contain only the right ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.commands import REPOSITORY, Run

Load = Callable[[Path], dict[str, Any]]

TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "yes"}
"""


def test_a_huge_repetitive_sample_is_in_the_evidence(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """It compresses like a zip bomb but is in an own log."""
    rows = [{"q": "x" * 5_000_000}, {"q": "two"}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.yaml").write_text(TASK)
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "out", "--json")

    assert done.code == 0, done.err
    assert done.json["samples"]["scored"] == 2


def test_a_lone_surrogate_is_reported_before_model_calls(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"q": "one"}\n{"q": "sky \\ud800"}\n')
    (tmp_path / "t.yaml").write_text(TASK)
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl")

    assert done.code == 2
    assert "half of a surrogate pair" in done.err
    assert not (tmp_path / "out").exists()


def test_sample_with_a_failed_rule_is_excluded_from_means(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """Whether it should be excluded is unknown."""
    rows = [{"q": "1", "n": 1}, {"q": "2", "n": "oops"}, {"q": "3", "n": 3}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.yaml").write_text(
        TASK + "  actions:\n    - key: big\n      action: exclude_from_metrics\n"
        "      filter: {op: greater_than, expression: '{{ sample.n }}', value: 2}\n"
    )
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "out", "--json")

    assert done.code == 1
    assert done.json["metrics"][0]["num_scored"] == 1
    assert done.json["samples"]["failed"] == 1


def test_the_hook_writes_the_evidence_of_a_run(command: Run, tmp_path: Path, result_of: Load) -> None:
    """`AIGO_BRIDGE_EVIDENCE=… inspect eval aigo_bridge/task` writes the evidence of `aigo-bridge run`."""
    examples = REPOSITORY / "examples" / "capitals"
    done = command(
        "inspect", "eval", "aigo_bridge/task", "-T", f"task={examples / 'task.yaml'}",
        "--model", f"scripted/{examples / 'answers.jsonl'}", "--log-dir", "logs", "--display", "none",
        AIGO_BRIDGE_EVIDENCE=str(tmp_path / "evidence"),
    )  # fmt: skip

    assert done.code == 0, done.err
    (path,) = (tmp_path / "evidence").glob("*.tasklog.json")
    result = result_of(path)
    assert result["status"] == "success"
    assert result["evidence"]["metrics"][0]["values"] == {"Accuracy": 0.75}
