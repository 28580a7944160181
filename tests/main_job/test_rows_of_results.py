"""Rows that are no plain table: earlier results, Inspect's logs; ids that do not identify; options without effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import Run

TASK = """
key: quiz
display_name: Quiz
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.n }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.odd }}", metrics: [{type: mean, field: is_correct, name: Accuracy}]}
"""

TRACES = """
key: traces
display_name: Traces
description: ""
definition:
  dataset: DATASET
  solver: {type: pass_through_solver, trace_column: trace}
  scorers:
    - {type: string_equals, ground_truth: "TRUTH", metrics: [{type: mean, field: is_correct, name: Accuracy}]}
"""


@pytest.fixture
def ran(tmp_path: Path, aigo: Run) -> Path:
    """A folder with a task, its model, and a run of it in `out`: two of four answers are right."""
    rows = [{"n": str(n), "odd": "yes" if n % 2 else "no"} for n in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "yes.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    assert aigo("run", "task.yaml", "--model", "scripted/yes.jsonl", "--num-trials", 2).code == 0
    return tmp_path


def test_the_trials_of_an_earlier_result_are_rows(ran: Path, aigo: Run) -> None:
    text = TRACES.replace("DATASET", "{source: task_result, key: quiz}").replace("TRUTH", "{{ sample.odd }}")
    (ran / "traces.yaml").write_text(text)

    done = aigo("run", "traces.yaml", "--dataset", "quiz=out/quiz.tasklog.json", "--out", "o", "--json")

    assert done.code == 0, done.err
    assert done.json["samples"]["scored"] == 8
    assert done.json["metrics"][0]["value"] == 0.5
    missing = aigo("run", "traces.yaml", "--out", "o")
    assert missing.code == 2
    assert "task result 'quiz' was not found" in missing.err


def test_samples_of_inspect_logs_are_rows(ran: Path, aigo: Run) -> None:
    text = TRACES.replace("DATASET", "{key: logs}").replace("TRUTH", "{{ sample.metadata.odd }}")
    (ran / "traces.yaml").write_text(text)
    (ran / "logs.yaml").write_text(
        "key: logs\ndisplay_name: Logs\nsource: {type: inspect_ai, path: out, limit: 6}\n"
    )

    done = aigo("run", "traces.yaml", "--out", "o", "--json")

    assert done.code == 0, done.err
    assert done.json["samples"]["scored"] == 6
    (ran / "logs.yaml").write_text(
        "key: logs\ndisplay_name: Logs\nsource: {type: inspect_ai, path: ../elsewhere}\n"
    )
    assert "the path leads out of" in aigo("run", "traces.yaml", "--out", "o").err


def test_ids_that_do_not_identify_are_told(ran: Path, aigo: Run) -> None:
    (ran / "rows.jsonl").write_text('{"n": "1", "odd": "yes", "sample_id": "a"}\n' * 2)

    done = aigo("run", "task.yaml", "--model", "scripted/yes.jsonl", "--out", "o")

    assert done.code == 0
    assert "1 row has a 'sample_id' that an earlier row has already" in done.err


def test_nothing_to_resume_is_told(ran: Path, aigo: Run) -> None:
    done = aigo("run", "task.yaml", "--model", "scripted/yes.jsonl", "--out", "elsewhere", "--resume")

    assert done.code == 0
    assert "nothing to resume: no run of this task with these models in elsewhere" in done.err


def test_a_model_for_a_task_that_asks_none_is_told(ran: Path, aigo: Run) -> None:
    (ran / "system.yaml").write_text(
        "key: s\ndisplay_name: S\ndescription: ''\ndefinition:\n  type: system_task\n  compute_evidence_snippet: |\n"
        "    def compute_evidence():\n        return {'metrics': {'m': {'value': 1}}}\n"
    )

    options = ("--num-samples", 3, "--num-trials", 2)
    done = aigo("run", "system.yaml", "--model", "scripted/yes.jsonl", *options, "--out", "o")

    assert done.code == 0, done.err
    assert "--model is not used" in done.err
    assert "--num-samples is not used" in done.err
    assert "--num-trials is not used" in done.err
