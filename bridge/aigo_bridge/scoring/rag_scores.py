"""The eleven scores of RAGChecker, computed from the entailments of claims.

The definitions are from Ru et al., "RagChecker: A Fine-grained Framework for Diagnosing Retrieval-Augmented
Generation" (2024, arXiv 2408.08067), section 3.3, and for open cases from the authors' implementation. A
claim is *correct* if the target entails it, and *faithful* if a chunk does. A chunk is *relevant* if it
entails a claim of the target.

```text
                               proportion of             that
recall                         target claims             the response entails
precision                      response claims           are correct
f1_score                       2 precision recall / (precision + recall)
claim_recall                   target claims             some chunk entails
context_precision              chunks                    are relevant
context_utilization            target claims in chunks   the response entails
noise_sensitivity_in_relevant  response claims           are incorrect, and entailed by a relevant chunk
noise_sensitivity_in_irrelevant response claims          are incorrect, and entailed by irrelevant chunks only
hallucination                  response claims           are incorrect, and entailed by no chunk
self_knowledge                 response claims           are correct, and entailed by no chunk
faithfulness                   response claims           some chunk entails
```

Precision, both noise sensitivities and hallucination add up to 1, and so do faithfulness, self-knowledge and
hallucination. Without claims or chunks, the authors' code returns 0. Here the score is `None`, because
nothing was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Check = Literal["target_in_response", "response_in_target", "target_in_chunks", "response_in_chunks"]
"""Combination of claims and the texts in which they are looked up."""


@dataclass(frozen=True)
class Entailments:
    """Entailments of claims; empty for combinations that were not checked or cannot be checked."""

    target_in_response: Sequence[bool] = ()
    """For each claim of the target: whether the response entails it."""
    response_in_target: Sequence[bool] = ()
    """For each claim of the response: whether the target entails it (the claim is correct)."""
    target_in_chunks: Sequence[Sequence[bool]] = ()
    """For each claim of the target and each chunk: whether the chunk entails the claim."""
    response_in_chunks: Sequence[Sequence[bool]] = ()
    """For each claim of the response and each chunk: whether the chunk entails the claim."""

    @property
    def is_retrieved(self) -> list[bool]:
        """For each claim of the target: whether any chunk entails it."""
        return [any(row) for row in self.target_in_chunks]

    @property
    def is_faithful(self) -> list[bool]:
        """For each claim of the response: whether any chunk entails it."""
        return [any(row) for row in self.response_in_chunks]

    @property
    def is_relevant(self) -> list[bool]:
        """For each chunk: whether it entails a claim of the target."""
        return [any(column) for column in zip(*self.target_in_chunks, strict=True)]

    def is_from(self, *, relevant: bool) -> list[bool]:
        """Return for each claim of the response whether a relevant (or irrelevant) chunk entails it."""
        counts = [is_relevant is relevant for is_relevant in self.is_relevant]
        return [
            any(holds and count for holds, count in zip(row, counts, strict=True))
            for row in self.response_in_chunks
        ]


CHECKS: Mapping[str, frozenset[Check]] = {
    "recall": frozenset({"target_in_response"}),
    "precision": frozenset({"response_in_target"}),
    "f1_score": frozenset({"target_in_response", "response_in_target"}),
    "claim_recall": frozenset({"target_in_chunks"}),
    "context_precision": frozenset({"target_in_chunks"}),
    "context_utilization": frozenset({"target_in_chunks", "target_in_response"}),
    "noise_sensitivity_in_relevant": frozenset(
        {"response_in_chunks", "response_in_target", "target_in_chunks"}
    ),
    "noise_sensitivity_in_irrelevant": frozenset(
        {"response_in_chunks", "response_in_target", "target_in_chunks"}
    ),
    "hallucination": frozenset({"response_in_chunks", "response_in_target"}),
    "self_knowledge": frozenset({"response_in_chunks", "response_in_target"}),
    "faithfulness": frozenset({"response_in_chunks"}),
}
"""Score → the checks that it is computed from."""


def rag_score(name: str, entailments: Entailments) -> float | None:
    """Return one of the eleven scores in [0, 1]; `None` if there is nothing to count."""
    needed = [getattr(entailments, check) for check in CHECKS[name]]
    # There are no claims, or there are claims but no chunks.
    if any(not rows or rows[0] in ([], ()) for rows in needed):
        return None
    return _f1_score(entailments) if name == "f1_score" else _share(_HOLDS[name](entailments))


def _f1_score(entailments: Entailments) -> float | None:
    recall, precision = _share(entailments.target_in_response), _share(entailments.response_in_target)
    if recall is None or precision is None:
        return None
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def _used(entailments: Entailments) -> list[bool]:
    pairs = zip(entailments.target_in_response, entailments.is_retrieved, strict=True)
    return [is_used for is_used, is_retrieved in pairs if is_retrieved]


def _noise_in_relevant(entailments: Entailments) -> list[bool]:
    pairs = zip(entailments.response_in_target, entailments.is_from(relevant=True), strict=True)
    return [not correct and misled for correct, misled in pairs]


def _noise_in_irrelevant(entailments: Entailments) -> list[bool]:
    relevant, irrelevant = entailments.is_from(relevant=True), entailments.is_from(relevant=False)
    triples = zip(entailments.response_in_target, irrelevant, relevant, strict=True)
    return [not correct and misled and not supported for correct, misled, supported in triples]


def _from_nowhere(entailments: Entailments, *, correct: bool) -> list[bool]:
    pairs = zip(entailments.response_in_target, entailments.is_faithful, strict=True)
    return [is_correct is correct and not is_faithful for is_correct, is_faithful in pairs]


_HOLDS: Mapping[str, Callable[[Entailments], Sequence[bool]]] = {
    "recall": lambda entailments: entailments.target_in_response,
    "precision": lambda entailments: entailments.response_in_target,
    "claim_recall": lambda entailments: entailments.is_retrieved,
    "context_precision": lambda entailments: entailments.is_relevant,
    "context_utilization": _used,
    "noise_sensitivity_in_relevant": _noise_in_relevant,
    "noise_sensitivity_in_irrelevant": _noise_in_irrelevant,
    "hallucination": lambda entailments: _from_nowhere(entailments, correct=False),
    "self_knowledge": lambda entailments: _from_nowhere(entailments, correct=True),
    "faithfulness": lambda entailments: entailments.is_faithful,
}
"""Score → the items whose proportion it is."""


def _share(holds: Sequence[bool]) -> float | None:
    return sum(holds) / len(holds) if holds else None
