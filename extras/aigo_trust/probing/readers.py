"""What a scorer of a plan reads, which of its scores says that an answer is right, and how strict it is
documented to be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.scoring import scorer_keys
from aigo_bridge.spec.metric import FieldMetric
from aigo_bridge.spec.metrics import WeightedAverageMetric
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.spec.scorers import (
    BleuScorer,
    FunctionCallCoverageScorer,
    LabelerViaModelScorer,
    ModelAsAJudgeClassifierScorer,
    ModelAsAJudgeScorer,
    RagCheckerScorer,
    StringEqualsMCQAScorer,
    StringEqualsScorer,
)

LOWER_IS_BETTER = frozenset(
    {"noise_sensitivity_in_relevant", "noise_sensitivity_in_irrelevant", "hallucination"}
)

SETTINGS: Mapping[type[ScorerSpec], tuple[frozenset[str], str]] = {
    StringEqualsScorer: (
        frozenset({"same"}),
        "string_equals compares character for character; a `value` may trim, fold or extract",
    ),
    StringEqualsMCQAScorer: (
        frozenset({"same", "worse"}),
        "string_equals_mcqa only compares the first character",
    ),
    BleuScorer: (frozenset({"same"}), "bleu counts n-grams of 13a tokens in their case, all of the text"),
}
"""Type of scorer → expectations that its documentation takes back, and in which words."""


@dataclass(frozen=True)
class Reader:
    """A scorer of a plan, as it is probed."""

    number: int
    """Among the plan's scorers."""
    key: str
    spec: ScorerSpec
    main: str | None
    """The score that says whether an answer is right; `None`: the first number that it gives."""
    weights: Mapping[str, float] | None
    """Label → how good it is, where the scores are labels; `None`: numbers, or nobody says."""

    @property
    def is_judge(self) -> bool:
        """Whether a model judges."""
        return self.spec.judge_key is not None

    @property
    def main_shown(self) -> str:
        """The score that says whether an answer is right, for people."""
        return self.main or "its first number"

    def explains(self, expectation: str) -> str | None:
        """Why the scorer does not meet an expectation by its own documentation; `None`: it does not say."""
        if isinstance(self.spec, StringEqualsScorer) and self.spec.value is not None:
            return None  # the author's template says what is compared
        expectations, sentence = SETTINGS.get(type(self.spec), (frozenset(), ""))
        return sentence if expectation in expectations else None

    def merit(self, values: Mapping[str, Any]) -> float | None:
        """How good an answer is by its scores; above 0 it is right, at least in part. `None`: unknown."""
        if isinstance(self.spec, LabelerViaModelScorer):
            return None if self.weights is None else self.weights.get(str(values.get("label")))
        for name in (self.main, *values):
            value = None if name is None else values.get(name)
            if isinstance(value, bool | int | float):
                return -float(value) if name in LOWER_IS_BETTER else float(value)
            if name is not None and name == self.main and name in values:
                return None  # it gave no number this time
        return None

    def best_verdict(self) -> tuple[str, Mapping[str, Any]] | None:
        """The best reply of a judge, and the scores that follow; `None`: it has none that is known."""
        spec = self.spec
        if isinstance(spec, ModelAsAJudgeClassifierScorer) and spec.correct_labels:
            return json.dumps({"prediction": spec.correct_labels[0]}, ensure_ascii=False), {"is_correct": 1.0}
        if isinstance(spec, ModelAsAJudgeScorer):
            high = float(spec.score_max)
            number = int(high) if high.is_integer() else high
            return json.dumps({"score": number}), {"score": 1.0}
        if isinstance(spec, LabelerViaModelScorer) and self.weights:
            label = max(self.weights, key=lambda name: (self.weights or {})[name])
            return json.dumps({"label": label}, ensure_ascii=False), {"label": label}
        return None


def unprobed(plan: TaskPlan, spec: ScorerSpec) -> str | None:
    """Why a scorer cannot be probed, whatever the models are; `None`: it can."""
    if plan.entity != "model":
        return "the task evaluates no model, so there are no answers to change"
    if spec.runs_answers:
        return "it runs code that the evaluated model wrote, for which a run has a sandbox"
    if spec.sees_all_samples:
        return "it is given the rows of the dataset, and no answers"
    if isinstance(spec, FunctionCallCoverageScorer):
        return "it reads function calls, and no text"
    if spec.compares_likelihoods:
        return "it compares likelihoods, and reads no text"
    return None


def readers(plan: TaskPlan, right: Mapping[str, str]) -> tuple[Reader, ...]:
    """The scorers of a plan.

    Args:
        plan: of a benchmark.
        right: scorer key → the score that says whether an answer is right; of a labeller the label of a right
            answer.

    Raises:
        UsageError: there is no such scorer or label.
    """
    specs = plan.benchmark.scorers
    keys = scorer_keys(specs)
    for key in right:
        if key not in keys:
            raise UsageError(
                f"--right: the task has no scorer {key!r}; it has {', '.join(map(repr, keys))}",
                code=Code.UNKNOWN_CHOICE,
            )
    return tuple(
        Reader(number, key, spec, _main(spec, right.get(key)), _weights(key, spec, right.get(key)))
        for number, (key, spec) in enumerate(zip(keys, specs, strict=True))
    )


def _main(spec: ScorerSpec, named: str | None) -> str | None:
    if isinstance(spec, LabelerViaModelScorer):
        return "label"
    if named is not None:
        return named
    if isinstance(spec, RagCheckerScorer):
        return next(iter(spec.scores_to_compute or ("f1_score",)))
    metrics = spec.usual_metrics if spec.metrics is None else spec.metrics
    for metric in metrics or ():
        if isinstance(metric, FieldMetric) and (spec.scores is None or metric.field in spec.scores):
            return metric.field
    return None


def _weights(key: str, spec: ScorerSpec, named: str | None) -> Mapping[str, float] | None:
    if not isinstance(spec, LabelerViaModelScorer):
        return None
    labels = spec.valid_labels
    if named is not None:
        if labels and named not in labels:
            raise UsageError(
                f"--right: scorer {key!r} has no label {named!r}; it has {', '.join(map(repr, labels))}",
                code=Code.UNKNOWN_CHOICE,
            )
        return {**dict.fromkeys(labels, 0.0), named: 1.0}
    # Of several weights the last: what it says of an answer as a whole stands behind what it says of parts.
    weighted = [metric for metric in spec.metrics or () if isinstance(metric, WeightedAverageMetric)]
    if not weighted:
        return None
    weights = weighted[-1].weights
    assert not isinstance(weights, str)  # the config is bound
    return weights
