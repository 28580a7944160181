"""The eleven RAGChecker scores computed by hand, and the sums that they must satisfy."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.scoring.rag_scores import CHECKS, Entailments, rag_score
from aigo_bridge.spec.scorers import RagScore

# Target: T1, T2, T3. Response: R1 … R5. Chunks: A (entails T1), B (nothing of the target), C (T1 and T2).
EXAMPLE = Entailments(
    target_in_response=[True, False, True],
    response_in_target=[True, True, False, False, False],
    target_in_chunks=[[True, False, True], [False, False, True], [False, False, False]],
    response_in_chunks=[
        [True, False, False],  # R1: correct, from a relevant chunk
        [False, False, False],  # R2: correct, from nowhere
        [True, True, False],  # R3: incorrect, from a relevant chunk (and an irrelevant one)
        [False, True, False],  # R4: incorrect, from the irrelevant chunk
        [False, False, False],  # R5: incorrect, from nowhere
    ],
)
BY_HAND = {
    "recall": 2 / 3,
    "precision": 2 / 5,
    "f1_score": 2 * (2 / 3) * (2 / 5) / (2 / 3 + 2 / 5),
    "claim_recall": 2 / 3,
    "context_precision": 2 / 3,
    "context_utilization": 1 / 2,
    "noise_sensitivity_in_relevant": 1 / 5,
    "noise_sensitivity_in_irrelevant": 1 / 5,
    "hallucination": 1 / 5,
    "self_knowledge": 1 / 5,
    "faithfulness": 3 / 5,
}


@pytest.mark.parametrize("name", get_args(RagScore))
def test_scores_equal_those_computed_by_hand(name: str) -> None:
    assert rag_score(name, EXAMPLE) == pytest.approx(BY_HAND[name], rel=1e-15)


def test_every_score_declares_its_checks() -> None:
    assert set(CHECKS) == set(get_args(RagScore))


@pytest.mark.parametrize("name", get_args(RagScore))
def test_scores_are_null_without_claims(name: str) -> None:
    assert rag_score(name, Entailments()) is None
    assert rag_score(name, Entailments([], [], [], [])) is None


@pytest.mark.parametrize("name", get_args(RagScore))
@pytest.mark.parametrize("no_chunks", [[], [[], []]])
def test_chunk_scores_are_null_without_chunks(name: str, no_chunks: list[list[bool]]) -> None:
    found = Entailments(EXAMPLE.target_in_response, EXAMPLE.response_in_target, no_chunks, no_chunks)
    expected = BY_HAND[name] if name in ("recall", "precision", "f1_score") else None
    assert rag_score(name, found) == expected


def test_f1_is_zero_if_recall_and_precision_are_zero() -> None:
    assert rag_score("f1_score", Entailments([False], [False])) == 0.0


def test_context_utilization_is_null_without_retrieved_claims() -> None:
    found = Entailments(target_in_response=[True], target_in_chunks=[[False]])
    assert rag_score("context_utilization", found) is None
    assert rag_score("claim_recall", found) == 0.0


@st.composite
def entailments(draw: st.DrawFn) -> Entailments:
    targets, responses, chunks = (draw(st.integers(1, 5)) for _ in range(3))

    def row(length: int) -> list[bool]:
        return draw(st.lists(st.booleans(), min_size=length, max_size=length))

    return Entailments(
        row(targets),
        row(responses),
        [row(chunks) for _ in range(targets)],
        [row(chunks) for _ in range(responses)],
    )


def score(name: str, found: Entailments) -> float:
    value = rag_score(name, found)
    assert value is not None
    return value


@given(entailments())
def test_scores_are_proportions_and_add_up(found: Entailments) -> None:
    values = {name: rag_score(name, found) for name in CHECKS}
    assert all(value is None or 0.0 <= value <= 1.0 for value in values.values())
    assert [name for name, value in values.items() if value is None] in ([], ["context_utilization"])
    noise = score("noise_sensitivity_in_relevant", found) + score("noise_sensitivity_in_irrelevant", found)
    assert score("precision", found) + noise + score("hallucination", found) == pytest.approx(1)
    unfaithful = score("self_knowledge", found) + score("hallucination", found)
    assert score("faithfulness", found) + unfaithful == pytest.approx(1)


@given(entailments(), st.randoms())
def test_chunk_order_does_not_change_the_scores(found: Entailments, random: Random) -> None:
    assert found.target_in_chunks is not None
    assert found.response_in_chunks is not None
    order = list(range(len(found.target_in_chunks[0])))
    random.shuffle(order)
    moved = Entailments(
        found.target_in_response,
        found.response_in_target,
        [[row[index] for index in order] for row in found.target_in_chunks],
        [[row[index] for index in order] for row in found.response_in_chunks],
    )
    assert {name: rag_score(name, found) for name in CHECKS} == {
        name: rag_score(name, moved) for name in CHECKS
    }
