"""Recorded traces as output, and several inputs from one template."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    GroupedSolverTrace,
    ModelResponse,
    SolverTrace,
    Trace,
)
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.solving.conversation import chat_output, output_items, text_item
from aigo_bridge.solving.registry import compile_solver
from aigo_bridge.spec.solvers import GroupedSingleTurnSolver, Solver

SOLVER: TypeAdapter[Solver] = TypeAdapter(Solver)


class Echo:
    """Model that repeats the last message."""

    key = ""
    name = "test/echo"

    def __init__(self) -> None:
        self.calls = 0

    async def predict(self, request: ModelRequest) -> ModelResponse:
        self.calls += 1
        output = chat_output(str(request.input.messages[-1].content))
        return ModelResponse(raw_output=output, items=output_items(output))


def nobody(key: str) -> Model:
    raise AssertionError(f"model {key!r} was called")


def passed(sample: dict[str, Any]) -> SolverTrace:
    spec = SOLVER.validate_python({"type": "pass_through_solver", "trace_column": "t"})
    model = Echo()
    trace = asyncio.run(compile_solver(spec)(sample, model, nobody))
    assert model.calls == 0
    assert isinstance(trace, SolverTrace)
    return trace


TRACE = Trace(items=[text_item("user", "Hi"), text_item("assistant", "Hello"), text_item("user", "Bye")])
PLAIN: dict[str, Any] = TRACE.model_dump(mode="json")


@pytest.mark.parametrize(
    "cell",
    [PLAIN, json.dumps(PLAIN), PLAIN["items"], json.dumps(PLAIN["items"]), json.dumps(PLAIN).encode()],
)
def test_trace_cell_can_be_a_mapping_a_list_or_json_text(cell: Any) -> None:
    trace = passed({"t": cell})
    assert trace.items == TRACE.items
    (output,) = trace.raw_outputs
    assert isinstance(output, ChatCompletionModelOutput)
    assert output.choices[0].message.content == "Hello"


def test_metadata_and_unknown_fields_of_a_trace_are_kept() -> None:
    items = [{**PLAIN["items"][0], "created_by": "me"}]
    cell = {"items": items, "metadata": {"trace_id": "x"}}
    before = json.dumps(cell)
    trace = passed({"t": cell})
    assert trace.trace.metadata is not None
    assert trace.trace.metadata.trace_id == "x"
    assert trace.items[0].created_by == "me"  # type: ignore[union-attr]  # a field that the type does not know
    assert json.dumps(cell) == before


def test_single_assistant_message_becomes_the_output() -> None:
    """Without a user message, the whole trace is a preamble in which no answer is found."""
    trace = passed({"t": [PLAIN["items"][1]]})
    assert trace.trace.get_last_assistant_text() is None
    assert trace.output == chat_output("Hello")


@pytest.mark.parametrize("cell", [{"items": []}, [], [PLAIN["items"][0]]])
def test_trace_without_assistant_message_has_no_output(cell: Any) -> None:
    trace = passed({"t": cell})
    assert trace.raw_outputs == []
    assert trace.output is None


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"u": 1}, "column 't' does not contain a trace: the sample does not have this column; columns: 'u'"),
        ({"t": None}, "found nothing, expected a mapping with 'items'"),
        ({"t": 4}, "found a int"),
        ({"t": float("nan")}, "found a float"),
        ({"t": ""}, "its text is not JSON"),
        ({"t": "{"}, "its text is not JSON"),
        ({"t": "[" * 100_000}, "its text is"),
        ({"t": b"\xff"}, "its text is not JSON"),
        ({"t": {}}, "found a mapping with no keys, expected one with 'items'"),
        ({"t": {"messages": []}}, "found a mapping with 'messages'"),
        ({"t": [1]}, "items.0"),
        ({"t": [{"role": "user", "content": "chat form"}]}, "items.0"),
        ({"t": [{"type": "function_call", "id": "a"}]}, "items.0"),
        ({"t": {"items": "x"}}, "items"),
    ],
)
def test_invalid_trace_cell_fails_the_sample(sample: dict[str, Any], message: str) -> None:
    with pytest.raises(SampleError) as caught:
        passed(sample)
    assert message in caught.value.message
    assert len(caught.value.message) < 500
    assert (caught.value.stage, caught.value.kind) == ("solver", "InvalidTrace")


@given(st.lists(st.tuples(st.sampled_from(["user", "system", "assistant"]), st.text()), max_size=8))
def test_recorded_conversation_is_returned_unchanged(said: list[tuple[str, str]]) -> None:
    trace = Trace(items=[text_item(role, text) for role, text in said])
    assert passed({"t": json.dumps(trace.model_dump(mode="json"))}).items == trace.items


def grouped(template: str, sample: dict[str, Any] | None = None) -> GroupedSolverTrace:
    spec = GroupedSingleTurnSolver.model_validate(
        {"type": "grouped_single_turn_solver", "input_builder": {"type": "generic", "template": template}}
    )
    group = asyncio.run(compile_solver(spec)(sample or {}, Echo(), nobody))
    assert isinstance(group, GroupedSolverTrace)
    return group


BODY = '{"messages": [{"role": "user", "content": {{ %s | tojson }}}]}'


def test_a_list_of_inputs_gives_a_list_of_traces_in_order() -> None:
    template = "[{% for q in sample.qs %}" + BODY % "q" + "{% if not loop.last %},{% endif %}{% endfor %}]"
    found = grouped(template, {"qs": ["a", 'b"\n', "ä"]}).solver_outputs
    assert isinstance(found, list)
    assert [trace.trace.get_last_assistant_text() for trace in found] == ["a", 'b"\n', "ä"]
    assert [len(trace.raw_outputs) for trace in found] == [1, 1, 1]


def test_mapping_of_inputs_gives_traces_by_name() -> None:
    found = grouped(
        f'{{"x": {BODY % "sample.a"}, "y": {BODY % "sample.b"}}}', {"a": "1", "b": "2"}
    ).solver_outputs
    assert isinstance(found, dict)
    assert {name: trace.trace.get_last_assistant_text() for name, trace in found.items()} == {
        "x": "1",
        "y": "2",
    }


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("[]", "gave an empty list"),
        ("{}", "gave an empty dict"),
        ("null", "gave an empty NoneType"),
        ("4", "gave a int"),
        ('{"messages": []}', "gave one model input, expected a list"),
        ('[{"messages": []}, 4]', "input 1 of the group: the input template gave a int"),
        ('{"a": {"prompt": 1}}', "input 'a' of the group: the input template gave an object"),
        ("[", "did not return JSON"),
    ],
)
def test_an_invalid_group_fails_the_sample(template: str, message: str) -> None:
    with pytest.raises(SampleError) as caught:
        grouped(template)
    assert message in caught.value.message
    assert (caught.value.stage, caught.value.kind) == ("solver", "InvalidModelInput")
