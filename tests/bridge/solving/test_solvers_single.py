"""Single-turn solver: requests, traces and invalid input."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    Message,
    ModelResponse,
    SolverTrace,
)
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.solving.conversation import body_from_template, input_item, output_items, request_from_body
from aigo_bridge.solving.registry import compile_solver
from aigo_bridge.spec.solvers import Solver
from aigo_bridge.templates import SampleTemplate

SOLVER: TypeAdapter[Solver] = TypeAdapter(Solver)


class Echo:
    """Model that repeats the last message."""

    key = ""
    name = "test/echo"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def predict(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        message = ChatCompletionOutputMessage(
            role="assistant", content=str(request.input.messages[-1].content)
        )
        output = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=message)])
        return ModelResponse(raw_output=output, items=output_items(output))


def nobody(key: str) -> Model:
    raise AssertionError(f"model {key!r} was called")


def solve(builder: dict[str, Any], sample: dict[str, Any]) -> tuple[SolverTrace, Echo]:
    solver = compile_solver(SOLVER.validate_python({"type": "single_turn_solver", "input_builder": builder}))
    model = Echo()
    trace = asyncio.run(solver(sample, model, nobody))
    assert isinstance(trace, SolverTrace)
    return trace, model


def chat(*messages: tuple[str, str]) -> dict[str, Any]:
    return {
        "type": "chat_completion",
        "input_messages": [{"role": role, "content": content} for role, content in messages],
    }


def generic(template: str) -> dict[str, Any]:
    return {"type": "generic", "template": template}


def said(trace: SolverTrace) -> list[tuple[str, str]]:
    return [
        (item.role.value, "".join(getattr(part, "text", "") for part in item.content))
        for item in trace.items
        if isinstance(item, Message)
    ]


def test_trace_contains_request_and_response() -> None:
    builder = chat(
        ("system", "Be brief."), ("user", "{{ sample.q }}\n"), ("assistant", "Well: {{ sample.q }}")
    )
    trace, model = solve(builder, {"q": "Why?"})
    assert said(trace) == [
        ("system", "Be brief."),
        ("user", "Why?"),
        ("assistant", "Well: Why?"),
        ("assistant", "Well: Why?"),
    ]
    assert [message.content for message in model.requests[0].input.messages] == [
        "Be brief.",
        "Why?",
        "Well: Why?",
    ]
    (output,) = trace.raw_outputs
    assert isinstance(output, ChatCompletionModelOutput)
    assert output.choices[0].message.content == "Well: Why?"
    again = SolverTrace.model_validate(trace.model_dump(mode="json", exclude_unset=True))
    assert said(again) == said(trace)


@given(st.text())
def test_any_text_of_a_sample_reaches_the_model_unchanged(text: str) -> None:
    for builder in (
        chat(("user", "{{ sample.q }}")),
        generic('{"messages": [{"role": "user", "content": {{ sample.q | tojson }}}]}'),
    ):
        trace, model = solve(builder, {"q": text})
        assert model.requests[0].input.messages[0].content == text
        assert said(trace) == [("user", text), ("assistant", text)]


def test_generic_body_can_set_options_and_response_format() -> None:
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0,
        "max_tokens": 5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        },
    }
    _, model = solve(generic(json.dumps(body)), {})
    assert dict(model.requests[0].options) == {"temperature": 0, "max_tokens": 5}
    assert model.requests[0].input.response_format is not None


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ('{"messages": [{"role": "user", "content": "{{ sample.q }}"}]}', "did not return JSON"),
        ("", "did not return JSON: Expecting value at line 1, column 1 ('')"),
        ("\n\n{\n\n", "did not return JSON"),
        ("{{ sample.q }}", "did not return JSON"),
        ("[]", 'the input template gave a list, expected an object with "messages"'),
        ("4", 'gave a int, expected an object with "messages"'),
        ('{"prompt": 1, "a": 2}', "gave an object with ['a', 'prompt'], expected"),
        ('{"messages": "hi"}', "did not return chat messages: messages"),
        ('{"messages": [{"role": "robot", "content": "x"}]}', "did not return chat messages: messages.0"),
        ('{"messages": [{"role": "user"}]}', "did not return chat messages: messages.0"),
        ('{"messages": [], "top_k": 1, "stream": true}', "asks for stream, top_k, which would be lost"),
    ],
)
def test_invalid_chat_input_fails_the_sample(template: str, message: str) -> None:
    with pytest.raises(SampleError) as caught:
        solve(generic(template), {"q": 'a "quoted"\x0b\u2028\nline'})
    assert message in caught.value.message
    assert (caught.value.stage, caught.value.kind) == ("solver", "InvalidModelInput")


def test_unescaped_quotes_have_a_hint() -> None:
    with pytest.raises(SampleError) as caught:
        solve(generic('{"messages": [{"role": "user", "content": "{{ sample.q }}"}]}'), {"q": '"'})
    assert "tojson" in str(caught.value.hint)


def test_failing_template_fails_the_sample() -> None:
    with pytest.raises(SampleError) as caught:
        solve(chat(("user", "{{ sample.missing }}")), {"q": "x"})
    assert (caught.value.stage, caught.value.kind) == ("solver", "TemplateError")


def test_refusal_is_a_separate_content_part() -> None:
    message = ChatCompletionOutputMessage(role="assistant", content="", refusal="I cannot.")
    item = input_item(message)
    assert [part.type for part in item.content] == ["output_text", "refusal"]
    assert output_items(ChatCompletionModelOutput(choices=[])) == []


def test_a_body_without_options_has_no_options() -> None:
    assert request_from_body({"messages": []}).options == {}


@pytest.mark.parametrize("text", ['{"messages": [], "seed": ' + "9" * 5000 + "}", "[" * 50_000])
def test_unreadable_json_of_a_template_fails_the_sample(text: str) -> None:
    template = SampleTemplate("{{ sample.body }}")
    with pytest.raises(SampleError, match="the input template returned JSON that cannot be read") as error:
        body_from_template(template, {"body": text})
    assert error.value.kind == "InvalidModelInput"
    assert error.value.code == Code.WRONG_INPUT
