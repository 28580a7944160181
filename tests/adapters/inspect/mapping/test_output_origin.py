"""The output of a sample is kept if no model call contains it, and not repeated otherwise."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from inspect_ai.tool import ToolCall
from tests.adapters.inspect.mapping.test_records import lenient, strict, texts
from tests.support.inspect_logs.scripted import counting_script, run_scenario

from aigo_inspect.logs.reader import open_log
from aigo_inspect.mapping.messages import items_from_message
from aigo_inspect.mapping.output_origin import own_output

Json = dict[str, Any]


def made_up() -> ModelOutput:
    call = ToolCall(id="c", function="looked_up", arguments={"where": "THERE"})
    message = ChatMessageAssistant(content="made up", tool_calls=[call])
    tokens = Logprobs(content=[Logprob(token="made", logprob=-0.123, bytes=None, top_logprobs=None)])
    return ModelOutput(
        model="external/other",
        choices=[ChatCompletionChoice(message=message, stop_reason="max_tokens", logprobs=tokens)],
        usage=ModelUsage(input_tokens=111, output_tokens=222, total_tokens=333, reasoning_tokens=44),
        time=12.5,
    )


@solver
def without_a_model() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = made_up()
        state.messages.append(ChatMessageAssistant(content="made up"))
        return state

    return solve


@solver
def after_a_model() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        state.output = made_up()
        return state

    return solve


@solver
def stopped_early() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        state.output = state.output.model_copy(deep=True)
        state.output.choices[0].stop_reason = "content_filter"
        return state

    return solve


def log_of(folder: Path, make: Callable[[], Solver]) -> Path:
    def task() -> Task:
        return Task(dataset=[Sample(input="q", target="made up")], solver=make(), scorer=includes())

    return Path(run_scenario((task, counting_script, {}), folder).location)


def outputs_of(path: Path) -> list[Any]:
    """Return the output in the trace of each sample of a log; both parsers give the same."""
    found = []
    for ref, data in texts(path):
        with open_log(path) as log:
            written, _ = lenient(log, ref, data)
            assert strict(log, ref, data) in (None, (written, _))
        trace = json.loads(written)["solver"]["output"]["trace"]
        found.append(trace["metadata"]["extra"]["inspect"].get("output"))
    return found


@pytest.mark.parametrize("make", [without_a_model, after_a_model])
def test_an_output_made_by_a_solver_is_kept_completely(make: Callable[[], Solver], tmp_path: Path) -> None:
    (found,) = outputs_of(log_of(tmp_path, make))
    assert (found["model"], found["time"]) == ("external/other", 12.5)
    assert found["usage"]["reasoning_tokens"] == 44
    choice = found["choices"][0]
    assert choice["stop_reason"] == "max_tokens"
    assert choice["logprobs"]["content"][0]["logprob"] == -0.123
    assert choice["message"]["tool_calls"][0]["arguments"] == {"where": "THERE"}


@pytest.mark.parametrize("choices", [{"message": "made up"}, "made up", 5, [5], ["made up", {}]])
def test_damaged_choices_are_kept(choices: Any) -> None:
    failed = {
        "type": "model_call_event",
        "model": "m",
        "error": "busy",
        "output_items": [],
        "metadata": {"inspect": {}},
    }

    assert own_output({"model": "m", "choices": choices}, [failed], []) == {"choices": choices}


def test_the_change_of_a_modified_output_is_kept(tmp_path: Path) -> None:
    assert outputs_of(log_of(tmp_path, stopped_early)) == [{"choices": [{"stop_reason": "content_filter"}]}]


def test_the_output_of_a_model_call_is_not_repeated(logs: dict[str, Path], tmp_path: Path) -> None:
    assert outputs_of(log_of(tmp_path, generate)) == [None]
    for name in ("plain", "agents", "media", "API retries", "parallel tools", "trimmed", "multiple choices"):
        if name in logs:
            assert set(map(json.dumps, outputs_of(logs[name]))) == {"null"}, name


def test_a_sample_with_only_an_output_has_a_trace(tmp_path: Path) -> None:
    answer = {"id": "a", "role": "assistant", "content": "4"}
    output = {"model": "m", "choices": [{"message": answer, "stop_reason": "model_length"}]}
    sample = {
        "id": 1,
        "epoch": 1,
        "input": "q",
        "target": "t",
        "messages": [],
        "events": [],
        "output": output,
    }
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"status": "success", "eval": {"task": "t"}}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    assert outputs_of(path) == [output]


def test_the_last_sample_message_is_not_repeated_in_the_output() -> None:
    message = {"id": "a", "role": "assistant", "content": "4"}
    output = {"model": "m", "choices": [{"message": message, "stop_reason": "model_length"}], "time": 2.5}
    items = items_from_message(message)
    assert own_output(output, [], items) == {**output, "choices": [{"stop_reason": "model_length"}]}
    assert own_output(output, [], items_from_message({**message, "content": "5"})) == output


def event(**notes: Any) -> Json:
    items = [{"type": "message", "id": "a", "status": "completed", "role": "assistant", "content": []}]
    return {"type": "model_call_event", "model": "m", "output_items": items, "metadata": {"inspect": notes}}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"model": "m", "choices": []}, {}),
        ({}, {}),
        (None, {}),
        ("x", {}),
        ({"choices": "x"}, {"choices": "x"}),
        ({"choices": [5]}, {"choices": [5]}),
        ({"completion": "x"}, {"completion": "x"}),
        ({"choices": [{"message": {"id": "a", "role": "assistant", "content": []}}], "usage": {"x": 1}}, {}),
        (
            {"choices": [{"message": {"id": "a", "role": "assistant", "content": []}}], "response_id": "r"},
            {"response_id": "r"},
        ),
        (
            {"choices": [{"message": {"id": "a", "role": "assistant", "content": []}}, {"more": 1}]},
            {"choices": [{"message": {"id": "a", "role": "assistant", "content": []}}, {"more": 1}]},
        ),
    ],
)
def test_unusual_outputs_are_kept(output: Any, expected: Json) -> None:
    call = event(usage={"x": 1})
    call["output_items"][0]["content"] = [{"type": "output_text", "text": "", "annotations": []}]
    assert own_output(output, [call], []) == expected
