"""`agent_solver`: the model works with tools in a sandbox, alone or with other agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import TASKS, Run

from aigo_bridge.dtypes import FunctionCallEvent, ModelCallEvent, Trace
from aigo_inspect import sandbox

Load = Callable[[Path], dict[str, Any]]

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: agent_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
    tools: [bash, text_editor]
    files: files
    output_files: [a.txt, new/b.txt, missing.txt]
    message_limit: 7
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
    - type: python
      key: files
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            extra = solver_output.trace.metadata.extra
            return {"right": extra["files"] == sample["left"], "ended": extra["ended"]}
"""
LOOP = {"tool_calls": [{"name": "bash", "arguments": {"command": "echo more | tee -a a.txt"}}]}
ROWS = [
    {"q": "Edit.", "a": "done", "files": {"a.txt": "1\n"}, "left": {"a.txt": "1\n", "new/b.txt": "2\n3\n"}},
    {"q": "Go on.", "a": "done", "files": {"a.txt": ""}, "left": {"a.txt": "more\nmore\nmore\n"}},
]
RULES = [
    {
        "match": {"exact": "Edit."},
        "reply": {
            "tool_calls": [
                {"name": "text_editor", "arguments": {"command": "view", "path": "b.txt"}},
                {
                    "name": "text_editor",
                    "arguments": {"command": "create", "path": "new/b.txt", "file_text": "3\n"},
                },
            ]
        },
    },
    {
        "match": {"exact": "new/b.txt was written."},
        "reply": {
            "tool_calls": [
                {
                    "name": "bash",
                    "arguments": {"command": "sed -i '1i 2' new/b.txt; curl -s http://192.0.2.1; echo $?"},
                }
            ]
        },
    },
    {"match": {"exact": "Go on."}, "reply": LOOP},
    {"match": {"exact": "more\n"}, "reply": LOOP},
    {"default": True, "reply": "done"},
]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "t.yaml").write_text(TASK)
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in RULES))
    return tmp_path / "t.yaml"


def traces(result: dict[str, Any]) -> list[Trace]:
    return [
        Trace.model_validate(sample["trials"][0]["solver"]["output"]["trace"])
        for sample in result["evidence"]["samples"]
    ]


def test_agent_works_until_it_answers_or_reaches_a_limit(
    aigo: Run, task: Path, tmp_path: Path, result_of: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outputs can also be scored again without a sandbox."""
    done = aigo("run", task, "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 0, done.out + done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    scores = [
        {score["scorer_key"]: score["values"] for score in sample["trials"][0]["scores"]}
        for sample in result["evidence"]["samples"]
    ]
    assert [score["files"] for score in scores] == [
        {"right": True, "ended": "answer"},
        {"right": True, "ended": "message_limit"},
    ]
    assert [score["string_equals"]["is_correct"] for score in scores] == [1.0, 0.0]
    edited, stopped = traces(result)
    assert [call.name for call in edited.function_calls] == ["text_editor", "text_editor", "bash"]
    outputs = [edited.get_function_output_text(output) for output in edited.function_outputs]
    assert "there is no file" in str(edited.function_outputs[0].model_dump())
    assert outputs[2].strip() not in ("", "0")  # there is no network, and perhaps no curl
    assert len(stopped.function_calls) == 3
    # The evidence contains the input of the scorers.
    assert edited.metadata is not None
    assert edited.metadata.extra is not None
    assert edited.metadata.extra["files"] == ROWS[0]["left"]
    assert len([event for event in edited.events or [] if isinstance(event, FunctionCallEvent)]) == 3

    monkeypatch.setattr(sandbox, "available", lambda: (None, "not any more"))
    again = aigo("score", task, "out/t.tasklog.json", "-o", "again")
    assert again.code == 0, again.err
    samples = result_of(tmp_path / "again" / "t.tasklog.json")["evidence"]["samples"]
    rescored = [sample["trials"][0]["scores"] for sample in samples]
    assert [{score["scorer_key"]: score["values"] for score in each} for each in rescored] == scores


def test_two_agents_are_nested_spans(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """In the shipped task, the analyst's conversation is inside the call that handed over to it."""
    answers = TASKS / "handoff-small" / "answers.jsonl"
    done = aigo("run", "aigo_tasks/handoff-small", "--model", f"scripted/{answers}", "-o", "out")

    assert done.code == 0, done.out + done.err
    first, _, alone = traces(result_of(tmp_path / "out" / "handoff-small.tasklog.json"))
    assert (first.span_type, first.span_name) == ("agent", "supervisor")
    assert first.get_last_assistant_text() == "16"
    (handoff,) = first.spans()
    (call,) = handoff.spans()
    (analyst,) = call.spans()
    assert [(span.span_type, span.span_name) for span in (handoff, call, analyst)] == [
        ("handoff", "analyst"),
        ("tool", "transfer_to_analyst"),
        ("agent", "analyst"),
    ]
    assert [each.name for each in analyst.function_calls][-1] == "python"
    assert analyst.get_last_assistant_text() == "North sold 16 units."
    assert alone.spans() == []
    # From the root: solvers, the solver, the supervisor, and so on down to the analyst's tool.
    names, level = [], [Trace.from_events(first.events or [])]
    while level := [span for trace in level for span in trace.spans()]:
        names.append([span.span_name for span in level])
    assert names[2:] == [["supervisor"], ["analyst"], ["transfer_to_analyst"], ["analyst"], ["python"]]
    # The event of the call names the agent that it started.
    (transfer,) = [
        event
        for event in first.events or []
        if isinstance(event, FunctionCallEvent) and event.function == "transfer_to_analyst"
    ]
    assert (transfer.agent, transfer.agent_span_id) == ("analyst", analyst.span_id)
    by_span = [event.span_id for event in first.events or [] if isinstance(event, ModelCallEvent)]
    assert by_span == [first.span_id, analyst.span_id, analyst.span_id, first.span_id]


def test_agent_without_a_sandbox_is_refused(
    aigo: Run, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: (None, "no docker; namespaces are forbidden"))

    done = aigo("run", task, "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 2
    said = " ".join(done.err.split())
    assert "solver (agent_solver): runs code that a model wrote, and no sandbox is available here" in said
    assert "namespaces are forbidden" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["ctf-small", "handoff-small", "repair-small"])
def test_agent_task_is_refused_by_lighteval(aigo: Run, tmp_path: Path, name: str) -> None:
    answers = TASKS / name / "answers.jsonl"
    run = ("run", f"aigo_tasks/{name}", "--model", f"scripted/{answers}", "-o", "out")
    done = aigo(*run, "--engine", "lighteval")

    assert done.code == 2
    assert (
        "solver (agent_solver): runs code that a model wrote, and this engine does not have a sandbox"
        in done.err
    )
    assert "run it with --engine inspect" in done.err
    assert not (tmp_path / "out").exists()


def test_agent_solver_is_invalid_in_the_platform_dialect(aigo: Run, task: Path) -> None:
    assert aigo("validate", task).code == 0
    strict = aigo("validate", task, "--dialect", "aigo-3.17")
    assert strict.code == 1
    assert "'agent_solver' is an aigo-bridge extension" in strict.out + strict.err
