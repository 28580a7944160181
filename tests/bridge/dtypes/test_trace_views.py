"""Turns, preamble and lookups of a trace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.bridge.dtypes.building import answer, call, custom, message

from aigo_bridge.dtypes import (
    InputFileContent,
    InputTextContent,
    Message,
    MessageRole,
    MessageStatus,
    OutputTextContent,
    ReasoningTextContent,
    RefusalContent,
    SummaryTextContent,
    TextContent,
    Trace,
    TraceItem,
    Turn,
)

ITEMS = st.lists(
    st.one_of(
        st.sampled_from(["user", "assistant", "system", "developer"]).map(lambda role: message(role, role)),
        st.sampled_from(["a", "b", "c"]).map(call),
        st.sampled_from(["a", "b", "c"]).map(answer),
        st.integers().map(custom),
    ),
    max_size=12,
)


@given(items=ITEMS)
def test_preamble_and_conversation_are_the_whole_trace(items: list[TraceItem]) -> None:
    trace = Trace(items=items)
    assert [*trace.preamble, *trace.conversation_items] == trace.items


@given(items=ITEMS)
def test_turns_partition_the_conversation(items: list[TraceItem]) -> None:
    trace = Trace(items=items)

    flattened = [item for turn in trace.turns for item in (turn.user_message, *turn.assistant_items)]

    assert all(one is other for one, other in zip(flattened, trace.conversation_items, strict=True))
    assert len(trace.turns) == len(trace.user_messages)


@given(items=ITEMS)
def test_views_return_the_same_item_objects(items: list[TraceItem]) -> None:
    trace = Trace(items=items)
    known = {id(item) for item in trace.items}
    for view in (trace.user_messages, trace.assistant_messages, trace.system_messages, trace.function_calls):
        assert {id(item) for item in view} <= known


@given(items=ITEMS)
def test_every_function_call_of_the_conversation_has_one_pair(items: list[TraceItem]) -> None:
    trace = Trace(items=items)
    assert [pair[0] for pair in trace.get_function_call_pairs()] == trace.function_calls


def test_trace_without_a_user_message_is_all_preamble() -> None:
    trace = Trace(items=[message("assistant", "a"), call("c"), answer("c"), message("system", "s")])

    assert trace.preamble == trace.items
    assert not trace.conversation_items
    assert not trace.turns
    assert not trace.user_messages
    assert not trace.assistant_messages
    assert not trace.function_calls
    assert not trace.function_outputs
    assert trace.get_function_call_pairs() == []
    assert trace.get_last_assistant_text() is None
    assert trace.get_last_user_text() is None
    assert trace.get_first_system_prompt() == "s"


def test_an_empty_trace_has_no_views() -> None:
    trace = Trace(items=[])

    assert not trace.preamble
    assert not trace.turns
    assert trace.get_first_system_prompt() is None
    assert trace.spans() == []


def test_items_after_a_user_message_belong_to_its_turn() -> None:
    rest = [
        message("system", "s"),
        message("developer", "d"),
        custom(1),
        call("c"),
        message("assistant", "a"),
    ]
    trace = Trace(items=[message("user", "u"), *rest, message("user", "v"), message("user", "w")])

    assert [turn.assistant_items for turn in trace.turns] == [rest, [], []]


def test_system_messages_exclude_developer_messages() -> None:
    trace = Trace(
        items=[
            message("developer", "d"),
            message("system", ""),
            message("user", "u"),
            message("system", "later"),
        ]
    )

    assert trace.system_messages == [message("system", "")]
    assert trace.get_first_system_prompt() == ""


def test_last_assistant_text_ignores_the_preamble_and_does_not_fall_back() -> None:
    image = Message.model_validate(
        {
            "id": "",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "input_image", "detail": "low"}],
        }
    )

    assert Trace(items=[message("assistant", "a"), message("user", "u")]).get_last_assistant_text() is None
    assert (
        Trace(items=[message("user", "u"), message("assistant", "a"), image]).get_last_assistant_text() == ""
    )


def test_last_user_text_is_returned() -> None:
    assert Trace(items=[message("user", "u"), message("user", "v", "w")]).get_last_user_text() == "v\nw"


def test_item_status_is_ignored() -> None:
    broken = message("user", "u")
    broken.status = MessageStatus.incomplete
    assert Trace(items=[broken]).user_messages == [broken]


class TestText:
    def test_text_like_parts_and_refusals_are_joined_and_others_skipped(self) -> None:
        parts = [
            InputTextContent(text="1"),
            OutputTextContent(text="2", annotations=[]),
            InputFileContent(filename="f"),
            TextContent(text="3"),
            SummaryTextContent(text="4"),
            ReasoningTextContent(text="5"),
            RefusalContent(refusal="6"),
        ]
        item = Message(id="", status=MessageStatus.completed, role=MessageRole.user, content=[*parts])
        assert Trace(items=[item]).get_last_user_text() == "1\n2\n3\n4\n5\n6"

    @pytest.mark.parametrize(
        ("texts", "text"), [((), ""), (("",), ""), (("", "b"), "\nb"), (("a", ""), "a\n")]
    )
    def test_empty_text_parts_are_kept(self, texts: tuple[str, ...], text: str) -> None:
        assert Trace(items=[message("user", *texts)]).get_last_user_text() == text


class TestFunctionCalls:
    def test_function_calls_are_found_by_name(self) -> None:
        trace = Trace(items=[call("0", "f"), message("user"), call("1", "f"), call("2", "g"), call("3", "f")])
        assert [found.call_id for found in trace.get_function_calls_by_name("f")] == ["1", "3"]

    def test_first_output_is_found_for_a_call_and_the_last_is_paired(self) -> None:
        first, last = answer("c", "first"), answer("c", "last")
        trace = Trace(items=[message("user"), call("c"), first, message("user"), last])

        assert trace.get_function_output_for_call("c") is first
        assert trace.get_function_output_for_call("other") is None
        assert trace.get_function_call_pairs() == [(trace.items[1], last)]

    def test_output_before_its_call_is_paired_but_not_in_the_preamble(self) -> None:
        trace = Trace(
            items=[answer("c"), call("p"), message("user"), answer("d"), call("c"), call("d"), call("e")]
        )

        pairs = trace.get_function_call_pairs()

        assert [(one.call_id, other and other.call_id) for one, other in pairs] == [
            ("c", None),
            ("d", "d"),
            ("e", None),
        ]
        assert trace.get_function_output_for_call("c") is None

    def test_calls_are_paired_only_within_a_turn(self) -> None:
        trace = Trace(
            items=[
                message("user"),
                call("c"),
                call("d"),
                answer("d", "1"),
                answer("d", "2"),
                message("user"),
                answer("c"),
            ]
        )

        assert [other and other.output for _, other in trace.turns[0].function_call_pairs] == [None, "2"]
        assert [other and other.output for _, other in trace.get_function_call_pairs()] == ["ok", "2"]
        assert [found.call_id for found in trace.turns[0].function_calls] == ["c", "d"]
        assert [found.call_id for found in trace.turns[1].function_outputs] == ["c"]
        assert not trace.turns[1].function_call_pairs
        assert not trace.turns[1].assistant_messages

    @pytest.mark.parametrize(
        ("text", "value"), [('{"a": 1}', {"a": 1}), ("[1]", [1]), ("3", 3), ("null", None)]
    )
    def test_call_arguments_may_be_any_json_value(self, text: str, value: Any) -> None:
        assert Trace(items=[]).get_function_call_arguments(call("c", arguments=text)) == value

    @pytest.mark.parametrize("text", ["", "{", "a"])
    def test_invalid_call_arguments_raise_a_json_error(self, text: str) -> None:
        with pytest.raises(json.JSONDecodeError):
            Trace(items=[]).get_function_call_arguments(call("c", arguments=text))

    def test_function_output_text_is_returned(self) -> None:
        parts = [InputTextContent(text="a"), InputFileContent(filename="f"), InputTextContent(text="b")]
        trace = Trace(items=[])

        assert trace.get_function_output_text(answer("c", "text")) == "text"
        assert trace.get_function_output_text(answer("c", parts)) == "a\nb"
        assert trace.get_function_output_text(answer("c", [])) == ""


class TestFromItems:
    def test_from_items_sets_items_and_given_fields(self) -> None:
        trace = Trace.from_items([message("user")], span_name="n")

        assert trace.model_fields_set == {"items", "span_name"}

    def test_from_items_refuses_unknown_fields_and_events(self) -> None:
        with pytest.raises(ValidationError):
            Trace.from_items([], x=1)
        with pytest.raises(TypeError):
            Trace.from_items([], events=[])


def test_turn_can_be_dumped_with_any_message_class() -> None:
    turn = Trace(items=[message("user", "u"), message("assistant", "a")]).turns[0]

    assert isinstance(turn, Turn)
    assert turn.model_dump(mode="json")["user_message"]["role"] == "user"
