"""Replayed model replies from score metadata and cassettes, with masked secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.dtypes import ChatCompletionInput, ChatCompletionModelOutput
from aigo_bridge.engine.model_calls import CallOutcome, FailedCall
from aigo_bridge.engine.recording import TrialRecording
from aigo_bridge.errors import SampleError
from aigo_bridge.models.connections import Choice, Reply
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.redaction.secrets import MASK
from aigo_trust.recording.recording import Recorder
from aigo_trust.recording.replay import Cassette
from aigo_trust.verification.replies import CassetteReplies, GivenReplies, ScoreReplies, like


def request(text: str) -> ModelRequest:
    return ModelRequest(ChatCompletionInput.model_validate({"messages": [{"role": "user", "content": text}]}))


def call(text: str, reply: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "reply": reply, "usage": None}


def said(replies: GivenReplies, text: str) -> str:
    async def ask() -> str:
        response = await replies("judge").predict(request(text))
        assert isinstance(response.raw_output, ChatCompletionModelOutput)
        return response.raw_output.choices[0].message.content

    return anyio.run(ask)


def test_score_calls_are_answered_in_order() -> None:
    replies = ScoreReplies([call("a?", "1"), call("b?", "2")])
    assert (said(replies, "a?"), said(replies, "b?")) == ("1", "2")
    assert (replies.problem, replies.missing, replies.rest()) == (None, None, None)


@pytest.mark.parametrize(
    ("calls", "questions", "problem"),
    [
        ([call("a?", "1")], ["b?"], "recorded 'a?', asked 'b?'"),
        ([call("a?", "1")], ["a?", "a?"], "asks a call number 2, the result has 1"),
        ([{"messages": []}], ["a?"], "call 1 has no reply"),
        ([7], ["a?"], "call 1 has no reply"),
    ],
)
def test_unrecorded_question_has_no_answer(calls: list[Any], questions: list[str], problem: str) -> None:
    replies = ScoreReplies(calls)
    *answered, last = questions
    for question in answered:
        said(replies, question)
    with pytest.raises(SampleError):
        said(replies, last)
    assert problem in (replies.problem or "")


def test_unused_replies_are_reported() -> None:
    replies = ScoreReplies([call("a?", "1"), call("b?", "2")])
    said(replies, "a?")
    assert replies.rest() == "the result has 2 calls, the scorer makes 1"


class Plan:
    name = task = "t"
    key = digest = "t"
    specification = None
    samples = ()
    num_trials = 1

    def __init__(self) -> None:
        self.task = self  # type: ignore[assignment]


@pytest.fixture
def cassette(tmp_path: Path) -> Any:
    recorder = Recorder(tmp_path / "c")
    recording = recorder.of_task(cast("TaskPlan", Plan()), "inspect", {"judge": "openai/m"})
    for sample in (1, 2):
        asked = TrialRecording(recording, sample, 0, f"s/{sample}")
        asked.call("judge", "m", request("same?")).keep(CallOutcome(Reply((Choice(str(sample)),))), 1.0, 0.1)
        asked.call("judge", "m", request(f"own {sample}?")).keep(
            CallOutcome(FailedCall("no", "Down")), 1.0, 0.1
        )
    TrialRecording(recording, 3, 0, "s/3").call("judge", "m", request("gone?")).lose("it was stopped")
    recorder.close()
    opened = Cassette(tmp_path / "c")
    yield opened
    opened.close()


def of(cassette: Cassette, sample: int, *, any_sample: bool = False) -> CassetteReplies:
    return CassetteReplies(cassette, "t", (sample, 0, f"s/{sample}"), any_sample=any_sample)


def test_cassette_replays_each_sample_with_its_own_reply(cassette: Cassette) -> None:
    assert [said(of(cassette, sample), "same?") for sample in (2, 1)] == ["2", "1"]
    with pytest.raises(SampleError, match="no"):
        said(of(cassette, 1), "own 1?")


def test_missing_calls_of_a_cassette_are_reported(cassette: Cassette) -> None:
    other, lost, unknown = of(cassette, 1), of(cassette, 3), of(cassette, 4)
    for replies, question in ((other, "other?"), (lost, "gone?"), (unknown, "same?")):
        with pytest.raises(SampleError):
            said(replies, question)
    assert "asked 'other?'" in (other.problem or "")
    assert lost.missing == "a call could not be recorded: it was stopped"
    assert "not in the cassette" in (unknown.missing or "")


PARTS = st.lists(st.text(alphabet="ab[]", max_size=4), min_size=2, max_size=5)


@given(PARTS, st.data())
def test_redaction_mask_matches_any_text(parts: list[str], data: st.DataObject) -> None:
    text = parts[0]
    for part in parts[1:]:
        text += data.draw(st.text(alphabet="ab", max_size=5)) + part
    assert like({"a": [MASK.join(parts)]}, {"a": [text]})
    assert not like(f"y{MASK.join(parts)}", f"x{text}")
    assert not like(f"{MASK.join(parts)}y", f"{text}x")
    assert not like(f"{MASK.join(parts)}y", text)


@given(st.text(), st.text())
def test_texts_without_a_mask_match_only_if_equal(one: str, other: str) -> None:
    assert like(one, other) is (one == other or MASK in one)
