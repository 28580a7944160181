"""`str()` of model outputs, messages and solver outputs: the text that a template prints."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    FunctionCallOutput,
    GroupedSolverOutput,
    Message,
    ModelResponse,
    OpenResponsesModelOutput,
    SingleSolverOutput,
    SolverTrace,
    Trace,
)
from aigo_bridge.templates import SampleTemplate

SAID = "It is Oslo."


def message(role: str, *texts: str) -> Message:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    data = {"type": "message", "id": "m", "status": "completed", "role": role, "content": content}
    return Message.model_validate(data)


def chat(text: str) -> ChatCompletionModelOutput:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return ChatCompletionModelOutput.model_validate({"choices": [choice]})


ITEMS = OpenResponsesModelOutput(items=[message("user", "?"), message("assistant", SAID)])
SINGLE = SingleSolverOutput.from_input_and_output("?", chat(SAID))
TRACE = SolverTrace(trace=Trace.from_items(ITEMS.items), raw_outputs=[ITEMS])
TOOL: dict[str, Any] = {"type": "function_call_output", "id": "o", "call_id": "c", "status": "completed"}
RESULT = FunctionCallOutput.model_validate({**TOOL, "output": [{"type": "input_text", "text": SAID}]})


@pytest.mark.parametrize(
    "value",
    [
        chat(SAID),
        chat(SAID).choices[0],
        chat(SAID).choices[0].message,
        ITEMS,
        ITEMS.items[-1],
        message("assistant", SAID).content,
        message("assistant", SAID).content[0],
        ModelResponse(raw_output=chat(SAID), items=ITEMS.items),
        SINGLE,
        SINGLE.messages[-1],
        SingleSolverOutput(messages=[], output=SAID),
        TRACE,
        TRACE.trace.items[-1],
        TRACE.messages[-1],
        SolverTrace(trace=TRACE.trace, raw_outputs=[]),
        RESULT,
        RESULT.output,
        GroupedSolverOutput(solver_outputs={"a": SINGLE}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_output_text_is_the_same_in_python_and_in_templates(value: object) -> None:
    assert str(value) == f"{value}" == "%s" % value == SAID  # noqa: UP031  # as snippets write it
    assert f"{value!s:>13}" == f"{SAID:>13}"
    assert SampleTemplate("{{ solver_output }}").render(sample={}, solver_output=value) == SAID


def test_text_parts_and_groups_are_joined_with_newlines() -> None:
    assert str(message("assistant", "a", "b").content) == "a\nb"
    assert str(GroupedSolverOutput(solver_outputs=[SINGLE, SINGLE])) == f"{SAID}\n{SAID}"
    assert f"{chat(SAID):>13}" == f"{SAID:>13}"


def test_output_without_an_answer_is_empty_text() -> None:
    silent = SolverTrace(trace=Trace.from_items([message("user", "?")]), raw_outputs=[])
    for value in (ChatCompletionModelOutput(choices=[]), OpenResponsesModelOutput(items=[]), silent):
        assert str(value) == ""


def test_types_without_text_print_their_fields() -> None:
    for value in (TRACE.trace, Trace.from_items([])):
        assert str(value) == BaseModel.__str__(value)
    assert repr(chat(SAID)) == BaseModel.__repr__(chat(SAID))


def test_content_with_a_text_form_is_dumped_unchanged() -> None:
    said = message("assistant", "a", "b")
    assert Message.model_validate_json(said.model_dump_json()) == said
    assert isinstance(said.model_dump()["content"], list)
    assert said.content == list(said.content)
