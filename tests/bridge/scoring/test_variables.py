"""Arguments of deprecated scorer snippets: the last model input and model output."""

from __future__ import annotations

import pytest

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    CustomTaskInputMessage,
    CustomTaskOutputMessage,
    GroupedSolverTrace,
    SolverOutput,
    SolverTrace,
    Trace,
    TraceItem,
)
from aigo_bridge.errors import SampleError
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.variables import last_call, variables
from aigo_bridge.snippets.snippet import has_old_scores, metrics_function
from aigo_bridge.solving.conversation import chat_output, text_item


def trace(*items: TraceItem, raw: list[object] | None = None) -> SolverTrace:
    return SolverTrace(trace=Trace.from_items(list(items)), raw_outputs=raw or [])


CHAT = trace(
    text_item("system", "brief"),
    text_item("user", "one"),
    text_item("assistant", "1"),
    text_item("user", "two"),
    text_item("assistant", "2"),
    raw=[chat_output("1"), chat_output("2")],
)


def test_last_of_several_turns_is_returned() -> None:
    asked, said = last_call(CHAT)
    assert isinstance(asked, ChatCompletionInput)
    assert [(message.role, message.content) for message in asked.messages] == [
        ("system", "brief"),
        ("user", "one"),
        ("assistant", "1"),
        ("user", "two"),
    ]
    assert said == chat_output("2")


def test_input_and_output_of_a_custom_task_are_returned() -> None:
    output = trace(CustomTaskInputMessage(content={"n": 2}), CustomTaskOutputMessage(content=[4]), raw=[[4]])
    assert last_call(output) == ({"n": 2}, [4])
    assert "input_prompt" not in variables(Sample(0, {}), output)


def test_solver_without_a_model_call_has_no_output() -> None:
    asked, said = last_call(trace(text_item("user", "hi")))
    assert [message.content for message in asked.messages] == ["hi"]
    assert said is None


def test_group_of_answers_is_an_error() -> None:
    group: SolverOutput = GroupedSolverTrace(solver_outputs=[CHAT, CHAT])
    with pytest.raises(SampleError, match="a group of 2 answers, and the snippet accepts a single answer"):
        last_call(group)


@pytest.mark.parametrize(
    ("code", "old"),
    [
        ("def compute_scores(sample, model_input, model_output): ...", True),
        ("async def compute_scores(sample, model_input, model_output, /): ...", True),
        ("def compute_scores(row, asked, said): ...", False),
        ("def compute_scores(sample, model_input, model_output, strict=False): ...", True),
        ("def compute_scores(sample, model_input=None, model_output=None): ...", True),
        ("def compute_scores(sample, solver_output, limit=3): ...", False),
        ("def compute_scores(sample, solver_output): ...", False),
        ("def compute_scores(*args): ...", False),
        ("def compute_scores(:", False),
    ],
)
def test_deprecated_function_is_recognized_by_its_parameters(code: str, old: bool) -> None:
    assert has_old_scores(code) is old


def test_name_of_the_metrics_function_is_found() -> None:
    assert metrics_function("def aggregate(scores): ...") == "aggregate"
    assert (
        metrics_function("def aggregate(scores): ...\ndef compute_metrics(scores): ...") == "compute_metrics"
    )
    assert metrics_function("") == "compute_metrics"
