"""AI GO conversations as Inspect messages, and provider failures as sample errors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolCall
from inspect_ai.util import LimitExceededError
from pydantic import TypeAdapter
from tenacity import Future, RetryError

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import ChatCompletionInput, SolverTrace, TraceItem
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.solving.conversation import request_of_items
from aigo_bridge.solving.registry import compile_solver
from aigo_bridge.spec.solvers import Solver
from aigo_inspect.models.models import InspectModel, model_response, native_messages

ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])
SOLVER: TypeAdapter[Solver] = TypeAdapter(Solver)


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": "", "status": "completed", "role": role, "content": list(parts)}


def text(content: str) -> dict[str, Any]:
    return {"type": "input_text", "text": content}


def answer(content: str) -> dict[str, Any]:
    return {"type": "output_text", "text": content, "annotations": []}


def call(call_id: str, arguments: str = '{"n": 1}') -> dict[str, Any]:
    fields = {"id": "", "call_id": call_id, "name": "look_up", "status": "completed"}
    return {"type": "function_call", "arguments": arguments, **fields}


def output(call_id: str, content: Any) -> dict[str, Any]:
    return {
        "type": "function_call_output",
        "id": "",
        "call_id": call_id,
        "output": content,
        "status": "completed",
    }


def request(*items: dict[str, Any]) -> ModelRequest:
    return ModelRequest(ChatCompletionInput(messages=[]), {}, tuple(ITEMS.validate_python(list(items))))


def test_calls_join_their_assistant_message_and_outputs_become_tool_messages() -> None:
    found = native_messages(
        request(
            message("developer", text("Be brief.")),
            message("user", text("How many?")),
            message("assistant", answer("Let me see.")),
            call("a"),
            call("b", "not JSON"),
            output("a", "42"),
            output("b", [text("x"), text("y")]),
        ),
        "solver",
    )
    system, user, assistant, first, second = found
    assert isinstance(system, ChatMessageSystem)
    assert isinstance(user, ChatMessageUser)
    assert user.text == "How many?"
    assert isinstance(assistant, ChatMessageAssistant)
    assert assistant.text == "Let me see."
    assert [(each.id, each.function) for each in assistant.tool_calls or []] == [
        ("a", "look_up"),
        ("b", "look_up"),
    ]
    assert assistant.tool_calls is not None
    assert assistant.tool_calls[0].arguments == {"n": 1}
    assert isinstance(first, ChatMessageTool)
    assert (first.tool_call_id, first.text, first.function) == ("a", "42", "look_up")
    assert isinstance(second, ChatMessageTool)
    assert second.text == "x\ny"


def test_images_and_files_keep_their_urls() -> None:
    image = {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"}
    file = {"type": "input_file", "filename": "a.pdf", "file_url": "data:application/pdf;base64,JVBERi0="}
    (found,) = native_messages(request(message("user", text("See."), image, file)), "solver")
    assert not isinstance(found.content, str)
    said, shown, attached = found.content
    assert isinstance(said, ContentText)
    assert isinstance(shown, ContentImage)
    assert (shown.image, shown.detail) == ("https://example.org/a.png", "low")
    assert isinstance(attached, ContentDocument)
    assert (attached.document, attached.filename) == ("data:application/pdf;base64,JVBERi0=", "a.pdf")


def test_answers_are_sent_back_unchanged() -> None:
    answered = ChatMessageAssistant(
        content=[ContentReasoning(reasoning="Hm."), ContentText(text="Let me see.")],
        tool_calls=[ToolCall(id="a", function="look_up", arguments={"n": 1})],
    )
    native = ModelOutput.from_message(answered)
    items = model_response(native, "solver").items
    assert len(items) == 3
    (found,) = native_messages(request_of_items(items), "solver")
    assert isinstance(found, ChatMessageAssistant)
    assert [part.type for part in found.content if not isinstance(part, str)] == ["reasoning", "text"]
    assert found.text == "Let me see."
    assert [each.arguments for each in found.tool_calls or []] == [{"n": 1}]


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"type": "custom_task_input_message", "content": {"a": 1}}, "an item of a custom task"),
        (
            message("user", {"type": "input_image", "image_url": "/etc/passwd", "detail": "auto"}),
            "a part of type input_image has the address '/etc/passwd', expected an http or data URL",
        ),
        (
            message("user", {"type": "input_file", "file_url": "file:///etc/passwd"}),
            "expected an http or data URL",
        ),
        (message("user", {"type": "input_file", "filename": "passwd"}), "input_file has no address"),
        (message("user", {"type": "input_video", "video_url": "~/a.mp4"}), "expected an http or data URL"),
        (output("a", [{"type": "input_file", "file_url": "../key"}]), "expected an http or data URL"),
    ],
)
def test_content_unsupported_by_inspect_fails_the_sample(item: dict[str, Any], problem: str) -> None:
    with pytest.raises(SampleError) as caught:
        native_messages(request(item), "solver")
    assert problem in caught.value.message
    assert (caught.value.stage, caught.value.kind) == ("solver", "UnsupportedContent")
    assert caught.value.code == Code.UNSENDABLE_CONTENT


def said(content: str) -> ModelOutput:
    """Return an output with its usage. Without usage, Inspect downloads a tokenizer to estimate it."""
    found = ModelOutput.from_content("mockllm/model", content)
    found.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return found


def model(*answers: str | BaseException) -> InspectModel:
    """Return a model that replies with texts or raises exceptions."""
    left = iter(answers)

    def answered(*_: Any) -> ModelOutput:
        found = next(left)
        if isinstance(found, BaseException):
            raise found
        return said(found)

    return InspectModel("", get_model("mockllm/model", custom_outputs=answered, memoize=False))


PLAIN = request(message("user", text("Hi")))


@pytest.mark.parametrize("error", [RuntimeError("no"), ValueError(""), ConnectionError("reset")])
def test_any_provider_failure_fails_the_sample(error: Exception) -> None:
    with pytest.raises(SampleError) as caught:
        asyncio.run(model(error).predict(PLAIN))
    kind = type(error).__name__
    assert caught.value.message == (str(error) or kind)
    assert (caught.value.stage, caught.value.kind) == ("solver", kind)


def test_the_failure_of_the_last_attempt_is_reported() -> None:
    attempt = Future(3)
    attempt.set_exception(ConnectionError("reset"))
    with pytest.raises(SampleError, match=r"^reset$") as caught:
        asyncio.run(model(RetryError(attempt)).predict(PLAIN))
    assert caught.value.kind == "ConnectionError"


def test_limits_and_cancellations_are_not_model_failures() -> None:
    limit = LimitExceededError("token", value=2, limit=1)
    with pytest.raises(LimitExceededError):
        asyncio.run(model(limit).predict(PLAIN))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(model(asyncio.CancelledError()).predict(PLAIN))


def nobody(key: str) -> Model:
    raise AssertionError(f"model {key!r} was called")


def test_a_conversation_with_tool_calls_runs_on_an_inspect_model() -> None:
    heard: list[Any] = []

    def answered(messages: list[Any], tools: Any, choice: Any, config: GenerateConfig) -> ModelOutput:
        heard.append([each.role for each in messages])
        return said(f"answer {len(heard)}")

    native = InspectModel("", get_model("mockllm/model", custom_outputs=answered, memoize=False))
    spec = SOLVER.validate_python(
        {
            "type": "multi_turn_solver",
            "message_builders": [
                {"type": "load_trace", "trace_column": "t"},
                {"type": "generate"},
                {"type": "chat_message", "role": "user", "content": "Sure?"},
                {"type": "generate"},
            ],
        }
    )
    cell = [message("user", text("How many?")), call("a"), output("a", "42")]
    trace = asyncio.run(compile_solver(spec)({"t": cell}, native, nobody))
    assert isinstance(trace, SolverTrace)
    assert heard == [
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "user"],
    ]
    assert trace.trace.get_last_assistant_text() == "answer 2"
    assert len(trace.raw_outputs) == 2
