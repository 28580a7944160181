"""`rag_checker` from sample to scores, with a judge that follows simple rules."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

import pytest

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    ModelResponse,
    RAGCompletionModelOutputChoice,
    RAGCompletionOutput,
    RAGReference,
    SolverTrace,
    Trace,
)
from aigo_bridge.errors import SampleError, SpecError
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.judge_replies import UnreadableReplyError
from aigo_bridge.scoring.judges import JudgeError
from aigo_bridge.scoring.rag_checker import CLAIMS_PER_CALL, VERDICTS, read_claims, read_labels
from aigo_bridge.scoring.registry import compile_scorers
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.conversation import output_items
from aigo_bridge.spec.scorers import RagCheckerScorer

ALL = {
    "type": "rag_checker",
    "judge_model_key": "judge",
    "query_column": "question",
    "target_column": "answer",
}


class Judge:
    """Judge with simple rules: claims are sentences, a text entails its sentences, `must` is required, `may` optional.

    `instead` contains replies that are returned first for any request.
    """

    key = "judge"
    name = "test/judge"

    def __init__(self, *instead: str | SampleError):
        self.instead = list(instead)
        self.requests: list[ModelRequest] = []

    def __call__(self, key: str) -> Model:
        assert key == self.key
        return self

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Return the data of every request to the judge."""
        return [json.loads(str(request.input.messages[1].content)) for request in self.requests]

    async def predict(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        reply = self.instead.pop(0) if self.instead else self.answer(request)
        if isinstance(reply, SampleError):
            raise reply
        message = ChatCompletionOutputMessage(role="assistant", content=reply)
        output = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=message)])
        return ModelResponse(raw_output=output, items=output_items(output))

    def answer(self, request: ModelRequest) -> str:
        system, user = (str(message.content) for message in request.input.messages[:2])
        data = json.loads(user)
        if "claims" not in data:
            return json.dumps({"claims": sentences(data["text"])})
        if "entailment" in system:
            labels = [
                "entailment" if claim["text"] in data["text"] else "neutral" for claim in data["claims"]
            ]
        else:
            kinds = {"must": "required", "may": "optional"}
            labels = [kinds.get(claim["text"].split()[0], "irrelevant") for claim in data["claims"]]
        entries = [{"claim": number, "label": label} for number, label in enumerate(labels, 1)]
        return f"```json\n{json.dumps({'labels': entries[::-1]})}\n```"


def sentences(text: str) -> list[str]:
    return [part.strip() for part in text.split(".") if part.strip()]


def answered(text: str, chunks: Sequence[str] | None) -> SolverTrace:
    message = ChatCompletionOutputMessage(role="assistant", content=text)
    output: Any
    if chunks is None:
        output = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=message)])
    else:
        references = [RAGReference(content=chunk) for chunk in chunks]
        choice = RAGCompletionModelOutputChoice(message=message, references=references)
        output = RAGCompletionOutput(choices=[choice])
    return SolverTrace(trace=Trace(items=[]), raw_outputs=[output], direct_ios=[])


def check(
    judge: Judge,
    response: str = "One. Two. Odd. Ill.",
    chunks: Sequence[str] | None = ("One. Odd.", "Ill.", "Three."),
    data: dict[str, Any] | None = None,
    **fields: Any,
) -> Score:
    spec = RagCheckerScorer.model_validate({**ALL, **fields})
    (scorer,) = compile_scorers([spec], samples=[], host=SnippetHost())
    sample = Sample(1, {"question": "Which?", "answer": "One. Two. Three.", **(data or {})})
    return asyncio.run(scorer.score(sample, answered(response, chunks), judge))


def test_all_eleven_scores_of_an_answer_are_computed() -> None:
    outcome = check(Judge())
    assert outcome.values == {
        "recall": 2 / 3,  # one, two
        "precision": 2 / 4,  # one, two
        "f1_score": pytest.approx(4 / 7),
        "claim_recall": 2 / 3,  # one, three
        "context_precision": 2 / 3,  # the first and the last chunk
        "context_utilization": 1 / 2,  # of one and three: one
        "noise_sensitivity_in_relevant": 1 / 4,  # odd, from the first chunk
        "noise_sensitivity_in_irrelevant": 1 / 4,  # ill, from the second
        "hallucination": 0.0,
        "self_knowledge": 1 / 4,  # two
        "faithfulness": 3 / 4,
    }


def test_claims_verdicts_and_calls_are_recorded() -> None:
    judge = Judge()
    metadata = check(judge).metadata
    assert metadata["target_claims"] == {"from": "judge", "claims": ["One", "Two", "Three"]}
    assert metadata["response_claims"] == {"from": "judge", "claims": ["One", "Two", "Odd", "Ill"]}
    assert metadata["verdicts"]["target_in_response"] == [["entailment"], ["entailment"], ["neutral"]]
    assert [len(row) for row in metadata["verdicts"]["response_in_chunks"]] == [3, 3, 3, 3]
    assert len(metadata["judge_calls"]) == len(judge.requests) == 2 + 2 + 3 + 3
    assert metadata["judge_calls"][0]["model"] == "test/judge"
    assert metadata["judge_calls"][0]["messages"][1]["content"] == str(
        judge.requests[0].input.messages[1].content
    )
    json.dumps(metadata)


def test_judge_gets_question_and_texts_as_json() -> None:
    judge = Judge()
    check(judge, response='One". Ünd', scores_to_compute=["faithfulness"])
    assert judge.asked[0] == {"question": "Which?", "text": 'One". Ünd'}
    assert judge.asked[1] == {
        "question": "Which?",
        "text": "One. Odd.",
        "claims": [{"claim": 1, "text": 'One"'}, {"claim": 2, "text": "Ünd"}],
    }


@pytest.mark.parametrize(
    ("wanted", "calls"),
    [
        (["recall"], 2),  # claims of the target, in the response
        (["precision"], 2),
        (["claim_recall", "context_precision"], 1 + 3),
        (["faithfulness"], 1 + 3),
        (["recall", "precision", "f1_score"], 4),
        ([], 0),
    ],
)
def test_only_calls_for_the_requested_scores_are_made(wanted: list[str], calls: int) -> None:
    judge = Judge()
    assert list(check(judge, scores_to_compute=wanted).values) == wanted
    assert len(judge.requests) == calls


def test_only_faithfulness_is_computed_without_target_column() -> None:
    assert check(Judge(), target_column=None).values == {"faithfulness": 3 / 4}


def test_score_that_needs_a_target_is_rejected_without_target_column() -> None:
    with pytest.raises(SpecError, match=r"recall, hallucination cannot be computed without 'target_column'"):
        check(Judge(), target_column=None, scores_to_compute=["recall", "faithfulness", "hallucination"])


@pytest.mark.parametrize("chunks", [[], None])
def test_chunk_scores_are_null_without_chunks(chunks: list[str] | None) -> None:
    values = check(Judge(), chunks=chunks).values
    given = {name: value for name, value in values.items() if value is not None}
    assert given == {"recall": 2 / 3, "precision": 2 / 4, "f1_score": pytest.approx(4 / 7)}
    assert len(values) == 11


def test_empty_answer_has_zero_recall_and_null_precision() -> None:
    values = check(Judge(), response=" ").values
    assert values["recall"] == 0.0
    assert values["claim_recall"] == 2 / 3
    assert values["context_utilization"] == 0.0
    for name in ("precision", "f1_score", "faithfulness", "hallucination", "self_knowledge"):
        assert values[name] is None


@pytest.mark.parametrize("target", [None, "", math.nan])
def test_row_without_target_has_only_faithfulness(target: Any) -> None:
    values = check(Judge(), data={"answer": target}).values
    assert {name for name, value in values.items() if value is not None} == {"faithfulness"}


def test_empty_chunk_counts_as_retrieved_without_a_call() -> None:
    judge = Judge()
    values = check(judge, chunks=["One.", ""], scores_to_compute=["context_precision"]).values
    assert values == {"context_precision": 0.5}
    assert len(judge.requests) == 2


def test_duplicate_chunk_is_judged_once_and_counted_twice() -> None:
    judge = Judge()
    values = check(judge, chunks=["One.", "Bad.", "One."], scores_to_compute=["context_precision"]).values
    assert values == {"context_precision": 2 / 3}
    assert len(judge.requests) == 1 + 2


def test_many_claims_are_judged_in_batches() -> None:
    judge = Judge()
    claims = [f"C{number}" for number in range(2 * CLAIMS_PER_CALL + 1)]
    outcome = check(
        judge, response=". ".join(claims), chunks=["C0. C10."], scores_to_compute=["faithfulness"]
    )
    assert len(judge.requests) == 1 + 3
    # C1 is also a substring of C10; C0 and C10 are complete sentences.
    assert outcome.values == {"faithfulness": 3 / 11}


def test_claims_in_the_dataset_are_not_extracted() -> None:
    judge = Judge()
    data = {"claims": '["One", "Four"]', "said": ["Two"]}
    outcome = check(
        judge,
        data=data,
        target_claims_column="claims",
        response_claims_column="said",
        scores_to_compute=["recall", "precision"],
    )
    assert outcome.values == {"recall": 1 / 2, "precision": 1.0}
    assert outcome.metadata["target_claims"] == {"from": "dataset", "claims": ["One", "Four"]}
    assert all("claims" in asked for asked in judge.asked)


def test_target_claims_can_replace_the_target_text() -> None:
    outcome = check(
        Judge(),
        data={"claims": ["One", "Four"]},
        target_column=None,
        target_claims_column="claims",
        scores_to_compute=["precision"],
    )
    assert outcome.values == {"precision": 1 / 4}


def test_missing_claims_of_a_row_are_extracted() -> None:
    outcome = check(
        Judge(), data={"claims": None}, target_claims_column="claims", scores_to_compute=["recall"]
    )
    assert outcome.values == {"recall": 2 / 3}
    assert outcome.metadata["target_claims"]["from"] == "judge"


@pytest.mark.parametrize(
    ("mode", "recall", "precision"),
    [("all_claims", 2 / 4, 2 / 3), ("required_only", 1 / 1, 1 / 1), ("required_and_optional", 2 / 3, 2 / 2)],
)
def test_mode_selects_the_claims_that_count(mode: str, recall: float, precision: float) -> None:
    outcome = check(
        Judge(),
        data={"answer": "must a. may b. may c. so d."},
        response="must a. may b. so e.",
        mode=mode,
        scores_to_compute=["recall", "precision"],
    )
    assert outcome.values == {"recall": recall, "precision": precision}


def test_labels_in_the_dataset_are_used_without_a_judge_call() -> None:
    judge = Judge()
    outcome = check(
        judge,
        data={"claims": ["One", "Four"], "labels": ["Optional", " required "]},
        mode="required_only",
        target_claims_column="claims",
        target_labels_column="labels",
        scores_to_compute=["recall"],
    )
    assert outcome.values == {"recall": 0.0}
    assert outcome.metadata["target_claims"]["labels"] == ["optional", "required"]
    assert len(judge.requests) == 1


def test_recall_is_null_without_required_claims() -> None:
    outcome = check(Judge(), mode="required_only", scores_to_compute=["recall"])
    assert outcome.values == {"recall": None}


def test_custom_instructions_are_sent_to_the_judge() -> None:
    judge = Judge()
    check(
        judge,
        mode="required_only",
        claim_extraction_instructions="Only numbers.",
        claim_labeling_instructions="Be strict.",
        scores_to_compute=["recall"],
    )
    systems = [str(request.input.messages[0].content) for request in judge.requests]
    assert "Only numbers." in systems[0]
    assert "Be strict." in systems[1]
    assert "Only numbers." not in systems[1]


def test_unreadable_reply_is_retried_once_with_the_reason() -> None:
    judge = Judge("I would rather not.")
    outcome = check(judge, scores_to_compute=["recall"])
    assert outcome.values == {"recall": 2 / 3}
    again = judge.requests[1].input.messages
    assert [message.role for message in again] == ["system", "user", "assistant", "user"]
    assert "no JSON object with 'claims'" in str(again[3].content)
    assert outcome.metadata["judge_calls"][0]["reply"] == "I would rather not."


def test_a_second_unreadable_reply_is_an_error_with_all_calls() -> None:
    with pytest.raises(JudgeError, match=r"no readable answer after 2 attempts") as caught:
        check(Judge('{"claims": ["One"]}', "no", ""), scores_to_compute=["recall"])
    assert caught.value.kind == "UnreadableJudgeReply"
    assert len(caught.value.calls) == 3


def test_failing_judge_fails_the_sample() -> None:
    failure = SampleError("rate limit", stage="solver", kind="RateLimit")
    with pytest.raises(JudgeError, match="judge 'judge': rate limit") as caught:
        check(Judge(failure))
    assert (caught.value.stage, caught.value.kind) == ("score", "RateLimit")


@pytest.mark.parametrize(
    ("data", "fields", "message"),
    [
        ({}, {"query_column": "nope"}, "no column 'nope', expected one of 'question', 'answer'"),
        ({}, {"target_column": "nope"}, "no column 'nope'"),
        ({"c": "One. Two."}, {"target_claims_column": "c"}, "column 'c': found the text"),
        (
            {"c": [1]},
            {"target_claims_column": "c"},
            "column 'c': its list contains values that are not texts",
        ),
        (
            {"c": ["One"], "l": ["mandatory"]},
            {"target_claims_column": "c", "target_labels_column": "l"},
            "found the label 'mandatory', expected required, optional, irrelevant",
        ),
        (
            {"c": ["One"], "l": ["required", "required"]},
            {"target_claims_column": "c", "target_labels_column": "l"},
            "found 2 labels for 1 claims",
        ),
        (
            {"c": None, "l": ["required"]},
            {"response_claims_column": "c", "response_labels_column": "l"},
            "found 1 label for no claims",
        ),
    ],
)
def test_invalid_columns_fail_the_sample(data: dict[str, Any], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SampleError, match=message) as caught:
        check(Judge(), data=data, **fields)
    assert caught.value.stage == "score"


def test_labels_column_needs_a_claims_column() -> None:
    with pytest.raises(SpecError, match="'response_labels_column' needs 'response_claims_column'"):
        check(Judge(), response_labels_column="l")


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        ('{"claims": []}', []),
        ('Sure!\n```json\n{"claims": [" a ", "", "b"]}\n```', ["a", "b"]),
        ('{"claims": ["a"]} I repeat: {"claims": ["a"]}', ["a"]),
    ],
)
def test_claims_are_read_from_a_reply(reply: str, claims: list[str]) -> None:
    assert read_claims(reply) == claims


@pytest.mark.parametrize(
    "reply",
    ["", "a, b", '["a"]', '{"claims": "a"}', '{"claims": [1]}', '{"claims": ["a"]} {"claims": ["b"]}'],
)
def test_reply_without_claims_is_unreadable(reply: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_claims(reply)


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ([], "no label for claim 1, 2"),
        ([{"claim": 1, "label": "neutral"}], "no label for claim 2"),
        ([{"claim": 3, "label": "neutral"}], "names no claim from 1 to 2"),
        ([{"claim": True, "label": "neutral"}], "names no claim"),
        (["neutral", "neutral"], "names no claim"),
        (
            [{"claim": 1, "label": "maybe"}],
            "the label of claim 1 is not one of entailment, neutral, contradiction",
        ),
        ([{"claim": 1, "label": "neutral"}, {"claim": 1, "label": "entailment"}], "two different labels"),
        ("neutral", "not a list"),
    ],
)
def test_reply_with_a_missing_label_is_unreadable(labels: Any, problem: str) -> None:
    with pytest.raises(UnreadableReplyError, match=problem):
        read_labels(json.dumps({"labels": labels}), 2, VERDICTS)


def test_labels_are_returned_in_claim_order() -> None:
    entries = [{"claim": 2, "label": "Neutral"}, {"claim": 1, "label": " entailment"}]
    assert read_labels(json.dumps({"labels": entries}), 2, VERDICTS) == ["entailment", "neutral"]
