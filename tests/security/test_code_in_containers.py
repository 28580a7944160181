"""Task code in restricted environments: it runs confined, or the run is refused before a model call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import Run

from aigo_bridge.snippets.process import SnippetsRefusedError, choose, reached
from aigo_inspect.sandbox import available

TASK = """\
key: code
display_name: Code
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
"""
SNIPPET = """\
    - type: python
      metrics: [{type: mean, key: one, field: one, name: one}]
      compute_scores_snippet: |
        def compute_scores(sample, solver_output): return {"one": 1.0}
"""
CODE_EXEC = "    - {type: code_exec, tests: tests}\n"


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"q": "x", "tests": ["assert f() == 1"]}) + "\n")
    reply = {"default": True, "reply": "def f(): return 1"}
    (tmp_path / "model.jsonl").write_text(json.dumps(reply) + "\n")
    return tmp_path


RUN = ("run", "task.yaml", "--model", "scripted/model.jsonl", "--json")


def test_a_snippet_runs_confined_or_the_run_is_refused(aigo: Run, answer: Path) -> None:
    (answer / "task.yaml").write_text(TASK + SNIPPET)
    choose()
    level, refusal = None, ""
    try:
        level = reached().level
    except SnippetsRefusedError as error:
        refusal = str(error)
    done = aigo(*RUN)
    if level is None:
        assert (done.code, refusal in done.err) == (2, True)
        assert not (answer / "out").exists()
    else:
        assert (done.code, done.json["snippets"], done.json["metrics"][0]["value"]) == (0, level, 1.0)


def test_an_answers_code_runs_in_a_sandbox_or_the_run_is_refused(aigo: Run, answer: Path) -> None:
    (answer / "task.yaml").write_text(TASK + CODE_EXEC)
    name, _ = available()
    done = aigo(*RUN)
    if name is None:
        assert (done.code, "no sandbox is available here" in " ".join(done.err.split())) == (2, True)
        assert not (answer / "out").exists()
    else:
        assert (done.code, done.json["metrics"][0]["value"]) == (0, 1.0), done.err
