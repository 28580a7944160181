"""Solver outputs in both forms, model responses, and the text that templates print."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.bridge.dtypes.building import answer, call, custom, message

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionOutputMessage,
    CustomTaskOutputMessage,
    DirectModelIO,
    EmbeddingsModelOutput,
    Message,
    ModelEndpointInput,
    ModelEndpointOutput,
    ModelResponse,
    ModelUsage,
    OpenResponsesModelOutput,
    RAGCompletionOutput,
    SingleSolverOutput,
    SolverTrace,
    SystemMessage,
    Trace,
    UserMessage,
    text_of,
)

REQUEST = ModelEndpointInput(body="{}")
RESPONSE = ModelEndpointOutput(body="{}", status_code=200)


def empty() -> SolverTrace:
    return SolverTrace(trace=Trace(items=[]), raw_outputs=[])


def chat(text: str, **extra: Any) -> ChatCompletionModelOutput:
    return ChatCompletionModelOutput.model_validate(
        {"choices": [{"message": {"role": "assistant", "content": text, **extra}}]}
    )


class TestSolverTrace:
    def test_solver_trace_shares_the_items_of_its_trace(self) -> None:
        solver = empty()
        solver.append(message("user"))
        solver.extend([call("c"), answer("c")])

        assert solver.items is solver.trace.items
        assert [item.type for item in solver.items] == ["message", "function_call", "function_call_output"]

    def test_added_items_are_not_validated(self) -> None:
        solver = empty()
        solver.append("anything")  # type: ignore[arg-type]  # unchecked at run time, as promised
        assert [*map(str, solver.items)] == ["anything"]

    def test_messages_are_added_with_a_role_and_without_types(self) -> None:
        solver = empty()
        solver.append_system_message("s")
        solver.append_user_message("u")
        solver.append_custom_task_input_message({"a": 1})

        system, user, opaque = solver.items
        assert isinstance(system, SystemMessage)
        assert isinstance(user, UserMessage)
        assert user.model_dump(mode="json") == {
            "id": "",
            "status": "completed",
            "role": "user",
            "content": [{"text": "u"}],
        }
        assert opaque.model_dump() == {"content": {"a": 1}}
        assert solver.trace.events is None

    def test_message_text_that_is_not_a_string_is_refused(self) -> None:
        for add in (empty().append_user_message, empty().append_system_message):
            with pytest.raises(ValidationError):
                add(1)  # type: ignore[arg-type]  # refused at run time, as promised

    def test_a_response_adds_its_items_and_its_raw_output(self) -> None:
        solver = empty()
        response = ModelResponse(raw_output=chat("a"), items=[message("assistant", "a")])

        solver.add_model_response(response)

        assert solver.items == response.items
        assert solver.raw_outputs == [response.raw_output]

    def test_chat_form_omits_items_that_it_cannot_express(self) -> None:
        odd = Message.model_validate({**message("user", "u").model_dump(), "created_by": "x"})
        solver = SolverTrace(
            trace=Trace(
                items=[
                    message("system", "s"),
                    message("developer", "d"),
                    odd,
                    call("c"),
                    answer("c"),
                    message("assistant", "a", "b"),
                    custom([1]),
                    CustomTaskOutputMessage(content=None),
                ]
            ),
            raw_outputs=[],
        )

        assert solver.messages == [
            ChatCompletionInputMessage(role="system", content="s"),
            ChatCompletionInputMessage(role="user", content="u"),
            ChatCompletionOutputMessage(role="assistant", content="a\nb"),
            [1],
            None,
        ]

    def test_output_is_the_last_raw_output(self) -> None:
        assert empty().output is None
        last = chat("b")
        assert SolverTrace(trace=Trace(items=[]), raw_outputs=[chat("a"), last]).output is last
        assert SolverTrace(trace=Trace(items=[]), raw_outputs=[None]).output is None

    def test_output_items_become_a_chat_answer(self) -> None:
        usage = ModelUsage(num_prompt_tokens=1)
        raw = OpenResponsesModelOutput(
            items=[message("assistant", "a"), message("assistant", "b"), call("c")], usage=usage
        )

        output = SolverTrace(trace=Trace(items=[]), raw_outputs=[raw]).output

        assert isinstance(output, ChatCompletionModelOutput)
        assert [(choice.message.role, choice.message.content) for choice in output.choices] == [
            ("assistant", "b")
        ]
        assert output.usage == usage

    def test_output_items_without_an_answer_give_no_choice(self) -> None:
        raw = OpenResponsesModelOutput(items=[call("c")])
        output = SolverTrace(trace=Trace(items=[]), raw_outputs=[raw]).output
        assert output == ChatCompletionModelOutput(choices=[], usage=None)

    def test_raw_output_read_as_a_dictionary_is_kept(self) -> None:
        raw = {"items": [message("assistant", "a").model_dump(mode="json")]}
        solver = SolverTrace.model_validate({"trace": {"items": []}, "raw_outputs": [raw]})
        assert solver.output == raw


class TestModelResponse:
    def test_response_text_is_the_last_assistant_message(self) -> None:
        response = ModelResponse(
            raw_output=None,
            items=[message("assistant", "a"), message("assistant", "b"), message("user", "u"), call("c")],
        )
        assert response.text == "b"
        assert ModelResponse(raw_output=None, items=[message("assistant")]).text == ""

    def test_response_without_an_assistant_message_has_no_text(self) -> None:
        with pytest.raises(ValueError, match="does not contain an assistant message"):
            _ = ModelResponse(raw_output=None, items=[CustomTaskOutputMessage(content="a")]).text


class TestFromInputAndOutput:
    def test_chat_input_and_output_become_messages(self) -> None:
        asked = ChatCompletionInputMessage(role="user", content="q")
        given = chat("a", refusal="r", name="x")

        output = SingleSolverOutput.from_input_and_output(ChatCompletionInput(messages=[asked]), given)

        assert output.messages == [asked, given.choices[0].message]
        assert output.output is given
        assert output.direct_ios == []
        assert "direct_ios" in output.model_fields_set

    def test_embedding_texts_become_one_message(self) -> None:
        vectors = EmbeddingsModelOutput(embeddings=[[1.0], [2.0]])
        output = SingleSolverOutput.from_input_and_output(["a", "b"], vectors)
        assert output.messages == [["a", "b"], [[1.0], [2.0]]]

    def test_open_responses_output_becomes_a_chat_message(self) -> None:
        last = Message.model_validate({**message("assistant", "a", "b").model_dump(), "name": "x"})
        raw = OpenResponsesModelOutput(items=[message("assistant", "no"), last, call("c")])

        output = SingleSolverOutput.from_input_and_output("custom", raw)

        assert output.messages[0] == "custom"
        assert output.messages[1] == ChatCompletionOutputMessage.model_validate(
            {"role": "assistant", "content": "a\nb", "name": "x"}
        )

    @pytest.mark.parametrize("value", [None, 1, {"choices": []}, {"a": 1}])
    def test_other_inputs_and_outputs_are_unchanged(self, value: Any) -> None:
        output = SingleSolverOutput.from_input_and_output({"messages": []}, value)
        assert output.messages == [{"messages": []}, value]

    def test_output_without_an_answer_is_refused(self) -> None:
        for raw in (ChatCompletionModelOutput(choices=[]), OpenResponsesModelOutput(items=[call("c")])):
            with pytest.raises(ValueError, match="does not contain"):
                SingleSolverOutput.from_input_and_output("q", raw)

    def test_raw_exchange_is_kept_if_input_and_output_are_known(self) -> None:
        def exchanges(*sides: Any) -> list[DirectModelIO]:
            return SingleSolverOutput.from_input_and_output("q", "a", *sides).direct_ios

        assert exchanges(REQUEST, RESPONSE) == [DirectModelIO(direct_input=REQUEST, direct_output=RESPONSE)]
        assert exchanges(REQUEST, None) == exchanges(None, RESPONSE) == []


class TestTextOf:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (message("user", "a", "b"), "a\nb"),
            (message("user", "a", "b").content, "a\nb"),
            (message("user", "a").content[0], "a"),
            (chat("a"), "a"),
            (chat("a").choices[0].message, "a"),
            (chat("a").model_dump(), "a"),
            (
                RAGCompletionOutput.model_validate(
                    {"choices": [{**chat("a").model_dump()["choices"][0], "references": []}]}
                ),
                "a",
            ),
            (OpenResponsesModelOutput(items=[message("assistant", "a"), call("c")]), "a"),
            (
                {
                    "items": [
                        {
                            "type": "message",
                            "role": "assistant",
                            "content": [{"type": "output_text", "text": "a"}],
                        }
                    ]
                },
                "a",
            ),
            (
                [
                    {"type": "input_text", "text": "a"},
                    {"type": "input_file"},
                    {"type": "refusal", "refusal": "b"},
                ],
                "a\nb",
            ),
            ({"type": "output_text", "text": "a"}, "a"),
        ],
    )
    def test_messages_content_and_outputs_have_a_text(self, value: Any, text: str) -> None:
        assert text_of(value) == text

    @pytest.mark.parametrize(
        "value",
        [
            "a",
            1,
            None,
            [],
            {},
            [1, 2],
            ["a"],
            {"a": 1},
            {"choices": []},
            {"choices": ["a"]},
            chat("a").choices,
            custom(1),
        ],
    )
    def test_other_values_print_as_they_are(self, value: Any) -> None:
        assert text_of(value) is None
