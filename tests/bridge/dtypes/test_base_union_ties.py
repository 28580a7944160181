"""Types that are chosen for plain data if several are possible."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from aigo_bridge.dtypes import (
    FunctionCallOutput,
    FunctionCallStatus,
    Message,
    MessageRole,
    MessageStatus,
    OpenResponsesModelOutput,
    SingleSolverOutput,
    SolverData,
    Trace,
    TraceEvent,
    TraceItem,
    UserMessage,
)

MESSAGE: dict[str, Any] = {"type": "message", "id": "", "status": "completed", "role": "user", "content": []}
CHAT = {"message": {"role": "assistant", "content": "a"}}


def output_read(value: Any) -> Any:
    return SingleSolverOutput.model_validate({"messages": [], "output": value}).output


def item_read(value: Any) -> Any:
    return Trace.model_validate({"items": [value]}).items[0]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"items": []}, "OpenResponsesModelOutput"),
        ({"items": [{"content": 1}]}, "OpenResponsesModelOutput"),
        ({"items": [MESSAGE]}, "dict"),
        ({"items": [], "x": 1}, "dict"),
        ({"choices": []}, "RAGCompletionOutput"),
        ({"choices": [{**CHAT, "references": []}]}, "RAGCompletionOutput"),
        ({"choices": [CHAT]}, "ChatCompletionModelOutput"),
        ({"choices": [CHAT, {**CHAT, "references": []}]}, "ChatCompletionModelOutput"),
        ({"choices": [{"message": {"role": "assistant", "content": None}}]}, "dict"),
        ({"choices": [{"message": {"role": "tool", "content": "a"}}]}, "dict"),
        ({"embeddings": [[1, 2.5]]}, "EmbeddingsModelOutput"),
        (None, "NoneType"),
        ("text", "str"),
        (3, "int"),
        ([1], "list"),
        ({"anything": 1}, "dict"),
    ],
)
def test_model_output_is_read_as_the_type_that_needs_no_conversion(value: Any, kind: str) -> None:
    read = output_read(value)

    assert type(read).__name__ == kind
    if kind == type(value).__name__:
        assert read == value


def test_output_instance_is_kept() -> None:
    output = OpenResponsesModelOutput.model_validate({"items": [MESSAGE]})
    assert SingleSolverOutput(messages=[], output=output).output is output


def test_a_missing_output_is_not_a_null_output() -> None:
    with pytest.raises(ValidationError):
        SingleSolverOutput.model_validate({"messages": []})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"role": "user", "content": "a"}, "ChatCompletionInputMessage"),
        ({"role": "user", "content": "a", "x": 1}, "ChatCompletionInputMessage"),
        ({"role": "user", "content": "a", "refusal": None}, "ChatCompletionOutputMessage"),
        ({"role": "tool", "content": "a"}, "dict"),
        ({"x": 1}, "dict"),
        ("text", "str"),
        (["a", "b"], "list"),
        ([[1, 2]], "list"),
        (None, "NoneType"),
    ],
)
def test_chat_message_is_read_as_the_matching_type(value: Any, kind: str) -> None:
    read = SingleSolverOutput.model_validate({"messages": [value], "output": None}).messages[0]

    assert type(read).__name__ == kind
    if kind == type(value).__name__:
        assert read == value


SINGLE: dict[str, Any] = {"messages": [], "output": None}
TRACED = {"trace": {"items": []}, "raw_outputs": []}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (SINGLE, "SingleSolverOutput"),
        (TRACED, "SolverTrace"),
        ({"solver_outputs": []}, "GroupedSolverOutput"),
        ({"solver_outputs": {}}, "GroupedSolverOutput"),
        ({"solver_outputs": [SINGLE]}, "GroupedSolverOutput"),
        ({"solver_outputs": {"a": SINGLE}}, "GroupedSolverOutput"),
        ({"solver_outputs": [TRACED]}, "GroupedSolverTrace"),
        ({"solver_outputs": {"a": TRACED}}, "GroupedSolverTrace"),
    ],
)
def test_solver_output_is_recognized_by_its_fields(value: Any, kind: str) -> None:
    data = SolverData.model_validate({"output": value})

    assert type(data.output).__name__ == kind
    assert data.model_dump(mode="json") == {"output": value}


@pytest.mark.parametrize("missing", ["trace", "raw_outputs"])
def test_a_solver_trace_needs_both_of_its_fields(missing: str) -> None:
    with pytest.raises(ValidationError):
        SolverData.model_validate({"output": {key: value for key, value in TRACED.items() if key != missing}})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (MESSAGE, "Message"),
        ({key: value for key, value in MESSAGE.items() if key != "type"}, "Message"),
        (
            {key: value for key, value in MESSAGE.items() if key not in ("type", "role")},
            "CustomTaskInputMessage",
        ),
        ({"role": "user", "content": "hi"}, "CustomTaskInputMessage"),
        ({"content": 1}, "CustomTaskInputMessage"),
        ({"type": "custom_task_output_message", "content": None}, "CustomTaskOutputMessage"),
        ({"id": "", "call_id": "", "name": "", "arguments": "", "status": "completed"}, "FunctionCall"),
        ({"id": "", "call_id": "", "output": "", "status": "completed"}, "FunctionCallOutput"),
    ],
)
def test_item_without_a_type_is_recognized_by_its_fields(value: Any, kind: str) -> None:
    read = item_read(value)

    assert type(read).__name__ == kind
    assert Trace(items=[read]).model_dump(mode="json") == {"items": [value]}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"text": "a"}, "InputTextContent"),
        ({"text": "a", "annotations": []}, "OutputTextContent"),
        ({"type": "text", "text": "a"}, "TextContent"),
        ({"type": "summary_text", "text": "a"}, "SummaryTextContent"),
        ({"type": "reasoning_text", "text": "a"}, "ReasoningTextContent"),
        ({"refusal": "no"}, "RefusalContent"),
        ({"detail": "auto"}, "InputImageContent"),
        ({}, "InputFileContent"),
        ({"video_url": "v"}, "InputVideoContent"),
    ],
)
def test_content_part_without_a_type_is_recognized_by_its_fields(value: Any, kind: str) -> None:
    message = item_read({**MESSAGE, "content": [value]})

    assert isinstance(message, Message)
    assert type(message.content[0]).__name__ == kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"span_id": "s"}, "SpanEndEvent"),
        ({"span_id": "s", "name": "n"}, "SpanBeginEvent"),
        ({"name": "n", "data": {}}, "CustomEvent"),
        ({"message": "m"}, "ErrorEvent"),
        ({"strategy": "trim"}, "CompactionEvent"),
        ({"item": MESSAGE}, "MessageEvent"),
        ({"model": "m", "input_context": [], "output_items": []}, "ModelCallEvent"),
    ],
)
def test_event_without_a_type_is_recognized_by_its_fields(value: Any, kind: str) -> None:
    trace = Trace.model_validate({"items": [], "events": [value]})

    assert trace.events is not None
    assert type(trace.events[0]).__name__ == kind
    assert trace.model_dump(mode="json")["events"] == [value]


@pytest.mark.parametrize("place", ["items", "events"])
@pytest.mark.parametrize("kind", ["reasoning", "sandbox", "", None, 1])
def test_an_unknown_type_is_an_error_for_the_whole_trace(place: str, kind: Any) -> None:
    with pytest.raises(ValidationError):
        Trace.model_validate({"items": [], place: [{"type": kind, "content": 1, "name": "n", "data": {}}]})


def test_messages_from_data_are_plain_and_instances_are_kept() -> None:
    user = UserMessage.model_validate({"id": "", "status": "completed", "content": []})

    assert type(item_read(MESSAGE)) is Message
    assert Trace(items=[user]).items[0] is user


def test_content_must_be_a_list_and_arguments_must_be_text() -> None:
    with pytest.raises(ValidationError):
        item_read({**MESSAGE, "content": "hi"})
    assert item_read(MESSAGE).content == []
    with pytest.raises(ValidationError):
        item_read(
            {
                "type": "function_call",
                "id": "",
                "call_id": "",
                "name": "",
                "arguments": {},
                "status": "completed",
            }
        )


def test_tool_output_contains_only_text_images_and_files() -> None:
    answer = {"type": "function_call_output", "id": "", "call_id": "", "status": "completed"}
    parts = [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "detail": "low"},
        {"type": "input_file", "filename": "f"},
    ]

    read = item_read({**answer, "output": parts})

    assert isinstance(read, FunctionCallOutput)
    assert [type(part).__name__ for part in read.output] == [
        "InputTextContent",
        "InputImageContent",
        "InputFileContent",
    ]
    with pytest.raises(ValidationError):
        item_read({**answer, "output": [{"type": "output_text", "text": "a", "annotations": []}]})


def test_message_event_with_a_tool_call_is_refused() -> None:
    call = {
        "type": "function_call",
        "id": "",
        "call_id": "",
        "name": "",
        "arguments": "",
        "status": "completed",
    }
    with pytest.raises(ValidationError):
        Trace.model_validate({"items": [], "events": [{"type": "message_event", "item": call}]})


def test_trace_with_events_still_needs_items() -> None:
    with pytest.raises(ValidationError):
        Trace.model_validate({"events": []})


def test_reading_a_trace_keeps_items_and_events_as_stored() -> None:
    events = [
        {"type": "span_end", "span_id": "s"},
        {"type": "message_event", "item": MESSAGE, "timestamp": "2024-01-02T00:00:00Z"},
        {"type": "message_event", "item": MESSAGE},
    ]
    trace = Trace.model_validate({"items": [], "events": events})

    assert trace.items == []
    assert json.loads(trace.model_dump_json()) == {"items": [], "events": events}


def test_a_trace_copies_the_list_of_items_but_not_the_items() -> None:
    items: list[Any] = [item_read(MESSAGE)]
    trace = Trace(items=items)

    assert trace.items is not items
    assert trace.items[0] is items[0]


ITEMS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["message", "function_call", "function_call_output", "custom_task_input_message", "other", None]
        ),
        "id": st.just(""),
        "call_id": st.just("c"),
        "name": st.sampled_from(["n", 1]),
        "arguments": st.just("{}"),
        "status": st.sampled_from(["completed", MessageStatus.completed, FunctionCallStatus.completed, "no"]),
        "role": st.sampled_from(["user", MessageRole.user, "robot"]),
        "content": st.sampled_from(
            [
                "text",
                None,
                [],
                [{"text": "a"}],
                [{"type": "refusal", "refusal": "r", "x": 1}],
                [{"type": "no"}],
            ]
        ),
        "output": st.sampled_from(
            ["text", [], [{"type": "input_text", "text": "a"}], [{"type": "text", "text": "a"}]]
        ),
        "x": st.none(),
    },
)
EVENTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"id": st.just("e")},
    optional={
        "type": st.sampled_from(
            ["message_event", "model_call_event", "span_begin", "span_end", "error", "custom", "no"]
        ),
        "span_id": st.sampled_from(["s", None, 3]),
        "name": st.just("n"),
        "data": st.sampled_from([{}, []]),
        "item": ITEMS,
        "message": st.just("m"),
        "model": st.just("m"),
        "input_context": st.lists(ITEMS, max_size=1),
        "output_items": st.lists(ITEMS, max_size=1),
        "x": st.none(),
    },
)
PLAIN_ITEM: TypeAdapter[Any] = TypeAdapter(TraceItem)
PLAIN_EVENT: TypeAdapter[Any] = TypeAdapter(TraceEvent)


def outcome(read: Callable[[], Any]) -> str:
    try:
        return repr(read())
    except ValidationError:
        return "ValidationError"


@given(item=ITEMS)
def test_items_are_read_like_the_plain_union(item: dict[str, Any]) -> None:
    """The branch named by `type` is tried first for speed. This must not change any result."""
    assert outcome(lambda: Trace(items=[item]).items[0]) == outcome(lambda: PLAIN_ITEM.validate_python(item))


@given(event=EVENTS)
def test_events_are_read_like_the_plain_union(event: dict[str, Any]) -> None:
    def ours() -> Any:
        events = Trace(items=[], events=[event]).events
        assert events is not None
        return events[0]

    assert outcome(ours) == outcome(lambda: PLAIN_EVENT.validate_python(event))
