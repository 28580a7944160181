"""Judges: requests, conversion of replies, and recorded calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    ModelResponse,
    ModelUsage,
    SolverTrace,
    Trace,
)
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.judges import JudgeError
from aigo_bridge.scoring.registry import compile_scorers
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.conversation import output_items
from aigo_bridge.spec.scorers import (
    LabelerViaModelScorer,
    ModelAsAJudgeClassifierScorer,
    ModelAsAJudgeScorer,
    Scorer,
)

SAMPLE = Sample(1, {"question": "2 + 2?", "answer": "4"})


def chat(text: str | None) -> ModelResponse:
    """Return a response with one choice or without choices."""
    message = None if text is None else ChatCompletionOutputMessage(role="assistant", content=text)
    output = ChatCompletionModelOutput(
        choices=[] if message is None else [ChatCompletionModelOutputChoice(message=message)],
        usage=ModelUsage(num_prompt_tokens=3, num_completion_tokens=1),
    )
    return ModelResponse(raw_output=output, items=output_items(output))


class Speaker:
    """Model with scripted replies in order."""

    key = "judge"
    name = "test/judge"

    def __init__(self, *answers: str | Exception | None):
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []

    async def predict(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return chat(answer)

    def __call__(self, key: str) -> Model:
        assert key == self.key
        return self


def judge(scorer: Scorer, speaker: Speaker, answer: str | None = "four") -> Score:
    (compiled,) = compile_scorers([scorer], samples=[SAMPLE], host=SnippetHost())
    output = None
    if answer is not None:
        response = chat(answer)
        output = SolverTrace(
            trace=Trace(items=response.items), raw_outputs=[response.raw_output], direct_ios=[]
        )
    return asyncio.run(compiled.score(SAMPLE, output, speaker))


def classifier(**fields: Any) -> ModelAsAJudgeClassifierScorer:
    return ModelAsAJudgeClassifierScorer(
        **{
            "type": "model_as_a_judge_classifier",
            "model_key": "judge",
            "system_prompt": "Be fair.",
            "user_prompt": "{{ sample.question }} {{ sample.answer }} {{ model_output.choices[0].message.content }}",
            "correct_labels": ("correct", "good"),
            "incorrect_labels": ("incorrect",),
            **fields,
        }
    )


def scorer(low: float = 0.0, high: float = 1.0) -> ModelAsAJudgeScorer:
    return ModelAsAJudgeScorer(
        type="model_as_a_judge_scorer",
        model_key="judge",
        user_prompt="{{ sample.answer }}",
        score_min=low,
        score_max=high,
    )


def labeler(*labels: str) -> LabelerViaModelScorer:
    return LabelerViaModelScorer(
        type="labeler_via_model", model_key="judge", user_prompt="{{ sample.question }}", valid_labels=labels
    )


def contents(request: ModelRequest) -> Sequence[tuple[str, str]]:
    return [(message.role, str(message.content)) for message in request.input.messages]


def test_prompts_are_rendered_with_format_instructions() -> None:
    speaker = Speaker("correct")
    judge(classifier(), speaker)
    (system, user) = contents(speaker.requests[0])
    assert system[0] == "system"
    assert system[1].startswith("Be fair.\n\n")
    assert '"prediction": <one of "correct", "good", "incorrect">' in system[1]
    assert user == ("user", "2 + 2? 4 four")
    assert speaker.requests[0].input.response_format is None


def test_structured_outputs_send_the_labels_as_a_schema() -> None:
    speaker = Speaker('{"reasoning": "same number", "prediction": "correct", "confidence": 0.9}')
    outcome = judge(classifier(use_structured_outputs=True), speaker)
    asked = speaker.requests[0].input.response_format
    assert asked is not None
    schema = asked.model_dump(mode="json", by_alias=True)["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["prediction"]["enum"] == ["correct", "good", "incorrect"]
    assert next(iter(schema["schema"]["properties"])) == "reasoning"
    assert schema["schema"]["required"] == ["reasoning", "prediction", "confidence"]
    assert outcome.values == {"is_correct": 1.0}
    assert outcome.metadata["reasoning"] == "same number"
    assert outcome.metadata["confidence"] == 0.9


@pytest.mark.parametrize(
    ("reply", "score", "prediction"),
    [
        ("correct", 1.0, "correct"),
        ("GOOD", 1.0, "good"),
        ("incorrect", 0.0, "incorrect"),
        ('{"prediction": " Incorrect "}', 0.0, "incorrect"),
    ],
)
def test_known_label_decides_the_score(reply: str, score: float, prediction: str) -> None:
    outcome = judge(classifier(), Speaker(reply))
    assert outcome.values == {"is_correct": score}
    assert outcome.metadata["prediction"] == prediction
    assert "unexpected_label" not in outcome.metadata


def test_unexpected_label_scores_zero_and_is_flagged() -> None:
    outcome = judge(classifier(), Speaker('{"prediction": "partly"}'))
    assert outcome.values == {"is_correct": 0.0}
    assert outcome.metadata["prediction"] == "partly"
    assert outcome.metadata["unexpected_label"] is True


def test_every_judge_call_is_recorded() -> None:
    outcome = judge(classifier(), Speaker("correct"))
    (call,) = outcome.metadata["judge_calls"]
    assert call["model"] == "test/judge"
    assert call["reply"] == "correct"
    assert call["usage"] == {"num_prompt_tokens": 3, "num_completion_tokens": 1}
    assert [message["role"] for message in call["messages"]] == ["system", "user"]
    assert json.dumps(outcome.metadata)


def test_unreadable_reply_is_retried_once_with_the_reason() -> None:
    speaker = Speaker("It seems right to me", '{"prediction": "correct"}')
    outcome = judge(classifier(), speaker)
    assert outcome.values == {"is_correct": 1.0}
    assert len(outcome.metadata["judge_calls"]) == 2
    (*_, shown, again) = contents(speaker.requests[1])
    assert shown == ("assistant", "It seems right to me")
    assert again[0] == "user"
    assert again[1].startswith(
        "Your answer could not be read: it is neither JSON with a prediction nor one of"
    )


@pytest.mark.parametrize("nothing", ["", "  \n", None])
def test_empty_reply_is_retried_without_an_empty_message(nothing: str | None) -> None:
    speaker = Speaker(nothing, "incorrect")
    assert judge(classifier(), speaker).values == {"is_correct": 0.0}
    assert [role for role, _ in contents(speaker.requests[1])] == ["system", "user", "user"]


@pytest.mark.parametrize("answers", [("", ""), ("?!", "\x00\ufffd"), ("x" * 2_000_000, "{" * 10_000)])
def test_second_unreadable_reply_fails_the_sample_with_its_calls(answers: tuple[str, str]) -> None:
    with pytest.raises(JudgeError, match="judge 'judge': no readable answer after 2 attempts") as caught:
        judge(classifier(), Speaker(*answers))
    assert caught.value.stage == "score"
    assert caught.value.kind == "UnreadableJudgeReply"
    assert [call["reply"] for call in caught.value.calls] == list(answers)
    assert len(str(caught.value)) < 1000


def test_failing_judge_is_named_and_earlier_calls_are_recorded() -> None:
    failure = SampleError("rate limit", stage="solver", kind="ModelError", hint="wait")
    with pytest.raises(JudgeError, match="judge 'judge': rate limit") as caught:
        judge(classifier(), Speaker("hm", failure))
    assert (caught.value.stage, caught.value.kind, caught.value.hint) == ("score", "ModelError", "wait")
    assert [call["reply"] for call in caught.value.calls] == ["hm"]


@pytest.mark.parametrize(
    ("low", "high", "raw", "score"),
    [
        (0, 1, 0.25, 0.25),
        (1, 5, 1, 0.0),
        (1, 5, 5, 1.0),
        (1, 5, 2, 0.25),
        (-10, 10, 0, 0.5),
        (0, 100, 85, 0.85),
    ],
)
def test_scores_are_scaled_to_0_to_1(low: float, high: float, raw: float, score: float) -> None:
    outcome = judge(scorer(low, high), Speaker(json.dumps({"score": raw})))
    assert outcome.values["score"] == pytest.approx(score, abs=1e-15)
    assert outcome.metadata["raw_score"] == raw


@pytest.mark.parametrize(
    ("raw", "shown"), [(0.999999, "0.999999"), (5.0000001, "5.0000001"), (-1, "-1"), (1e300, "1e+300")]
)
def test_score_out_of_range_is_an_error(raw: float, shown: str) -> None:
    with pytest.raises(JudgeError) as caught:
        judge(scorer(1, 5), Speaker(json.dumps({"score": raw})))
    assert str(caught.value) == f"judge 'judge' gave {shown}, expected a number from 1 to 5"
    assert caught.value.kind == "ScoreOutOfRange"
    assert len(caught.value.calls) == 1


def test_nan_is_not_a_score() -> None:
    with pytest.raises(JudgeError, match="no readable answer"):
        judge(scorer(), Speaker("nan", '{"score": NaN}'))


def test_a_label_is_spelt_as_in_the_valid_labels() -> None:
    assert judge(labeler("German", "French"), Speaker("german")).values == {"label": "German"}
    assert judge(labeler(), Speaker("Plattdütsch")).values == {"label": "Plattdütsch"}


def test_invalid_label_is_an_error() -> None:
    with pytest.raises(JudgeError, match="gave the label 'Dutch', expected one of 'German'") as caught:
        judge(labeler("German"), Speaker('{"label": "Dutch"}'))
    assert caught.value.kind == "UnexpectedLabel"
    assert len(caught.value.calls) == 1


def test_judges_work_without_a_solver() -> None:
    assert judge(labeler(), Speaker("arithmetic"), answer=None).values == {"label": "arithmetic"}


def test_invalid_prompt_template_fails_before_a_model_call() -> None:
    speaker = Speaker()
    with pytest.raises(SampleError, match="answers") as caught:
        judge(classifier(user_prompt="{{ sample.answers }}"), speaker)
    assert (caught.value.stage, caught.value.kind) == ("score", "TemplateError")
    assert speaker.requests == []
