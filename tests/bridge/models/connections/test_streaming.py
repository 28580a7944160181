"""Streamed chunks are joined, and truncated streams are detected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.endpoint import delta

from aigo_bridge.models.connections.streaming import (
    MANY_CHARACTERS,
    condensed,
    is_cut_off,
    merged,
    stream_error,
    stream_of,
)


def sse(*pieces: Any, done: bool = True, newline: str = "\n\n") -> str:
    lines = [f"data: {piece if isinstance(piece, str) else json.dumps(piece)}" for piece in pieces]
    return "".join(line + newline for line in [*lines, *(["data: [DONE]"] if done else [])])


def whole(body: str) -> dict[str, Any]:
    stream = stream_of(body)
    assert stream is not None
    return merged(stream)


@given(st.lists(st.text(), max_size=8), st.sampled_from(["\n\n", "\r\n\r\n", "\n"]))
def test_streamed_chunks_are_joined_to_the_full_text(pieces: list[str], newline: str) -> None:
    body = sse(*(delta(piece) for piece in pieces), delta(finish="stop"), newline=newline)
    choice = whole(body)["choices"][0]
    assert choice["message"]["content"] == "".join(pieces)
    assert choice["finish_reason"] == "stop"


@given(st.text(max_size=30), st.data())
def test_truncated_stream_is_detected_at_any_position(text: str, data: st.DataObject) -> None:
    body = sse(*(delta(each) for each in text or "x"), delta(finish="stop"))
    first = body.index("\n\n")
    # The answer is complete once the finish reason has arrived.
    last = body.index('"finish_reason": "stop"')
    cut = body[: data.draw(st.integers(first, last))]
    stream = stream_of(cut)
    assert stream is not None
    assert is_cut_off(stream)


def test_chunks_of_tool_calls_reasoning_logprobs_and_usage_are_merged() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"a'}}
    rest = {"index": 0, "function": {"arguments": '": 1}'}}
    second = {"index": 1, "id": "c2", "function": {"name": "go", "arguments": "{}"}}
    token = {"token": "y", "logprob": -0.5}
    found = whole(
        sse(
            delta(reasoning_content="be"),
            delta(reasoning_content="cause"),
            delta("y", tool_calls=[call]) | {"usage": None},
            delta(tool_calls=[rest, second]),
            {**delta(), "choices": [{"index": 0, "delta": {}, "logprobs": {"content": [token]}}]},
            delta(finish="tool_calls"),
            {
                "object": "chat.completion.chunk",
                "choices": [],
                "usage": {"prompt_tokens": 3, "completion_tokens": 1},
            },
        )
    )
    choice = found["choices"][0]
    assert choice["message"] == {
        "role": "assistant",
        "content": "y",
        "reasoning_content": "because",
        "tool_calls": [
            {"id": "c1", "function": {"name": "look", "arguments": '{"a": 1}'}},
            {"id": "c2", "function": {"name": "go", "arguments": "{}"}},
        ],
    }
    assert choice["logprobs"] == {"content": [token]}
    assert found["usage"] == {"prompt_tokens": 3, "completion_tokens": 1}


def test_chunks_of_several_choices_are_not_mixed() -> None:
    other = delta("b")
    other["choices"][0]["index"] = 1
    found = whole(sse(delta("a"), other, delta("c"), delta(finish="stop")))
    assert [choice["message"]["content"] for choice in found["choices"]] == ["ac", "b"]


def test_ollama_json_lines_are_read_as_a_stream() -> None:
    lines = [
        {"model": "m", "message": {"role": "assistant", "content": "Os"}, "done": False},
        {"model": "m", "message": {"role": "assistant", "content": "lo"}, "done": False},
        {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "length", "prompt_eval_count": 5, "eval_count": 2},
    ]  # fmt: skip
    body = "\n".join(map(json.dumps, lines))
    found = whole(body)
    assert found["choices"][0]["message"]["content"] == "Oslo"
    assert found["choices"][0]["finish_reason"] == "length"
    assert found["usage"] == {"prompt_tokens": 5, "completion_tokens": 2}
    cut = stream_of("\n".join(map(json.dumps, lines[:2])))
    assert cut is not None
    assert is_cut_off(cut)


@pytest.mark.parametrize(
    "body",
    [
        '{"choices": []}',
        json.dumps({"choices": [{"message": {"content": "a\nb"}}]}, indent=2),
        '{\n"a": {\n"b": 1\n}\n}',
        "",
        "plain text\nof two lines",
        "[1,\n2]",
    ],
)
def test_other_bodies_are_not_streams(body: str) -> None:
    assert stream_of(body) is None


def test_comments_event_names_and_byte_order_mark_are_ignored() -> None:
    body = "\ufeff: keep-alive\n\nevent: message\ndata: " + json.dumps(delta("a", finish="stop")) + "\n\n"
    assert whole(body)["choices"][0]["message"]["content"] == "a"


def test_multi_line_data_is_one_event() -> None:
    text = json.dumps(delta("a", finish="stop"), indent=1)
    body = "\n".join(f"data: {line}" for line in text.splitlines()) + "\n\n"
    assert whole(body)["choices"][0]["message"]["content"] == "a"


def test_error_in_the_middle_of_a_stream_is_found() -> None:
    stream = stream_of(sse(delta("half of an ans"), {"error": {"message": "overloaded"}}, done=False))
    assert stream is not None
    assert stream_error(stream) == {"message": "overloaded"}


def test_invalid_chunk_counts_as_truncation() -> None:
    stream = stream_of(sse(delta("a"), '{"choices": [{"del', delta(finish="stop")))
    assert stream is not None
    assert is_cut_off(stream)


def test_responses_stream_without_final_event_is_truncated() -> None:
    begun = {"type": "response.output_text.delta", "delta": "a"}
    final = {"type": "response.completed", "response": {"output": []}}
    for pieces, cut in (((begun,), True), ((begun, final), False)):
        stream = stream_of(sse(*pieces, done=False))
        assert stream is not None
        assert is_cut_off(stream) is cut


def test_stream_of_unknown_format_is_never_truncated() -> None:
    stream = stream_of(sse({"token": "a"}, {"token": "b"}, done=False))
    assert stream is not None
    assert not is_cut_off(stream)


PIECES = st.one_of(
    st.builds(delta, st.text(max_size=5)),
    st.builds(lambda text: delta(text) | {"usage": {"prompt_tokens": 1}}, st.text(max_size=5)),
    st.builds(lambda text: delta(text, reasoning_content="r"), st.text(max_size=5)),
    st.just(delta(finish="stop")),
    st.just({**delta("b"), "choices": [{"index": 1, "delta": {"content": "b"}}]}),
)


@settings(max_examples=40)
@given(st.lists(PIECES, max_size=12))
def test_condensed_stream_has_the_same_content(pieces: list[dict[str, Any]]) -> None:
    body = sse(*pieces) + "\n" * MANY_CHARACTERS
    assert whole(condensed(body)) == whole(body)


def test_condensed_stream_has_few_events() -> None:
    body = sse(*[delta("word ")] * 20_000, delta(finish="stop"))
    short = stream_of(condensed(body))
    assert short is not None
    assert (len(short.events), short.done) == (2, True)


@pytest.mark.parametrize(
    "body", [sse(delta("a"), delta("b")), "plain" * MANY_CHARACTERS, '{"a": 1}\n' * MANY_CHARACTERS]
)
def test_short_streams_and_other_texts_are_not_condensed(body: str) -> None:
    assert condensed(body) == body
