"""`string_equals_mcqa` by likelihoods in a solver's output: arithmetic, and untrusted logs."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SolverTrace, Trace
from aigo_bridge.errors import SampleError
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.likelihoods import RAW_KEY, Likelihood, MostLikelyChoice, by_likelihood, raw_output
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.spec.scorers import StringEqualsMCQAScorer

TEXTS = st.text(min_size=1, max_size=8)
FOUND = st.builds(
    Likelihood,
    TEXTS,
    st.floats(-1e6, 0, allow_nan=False),
    st.integers(1, 50),
    st.booleans(),
)


def scorer(**fields: Any) -> StringEqualsMCQAScorer:
    return StringEqualsMCQAScorer(
        type="string_equals_mcqa",
        method="loglikelihood",
        ground_truth_choice="{{ sample.a }}",
        choices="{{ sample.c }}",
        continuations="{{ sample.t }}",
        **fields,
    )


def scored(spec: StringEqualsMCQAScorer, row: dict[str, Any], *raw: Any) -> Score:
    output = SolverTrace(trace=Trace(items=[]), raw_outputs=[*raw], direct_ios=[])
    # These tests make no model calls.
    models: Any = None
    return asyncio.run(MostLikelyChoice(spec)(Sample(0, row), output, models))


def row_of(found: list[Likelihood], right: int) -> dict[str, Any]:
    choices = [str(number) for number in range(len(found))]
    return {"a": choices[right], "c": choices, "t": [each.continuation for each in found]}


@given(st.lists(FOUND, min_size=2, max_size=6), st.data(), st.sampled_from(["none", "characters", "tokens"]))
def test_first_choice_with_the_highest_likelihood_is_predicted(
    found: list[Likelihood], data: st.DataObject, by: str
) -> None:
    right = data.draw(st.integers(0, len(found) - 1))
    divisors = [
        {"none": 1, "characters": len(each.continuation), "tokens": each.num_tokens}[by] for each in found
    ]
    scores = [each.log_likelihood / divisor for each, divisor in zip(found, divisors, strict=True)]
    outcome = scored(scorer(length_normalisation=by), row_of(found, right), raw_output(found))
    best = next(number for number, score in enumerate(scores) if score == max(scores))
    assert outcome.metadata["predicted_choice"] == str(best)
    assert outcome.values == {"is_correct": float(best == right)}
    assert outcome.metadata["is_tie"] == (sum(score == max(scores) for score in scores) > 1)
    assert [each["score"] for each in outcome.metadata["log_likelihoods"]] == scores


@pytest.mark.parametrize(
    ("by", "predicted"), [("none", "ab"), ("choice_characters", "éééé"), ("choice_bytes", "abcdef")]
)
def test_likelihoods_are_normalized_without_the_delimiter(by: str, predicted: str) -> None:
    """The normalizations equal `acc`, `acc_norm` and `acc_bytes` of lm-evaluation-harness."""
    choices = ["ab", "éééé", "abcdef"]
    weighed = [
        Likelihood(f" {choice}", value, 1, is_greedy=False)
        for choice, value in zip(choices, (-2.0, -2.8, -4.25 + 0.1), strict=True)
    ]
    row = {"a": predicted, "c": choices, "t": [likelihood.continuation for likelihood in weighed]}
    outcome = scored(scorer(length_normalisation=by), row, raw_output(weighed))
    divisors: dict[str, Callable[[str], int]] = {
        "none": lambda _: 1,
        "choice_characters": len,
        "choice_bytes": lambda text: len(text.encode()),
    }
    ratios = [
        likelihood.log_likelihood / divisors[by](choice)
        for likelihood, choice in zip(weighed, choices, strict=True)
    ]
    assert outcome.metadata is not None
    assert outcome.metadata["predicted_choice"] == choices[ratios.index(max(ratios))]


@pytest.mark.parametrize("by", ["choice_characters", "choice_bytes"])
def test_empty_choice_cannot_be_normalized(by: str) -> None:
    row = {"a": "x", "c": ["x", ""], "t": [" x", " "]}
    weighed = [Likelihood(text, -1.0, 1, is_greedy=False) for text in row["t"]]
    with pytest.raises(SampleError, match="but an empty choice cannot be normalized"):
        scored(scorer(length_normalisation=by), row, raw_output(weighed))


def test_likelihoods_of_other_texts_are_ignored() -> None:
    found = [Likelihood("x", -1.0, 1, True), Likelihood("y", -2.0, 1, False)]
    others = [Likelihood("x", -5.0, 1, True), Likelihood("z", -2.0, 1, False)]
    outcome = scored(
        scorer(), row_of(found, 0), {"choices": []}, raw_output(others), "text", raw_output(found)
    )
    assert [each["log_likelihood"] for each in outcome.metadata["log_likelihoods"]] == [-1.0, -2.0]
    with pytest.raises(SampleError, match="contains no log-likelihoods of these continuations") as caught:
        scored(scorer(), row_of(found, 0), raw_output(others))
    assert caught.value.code == Code.MISSING_LIKELIHOODS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_likelihood", None),
        ("log_likelihood", "-1"),
        ("log_likelihood", math.nan),
        ("log_likelihood", -math.inf),
        ("log_likelihood", True),
        ("num_tokens", 0),
        ("num_tokens", "2"),
    ],
)
def test_non_numeric_likelihood_fails_the_sample(name: str, value: object) -> None:
    found = [Likelihood("x", -1.0, 1, True), Likelihood("y", -2.0, 1, False)]
    raw: Any = raw_output(found)
    raw[RAW_KEY][1][name] = value
    with pytest.raises(SampleError, match="cannot be compared") as caught:
        scored(scorer(), row_of(found, 0), raw)
    assert (caught.value.stage, caught.value.kind) == ("score", "InvalidLikelihood")


def test_missing_output_fails_the_sample() -> None:
    models: Any = None
    with pytest.raises(SampleError, match="contains no log-likelihoods"):
        asyncio.run(
            MostLikelyChoice(scorer())(Sample(0, {"a": "0", "c": ["0", "1"], "t": ["x", "y"]}), None, models)
        )


def test_only_likelihood_scorers_compare_likelihoods() -> None:
    letters = StringEqualsMCQAScorer(type="string_equals_mcqa", ground_truth_choice="A", choices=("A", "B"))
    assert by_likelihood([letters]) == ()
    assert by_likelihood([letters, scorer()]) == (scorer(),)


@pytest.mark.parametrize(
    ("choices", "continuations", "message"),
    [
        (["x", "y"], [" x"], "continuations: found 1, expected one for each of the 2 choices"),
        (["x"], [" x"], "choices: found ['x'], expected two or more"),
        ([], [], "choices: found [], expected two or more"),
        (["x", "y", "x"], [" x", " y", " z"], "which contains a duplicate"),
        (["x", "y"], [" x", ""], "but an empty text has no likelihood"),
        (["x", 2], [" x", " y"], "expected a list of texts"),
        (["y", "z"], [" y", " z"], "ground_truth_choice: found 'x', expected one of ['y', 'z']"),
    ],
)
def test_invalid_choices_fail_the_sample(choices: list[Any], continuations: list[Any], message: str) -> None:
    likelihoods = [Likelihood(str(text), -1.0, 1, False) for text in continuations]
    with pytest.raises(SampleError, match=re.escape(message)) as error:
        scored(scorer(), {"a": "x", "c": choices, "t": continuations}, raw_output(likelihoods))
    assert (error.value.stage, error.value.kind) == ("score", "InvalidChoices")
