"""`code_exec`: code written by the model runs only in a sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_inspect import sandbox

Load = Callable[[Path], dict[str, Any]]

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: code_exec, tests: tests, post_process: extract_code_block}
"""
ANSWERS = {
    "right": "Here:\n```python\ndef double(x):\n    return 2 * x\n```",
    "wrong": "```\ndef double(x):\n    return x\n```",
    "no code": "I cannot do that.",
    "loops": "```python\nwhile True: pass\n```",
    "leaves": "```python\nimport os\nos._exit(0)\n```",
    "network": "```python\nimport socket\nsocket.create_connection(('127.0.0.1', 9))\n```",
}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    tests = ["assert double(4) == 8", "assert double(-1) == -2"]
    rows = [{"q": q, "tests": tests} for q in ANSWERS if q != "loops"]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.yaml").write_text(TASK)
    rules = [{"match": {"exact": q}, "reply": text} for q, text in ANSWERS.items()]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return tmp_path / "t.yaml"


def test_code_answers_are_run_with_their_tests(
    aigo: Run, task: Path, tmp_path: Path, result_of: Load
) -> None:
    name, reason = sandbox.available()
    assert name == "aigo_local" or name == "docker", reason

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 0, done.out + done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    scores = {
        sample["trials"][0]["sample"]["data"]["q"]: sample["trials"][0]["scores"][0]
        for sample in result["evidence"]["samples"]
    }
    assert {q: score["values"]["code_exec"] for q, score in scores.items()} == {
        "right": 1.0,
        "wrong": 0.0,
        "no code": 0.0,
        "leaves": 0.0,
        "network": 0.0,
    }
    assert "AssertionError" in scores["wrong"]["metadata"]["failure"]
    assert "before all tests had run" in scores["leaves"]["metadata"]["failure"]
    assert result["evidence"]["metrics"][0]["values"] == {"accuracy": 0.2} or [
        *result["evidence"]["metrics"][0]["values"].values()
    ] == [0.2]


def test_code_execution_without_a_sandbox_is_refused(
    aigo: Run, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: (None, "no docker; namespaces are forbidden"))

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 2
    assert "no sandbox is available here" in " ".join(done.err.split())
    assert not (tmp_path / "out").exists()


def test_code_scorer_is_invalid_in_the_platform_dialect(aigo: Run, task: Path) -> None:
    assert aigo("validate", "t.yaml").code == 0
    strict = aigo("validate", "t.yaml", "--dialect", "aigo-3.17")
    assert strict.code == 1
    assert "'code_exec' is an aigo-bridge extension" in strict.out + strict.err


def test_snippets_run_in_process_for_debugging(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """Only with this option can task code access this process."""
    import os

    (tmp_path / "d.jsonl").write_text('{"q": "x"}\n')
    (tmp_path / "t.yaml").write_text(
        TASK.split("  scorers:", maxsplit=1)[0]
        + "  scorers:\n    - type: python\n      metrics: [{type: max, field: pid}]\n      compute_scores_snippet: |\n"
        + "        import os\n        def compute_scores(sample, solver_output): return {'pid': os.getpid()}\n"
    )
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "x"}\n')
    for mode, same in (("in-process", True), ("worker", False)):
        done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", mode, "--snippets", mode, "--json")
        assert done.code == 0, done.err
        assert (done.json["metrics"][0]["value"] == os.getpid()) is same
    assert aigo("run", "t.yaml", "--snippets", "inline").code == 2
