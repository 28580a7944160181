"""The last assistant text is the text that Inspect scored; a failed call has no answer."""

import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessageAssistant
from tests.adapters.inspect.mapping.test_events import (
    Json,
    answer_of,
    imported,
    model_of,
    sample_of,
    trace_of,
)
from tests.adapters.inspect.mapping.test_records import lenient, strict, texts

from aigo_bridge.dtypes import Message
from aigo_bridge.dtypes.items import message_text
from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.logs.reader import open_log
from aigo_inspect.mapping.messages import Item, items_from_message

MOVED = "reasoning inside or after an answer: moved before it"
THOUGHT = {"type": "reasoning", "reasoning": "hm"}
SEARCH = {
    "type": "tool_use",
    "tool_type": "web_search",
    "id": "u",
    "name": "s",
    "arguments": "",
    "result": "r",
}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def items_of(*content: Json) -> tuple[list[Item], int]:
    loss = LossReport()
    items = items_from_message({"id": "a", "role": "assistant", "content": list(content)}, loss)
    return items, loss.changed[MOVED]


def shown(items: list[Item]) -> list[str]:
    """Return items as short texts, with reasoning in brackets."""
    found = []
    for item in items:
        if item["type"] != "message":
            found.append(item["type"])
            continue
        kinds = {part["type"] for part in item["content"]}
        said = message_text(Message.model_validate(item))
        found.append(f"({said})" if kinds == {"reasoning_text"} else said)
    return found


@pytest.mark.parametrize(
    ("content", "expected", "moved"),
    [
        ([THOUGHT, text("a")], ["(hm)", "a"], 0),
        ([text("a"), THOUGHT, text("b")], ["(hm)", "a\nb"], 1),
        ([text("a"), THOUGHT], ["(hm)", "a"], 1),
        ([THOUGHT, text("a"), THOUGHT, text("b"), THOUGHT], ["(hm\nhm\nhm)", "a\nb"], 2),
        ([THOUGHT, THOUGHT], ["(hm\nhm)", ""], 0),
        ([text("a"), SEARCH, THOUGHT], ["(hm)", "a", "function_call", "function_call_output"], 1),
        ([SEARCH, THOUGHT, text("a")], ["function_call", "function_call_output", "(hm)", "a"], 0),
        (
            [text("a"), THOUGHT, SEARCH, text("b"), THOUGHT],
            ["(hm)", "a", "function_call", "function_call_output", "(hm)", "b"],
            2,
        ),
    ],
)
def test_reasoning_is_placed_before_the_answer(content: list[Json], expected: list[str], moved: int) -> None:
    items, count = items_of(*content)
    assert (shown(items), count) == (expected, moved)


@pytest.mark.parametrize(
    "content",
    [[text("first"), THOUGHT, text("second")], [text("first"), THOUGHT], [THOUGHT, text("a"), text("b")]],
)
def test_the_last_text_equals_the_answer_in_inspect(content: list[Json], tmp_path: Path) -> None:
    sample = sample_of()
    answer_of(sample).update(content=content, tool_calls=None)
    sample["messages"][-1] = answer_of(sample)
    del sample["events"][2]
    scored = ChatMessageAssistant.model_validate({"content": content}).text
    assert trace_of(imported(tmp_path, sample)).get_last_assistant_text() == scored


def failed(content: Any = "", *, calls: Any = None, at: str = "call") -> Json:
    sample = sample_of()
    answer_of(sample).update(content=content, tool_calls=calls)
    (model_of(sample) if at == "call" else model_of(sample)["output"])["error"] = "too many requests"
    sample["messages"] = sample["messages"][:1]
    sample["output"] = model_of(sample)["output"]
    del sample["events"][2]
    return sample


def both_ways(path: Path) -> Json:
    with open_log(path) as log:
        ((ref, data),) = texts(path)
        written = lenient(log, ref, data)
        assert strict(log, ref, data) == written
    output: Json = json.loads(written[0])["solver"]["output"]
    return output


@pytest.mark.parametrize("at", ["call", "output"])
@pytest.mark.parametrize("content", ["", [], [{"type": "text", "text": ""}]])
def test_a_failed_call_has_no_answer(content: Any, at: str, tmp_path: Path) -> None:
    trace = trace_of(imported(tmp_path, failed(content, at=at)))
    assert trace.get_last_assistant_text() is None
    output = both_ways(tmp_path / "log.eval")
    call = next(event for event in output["trace"]["events"] if event["type"] == "model_call_event")
    assert (call["output_items"], call["error"], output["raw_outputs"]) == ([], "too many requests", [])
    assert call["metadata"]["inspect"]["stop_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("content", "calls"),
    [("half an answ", None), ("", [{"id": "c", "function": "f", "arguments": {}}]), ([THOUGHT], None)],
)
def test_the_partial_answer_of_a_failed_call_is_kept(content: Any, calls: Any, tmp_path: Path) -> None:
    imported(tmp_path, failed(content, calls=calls))
    output = both_ways(tmp_path / "log.eval")
    call = next(event for event in output["trace"]["events"] if event["type"] == "model_call_event")
    assert call["output_items"]
    assert len(output["raw_outputs"]) == 1


def test_an_empty_answer_of_a_successful_call_is_kept(tmp_path: Path) -> None:
    sample = failed()
    del model_of(sample)["error"]
    assert trace_of(imported(tmp_path, sample)).get_last_assistant_text() == ""
