"""Recorded and replayed calls: matching of answers, and reports of unmatched calls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import ChatCompletionInput, ChatCompletionOutputMessage
from aigo_bridge.engine.model_calls import CallOutcome, FailedCall, request_json
from aigo_bridge.engine.recording import Recording, TaskRecording, TrialRecording
from aigo_bridge.errors import Issue, SampleError
from aigo_bridge.models.connections import Choice, Reply, ToolCallReply, Usage
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.redaction.secrets import KNOWN
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_trust.recording.container import cassette_lines
from aigo_trust.recording.differences import request_differences
from aigo_trust.recording.recording import Recorder
from aigo_trust.recording.replay import Cassette, Player


class Plan:
    """Plan with the fields that a recording uses."""

    specification = None
    digest = "d"
    num_trials = 2

    def __init__(self, samples: tuple[int, ...] = (1, 2)):
        self.task = type("Task", (), {"key": "t"})
        self.samples = [type("Sample", (), {"id": number}) for number in samples]


def of_task(
    recording: Recording, plan: Plan | None = None, models: Mapping[str, str] | None = None
) -> TaskRecording:
    return recording.of_task(cast("TaskPlan", plan or Plan()), "inspect", models or {"": "openai/m"})


def request(text: str = "q", **options: Any) -> ModelRequest:
    messages = [{"role": "user", "content": text}]
    return ModelRequest(ChatCompletionInput.model_validate({"messages": messages}), options)


def said(text: str) -> CallOutcome:
    return CallOutcome(Reply((Choice(text, finish_reason="stop"),), usage=Usage(3, 1), model="m-1"))


def text_of(outcome: CallOutcome | None) -> str:
    assert outcome is not None
    assert isinstance(outcome.said, Reply)
    return outcome.said.choices[0].text


@contextmanager
def player_of(path: Path) -> Iterator[Player]:
    issues: list[Issue] = []
    cassette = Cassette(path, issues.append)
    assert issues == []
    try:
        yield cassette.player()
    finally:
        cassette.close()


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    """Record the same question in two trials of two samples with different answers, twice in the last trial."""
    recorder = Recorder(tmp_path / "c")
    recording = of_task(recorder)
    for sample, trial, times in ((1, 0, 1), (1, 1, 1), (2, 0, 1), (2, 1, 2)):
        asker = TrialRecording(recording, sample, trial, "solver")
        for time in range(times):
            call = asker.call("", "openai/m", request())
            assert call.played("solver") is None
            call.keep(said(f"{sample}.{trial}.{time}"), 5.0, 0.5)
    recorder.close()
    assert recorder.num_calls == 5
    return tmp_path / "c"


def test_each_trial_replays_its_recorded_answers(cassette: Path) -> None:
    with player_of(cassette) as player:
        assert player.cassette.is_complete
        assert player.cassette.models() == {"": "openai/m"}
        recording = of_task(player)
        for sample, trial, times in ((2, 1, 2), (1, 1, 1), (2, 0, 1), (1, 0, 1)):
            asker = TrialRecording(recording, sample, trial, "solver")
            for time in range(times):
                call = asker.call("", "cassette/openai/m", request())
                assert text_of(call.played("solver")) == f"{sample}.{trial}.{time}"
                assert (
                    text_of(call.played("solver")) == f"{sample}.{trial}.{time}"
                )  # a retry of the same call
        assert (player.num_given, player.num_missing, player.num_unasked) == (5, 0, 0)


def test_samples_with_other_ids_get_answers_in_order(cassette: Path) -> None:
    with player_of(cassette) as player:
        recording = of_task(player, Plan((7,)))
        asked = [TrialRecording(recording, 7, trial, "solver").call("", "m", request()) for trial in range(2)]
        assert [text_of(call.played("solver")) for call in asked] == ["1.0.0", "1.1.0"]


def test_answers_of_a_trial_are_not_given_to_another_trial(cassette: Path) -> None:
    with player_of(cassette) as player:
        recording = of_task(player, Plan((1, 2, 3)))
        with pytest.raises(SampleError, match="recorded fewer times than this run makes it"):
            TrialRecording(recording, 3, 0, "solver").call("", "m", request()).played("solver")
        asker = TrialRecording(recording, 1, 0, "solver")
        asker.call("", "m", request()).played("solver")
        with pytest.raises(SampleError, match="fewer times"):
            asker.call("", "m", request()).played("solver")
        assert player.num_missing == 2


def test_a_changed_prompt_is_reported_with_the_difference(cassette: Path) -> None:
    with player_of(cassette) as player:
        call = TrialRecording(of_task(player), 1, 0, "solver").call("", "m", request("q?", temperature=0.5))
        with pytest.raises(SampleError) as raised:
            call.played("score")
    error = raised.value
    assert (error.kind, error.stage) == ("NotRecorded", "score")
    assert error.code == Code.NOT_RECORDED
    assert error.message == (
        "this call is not in the cassette (sample 1, solver):"
        """ /messages/0/content: recorded 'q', asked 'q?'; /options: recorded nothing, asked {"temperature":0.5}"""
    )
    assert error.hint is not None


def test_unrecorded_call_is_reported_with_the_closest_request(cassette: Path) -> None:
    with player_of(cassette) as player:
        recording = of_task(player)
        with pytest.raises(SampleError, match=r"the closest recorded call \(sample 1, solver\) differs"):
            TrialRecording(recording, 9, 0, "solver").call("", "m", request("q now")).played("solver")
        with pytest.raises(SampleError, match="no similar call of model 'judge' was recorded"):
            TrialRecording(recording, 1, 0, "solver").call("judge", "m", request()).played("solver")


def test_closest_request_is_the_most_similar_one(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "c")
    asker = TrialRecording(of_task(recorder), 1, 0, "solver")
    for text in ("one two three", "red blue green", "red four five"):
        asker.call("", "openai/m", request(text)).keep(said("x"), 5.0, 0.5)
    recorder.close()
    with player_of(tmp_path / "c") as player:
        call = TrialRecording(of_task(player), 9, 0, "solver").call("", "m", request("red blue white"))
        with pytest.raises(SampleError, match="recorded 'red blue green', asked 'red blue white'"):
            call.played("solver")


def test_failures_likelihoods_and_tool_calls_are_replayed(tmp_path: Path) -> None:
    weighed = (Likelihood("a", -1.25, 2, True), Likelihood("b", -0.1, 1, False))
    tool = Choice(
        "", tool_calls=(ToolCallReply("c1", "f", '{"a": 1}'),), logprobs=({"token": "t", "logprob": -0.5},)
    )
    outcomes = [
        CallOutcome(FailedCall("down", "RuntimeError", "wait")),
        CallOutcome(weighed),
        CallOutcome(Reply((tool,), raw={"choices": [], "x": 0.1}), native={"inspect": {"choices": []}}),
        CallOutcome(Reply(value=[[0.1]], raw={"embeddings": [[0.1]]}), "embeddings"),
    ]
    recorder = Recorder(tmp_path / "c")
    for number, outcome in enumerate(outcomes):
        texts = ["a", "b"] if outcome.said is weighed else None
        TrialRecording(of_task(recorder), number, 0, "s").call("k", "m", request(), texts).keep(
            outcome, 1.0, 0.0
        )
    recorder.close()
    assert recorder.num_lost == 0
    with player_of(tmp_path / "c") as player:
        recording = of_task(player)
        for number, outcome in enumerate(outcomes):
            texts = ["a", "b"] if outcome.said is weighed else None
            call = TrialRecording(recording, number, 0, "s").call("k", "m", request(), texts)
            assert call.played("solver") == outcome
        assert recording.model_task("k") == "embeddings"
        assert recording.model_task("") == "chat_completion"


def test_calls_that_cannot_be_recorded_are_listed_in_the_cassette(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "c")
    recording = of_task(recorder)
    TrialRecording(recording, 1, 0, "s").call("", "m", request(seed=2**60)).keep(said("x"), 1.0, 0.0)
    TrialRecording(recording, 2, 0, "s").call("", "m", request()).keep(
        CallOutcome(Reply(value=[math.nan], raw=[math.nan]), "custom"), 1.0, 0.0
    )
    TrialRecording(recording, 3, 0, "s").call("", "m", request()).keep(said("\ud800"), 1.0, 0.0)
    TrialRecording(recording, 4, 0, "s").native_call("", "m", "it has no form").keep(said("x"), 1.0, 0.0)
    TrialRecording(recording, 5, 0, "s").call("", "m", request()).lose("it was stopped")
    recorder.close()
    assert (recorder.num_calls, recorder.num_lost) == (0, 5)
    with player_of(tmp_path / "c") as player:
        assert sum(player.cassette.lost.values()) == 5
        with pytest.raises(SampleError, match="the call could not be recorded: it was stopped"):
            TrialRecording(of_task(player), 5, 0, "s").call("", "m", request()).played("solver")


def test_restarted_trial_replays_its_last_answer(tmp_path: Path) -> None:
    for number in range(2):
        recorder = Recorder(tmp_path / "c", append=number > 0)
        TrialRecording(of_task(recorder), 1, 0, "s").call("", "m", request()).keep(
            said(str(number)), 1.0, 0.0
        )
        recorder.close()
    with player_of(tmp_path / "c") as player:
        assert player.cassette.num_calls == 1
        assert (
            text_of(TrialRecording(of_task(player), 1, 0, "s").call("", "m", request()).played("solver"))
            == "1"
        )


def test_later_failure_does_not_replace_a_recorded_answer(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "c")
    call = TrialRecording(of_task(recorder), 1, 0, "s").call("", "m", request())
    call.keep(said("yes"), 1.0, 0.0)
    call.keep(CallOutcome(FailedCall("too many tokens", "X")), 1.0, 0.0)
    recorder.close()
    assert recorder.num_calls == 1


def test_secrets_are_redacted_and_requests_match_with_other_secrets(tmp_path: Path) -> None:
    KNOWN.learn(["sk-first-0123456789"])
    recorder = Recorder(tmp_path / "c")
    call = TrialRecording(of_task(recorder), 1, 0, "s").call("", "m", request("say sk-first-0123456789"))
    call.keep(said("it is sk-first-0123456789"), 1.0, 0.0)
    recorder.close()
    assert recorder.num_redacted == 1
    with player_of(tmp_path / "c") as player:
        assert "first" not in str(player.cassette.line(0))
        KNOWN.learn(["sk-other-9876543210"])
        again = TrialRecording(of_task(player), 1, 0, "s").call("", "m", request("say sk-other-9876543210"))
        assert text_of(again.played("solver")) == "it is [secret]"


def test_unknown_cassette_lines_are_reported(tmp_path: Path) -> None:
    from aigo_trust.recording.container import CassetteWriter

    place = b'{"task":"t","sample":1,"trial":0,"by":"s","model_key":"","number":0}'
    writer = CassetteWriter(tmp_path / "c", {"cassette": 1})
    for line in (
        b'{"call":%b,"request":{},"reply":{"choices":[{"text":1,"run":"x"}]}}' % place,
        b'{"call":{"task":"t"},"request":{},"error":{"message":"m","kind":"k"}}',
        b'{"call":%b,"request":{}}' % place,
        b'{"run":{"task":"t"}}',
        b'{"other":1}',
        b"[1]",
    ):
        writer.write(line)
    writer.close()
    issues: list[Issue] = []
    cassette = Cassette(tmp_path / "c", issues.append)
    assert cassette.num_calls == 0
    assert len(issues) == 6
    cassette.close()


def test_recorded_request_contains_model_input_without_ids() -> None:
    content = {
        "messages": [{"role": "user", "content": "q"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "strict": True, "schema": {}},
        },
    }
    asked = ModelRequest(ChatCompletionInput.model_validate(content), {"temperature": 0.0, "seed": None})
    assert request_json(asked, ["a"]) == {**content, "options": {"temperature": 0}, "continuations": ["a"]}


def test_fast_message_serialization_equals_the_model_dump() -> None:
    """Text-only messages use a faster serialization."""
    messages = [
        {"role": "system", "content": ""},
        {"role": "user", "content": "q", "name": "somebody"},
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
        {"role": "assistant", "content": "no", "refusal": "never"},
        {"role": "assistant", "content": "yes", "refusal": None},
    ]
    asked = ChatCompletionInput.model_validate({"messages": messages})
    answered = ChatCompletionOutputMessage(role="assistant", content="a", refusal="r")
    asked.messages.append(answered)
    dumped = [message.model_dump(mode="json", exclude_none=True) for message in asked.messages]
    assert request_json(ModelRequest(asked))["messages"] == dumped
    assert [message.get("refusal") for message in dumped] == [None, None, None, "never", None, "r"]


def test_recorded_calls_are_counted_by_model_and_request(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "c")
    recording = TrialRecording(of_task(recorder), 1, 0, "s")
    for key, text in (("", "a"), ("", "a"), ("judge", "a"), ("", "b"), ("", "a"), ("judge", "a")):
        recording.call(key, "m", request(text)).keep(said("x"), 5.0, 0.5)
    recorder.close()
    issues: list[Issue] = []
    lines = [line for line, _ in cassette_lines(tmp_path / "c", issues.append) if "call" in line]
    assert issues == []
    assert [line["call"]["number"] for line in lines] == [0, 1, 0, 0, 2, 1]


def test_request_differences_are_limited_and_have_paths() -> None:
    left = {"a": "x" * 100 + "1", "b": [1, 2], "c": True, "d": 1, "e": {"f": None}}
    right = {"a": "x" * 100 + "2", "b": [1], "c": 1, "d": 1}
    assert request_differences(left, right) == [
        f"/a: recorded {'…' + 'x' * 16 + '1'!r}, asked {'…' + 'x' * 16 + '2'!r}",
        "/b: recorded 2 entries, asked 1 entry",
        "/c: recorded true, asked 1",
        "and 1 more differences",
    ]
    assert request_differences(left, left) == []
