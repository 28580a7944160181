"""Multi-turn solver: order of messages, other models, loops, terminations and removed messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter

from aigo_bridge.dtypes import Message, ModelResponse, SolverTrace, TraceItem
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.solving.conversation import chat_output, output_items
from aigo_bridge.solving.registry import compile_solver
from aigo_bridge.spec.solvers import Solver

SOLVER: TypeAdapter[Solver] = TypeAdapter(Solver)
ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])


class Scripted:
    """Model whose answer is a function of the call number."""

    def __init__(self, key: str, answer: Callable[[int], str | ModelResponse]):
        self.key = key
        self.name = f"test/{key}"
        self.answer = answer
        self.requests: list[ModelRequest] = []

    async def predict(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        answer = self.answer(len(self.requests))
        if isinstance(answer, str):
            output = chat_output(answer)
            return ModelResponse(raw_output=output, items=output_items(output))
        return answer


def solve(
    builders: Sequence[dict[str, Any]],
    sample: dict[str, Any] | None = None,
    *,
    model: Scripted | None = None,
    other: Scripted | None = None,
) -> SolverTrace:
    spec = SOLVER.validate_python({"type": "multi_turn_solver", "message_builders": list(builders)})

    def models(key: str) -> Model:
        if other is None or other.key != key:
            raise SampleError(
                f"no model was given for {key!r}", stage="score", hint="map it", kind="MissingModel"
            )
        return other

    trace = asyncio.run(compile_solver(spec)(sample or {}, model or counting(), models))
    assert isinstance(trace, SolverTrace)
    return trace


def counting() -> Scripted:
    return Scripted("", lambda number: f"answer {number}")


def user(content: str, **more: Any) -> dict[str, Any]:
    return {"type": "chat_message", "role": "user", "content": content, **more}


def loop(*builders: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "loop", "message_builders": list(builders), **more}


def ask(key: str = "other", **more: Any) -> dict[str, Any]:
    extra = [{"type": "chat_message", "role": "system", "content": "You are {{ sample.who }}."}]
    return {"type": "generate_message", "model_key": key, "extra_input_messages": extra, **more}


GENERATE = {"type": "generate"}


def said(items: Sequence[Any]) -> list[str]:
    return [
        f"{item.role.value}: {''.join(getattr(part, 'text', '') for part in item.content)}"
        for item in items
        if isinstance(item, Message)
    ]


def heard(request: ModelRequest) -> list[str]:
    return [f"{message.role}: {message.content}" for message in request.input.messages]


def test_model_gets_all_previous_turns_in_order() -> None:
    model = counting()
    trace = solve(
        [
            {"type": "chat_message", "role": "system", "content": "Be brief."},
            user("Menu for {{ sample.n }}."),
            GENERATE,
            user("Vegetarian."),
            GENERATE,
        ],
        {"n": 4},
        model=model,
    )
    conversation = ["system: Be brief.", "user: Menu for 4.", "assistant: answer 1", "user: Vegetarian."]
    assert said(trace.items) == [*conversation, "assistant: answer 2"]
    assert [heard(request) for request in model.requests] == [conversation[:2], conversation]
    assert trace.output == chat_output("answer 2")
    assert len(trace.raw_outputs) == 2
    again = SolverTrace.model_validate(json.loads(trace.model_dump_json()))
    assert said(again.items) == said(trace.items)


def test_extra_messages_are_sent_to_another_model_but_not_kept() -> None:
    other = Scripted("other", lambda number: "And then?")
    trace = solve([user("Hi"), GENERATE, ask(output_role="user")], {"who": "a guest"}, other=other)
    assert heard(other.requests[0]) == ["user: Hi", "assistant: answer 1", "system: You are a guest."]
    assert said(trace.items) == ["user: Hi", "assistant: answer 1", "user: And then?"]
    assert trace.output == chat_output("answer 1")


def test_another_model_can_get_only_the_extra_messages() -> None:
    other = Scripted("other", lambda number: "Hello")
    trace = solve([user("Hi"), ask(include_conversation=False)], {"who": "a guest"}, other=other)
    assert heard(other.requests[0]) == ["system: You are a guest."]
    assert said(trace.items) == ["user: Hi", "assistant: Hello"]
    assert trace.output is None


def test_missing_model_fails_the_sample() -> None:
    with pytest.raises(SampleError) as caught:
        solve([ask("nobody")], {"who": "x"})
    assert (caught.value.stage, caught.value.kind, caught.value.hint) == ("solver", "MissingModel", "map it")


def test_a_message_without_text_cannot_be_appended() -> None:
    silent = ModelResponse(raw_output=None, items=[])
    with pytest.raises(SampleError, match="model 'other' returned no text to append"):
        solve([ask()], {"who": "x"}, other=Scripted("other", lambda number: silent))


def test_loop_repeats_until_the_text_appears() -> None:
    other = Scripted("other", lambda number: "<done>" if number == 3 else f"question {number}")
    trace = solve(
        [loop(ask(output_role="user", terminate_if={"includes": "<done>"}), GENERATE), user("Bye")],
        {"who": "x"},
        other=other,
    )
    assert said(trace.items) == [
        "user: question 1",
        "assistant: answer 1",
        "user: question 2",
        "assistant: answer 2",
        "user: <done>",
        "user: Bye",
    ]


def test_messages_of_the_last_iteration_can_be_removed() -> None:
    model = Scripted("", lambda number: "<done>" if number == 4 else f"answer {number}")
    stop = {"includes": "<done>", "keep_iteration": False}
    trace = solve(
        [user("start"), loop(user("next"), GENERATE, {**GENERATE, "terminate_if": stop})], model=model
    )
    assert said(trace.items) == ["user: start", "user: next", "assistant: answer 1", "assistant: answer 2"]
    assert trace.output == chat_output("answer 2")
    assert len(model.requests) == 4


@pytest.mark.parametrize(("keep", "last"), [(True, ["assistant: <done>"]), (False, [])])
def test_termination_outside_a_loop_ends_the_solver(keep: bool, last: list[str]) -> None:
    model = Scripted("", lambda number: "<done>" if number == 2 else f"answer {number}")
    stop = {"includes": "<done>", "keep_iteration": keep}
    trace = solve([user("a"), GENERATE, {**GENERATE, "terminate_if": stop}, GENERATE], model=model)
    assert said(trace.items) == ["user: a", "assistant: answer 1", *last]
    assert len(trace.raw_outputs) == 1 + len(last)
    assert len(model.requests) == 2


def test_fixed_message_terminates_if_the_case_matches() -> None:
    stop = {"includes": "STOP"}
    trace = solve([user("{{ sample.x }}", terminate_if=stop), GENERATE], {"x": "please STOP"})
    assert said(trace.items) == ["user: please STOP"]
    trace = solve([user("{{ sample.x }}", terminate_if=stop), GENERATE], {"x": "please stop"})
    assert said(trace.items) == ["user: please stop", "assistant: answer 1"]


def test_terminated_inner_loop_does_not_end_the_outer_loop() -> None:
    inner = loop(user("in", terminate_if={"includes": "in"}), GENERATE)
    trace = solve([loop(inner, user("out"), max_iterations=2, on_max_iterations="continue")])
    assert said(trace.items) == ["user: in", "user: out"] * 2


@pytest.mark.parametrize(
    ("given", "most"), [({}, 10), ({"max_iterations": 3}, 3), ({"max_iterations": 0}, 0)]
)
def test_loop_at_its_iteration_limit_fails_unless_it_may_continue(given: dict[str, Any], most: int) -> None:
    with pytest.raises(SampleError, match=f"limit of {most} iterations") as caught:
        solve([loop(user("again"), **given)])
    assert (caught.value.stage, caught.value.kind) == ("solver", "MaxIterations")
    trace = solve([loop(user("again"), on_max_iterations="continue", **given), user("end")])
    assert said(trace.items) == ["user: again"] * most + ["user: end"]


def test_termination_in_the_last_iteration_is_not_an_error() -> None:
    model = Scripted("", lambda number: "<done>" if number == 2 else "more")
    trace = solve([loop({**GENERATE, "terminate_if": {"includes": "<done>"}}, max_iterations=2)], model=model)
    assert said(trace.items) == ["assistant: more", "assistant: <done>"]


CALL = {
    "type": "function_call",
    "id": "c",
    "call_id": "1",
    "name": "look_up",
    "arguments": "{}",
    "status": "completed",
}
RESULT = {"type": "function_call_output", "id": "o", "call_id": "1", "output": "42", "status": "completed"}
QUESTION = {
    "type": "message",
    "id": "q",
    "status": "completed",
    "role": "user",
    "content": [{"type": "input_text", "text": "How many?"}],
}


def test_recorded_trace_with_function_calls_is_sent_completely() -> None:
    model = counting()
    cell = json.dumps({"items": [QUESTION, CALL, RESULT]})
    trace = solve(
        [{"type": "load_trace", "trace_column": "t"}, user("So?"), GENERATE], {"t": cell}, model=model
    )
    assert [item.type for item in trace.items] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]
    (request,) = model.requests
    assert request.items is not None
    assert list(request.items) == trace.items[:-1]
    assert request.input.messages == []


def test_answer_with_only_function_calls_does_not_terminate() -> None:
    response = ModelResponse(raw_output=chat_output(""), items=ITEMS.validate_python([CALL]))
    model = Scripted("", lambda number: response)
    trace = solve([user("Hi"), {**GENERATE, "terminate_if": {"includes": "look"}}, user("Bye")], model=model)
    assert [item.type for item in trace.items] == ["message", "function_call", "message"]


def test_termination_in_an_extra_message_is_rejected() -> None:
    extra = [user("x", terminate_if={"includes": "x"})]
    builder = {"type": "generate_message", "model_key": "other", "extra_input_messages": extra}
    with pytest.raises(UnsupportedPlanError, match="terminate_if is ignored in extra_input_messages"):
        solve([builder])


def test_failing_template_fails_the_sample() -> None:
    with pytest.raises(SampleError) as caught:
        solve([user("{{ sample.missing }}")], {"x": 1})
    assert (caught.value.stage, caught.value.kind) == ("solver", "TemplateError")
