"""Scoring of `string_equals_mcqa` by likelihoods: the prediction is the choice whose continuation has the
highest likelihood.

The solver requests the likelihoods and stores them in the raw outputs; only some engines and models support
this. Scoring uses only the stored values, so stored outputs can be rescored, also with another normalization.

In a tie, the first of the best choices wins, as with `numpy.argmax` and therefore lighteval's
`loglikelihood_acc`. The metadata records the tie.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from aigo_bridge.dtypes import SolverOutput, SolverTrace
from aigo_bridge.errors import SampleError, Stage, TemplateError
from aigo_bridge.models.protocol import Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.scoring.variables import render_compared
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.spec.scorers import StringEqualsMCQAScorer
from aigo_bridge.templates import SampleTemplate, as_list

RAW_KEY = "log_likelihoods"
"""Key of a raw output with likelihoods: a list of values from `Likelihood.to_json`."""

UNCONDITIONED_KEY = "unconditioned_log_likelihoods"
"""Key of likelihoods after the unconditioned query, which replaces the question."""


@dataclass(frozen=True)
class Likelihood:
    """Likelihood of one text after a prompt."""

    continuation: str
    log_likelihood: float
    """Sum of the natural log probabilities of its tokens, each given all text before it."""
    num_tokens: int
    is_greedy: bool
    """Whether every token is the most likely one at its position."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value for raw outputs and metadata."""
        return {
            "continuation": self.continuation,
            "log_likelihood": self.log_likelihood,
            "num_tokens": self.num_tokens,
            "is_greedy": self.is_greedy,
        }


def by_likelihood(scorers: Iterable[ScorerSpec]) -> tuple[ScorerSpec, ...]:
    """Return the scorers that compare likelihoods."""
    return tuple(scorer for scorer in scorers if scorer.compares_likelihoods)


def raw_output(likelihoods: Sequence[Likelihood], key: str = RAW_KEY) -> dict[str, Any]:
    """Return the raw output that a solver stores for one question."""
    return {key: [likelihood.to_json() for likelihood in likelihoods]}


class Choices:
    """Choices of a sample, and the continuations that represent them."""

    def __init__(self, spec: ScorerSpec):
        self._choices = _listed(spec.answer_choices or ())
        self._continuations = None if spec.answer_texts is None else _listed(spec.answer_texts)

    def of(self, row: Mapping[str, Any], stage: Stage) -> tuple[list[str], list[str]]:
        """Return choices and continuations in equal number.

        Raises:
            SampleError: they cannot be rendered, are not texts, are empty, or differ in number.
        """
        choices = _texts("choices", self._choices, row, stage)
        if self._continuations is None:
            continuations = choices
        else:
            continuations = _texts("continuations", self._continuations, row, stage)
        problem: str | None = None
        if len(choices) != len(continuations):
            problem = (
                f"continuations: found {len(continuations)}, expected one for each of the {len(choices)}"
                " choices"
            )
        elif len(choices) < 2:
            problem = f"choices: found {choices!r}, expected two or more"
        elif len(set(choices)) < len(choices):
            problem = f"choices: found {choices!r}, which contains a duplicate"
        elif "" in continuations:
            problem = f"continuations: found {continuations!r}, but an empty text has no likelihood"
        if problem is not None:
            raise SampleError(problem, stage=stage, kind="InvalidChoices")
        return choices, continuations


class MostLikelyChoice:
    """Scorer that gives 1.0 if the most likely choice is the correct one."""

    def __init__(self, spec: StringEqualsMCQAScorer):
        self._truth = SampleTemplate(spec.ground_truth_choice)
        self._choices = Choices(spec)
        self._normalisation = spec.length_normalisation
        self._is_weighed_alone = spec.weighs_unconditioned

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        truth = render_compared(self._truth, {"sample": sample.data}, "ground_truth_choice")
        choices, continuations = self._choices.of(sample.data, "score")
        if truth not in choices:
            raise SampleError(
                f"ground_truth_choice: found {truth!r}, expected one of {choices!r}",
                stage="score",
                kind="InvalidChoices",
            )
        if self._normalisation.startswith("choice_") and "" in choices:
            raise SampleError(
                f"choices: found {choices!r}, but an empty choice cannot be normalized",
                stage="score",
                kind="InvalidChoices",
            )
        likelihoods = _likelihoods(output, continuations)
        scores = [
            self._score(likelihood, choice) for likelihood, choice in zip(likelihoods, choices, strict=True)
        ]
        listed = [
            {"choice": choice, **likelihood.to_json()}
            for choice, likelihood in zip(choices, likelihoods, strict=True)
        ]
        if self._is_weighed_alone:
            unconditioned = _likelihoods(output, continuations, UNCONDITIONED_KEY)
            logarithms = [likelihood.log_likelihood for likelihood in unconditioned]
            scores = [score - logarithm for score, logarithm in zip(scores, logarithms, strict=True)]
            for entry, logarithm in zip(listed, logarithms, strict=True):
                entry["unconditioned_log_likelihood"] = logarithm
        best = max(scores)
        predicted = choices[scores.index(best)]
        metadata = {
            "ground_truth_choices": choices,
            "ground_truth_correct_choice": truth,
            "predicted_choice": predicted,
            "method": "loglikelihood",
            "length_normalisation": self._normalisation,
            "log_likelihoods": [
                {**entry, "score": score} for entry, score in zip(listed, scores, strict=True)
            ],
            "is_tie": scores.count(best) > 1,
        }
        return Score({"is_correct": 1.0 if predicted == truth else 0.0}, metadata)

    def _score(self, likelihood: Likelihood, choice: str) -> float:
        """Return the compared number. lighteval normalizes the same way (`LogProbCharNorm`,
        `LogProbTokenNorm`), but counts padding as tokens; lm-evaluation-harness divides by the choice's
        length (`acc_norm`, `acc_bytes`).
        """
        match self._normalisation:
            case "characters":
                return likelihood.log_likelihood / len(likelihood.continuation)
            case "choice_characters":
                return likelihood.log_likelihood / len(choice)
            case "choice_bytes":
                return likelihood.log_likelihood / len(choice.encode())
            case "tokens":
                return likelihood.log_likelihood / likelihood.num_tokens
        return likelihood.log_likelihood


def preview(scorer: StringEqualsMCQAScorer, row: Mapping[str, Any]) -> dict[str, str]:
    """Return the compared texts for a preview; empty for scorers that compare letters."""
    if not scorer.compares_likelihoods:
        return {}
    choices, continuations = Choices(scorer).of(row, "score")
    compared = dict(zip(choices, continuations, strict=True))
    return {
        "continuations": json.dumps(compared, ensure_ascii=False),
        "method": scorer.method,
        "length_normalisation": scorer.length_normalisation,
    }


def _likelihoods(
    output: SolverOutput | None, continuations: Sequence[str], key: str = RAW_KEY
) -> list[Likelihood]:
    """Return the stored likelihoods of these continuations.

    Raises:
        SampleError: they are missing or are not numbers.
    """
    for raw in output.raw_outputs if isinstance(output, SolverTrace) else ():
        stored = raw.get(key) if isinstance(raw, dict) else None
        if not isinstance(stored, list) or [_text(entry) for entry in stored] != list(continuations):
            continue
        return [_stored(entry) for entry in stored]
    behind = " after the unconditioned query" if key == UNCONDITIONED_KEY else ""
    raise SampleError(
        f"the solver output contains no log-likelihoods of these continuations{behind}",
        stage="score",
        hint=("use a model that returns them: --engine lighteval --model transformers/PATH"),
        kind="MissingLikelihoods",
    )


def _text(stored: Any) -> Any:
    return stored.get("continuation") if isinstance(stored, dict) else None


def _stored(raw: Mapping[str, Any]) -> Likelihood:
    """Parse the value of `Likelihood.to_json`, which may come from an untrusted log.

    Raises:
        SampleError: the value is invalid.
    """
    text, value, count = raw["continuation"], raw.get("log_likelihood"), raw.get("num_tokens")
    if not _is_number(value) or not math.isfinite(value) or not _is_number(count) or count < 1:
        raise SampleError(
            f"the log-likelihood of {text!r} is stored as {value!r} over {count!r} tokens, which cannot"
            " be compared",
            stage="score",
            kind="InvalidLikelihood",
        )
    return Likelihood(text, float(value), int(count), raw.get("is_greedy") is True)


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _listed(field: str | tuple[str, ...]) -> SampleTemplate | tuple[str, ...]:
    return SampleTemplate(field) if isinstance(field, str) else field


def _texts(
    name: str, field: SampleTemplate | tuple[str, ...], row: Mapping[str, Any], stage: Stage
) -> list[str]:
    if isinstance(field, tuple):
        return list(field)
    try:
        texts = as_list(field.evaluate(sample=row))
    except TemplateError as error:
        raise SampleError(f"{name}: {error}", stage=stage, kind="TemplateError") from error
    if not all(isinstance(text, str) for text in texts):
        shown = json.dumps(texts, default=str)[:200]
        raise SampleError(
            f"{name}: found {shown}, expected a list of texts", stage=stage, kind="InvalidChoices"
        )
    return texts
