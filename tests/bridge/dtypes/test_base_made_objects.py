"""Objects that are built without validation equal those of the constructors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    InputTextContent,
    Message,
    MessageRole,
    MessageStatus,
    ModelResponse,
    ModelUsage,
    OutputTextContent,
    SolverTrace,
    Trace,
    make_explicit,
)
from aigo_bridge.dtypes.base import maker
from aigo_bridge.solving.conversation import (
    chat_output,
    chat_request,
    empty_trace,
    last_text,
    message_of,
    output_text,
    request_of_items,
    text_item,
)

TEXTS = st.text(st.characters(exclude_categories=[]))


def state(value: Any) -> Any:
    """Return the complete pydantic state of an object at any depth, in order."""
    if isinstance(value, BaseModel):
        fields = [(name, state(part)) for name, part in value.__dict__.items()]
        extra, private = value.__pydantic_extra__, value.__pydantic_private__
        return type(value), fields, sorted(value.__pydantic_fields_set__), extra, private
    if isinstance(value, list):
        return [state(part) for part in value]
    return type(value), value


def checked_message(role: MessageRole, content: Any, text_id: str = "") -> Message:
    return Message(type="message", id=text_id, status=MessageStatus.completed, role=role, content=[content])


@given(TEXTS, st.sampled_from(["user", "system", "developer"]))
def test_input_item_equals_the_validated_item(text: str, role: str) -> None:
    content = InputTextContent(type="input_text", text=text)
    assert state(text_item(role, text)) == state(checked_message(MessageRole(role), content))


@given(TEXTS, st.text())
def test_output_items_equal_the_validated_items(text: str, item_id: str) -> None:
    content = OutputTextContent(type="output_text", text=text, annotations=[])
    made = message_of(MessageRole.assistant, output_text(text), item_id=item_id)
    assert state(made) == state(checked_message(MessageRole.assistant, content, item_id))
    assert state(text_item("assistant", text)) == state(checked_message(MessageRole.assistant, content))


@given(st.lists(st.tuples(st.sampled_from(["user", "system", "assistant"]), TEXTS)))
def test_chat_request_equals_the_validated_request(messages: list[tuple[Any, str]]) -> None:
    given = [ChatCompletionInputMessage(role=role, content=text) for role, text in messages]
    request = chat_request(messages)
    assert state(request.input) == state(ChatCompletionInput(messages=[*given]))
    assert (request.options, request.items) == ({}, None)
    again = request_of_items([text_item(role, text) for role, text in messages])
    assert state(again.input) == state(request.input)


@given(TEXTS)
def test_chat_output_equals_the_validated_output(text: str) -> None:
    message = ChatCompletionOutputMessage(role="assistant", content=text)
    checked = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=message)])
    assert state(chat_output(text)) == state(checked)
    items = [text_item("user", "?"), text_item("assistant", text)]
    response = maker(ModelResponse)({"raw_output": checked, "items": items})
    assert state(response) == state(ModelResponse(raw_output=checked, items=[*items]))
    assert response.text == last_text(items) == text


def test_empty_traces_share_no_state() -> None:
    assert state(empty_trace()) == state(SolverTrace(trace=Trace(items=[]), raw_outputs=[], direct_ios=[]))
    first, second = empty_trace(), empty_trace()
    first.append(text_item("user", "x"))
    first.raw_outputs.append("x")
    assert state(second) == state(empty_trace())


@pytest.mark.parametrize("given", [{}, {"num_prompt_tokens": 3}, {"num_completion_tokens": 0}])
def test_omitted_fields_have_defaults_and_count_as_unset(given: dict[str, int]) -> None:
    made = maker(ModelUsage)(dict(given))
    assert state(made) == state(ModelUsage(**given))
    assert made.model_dump_json() == ModelUsage(**given).model_dump_json()


def test_set_fields_are_tracked_for_each_object() -> None:
    """`make_explicit` changes objects in place, so the sets must not be shared."""
    make = maker(InputTextContent)
    first, second = make({"text": "a"}), make({"text": "b"})
    make_explicit(first)
    assert first.model_dump() == {"type": "input_text", "text": "a"}
    assert second.model_dump() == {"text": "b"}


def test_unvalidated_objects_can_be_changed_copied_and_dumped() -> None:
    made = text_item("user", "x")
    copy = made.model_copy(deep=True)
    copy.id = "1"
    copy.note = "kept"  # type: ignore[attr-defined]  # unknown fields are kept
    assert made.id == ""
    assert copy.model_dump()["note"] == "kept"
    assert Message.model_validate_json(made.model_dump_json()) == made
