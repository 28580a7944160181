"""Names of the platform's modules are available if supported, and reported before a run otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import Run

import aigo_bridge.dtypes as dtypes
from aigo_bridge.reading.checks.texts import check_snippet

TASK = """
key: t
display_name: T
description: ""
config_spec: [{type: string, key: extra, string_kind: python, display_name: E, default_value: "pass"}]
definition:
  dataset: {key: d}
  solver:
    type: python
    run_solver_snippet: !include solver.py
  scorers:
    - type: python
      metrics: []
      compute_scores_snippet: |
        from latticeflow.core.dtypes import RawSample, SolverOutput
        << config.extra >>
        def compute_scores(sample: RawSample, solver_output: SolverOutput) -> dict:
            return {"right": solver_output.messages[-1].content == "echo"}
"""

SOLVER = """
from latticeflow.core.dtypes import (
    SYNTHETIC_MESSAGE_ID, SYNTHETIC_MESSAGE_STATUS, AssistantMessage, LFSample, ModelProtocol, OutputTextContent,
    RawSample, SolverTrace, is_trace_item,
)


async def run_solver(sample: RawSample | LFSample, model: ModelProtocol[list, str], trace: SolverTrace) -> SolverTrace:
    said = OutputTextContent(type="output_text", text="echo", annotations=[])
    message = AssistantMessage(
        type="message", id=SYNTHETIC_MESSAGE_ID, status=SYNTHETIC_MESSAGE_STATUS, content=[said]
    )
    assert is_trace_item(message)
    trace.append_user_message(str(sample["q"]))
    trace.append(message)
    return trace
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "t.yaml").write_text(TASK)
    (tmp_path / "solver.py").write_text(SOLVER)
    (tmp_path / "d.jsonl").write_text('{"q": 1}\n')
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "no"}\n')
    return tmp_path / "t.yaml"


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_published_names_work_in_snippets(aigo: Run, task: Path, engine: str) -> None:
    done = aigo("run", task, "--model", "scripted/m.jsonl", "--engine", engine, "--out", "out")

    assert done.code == 0, done.out + done.err
    (sample,) = json.loads((task.parent / "out" / "t.tasklog.json").read_text())["evidence"]["samples"]
    assert sample["trials"][0]["scores"][0]["values"] == {"right": True}


def test_unavailable_name_is_reported_before_the_run(aigo: Run, task: Path) -> None:
    """All names are reported together with file, line and column, before a model call."""
    solver = task.parent / "solver.py"
    solver.write_text(SOLVER.replace("RawSample, SolverTrace", "RawSample, SolverTraces, RESULT_TYPES"))

    for verb in (["validate", task], ["run", task, "--model", "scripted/m.jsonl"]):
        done = aigo(*verb)

        assert done.code in (1, 2)
        told = " ".join((done.out + done.err).split())
        assert "solver.py:4:16: error: 'latticeflow.core.dtypes' does not provide 'SolverTraces'" in told
        assert "did you mean 'SolverTrace'" in told
        assert "solver.py:4:30: error: 'latticeflow.core.dtypes' does not provide 'RESULT_TYPES'" in told
        assert not (task.parent / "out").exists()


def test_code_from_config_is_checked(aigo: Run, task: Path) -> None:
    extra = "from latticeflow.core.dtypes import Nothing"

    done = aigo("run", task, "--model", "scripted/m.jsonl", "--config", f"extra={extra}")

    assert done.code == 2
    assert (
        "with this config, in line 2 of the code: 'latticeflow.core.dtypes' does not provide 'Nothing'"
        in done.err
    )


def told(code: str) -> list[tuple[int | None, int | None, str]]:
    found = list(check_snippet(code + "\ndef f(): pass", ("x",), "f"))
    assert {issue.severity for issue in found} <= {"error"}
    return [(issue.line, issue.column, issue.message) for issue in found]


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("from latticeflow.core.dtypes import Nope", (1, 37)),
        ("from latticeflow.assessment.dtypes import (\n    Trace,\n    Nope as Trace2,\n)", (3, 5)),
        ("import latticeflow.core.dtypes as m\nx = 'ü', m.Nope", (2, 10)),
        ("import latticeflow.core.dtypes\nlatticeflow.core.dtypes.Nope()", (2, 1)),
        ("from latticeflow.core import dtypes as d\ndef g(x: d.Nope): pass", (2, 10)),
        ("from latticeflow import core\ncore.dtypes.Nope", (2, 1)),
        ("def g():\n    from latticeflow.core.dtypes import Nope", (2, 41)),
    ],
)
def test_every_form_of_import_and_access_is_checked(code: str, place: tuple[int, int]) -> None:
    ((line, column, message),) = told(code)
    assert (line, column) == place
    assert message.endswith(".dtypes' does not provide 'Nope'")


@pytest.mark.parametrize(
    "code",
    [
        "from latticeflow.go.sdk import Client",
        "import latticeflow.core.experimental.scorers",
        "from latticeflow.core.utils import jinja",
        "from latticeflow.core import utils",
    ],
)
def test_unavailable_modules_are_reported(code: str) -> None:
    ((_, _, message),) = told(code)
    assert message.startswith("module 'latticeflow.")


@pytest.mark.parametrize(
    "code",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from latticeflow.core.dtypes import Nope",
        "try:\n    from latticeflow.core.dtypes import Nope\nexcept ImportError:\n    Nope = None",
        "try:\n    import latticeflow.go.sdk\nexcept (ValueError, ModuleNotFoundError):\n    pass",
        "from latticeflow.core.dtypes import *",
        "import latticeflow.core.dtypes as m\nm.__doc__, m.Trace, [].Nope",
        "import latticeflows\nlatticeflows.core.dtypes.Nope",
        "from latticeflow.core.dtypes import Trace as m\nm.Nope",
    ],
)
def test_available_and_guarded_names_are_accepted(code: str) -> None:
    assert told(code) == []


def test_message_formats_are_converted() -> None:
    chat = dtypes.ChatCompletionInput(
        messages=[
            dtypes.ChatCompletionInputMessage(role="system", content="be brief"),
            dtypes.ChatCompletionInputMessage(role="user", content="hi"),
            dtypes.ChatCompletionInputMessage(role="assistant", content="yes"),
        ]
    )
    answer = dtypes.ChatCompletionModelOutput.model_validate(
        {"choices": [{"message": {"role": "assistant", "content": "no"}}]}
    )

    items = dtypes.model_input_to_trace_items(chat) + dtypes.model_output_to_trace_items(answer)
    messages = [*dtypes.model_input_to_messages(chat), dtypes.model_output_to_message(answer)]

    assert [(type(item).__name__, dtypes.text_of(item)) for item in items] == [
        ("SystemMessage", "be brief"),
        ("UserMessage", "hi"),
        ("AssistantMessage", "yes"),
        ("AssistantMessage", "no"),
    ]
    assert all(map(dtypes.is_trace_item, items))
    assert [getattr(message, "content", None) for message in dtypes.trace_items_to_lf_messages(items)] == [
        "be brief",
        "hi",
        "yes",
        "no",
    ]
    assert dtypes.lf_messages_to_trace_items(messages) == items
    assert dtypes.lf_messages_to_trace_items([{"any": 1}]) == [
        dtypes.CustomTaskInputMessage(content={"any": 1})
    ]
    assert dtypes.model_input_to_messages(["a", "b"]) == [["a", "b"]]
    assert not dtypes.is_trace_item("text")


def test_keys_are_sanitized_and_validated() -> None:
    assert dtypes.sanitize_key(" GPT-4.1 nano! ") == "gpt-4-1-nano"
    assert dtypes.sanitize_key("a_b") == "a_b"
    with pytest.raises(ValueError, match="cannot contain any character of '--'"):
        dtypes.sanitize_key("--")
    assert dtypes.is_valid_key("A_b-1")
    assert not any(map(dtypes.is_valid_key, ["", "a b", "a$b", "x" * 251, "a\n"]))


def test_appended_messages_are_marked_as_synthetic() -> None:
    trace = dtypes.SolverTrace(trace=dtypes.Trace(items=[]), raw_outputs=[])
    trace.append_user_message("hi")
    (message,) = trace.items
    assert isinstance(message, dtypes.UserMessage)
    assert message.id == dtypes.SYNTHETIC_MESSAGE_ID
    assert message.status is dtypes.SYNTHETIC_MESSAGE_STATUS
