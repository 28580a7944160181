"""Reading and replacing the text of an output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.dtypes import (
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    GroupedSolverOutput,
    OpenResponsesModelOutput,
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
)
from aigo_bridge.dtypes.conversion import assistant_message, user_message
from aigo_bridge.dtypes.trace import Trace, TraceMetadata
from aigo_trust.probing.outputs import text_of, texts_of, with_group_reversed, with_text, with_texts


def chat(text: str) -> SingleSolverOutput:
    message = ChatCompletionOutputMessage(role="assistant", content=text)
    output = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=message)])
    asked = ChatCompletionInputMessage(role="user", content="?")
    return SingleSolverOutput(messages=[asked, message], output=output)


def trace(text: str, *, raw: str) -> SolverTrace:
    items = [
        user_message("?"),
        assistant_message("Let me see."),
        user_message("And?"),
        assistant_message(text),
    ]
    outputs = {
        "items": [OpenResponsesModelOutput(items=[assistant_message(text)])],
        "chat": [chat("Let me see.").output, chat(text).output],
        "none": [],
    }
    return SolverTrace(trace=Trace.from_items(items), raw_outputs=outputs[raw])


OUTPUTS = [chat("Oslo"), *(trace("Oslo", raw=raw) for raw in ("items", "chat", "none"))]


@pytest.mark.parametrize("output", OUTPUTS, ids=["chat", "items", "trace of chats", "trace alone"])
@given(text=st.text(max_size=30))
def test_replaced_text_is_read_back_and_the_original_is_unchanged(output: SolverOutput, text: str) -> None:
    before = output.model_dump_json()

    changed = with_text(output, text)

    assert text_of(output) == "Oslo"
    assert text_of(changed) == text
    assert output.model_dump_json() == before


def test_trace_and_messages_contain_the_replaced_text() -> None:
    changed = with_text(trace("Oslo", raw="items"), "Bergen")
    assert isinstance(changed, SolverTrace)

    assert changed.trace.get_last_assistant_text() == "Bergen"
    assert [message.content for message in changed.messages] == ["?", "Let me see.", "And?", "Bergen"]  # type: ignore[union-attr]
    single = with_text(chat("Oslo"), "Bergen")
    assert isinstance(single, SingleSolverOutput)
    assert [message.content for message in single.messages] == ["?", "Bergen"]  # type: ignore[union-attr]


def test_outputs_without_text_cannot_be_changed() -> None:
    silent = SolverTrace(trace=Trace.from_items([user_message("?")]), raw_outputs=[])
    for output in (None, silent, GroupedSolverOutput(solver_outputs=[chat("a")])):
        assert text_of(output) is None
    with pytest.raises(ValueError, match="does not contain text"):
        with_text(silent, "x")


def test_trace_metadata_is_kept_when_the_text_is_replaced() -> None:
    noted = trace("Oslo", raw="items")
    noted.trace.metadata = TraceMetadata.model_validate({"total_time": 2.5, "extra": {"files": ["a"]}})

    changed = with_text(noted, "Bergen")

    assert isinstance(changed, SolverTrace)
    assert changed.trace.metadata == noted.trace.metadata


def test_each_answer_of_a_group_is_changed() -> None:
    for group in ([chat("a"), chat("b")], {"x": chat("a"), "y": chat("b")}):
        output = GroupedSolverOutput(solver_outputs=group)
        assert texts_of(output) == ("a", "b")
        assert texts_of(with_texts(output, ["c", "d"])) == ("c", "d")
        assert texts_of(output) == ("a", "b")
        with pytest.raises(ValueError, match="shorter"):
            with_texts(output, ["c"])
    assert texts_of(with_texts(chat("a"), ["c"])) == ("c",)
    assert texts_of(None) is texts_of(GroupedSolverOutput(solver_outputs=[])) is None


def test_outputs_of_a_group_are_reversed() -> None:
    group = GroupedSolverOutput(solver_outputs=[chat("a"), chat("b")])

    turned = with_group_reversed(group)

    assert isinstance(turned, GroupedSolverOutput)
    assert [text_of(output) for output in turned.solver_outputs] == ["b", "a"]  # type: ignore[arg-type]
    assert [text_of(output) for output in group.solver_outputs] == ["a", "b"]  # type: ignore[arg-type]
    for other in (None, chat("a"), GroupedSolverOutput(solver_outputs={"x": chat("a"), "y": chat("b")})):
        assert with_group_reversed(other) is None
    assert with_group_reversed(GroupedSolverOutput(solver_outputs=[chat("a")])) is None
