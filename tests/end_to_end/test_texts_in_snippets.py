"""`str()` in each kind of snippet: the text of an output, a message or a trace's last message."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

TASK = """\
key: t
display_name: T
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: SOLVER
    postprocessor:
      type: python
      postprocess_snippet: |
        def postprocess(sample, solver_output):
            return [({**sample, "seen": str(solver_output)}, solver_output)]
  scorers:
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {
                "words": len(str(solver_output.output).split()),
                "said": f"{solver_output}",
                "last": str(solver_output.messages[-1]),
                "seen": sample["seen"],
            }
      metrics:
        - type: python
          compute_metrics_snippet: |
            def compute_metrics(scores):
                return {"words": sum(len(str(score.values["said"]).split()) for score in scores)}
"""
PYTHON = """\
python
    run_solver_snippet: |
      async def run_solver(sample, model, trace):
          trace.append_user_message(sample["q"])
          first = await model.predict(trace.items)
          if not str(first) == str(first.raw_output) == f"{first.items[-1]}" == "It is Oslo indeed.":
              raise ValueError(str(first))
          trace.add_model_response(await model.predict(trace.items))
          return trace
"""
SINGLE = """\
single_turn_solver
    message_format: FORMAT
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
"""


@pytest.mark.engine
@pytest.mark.parametrize(
    "solver",
    [
        SINGLE.replace("FORMAT", "latticeflow"),
        SINGLE.replace("FORMAT", "open_responses"),
        PYTHON,
    ],
    ids=["chat", "items", "python"],
)
def test_answer_text_is_equal_in_every_snippet(
    solver: str, aigo: Run, tmp_path: Path, result_of: Callable[[Path], dict[str, Any]]
) -> None:
    (tmp_path / "t.yaml").write_text(TASK.replace("SOLVER\n", solver))
    (tmp_path / "rows.jsonl").write_text('{"q": "Capital of Norway?"}\n')
    reply = {"default": True, "reply": "It is Oslo indeed."}
    (tmp_path / "m.jsonl").write_text(json.dumps(reply) + "\n")

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "out")

    assert done.code == 0, done.err + done.out
    evidence = result_of(tmp_path / "out" / "t.tasklog.json")["evidence"]
    (sample,) = evidence["samples"]
    said = "It is Oslo indeed."
    assert sample["trials"][0]["scores"][0]["values"] == {
        "words": 4,
        "said": said,
        "last": said,
        "seen": said,
    }
    assert evidence["metrics"][0]["values"] == {"words": 4.0}
