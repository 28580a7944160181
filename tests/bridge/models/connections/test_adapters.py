"""Adapters that model files name by key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bridge.models.connections.test_streaming import sse
from tests.support.endpoint import completion, delta

from aigo_bridge.models.connections import CallError, CallInput, ModelInfo
from aigo_bridge.models.connections.adapters import SHIPPED
from aigo_bridge.models.connections.replies import Reply, parse_reply

CHAT = ModelInfo("chat_completion", "m-1")
SCHEMA = {"name": "n", "schema": {"type": "object"}, "strict": True}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
CONVERSATION: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
    ],
    "response_format": {"type": "json_schema", "json_schema": SCHEMA},
}
OPENAI = ("latticeflow$openai_chat_completion", "latticeflow$openai", "openai-chat-completion")


def request(key: str, call: CallInput, info: ModelInfo = CHAT) -> Any:
    return json.loads(SHIPPED[key].request(call, info))


def read(key: str, body: Any, status: int = 200, info: ModelInfo = CHAT) -> Reply:
    text = body if isinstance(body, str) else json.dumps(body)
    return parse_reply(SHIPPED[key].answer(text, status, info), info.task)


def test_all_published_adapter_keys_are_available() -> None:
    assert set(SHIPPED) == {
        "latticeflow$identity", "latticeflow$identity_custom", "latticeflow$openai_responses", *OPENAI,
    }  # fmt: skip
    assert all(adapter.takes_options for adapter in SHIPPED.values())


@pytest.mark.parametrize("key", OPENAI)
def test_chat_completion_request_has_messages_options_and_tools(key: str) -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": "d", "parameters": {}}}]
    body = request(key, CallInput(CONVERSATION, {"temperature": 0, "tools": tools}))
    assert body == {"model": "m-1", **CONVERSATION, "temperature": 0, "tools": tools}


@pytest.mark.parametrize("key", OPENAI)
def test_request_without_model_key_has_no_model_field(key: str) -> None:
    assert "model" not in request(key, CallInput(CONVERSATION), ModelInfo("chat_completion", None))


def test_embeddings_through_the_openai_adapter() -> None:
    info = ModelInfo("embeddings", "e-1")
    body = request("latticeflow$openai", CallInput(["a", "b"], {"dimensions": 2}), info)
    assert body == {"model": "e-1", "input": ["a", "b"], "dimensions": 2}
    data = [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [3, 4]}]
    found = read("latticeflow$openai", {"data": data, "usage": {"prompt_tokens": 2}}, info=info)
    assert found.raw["embeddings"] == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("key", [*OPENAI, "latticeflow$identity"])
def test_streamed_and_complete_answers_are_equal(key: str) -> None:
    whole = read(key, completion("Oslo"))
    pieces = [
        delta("Os"),
        delta("lo"),
        delta(finish="stop"),
        {**delta(), "choices": [], "usage": completion("")["usage"]},
    ]
    assert read(key, sse(*pieces)) == whole


def test_identity_adapter_passes_input_unchanged() -> None:
    assert request("latticeflow$identity", CallInput(CONVERSATION, {"seed": 7})) == {
        **CONVERSATION,
        "seed": 7,
    }
    info = ModelInfo("custom", "not sent")
    for value in ({"anything": [1, None]}, [1], "text", None):
        assert request("latticeflow$identity_custom", CallInput(value), info) == value
        assert read("latticeflow$identity_custom", json.dumps(value), info=info).raw == value


def test_json_lines_of_a_custom_model_are_not_merged() -> None:
    with pytest.raises(CallError, match="the response is not JSON"):
        read("latticeflow$identity_custom", '{"a": 1}\n{"a": 2}', info=ModelInfo("custom", None))


@pytest.mark.parametrize("key", list(SHIPPED))
@pytest.mark.parametrize("body", ["", "<html>busy</html>", '{"choices": [', "\x00"])
def test_invalid_json_response_is_an_error(key: str, body: str) -> None:
    with pytest.raises(CallError, match="the response is not JSON: found"):
        read(key, body)


@pytest.mark.parametrize("key", list(SHIPPED))
def test_error_status_is_reported_with_the_endpoint_message(key: str) -> None:
    with pytest.raises(CallError, match="status 401: no such key") as caught:
        read(key, {"error": {"message": "no such key", "type": "auth"}}, 401)
    assert caught.value.kind == "refused"
    with pytest.raises(CallError, match="status 400: <html> bad </html>"):
        read(key, "<html>\nbad\n</html>", 400)
    with pytest.raises(CallError, match="status 404 without a body"):
        read(key, "", 404)


def test_responses_request_has_the_expected_format() -> None:
    options = {
        "max_tokens": 5, "logprobs": True, "top_logprobs": 2, "reasoning_effort": "low", "temperature": 0,
        "tools": [{"type": "function", "function": {"name": "look", "description": "d", "parameters": {}}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    }  # fmt: skip
    assert request("latticeflow$openai_responses", CallInput(CONVERSATION, options)) == {
        "model": "m-1",
        "input": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "look"},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "42"},
        ],
        "text": {"format": {"type": "json_schema", **SCHEMA}},
        "store": False,
        "max_output_tokens": 5,
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
        "reasoning": {"effort": "low"},
        "temperature": 0,
        "tools": [{"type": "function", "name": "look", "description": "d", "parameters": {}}],
        "tool_choice": {"type": "function", "name": "look"},
    }


def test_responses_request_includes_images() -> None:
    parts = [
        {"type": "text", "text": "what"},
        {"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}},
    ]
    body = request(
        "latticeflow$openai_responses", CallInput({"messages": [{"role": "user", "content": parts}]})
    )
    assert body["input"][0]["content"] == [
        {"type": "input_text", "text": "what"},
        {"type": "input_image", "image_url": "data:x", "detail": "low"},
    ]


RESPONSE: dict[str, Any] = {
    "status": "completed",
    "error": None,
    "model": "m-1-2026",
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "because"}]},
        {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "Oslo", "annotations": [], "logprobs": [{"token": "Oslo", "logprob": -0.5}]}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3,
              "output_tokens_details": {"reasoning_tokens": 1}},
}  # fmt: skip


def test_responses_answer_is_converted() -> None:
    found = read("latticeflow$openai_responses", RESPONSE)
    (choice,) = found.choices
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("Oslo", "because", "tool_calls")
    assert choice.tool_calls[0].call_id == "c1"
    assert choice.logprobs[0]["logprob"] == -0.5
    assert found.usage is not None
    assert (found.usage.prompt, found.usage.cached, found.usage.reasoning) == (9, 4, 1)
    assert found.model == "m-1-2026"


def test_streamed_response_equals_its_final_event() -> None:
    events = [
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.output_text.delta", "delta": "Os"},
        {"type": "response.completed", "response": RESPONSE},
    ]
    assert read("latticeflow$openai_responses", sse(*events, done=False)) == read(
        "latticeflow$openai_responses", RESPONSE
    )


def test_truncated_and_failed_responses_are_distinguished() -> None:
    cut = {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert read("latticeflow$openai_responses", cut).choices[0].finish_reason == "length"
    failed = {"status": "failed", "error": {"code": "server_error", "message": "broken"}, "output": []}
    with pytest.raises(CallError, match="the model failed: broken"):
        read("latticeflow$openai_responses", failed)
    with pytest.raises(CallError, match="the model returned no answer"):
        read("latticeflow$openai_responses", {**RESPONSE, "output": []})
