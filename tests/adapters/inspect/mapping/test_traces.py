"""The conversation of the main agent: its span and its items."""

import math
from pathlib import Path
from typing import Any

import orjson
import pytest
from inspect_ai.event import ScoreEvent
from inspect_ai.log import read_eval_log
from inspect_ai.scorer import Score

from aigo_bridge.dtypes import (
    CustomEvent,
    FunctionCall,
    FunctionCallEvent,
    Message,
    ModelCallEvent,
    OutputTextContent,
    Trace,
    make_explicit,
)
from aigo_bridge.dtypes.base import sparse_serializer
from aigo_bridge.dtypes.items import message_text
from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.importing.api import trace_from_sample
from aigo_inspect.logs.reader import open_log
from aigo_inspect.mapping.messages import items_from_message
from aigo_inspect.mapping.traces import map_raw, trace_of

LOGS = sorted(Path("tests/golden/inspect").glob("*.eval"))


def traces(path: Path) -> list[Trace]:
    with open_log(path) as log:
        return [trace_of(sample, header=log.header, location=log.location) for sample in log.samples()]


def texts(trace: Trace) -> list[str]:
    return [message_text(item) if isinstance(item, Message) else item.type for item in trace.items]


def notes(trace: Trace) -> dict[str, Any]:
    assert trace.metadata is not None
    assert trace.metadata.extra is not None
    found: dict[str, Any] = trace.metadata.extra["inspect"]
    return found


def test_the_trace_is_the_main_agent_with_sub_agents_as_spans(logs: dict[str, Path]) -> None:
    trace = traces(logs["agents"])[0]
    assert (trace.span_name, trace.span_type) == ("react", "agent")
    names = [span.span_name for span in trace.spans()]
    assert names == ["add", "add", "broken", "picture", "helper", "colleague", "submit"]
    (inner,) = trace.spans()[4].spans()
    assert (inner.span_name, inner.span_type) == ("helper", "agent")
    assert texts(inner)[-1].startswith("the helper says")
    assert trace.metadata is not None
    assert trace.metadata.agent == "react"
    assert trace.metadata.model == "mockllm/model"
    assert trace.metadata.source_uri == str(logs["agents"])
    assert trace.metadata.tags == ["agentic"]


def test_a_tool_call_names_the_started_agent(logs: dict[str, Path]) -> None:
    trace = traces(logs["agents"])[0]
    calls = {e.function: e for e in trace.events or [] if isinstance(e, FunctionCallEvent)}
    assert calls["helper"].agent == "helper"
    assert calls["transfer_to_colleague"].agent == "colleague"
    assert calls["add"].agent is None
    spans = {e.span_id: e for e in trace.events or [] if e.type == "span_begin"}
    assert spans[calls["helper"].agent_span_id or ""].span_type == "agent"
    assert calls["broken"].error == "no such file"
    assert calls["broken"].result == ""
    assert isinstance(calls["picture"].result, list)


def test_the_last_message_is_the_submitted_answer(logs: dict[str, Path]) -> None:
    for name in (
        "agents",
        "human approval",
        "parallel tools",
        "trimmed",
        "summarised",
        "tool results cleared",
    ):
        native = read_eval_log(str(logs[name]), resolve_attachments="full").samples
        assert native
        for sample, trace in zip(native, traces(logs[name]), strict=True):
            assert trace.get_last_assistant_text() == sample.messages[-1].text == sample.output.completion
            assert "submit" not in [call.name for call in trace.function_calls]
            calls = [e for e in trace.events or [] if isinstance(e, FunctionCallEvent)]
            assert calls[-1].function == "submit"
            assert ("the last answer of the agent" in notes(trace)["items"]) or (
                "the sample's messages" in notes(trace)["items"]
            )


@pytest.mark.parametrize(
    ("name", "unsaid"), [("limit", 0), ("token limit", 1), ("turn limit", 1), ("cost limit", 1)]
)
def test_items_after_the_last_model_call_are_included(logs: dict[str, Path], name: str, unsaid: int) -> None:
    (trace,) = traces(logs[name])
    native = read_eval_log(str(logs[name]), resolve_attachments="full").samples
    assert native
    messages = native[0].messages
    assert len(trace.function_outputs) == sum(message.role == "tool" for message in messages)
    # An answer that exceeded a limit is in the events, but not in the messages.
    calls = sum(len(message.tool_calls or []) for message in messages if message.role == "assistant")
    assert len(trace.function_calls) == calls + unsaid


TRIMMED = [
    "Be brief.",
    *("question 0", "answer after 2 messages: question 0"),
    *("question 1", "answer after 4 messages: question 1"),
    *("question 2", "answer after 6 messages: question 2"),
    *("question 3", "answer after 4 messages: question 3"),
]


def test_a_trimmed_conversation_is_restored(logs: dict[str, Path]) -> None:
    (trace,) = traces(logs["trim"])
    assert texts(trace) == TRIMMED
    assert "the sample's messages" in notes(trace)["items"]


def test_a_trimmed_conversation_is_joined_if_messages_are_incomplete(logs: dict[str, Path]) -> None:
    with open_log(logs["trim"]) as log:
        (raw,) = log.samples()
    raw.data["messages"] = raw.data["messages"][-1:]
    trace = trace_of(raw)
    assert texts(trace) == TRIMMED
    assert "joined by content" in notes(trace)["items"]


def test_a_summarised_conversation_without_its_messages_has_both_parts(logs: dict[str, Path]) -> None:
    with open_log(logs["summary"]) as log:
        (raw,) = log.samples()
    raw.data["messages"] = []
    trace = trace_of(raw)
    assert texts(trace)[6:] == [
        "answer after 6 messages: question 2",
        *("Be brief.", "summary of it all", "question 3", "answer after 3 messages: question 3"),
    ]
    assert trace.items == Trace.from_events(trace.events or [], span_id=trace.span_id).items


@pytest.mark.parametrize(
    "name",
    [
        *("plain", "trim", "summary", "edit", "trimmed", "summarised", "tool results cleared"),
        *("human approval", "parallel tools", "limit", "cache hits", "unscored", "every kind"),
    ],
)
def test_items_equal_the_conversation_in_inspect(logs: dict[str, Path], name: str) -> None:
    native = read_eval_log(str(logs[name]), resolve_attachments="full").samples
    assert native
    for sample, trace in zip(native, traces(logs[name]), strict=True):
        shown: list[str] = []
        for message in sample.messages:
            if message.role == "tool":
                shown.append(message.text or (message.error.message if message.error else ""))
                continue
            calls = [call.function for call in getattr(message, "tool_calls", None) or []]
            shown += ([message.text] if message.text or not calls else []) + calls
        found = []
        for item in trace.items:
            if isinstance(item, Message):
                found.append(message_text(item))
            else:
                found.append(
                    item.name if isinstance(item, FunctionCall) else str(getattr(item, "output", ""))
                )
        assert found == shown


def test_model_calls_in_other_spans_are_not_in_the_conversation(logs: dict[str, Path]) -> None:
    (trace,) = traces(logs["noisy"])
    assert trace.span_name == "generate" or trace.span_type == "solver"
    assert texts(trace) == ["q", "answer after 1 messages: q"]


def test_judge_calls_are_not_in_the_conversation(logs: dict[str, Path]) -> None:
    for trace in traces(logs["errors"]):
        assert "is it right?" not in texts(trace)
    calls = [e for e in traces(logs["errors"])[0].events or [] if isinstance(e, ModelCallEvent)]
    assert [call.model for call in calls] == ["mockllm/model", "mockllm/grader"]


def test_tool_results_before_a_limit_are_kept(logs: dict[str, Path]) -> None:
    (trace,) = traces(logs["limit"])
    native = read_eval_log(str(logs["limit"])).samples
    assert native
    assert native[0].limit is not None
    assert notes(trace)["limit"]["type"] == "message"
    assert trace.items[-1].type in ("function_call_output", "function_call")


def test_media_reasoning_citations_and_log_probabilities_are_mapped(logs: dict[str, Path]) -> None:
    (trace,) = traces(logs["media"])
    user = trace.user_messages[0]
    assert [part.type for part in user.content] == [
        *("input_text", "input_image", "input_file", "input_video", "input_file", "input_text")
    ]
    assert trace.get_last_user_text() == "Continue"
    assert [item.type for item in trace.items[-5:]] == [
        *("message", "function_call", "function_call_output", "message", "message")
    ]
    # Reasoning after the answer is moved before it, because Inspect scores the text of the last message.
    reasoning, _, _, redacted, said = trace.items[-5:]
    (sample,) = read_eval_log(str(logs["media"])).samples or []
    assert trace.get_last_assistant_text() == sample.output.completion
    assert isinstance(reasoning, Message)
    assert [part.type for part in reasoning.content] == ["reasoning_text", "summary_text"]
    assert isinstance(said, Message)
    part = said.content[0]
    assert isinstance(part, OutputTextContent)
    assert (part.annotations[0].start_index, part.annotations[0].end_index) == (13, 20)  # type: ignore[union-attr]
    assert part.logprobs is not None
    assert part.logprobs[0].top_logprobs[0].token == "London"
    assert isinstance(redacted, Message)
    assert message_text(redacted) == "redacted one"
    call = next(e for e in trace.events or [] if isinstance(e, ModelCallEvent))
    assert call.metadata is not None
    assert call.metadata["inspect"]["choices"][0]["message"]["content"] == "second"


def test_live_samples_give_the_same_trace_as_the_log(logs: dict[str, Path]) -> None:
    native = read_eval_log(str(logs["agents"]), resolve_attachments="full")
    assert native.samples is not None
    by_key = {(sample.id, sample.epoch): sample for sample in native.samples}
    with open_log(logs["agents"]) as log:
        raws = [((raw.id, raw.epoch), trace_of(raw)) for raw in log.samples()]
    for key, trace in raws:
        sample = by_key[key]
        live = trace_from_sample(sample)
        assert live.items == trace.items
        assert [e.id for e in live.events or [] if e.type != "custom"] == [
            e.id for e in trace.events or [] if e.type != "custom"
        ]
        from_events = trace_from_sample(sample.events)
        assert [e.id for e in from_events.events or []] == [e.id for e in live.events or []]
    with pytest.raises(TypeError, match="expected a sample"):
        trace_from_sample("a text")


def test_live_samples_format_unusual_numbers_as_in_the_log() -> None:
    event = ScoreEvent(score=Score(value=math.nan, metadata={"k": [math.inf]}))
    raw = {"event": "score", "score": {"value": math.nan, "metadata": {"k": [math.inf]}}}
    for given in (event, raw):
        (found,) = trace_from_sample([given]).events or []
        assert isinstance(found, CustomEvent)
        score = found.data["score"]
        assert (score["value"], score["metadata"]) == ("NaN", {"k": ["Infinity"]})


def test_equal_items_are_built_once_and_shared(logs: dict[str, Path]) -> None:
    trace = traces(logs["agents"])[0]
    calls = [e for e in trace.events or [] if isinstance(e, ModelCallEvent) and e.span_id == trace.span_id]
    assert calls[0].input_context[0] is calls[-1].input_context[0]


@pytest.mark.parametrize(
    ("message", "types"),
    [
        ({"role": "assistant", "content": ""}, ["message"]),
        ({"role": "assistant", "content": [], "tool_calls": [{"id": "1", "function": "f", "arguments": {}}]}, ["function_call"]),
        ({"role": "assistant", "content": [{"type": "reasoning", "reasoning": "r"}]}, ["message", "message"]),
        ({"role": "tool", "content": "", "tool_call_id": "1", "error": {"type": "x", "message": "no"}}, ["function_call_output"]),
        ({"role": "robot", "content": "x"}, ["custom_task_input_message"]),
        ("just text", ["custom_task_input_message"]),
        ({"role": "user", "content": None}, ["message"]),
        ({"role": "user", "content": [{"type": "hologram"}, 5]}, ["message"]),
        ({"role": "assistant", "content": [{"type": "text", "text": "no", "refusal": True}]}, ["message"]),
    ],
)  # fmt: skip
def test_any_message_becomes_valid_ai_go_items(message: Any, types: list[str]) -> None:
    from pydantic import TypeAdapter

    from aigo_bridge.dtypes import TraceItem

    items = items_from_message(message, LossReport())
    assert [item["type"] for item in items] == types
    adapter: TypeAdapter[Any] = TypeAdapter(TraceItem)
    for item in items:
        assert adapter.validate_python(item).type == item["type"]


def text_of(trace: Trace) -> bytes:
    serializer = sparse_serializer(Trace)
    return serializer.to_json(make_explicit(trace), exclude_unset=True, by_alias=True)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_plain_trace_has_the_text_of_the_typed_trace(path: Path) -> None:
    with open_log(path) as log:
        mapped = [map_raw(raw, LossReport(), header=log.header).trace() for raw in log.samples()]
    assert mapped
    assert [orjson.dumps(trace.plain()) for trace in mapped] == [text_of(trace.typed()) for trace in mapped]


def test_plain_trace_has_the_field_order_and_times_of_the_evidence() -> None:
    with open_log(LOGS[0]) as log:
        trace = map_raw(next(log.samples()), LossReport(), header=log.header).trace()
    trace.events[0]["timestamp"] = "2026-11-28T04:00:00.000000Z"
    event = trace.plain()["events"][0]
    assert event["timestamp"] == "2026-11-28T04:00:00Z"
    assert list(event)[:5] == ["id", "span_id", "timestamp", "metadata", "type"]
    trace.events[0]["text"] = ""
    with pytest.raises(ValueError, match="unknown fields"):
        trace.plain()
