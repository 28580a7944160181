"""Stop reason of a trial's final model call, as engines record it."""

from __future__ import annotations

from typing import Any

import pytest

from aigo_bridge.results.stop_reasons import incomplete_texts, stop_reason_of


def call(reason: str | None, *parts: dict[str, Any], name: str = "inspect") -> dict[str, Any]:
    metadata = {} if reason is None else {name: {"stop_reason": reason}}
    item = {"type": "message", "role": "assistant", "content": list(parts)}
    return {"type": "model_call_event", "metadata": metadata, "output_items": [item]}


def trial(*events: dict[str, Any]) -> dict[str, Any]:
    return {"solver": {"output": {"trace": {"items": [], "events": list(events)}}}}


JUDGING = {"type": "span_begin", "name": "scorers", "span_type": "scorers"}


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], None),
        ([call(None)], None),
        ([call("content_filter")], "content_filter"),
        ([call("length", name="lighteval")], "max_tokens"),
        ([call("tool_calls"), call("max_tokens")], "max_tokens"),
        ([call("max_tokens"), call("stop")], "stop"),
        ([call("stop"), JUDGING, call("content_filter")], "stop"),
        ([call("stop", {"type": "refusal", "refusal": "No."})], "refusal"),
        ([call("stop") | {"error": "overloaded", "output_items": []}], None),
        ([call("content_filter") | {"error": "blocked"}], "content_filter"),
    ],
)
def test_final_call_of_the_evaluated_model_decides(events: list[dict[str, Any]], reason: str | None) -> None:
    assert stop_reason_of(trial(*events)) == reason


def test_last_conversation_of_a_group_decides() -> None:
    outputs = [trial(call(reason))["solver"]["output"] for reason in ("max_tokens", "stop")]

    assert stop_reason_of({"solver": {"output": {"solver_outputs": outputs}}}) == "stop"


@pytest.mark.parametrize("odd", [{}, {"solver": None}, {"solver": {"output": None}}])
def test_trial_without_a_conversation_has_no_stop_reason(odd: dict[str, Any]) -> None:
    assert stop_reason_of(odd) is None


def test_incomplete_answers_are_described_by_stop_reason() -> None:
    reasons = {"stop": 9, "content_filter": 2, "max_tokens": 1, "tool_calls": 3}

    assert incomplete_texts(reasons) == [
        "2 answers stopped by the content filter",
        "1 truncated at the token limit",
    ]
    assert incomplete_texts({"stop": 1}) == []
