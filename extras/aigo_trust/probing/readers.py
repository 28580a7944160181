"""Scorers of a plan: their main score and their documented strictness."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.scoring.registry import scorer_keys
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
"""Expectations that a scorer type's documentation excludes, with the reason, for each type."""


@dataclass(frozen=True)
class Reader:
    """Scorer of a plan and its properties for the probe."""

    number: int
    """Index among the plan's scorers."""
    key: str
    spec: ScorerSpec
    main: str | None
    """Score that marks a correct answer; `None` for the first numeric score."""
    weights: Mapping[str, float] | None
    """Quality of each label; `None` for numeric scores or if the order of labels is unknown."""

    @property
    def is_judge(self) -> bool:
        """Whether a model judges."""
        return self.spec.judge_key is not None

    @property
    def main_shown(self) -> str:
        """Display name of the score that marks a correct answer."""
        return self.main or "its first number"

    def explains(self, expectation: str) -> str | None:
        """Return the documented reason why the scorer does not meet an expectation; `None` if there is
        none.
        """
        if isinstance(self.spec, StringEqualsScorer) and self.spec.value is not None:
            return None  # the task's own template defines the compared texts
        expectations, sentence = SETTINGS.get(type(self.spec), (frozenset(), ""))
        return sentence if expectation in expectations else None

    def merit(self, values: Mapping[str, Any]) -> float | None:
        """Return the quality of an answer from its scores. Above 0 it is at least partly correct. `None` if
        unknown.
        """
        if isinstance(self.spec, LabelerViaModelScorer):
            return None if self.weights is None else self.weights.get(str(values.get("label")))
        for name in (self.main, *values):
            value = None if name is None else values.get(name)
            if isinstance(value, bool | int | float):
                return -float(value) if name in LOWER_IS_BETTER else float(value)
            if name is not None and name == self.main and name in values:
                return None  # the scorer returned no number for this answer
        return None

    def best_verdict(self) -> tuple[str, Mapping[str, Any]] | None:
        """Return the best reply of a judge and the resulting scores; `None` if it is unknown."""
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
    """Return why a scorer cannot be probed with any model; `None` if it can."""
    if plan.entity != "model":
        return "the task does not evaluate a model, so it does not have answers to change"
    if spec.runs_answers:
        return "it runs code that the evaluated model wrote, for which a run has a sandbox"
    if spec.sees_all_samples:
        return "it receives the rows of the dataset, not answers"
    if isinstance(spec, FunctionCallCoverageScorer):
        return "it reads function calls, not text"
    if spec.compares_likelihoods:
        return "it compares likelihoods instead of text"
    return None


def readers(plan: TaskPlan, right: Mapping[str, str]) -> tuple[Reader, ...]:
    """Return the scorers of a plan.

    Args:
        plan: plan of a benchmark.
        right: score that marks a correct answer for each scorer key. For a labeller, the label of a correct
            answer.

    Raises:
        UsageError: the scorer or the label is not in the plan.
    """
    specs = plan.benchmark.scorers
    keys = scorer_keys(specs)
    for key in right:
        if key not in keys:
            raise UsageError(
                f"--right: the task does not define scorer {key!r}; it has {', '.join(map(repr, keys))}",
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
    # Use the last of several weights: the weight of the whole answer follows the weights of its parts.
    weighted = [metric for metric in spec.metrics or () if isinstance(metric, WeightedAverageMetric)]
    if not weighted:
        return None
    weights = weighted[-1].weights
    assert not isinstance(weights, str)  # the config is already applied
    return weights
