"""A model file as an Inspect model: tools, caching, calls outside of a run, names."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    CachePolicy,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ResponseSchema,
)
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import Tool, ToolCall, ToolCallError, ToolFunction, ToolInfo, tool
from inspect_ai.util import json_schema
from pydantic import BaseModel
from tests.support.endpoint import Endpoint, completion

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import ChatCompletionInput, ChatCompletionInputMessage, CustomTaskInputMessage
from aigo_bridge.errors import SampleError, SpecError, UsageError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import PlanOrigin
from aigo_inspect import _registry  # noqa: F401  # registers the provider
from aigo_inspect.models.models import native_model, refuse_unfit
from aigo_inspect.models.provider import EntityAPI
from aigo_inspect.models.requests import call_input, input_message
from aigo_inspect.running.run import single_model


def write_model(folder: Path, url: str, more: str = "") -> Path:
    path = folder / "model.yaml"
    path.write_text(
        f"key: local\ndisplay_name: Local\n{more}config:\n  url: {url}/chat\n  model_key: m-1\n"
        "  adapter: {key: latticeflow$openai}\n"
    )
    return path


@pytest.fixture
def model_file(tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    return write_model(tmp_path, endpoint.url)


@tool
def double() -> Tool:
    async def execute(number: int) -> int:
        """Double a number.

        Args:
            number: the number.
        """
        return 2 * number

    return execute


def test_an_inspect_benchmark_with_tools_runs_on_a_model_file(
    model_file: Path, endpoint: Endpoint, tmp_path: Path
) -> None:
    """The model calls a tool, reads its result and answers.

    It is informed about a tool that cannot be called.
    """
    call = {"id": "c1", "type": "function", "function": {"name": "double", "arguments": '{"number": 21}'}}
    broken = {"id": "c2", "type": "function", "function": {"name": "double", "arguments": "{number"}}

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        last = body["messages"][-1]
        return 200, completion(last["content"]) if last["role"] == "tool" else completion(
            "", tool_calls=[call, broken]
        )

    endpoint.answer = answer
    task = Task(MemoryDataset([Sample("double 21")]), solver=[use_tools(double()), generate()])
    (log,) = inspect_eval(
        task,
        model=native_model("model.yaml"),
        display="none",
        log_dir=str(tmp_path / "logs"),
        ctl_server=False,
    )
    assert log.status == "success"
    first, second = endpoint.requests
    assert first["tools"][0]["function"]["name"] == "double"
    assert first["tools"][0]["function"]["parameters"]["properties"]["number"]["type"] == "integer"
    assert first["tool_choice"] == "auto"
    *_, asked, result, problem = second["messages"]
    assert asked["tool_calls"][0] == call
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "42"}
    assert problem["tool_call_id"] == "c2"
    assert "{number" in problem["content"]


def generated(model_file: Path, text: str = "hi", **config: Any) -> str:
    async def once() -> str:
        model = native_model(str(model_file))
        output = await model.generate(text, config=GenerateConfig(**config))
        await model.api.aclose()
        return output.completion

    return anyio.run(once)


def test_inspect_caches_answers_until_the_model_changes(model_file: Path, endpoint: Endpoint) -> None:
    for number in range(3):
        endpoint.answer = lambda _, n=number: (200, completion(f"answer {n}"))  # type: ignore[misc]  # bound now
        assert generated(model_file, cache=CachePolicy(per_epoch=False)) == "answer 0"
    assert len(endpoint.requests) == 1
    model_file.write_text(model_file.read_text().replace("m-1", "m-2"))
    assert generated(model_file, cache=CachePolicy(per_epoch=False)) == "answer 2"


def test_all_options_are_passed_on(model_file: Path, endpoint: Endpoint) -> None:
    generated(
        model_file, temperature=0.5, max_tokens=7, stop_seqs=["x"], seed=1, top_k=3, extra_body={"mine": 1}
    )
    assert endpoint.requests == [
        {
            "model": "m-1",
            "messages": [{"role": "user", "content": "hi"}],
            "temperature": 0.5,
            "top_k": 3,
            "max_tokens": 7,
            "stop": ["x"],
            "seed": 1,
            "mine": 1,
        }
    ]


def test_a_model_can_be_called_outside_of_a_run(model_file: Path, endpoint: Endpoint) -> None:
    model = single_model("model.yaml")
    write_model(model_file.parent, endpoint.url, "max_concurrent_requests: 1\nrate_limit: 600\n")
    limited = single_model("model.yaml")
    request = ModelRequest(
        ChatCompletionInput(messages=[ChatCompletionInputMessage(role="user", content="hi")])
    )
    assert anyio.run(model.predict, request).text == "ok"
    assert anyio.run(limited.predict, request).text == "ok"


def test_a_custom_base_url_is_another_version_of_the_model(model_file: Path, endpoint: Endpoint) -> None:
    own = native_model("model.yaml")
    other = native_model("model.yaml", {"base_url": f"{endpoint.url}/other"})
    assert isinstance(other.api, EntityAPI)
    assert str(own) != str(other)
    # For a retry, Inspect passes the name and base URL of the log.
    again = native_model(str(other), {"base_url": other.api.base_url})
    assert str(again) == str(other)
    with pytest.raises(UsageError, match="has changed since this run began") as caught:
        native_model(str(other))
    assert caught.value.code == Code.CHANGED_SINCE


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("nothing.yaml", {}, "model file 'nothing.yaml' does not exist"),
        ("aigo_bridge/nothing.yaml", {}, "model file 'nothing.yaml' does not exist"),
        ("model.yaml", {"api_key": "x"}, "api_key has no effect on it"),
        ("model.yaml", {"organization": "x"}, "organization has no effect on it"),
        ("nobodys/model", {}, "nobodys"),
        ("not a model at all", {}, "not a model at all"),
    ],
)
def test_invalid_model_names_and_arguments_are_refused(
    model_file: Path, name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        native_model(name, arguments)


def test_a_model_file_in_a_folder_named_like_a_provider_is_loaded(
    model_file: Path, endpoint: Endpoint
) -> None:
    (model_file.parent / "openai").mkdir()
    (model_file.parent / "openai" / "model.yaml").write_text(model_file.read_text())
    assert str(native_model("openai/model.yaml")).startswith("aigo_bridge/openai/model.yaml@")
    (model_file.parent / "openai" / "model.yaml").write_text("key: [")
    with pytest.raises(SpecError):
        native_model("openai/model.yaml")


def test_chat_with_an_embeddings_model_is_refused_before_it_starts(
    model_file: Path, endpoint: Endpoint
) -> None:
    made = plan(PlanOrigin(task="aigo_tasks/hp-trivia"))
    refuse_unfit(made, native_model("model.yaml"))
    write_model(model_file.parent, endpoint.url, "task: embeddings\n")
    with pytest.raises(UsageError, match="creates embeddings and cannot hold the conversation") as caught:
        refuse_unfit(made, native_model("model.yaml"))
    assert caught.value.code == Code.UNFIT_MODEL


# Calls of Inspect in the AI GO format

PNG = "data:image/png;base64," + base64.b64encode(b"png").decode()


class Answer(BaseModel):
    value: int


def test_every_message_type_is_converted() -> None:
    messages: list[ChatMessage] = [
        ChatMessageSystem(content="s"),
        ChatMessageUser(content=[ContentText(text="a"), ContentText(text="b")]),
        ChatMessageUser(
            content=[
                ContentText(text="see"),
                ContentImage(image=PNG, detail="low"),
                ContentDocument(document="data:application/pdf;base64,AA==", filename="f.pdf"),
            ]
        ),
        ChatMessageAssistant(
            content=[ContentReasoning(reasoning="not told"), ContentText(text="said")],
            tool_calls=[ToolCall(id="c", function="f", arguments={"x": "é"})],
        ),
        ChatMessageTool(content="", tool_call_id="c", error=ToolCallError("timeout", "late")),
    ]
    schema = ResponseSchema(name="answer", json_schema=json_schema(Answer), description="d")
    call = call_input(
        "chat_completion", messages, [], "auto", GenerateConfig(response_schema=schema), {"row": 1}
    )
    assert call.input["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a\nb"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                {
                    "type": "file",
                    "file": {"filename": "f.pdf", "file_data": "data:application/pdf;base64,AA=="},
                },
            ],
        },
        {
            "role": "assistant",
            "content": "said",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": "é"}'}}
            ],
        },
        {"role": "tool", "content": "late", "tool_call_id": "c"},
    ]
    form = call.input["response_format"]["json_schema"]
    assert (form["name"], form["description"], form["strict"]) == ("answer", "d", True)
    assert form["schema"]["properties"]["value"]["type"] == "integer"
    assert call.sample == {"row": 1}
    json.dumps(call.input)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("any", "required"),
        ("none", "none"),
        (ToolFunction("f"), {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_every_tool_choice_is_converted(choice: Any, said: Any) -> None:
    tools = [ToolInfo(name="f", description="d")]
    call = call_input("chat_completion", [], tools, choice, GenerateConfig(), None)
    assert call.options["tool_choice"] == said


def test_inputs_other_than_chat_are_refused() -> None:
    for value in (None, "text", ["a", "b"], {"messages": 1}):
        assert call_input("custom", [input_message(value)], [], "auto", GenerateConfig(), None).input == value
    texts = [ChatMessageUser(content="a"), ChatMessageUser(content="b")]
    assert call_input("embeddings", texts, [], "auto", GenerateConfig(), None).input == ["a", "b"]


def test_request_options_of_a_custom_model_are_part_of_its_input(
    model_file: Path, endpoint: Endpoint
) -> None:
    model_file.write_text(
        model_file.read_text().replace("latticeflow$openai", "latticeflow$identity_custom") + "task: custom\n"
    )
    endpoint.answer = lambda body: (200, {"echo": body})
    request = ModelRequest(
        ChatCompletionInput(messages=[ChatCompletionInputMessage(role="user", content="hi")]),
        {"temperature": 0},
    )
    response = anyio.run(single_model("model.yaml").predict, request)
    assert response.raw_output == {
        "echo": {"messages": [{"role": "user", "content": "hi"}], "temperature": 0}
    }
    item = CustomTaskInputMessage(type="custom_task_input_message", content=1)
    two = ModelRequest(ChatCompletionInput(messages=[]), items=(item, item))
    with pytest.raises(SampleError, match="takes one input, found a conversation of 2 items"):
        anyio.run(single_model("model.yaml").predict, two)
