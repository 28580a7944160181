"""Adapter output is parsed as an answer or rejected with the position of the error."""

from __future__ import annotations

from typing import Any

import pytest

from aigo_bridge.models.connections import CallError, Choice, ToolCallReply, Usage
from aigo_bridge.models.connections.replies import parse_reply


def chat(message: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"message": message or {"role": "assistant", "content": "Oslo"}}
    choice |= {
        name: fields.pop(name) for name in ("finish_reason", "logprobs", "references") if name in fields
    }
    return {"choices": [choice], **fields}


def test_aigo_reply_is_parsed() -> None:
    found = parse_reply(chat(usage={"num_prompt_tokens": 5, "num_completion_tokens": 1}), "chat_completion")
    assert found.choices == (Choice("Oslo"),)
    assert found.usage == Usage(5, 1)
    assert found.raw is None


def test_openai_reply_with_cached_and_reasoning_tokens_is_parsed() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    found = parse_reply(chat(usage=usage, model="m-2026", finish_reason="length"), "chat_completion")
    assert found.usage == Usage(100, 20, 64, 7)
    assert found.model == "m-2026"
    assert found.choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "3"}, {"prompt_tokens": -1}, [1]]
)
def test_unknown_usage_is_null_and_not_zero(usage: Any) -> None:
    assert parse_reply(chat(usage=usage), "chat_completion").usage is None


def test_partial_usage_keeps_the_known_count() -> None:
    found = parse_reply(chat(usage={"prompt_tokens": 3}), "chat_completion")
    assert found.usage == Usage(3, None)
    assert found.raw == {
        "choices": [{"message": {"role": "assistant", "content": "Oslo"}}],
        "usage": {"num_prompt_tokens": 3, "num_completion_tokens": None},
    }


def test_tool_calls_keep_invalid_json_arguments() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{not json"}}
    found = parse_reply(chat({"role": "assistant", "content": None, "tool_calls": [call]}), "chat_completion")
    assert found.choices[0].text == ""
    assert found.choices[0].tool_calls == (ToolCallReply("c", "look", "{not json"),)


def test_tool_call_with_object_arguments_and_no_id_is_parsed() -> None:
    call = {"name": "look", "arguments": {"a": "é"}}
    found = parse_reply(chat({"tool_calls": [call]}), "chat_completion")
    assert found.choices[0].tool_calls == (ToolCallReply("call_0", "look", '{"a": "\\u00e9"}'),)


def test_logprobs_refusal_and_reasoning_are_parsed() -> None:
    token = {"token": "O", "logprob": -0.1, "bytes": [79], "top_logprobs": [{"token": "P", "logprob": -3}]}
    message = {"content": None, "refusal": "no", "reasoning_content": "because"}
    found = parse_reply(chat(message, logprobs={"content": [token]}), "chat_completion").choices[0]
    assert (found.text, found.refusal, found.reasoning) == ("", "no", "because")
    assert found.logprobs[0]["token"] == "O"
    assert found.logprobs[0]["top_logprobs"] == [{"token": "P", "logprob": -3, "bytes": None}]


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert parse_reply(chat({"content": parts}), "chat_completion").choices[0].text == "a\nb"


def test_references_are_kept_in_aigo_form() -> None:
    found = parse_reply(
        chat(
            references=[{"content": "p", "score": 0.5}, "q"],
            usage={"prompt_tokens": 1, "completion_tokens": 2},
        ),
        "chat_completion",
    )
    assert found.raw == {
        "choices": [
            {
                "message": {"role": "assistant", "content": "Oslo"},
                "references": [{"content": "p", "score": 0.5}, {"content": "q"}],
            }
        ],
        "usage": {"num_prompt_tokens": 1, "num_completion_tokens": 2},
    }


def test_null_references_become_an_empty_list() -> None:
    assert parse_reply(chat(references=None), "chat_completion").raw["choices"][0]["references"] == []


def test_trace_items_are_parsed() -> None:
    items = [
        {"type": "message", "id": "r", "status": "completed", "role": "assistant",
         "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "m", "status": "completed", "role": "assistant",
         "content": [{"type": "output_text", "text": "Oslo", "annotations": []}]},
        {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": "{}", "status": "completed"},
    ]  # fmt: skip
    found = parse_reply({"items": items, "usage": {"num_prompt_tokens": 2}}, "chat_completion")
    assert found.choices == (Choice("Oslo", reasoning="hm", tool_calls=(ToolCallReply("c", "look", "{}"),)),)
    assert found.raw["items"][1]["content"][0]["text"] == "Oslo"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"error": "no credit"}, "the model failed: no credit"),
        ({"error": {"message": "no credit", "code": 1}}, "the model failed: no credit"),
        ({"error": {"code": 7}}, 'the model failed: {"code": 7}'),
        ([], "found a list, expected an object with 'choices'"),
        (None, "found null, expected an object"),
        ({"a": 1}, "found an object with 'a', expected 'choices'"),
        ({"choices": {}}, "expected 'choices'"),
        ({"choices": []}, "the model returned no answer"),
        ({"choices": [{"text": "a"}]}, r"choices\[0\]: 'message' is missing"),
        ({"choices": [{"message": {}}]}, r"choices\[0\]\.message: 'content' is missing"),
        ({"choices": [{"message": {"content": 3}}]}, "found a int, expected text"),
        (chat(logprobs={"content": [{"token": "a"}]}), "expected 'token' and 'logprob'"),
        (chat({"content": "", "tool_calls": [{}]}), r"tool_calls\[0\]: the function name is missing"),
        (chat(references=[{"text": "a"}]), r"references\[0\]: 'content' is missing"),
        ({"items": []}, "the model returned no answer"),
        ({"items": [3]}, "items.0"),
    ],
)
def test_an_invalid_answer_is_reported_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(CallError, match=message):
        parse_reply(value, "chat_completion")


def test_a_null_error_is_ignored() -> None:
    assert parse_reply({"error": None, **chat()}, "chat_completion").choices[0].text == "Oslo"


@pytest.mark.parametrize(
    "value",
    [
        {"embeddings": [[1, 0.5], [0, 1]]},
        [[1, 0.5], [0, 1]],
        {"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0.5]}]},
    ],
)
def test_embeddings_are_returned_in_input_order(value: Any) -> None:
    found = parse_reply(value, "embeddings", 2)
    assert found.raw["embeddings"] == [[1.0, 0.5], [0.0, 1.0]]
    assert found.choices == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"embeddings": [[1.0]]}, "1 vectors for 2 texts"),
        ({"embeddings": [[1.0], [1.0, 2.0]]}, "has 2 numbers, the first one 1"),
        ({"embeddings": [[1.0], ["a"]]}, r"embeddings\[1\]: expected a list of numbers"),
        ({"embeddings": [[1.0], []]}, r"embeddings\[1\]: expected a list of numbers"),
        ({"embeddings": [[True], [False]]}, r"embeddings\[0\]"),
        ({"choices": []}, "without 'embeddings'"),
        (None, "found null"),
    ],
)
def test_invalid_embeddings_are_rejected(value: Any, message: str) -> None:
    with pytest.raises(CallError, match=message):
        parse_reply(value, "embeddings", 2)


@pytest.mark.parametrize("value", [None, 0, "", [], {"a": None}, {"choices": []}])
def test_custom_answer_can_be_any_json(value: Any) -> None:
    found = parse_reply(value, "custom")
    assert found.raw == value
    assert found.choices == ()
